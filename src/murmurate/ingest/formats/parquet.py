"""Read Parquet and GeoParquet, row group by row group, only the columns that are needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from murmurate.core.parquet import CheckedParquet, check_parquet
from murmurate.errors import Fault, InputError
from murmurate.ingest.columns import recognise
from murmurate.ingest.faults import Faults, Place
from murmurate.ingest.files import SourceFile
from murmurate.ingest.formats.geometry import is_degrees
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch

if TYPE_CHECKING:
    import pyarrow.parquet as pq

GROUP_ROWS = 2**20
"""Rows up to which a row group is read at once. Set by hand."""
_ROWS_PER_BYTE = 50
"""Rows per byte above which a file is refused as a decompression bomb. Set by hand, far above any table of traces."""


def batches(
    file: SourceFile, options: ReadOptions, faults: Faults, *, groups: range | None = None, first_row: int = 1
) -> Iterator[Batch]:
    """Yield the rows of a Parquet file, or of some of its row groups, whose first row has this number."""
    checked = _checked(file)
    with checked.open() as table:
        schema = table.schema_arrow
    found, problems = recognise(schema.names, options.columns)
    if problems:  # let the checker say what is wrong with the names
        yield Batch(pl.DataFrame(schema=dict.fromkeys(schema.names, pl.String)), Place(file.name))
        return
    wanted = _wanted(schema, found, options)
    checked.refuse_expansion(wanted, groups=groups, max_expansion=options.max_expansion)
    texts = [name for name in wanted if name == found["uid"] and _is_text(schema.field(name).type)]
    texts = [name for name in texts if checked.fits_dictionary(name, groups)]
    with checked.open(read_dictionary=texts) as table:
        crs = _reference_system(schema, found.get("geometry"))
        start = first_row
        for piece in _pieces(table, wanted, groups):
            piece.validate(full=True)  # damaged text or codes would make polars panic
            frame = as_polars(piece)
            yield Batch(frame, Place(file.name, first_row), crs)
            first_row += frame.height
        if first_row == start:
            yield Batch(pl.DataFrame(schema=dict.fromkeys(wanted, pl.String)), Place(file.name))


def _pieces(table: pq.ParquetFile, wanted: list[str], groups: range | None) -> Iterator[pa.Table]:
    """Yield row groups, or parts of those that are large."""
    for group in groups if groups is not None else range(table.num_row_groups):
        if table.metadata.row_group(group).num_rows <= GROUP_ROWS:
            yield table.read_row_group(group, columns=wanted, use_threads=False)
        else:
            for batch in table.iter_batches(batch_size=GROUP_ROWS // 4, row_groups=[group], columns=wanted, use_threads=False):
                yield pa.Table.from_batches([batch])


def as_polars(table: pa.Table) -> pl.DataFrame:
    """Return an Arrow table as a frame; extension types (such as geometries) as their storage type."""
    columns = [
        pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
        if isinstance(column.type, pa.ExtensionType)
        else column
        for column in table.columns
    ]
    frame = pl.from_arrow(pa.Table.from_arrays(columns, names=table.schema.names))  # names alone: no metadata of fields
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def n_rows(file: SourceFile) -> int:
    """Return the rows by the file's own footer."""
    return sum(group_rows(file))


def group_rows(file: SourceFile) -> list[int]:
    """Return the rows of each row group by the file's own footer."""
    return _checked(file).footer.rows


def _checked(file: SourceFile) -> CheckedParquet:
    checked = check_parquet(file.path)
    rows, size = checked.n_rows, file.path.stat().st_size
    if rows > 10_000_000 and rows > _ROWS_PER_BYTE * size:
        raise InputError([Fault(f"claims {rows:,} rows in {size:,} bytes: refused as a decompression bomb", file=file.name)])
    return checked


def _wanted(schema: pa.Schema, found: dict[str, str], options: ReadOptions) -> list[str]:
    used = set(found.values())
    carried = [name for name in schema.names if name not in used and _may_carry(schema.field(name).type)]
    if options.carry is not None:
        carried = [name for name in carried if name in options.carry]
    return [name for name in schema.names if name in used or name in carried]


def _may_carry(kind: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _reference_system(schema: pa.Schema, geometry: str | None) -> object:
    """Return the reference system a GeoParquet file states for its points; None for longitude and latitude."""
    text = (schema.metadata or {}).get(b"geo")
    if geometry is None or text is None:
        return None
    crs = json.loads(text).get("columns", {}).get(geometry, {}).get("crs", "OGC:CRS84")
    return None if crs is None or is_degrees(crs) else crs
