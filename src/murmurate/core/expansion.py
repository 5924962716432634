"""Bound what compressed files expand to, so that a small file from a stranger cannot fill the memory."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import polars as pl

from murmurate.errors import InputError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MAX_EXPANSION = 25
"""Factor by which a file may expand. Set by hand: text of traces and roads shrinks by 3 to 12, tables of traces by about 3."""
TEXT_FLOOR_BYTES = 64 * 2**20
"""Bytes to which a small compressed text may expand by any factor: parsed, it takes about ten times as much memory."""
TABLE_FLOOR_BYTES = 256 * 2**20
"""Bytes that the columns of a small Parquet file may take in memory, whatever the factor."""
_FIXED_BYTES = 8
"""Bytes of a value of fixed width, the widest kind that traces have."""


class BoundedGzip(io.RawIOBase):
    """Reads a gzip file that may expand to a bounded number of bytes; more is refused while it is read."""

    def __init__(self, file: Path) -> None:
        self._stream = gzip.open(file, "rb")  # noqa: SIM115 - closed with this object
        self._left = max(TEXT_FLOOR_BYTES, MAX_EXPANSION * file.stat().st_size)
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise InputError(
                f"{self._file}: expands to more than {MAX_EXPANSION} times its size: refused as a decompression bomb.",
                "decompress it yourself if it is right.",
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_text(file: Path) -> IO[bytes]:
    """Open a file that may be gzipped; what it expands to is bounded."""
    with file.open("rb") as stream:
        zipped = stream.read(2) == b"\x1f\x8b"
    return io.BufferedReader(BoundedGzip(file), 2**16) if zipped else file.open("rb")


def refuse_expansion(
    table: pq.ParquetFile, path: Path, columns: Sequence[str] | None = None, *, max_expansion: float = MAX_EXPANSION
) -> None:
    """Refuse a Parquet file whose columns would take far more memory than the file has bytes, before they are read.

    Values of fixed width take eight bytes a row, whatever the file says. Texts that are stored once and repeated by number
    take the longest of them for every row at most, so the longest is looked up.
    """
    allowed = max(TABLE_FLOOR_BYTES, int(max_expansion * path.stat().st_size))
    meta, leaves = table.metadata, table.schema
    wanted = [k for k in range(meta.num_columns) if columns is None or leaves.column(k).path.split(".")[0] in columns]
    texts = [k for k in wanted if leaves.column(k).physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")]
    total = meta.num_rows * _FIXED_BYTES * (len(wanted) - len(texts))
    for group in range(meta.num_row_groups):
        chunks = [meta.row_group(group).column(k) for k in texts]
        total += sum(max(chunk.total_uncompressed_size, chunk.num_values) for chunk in chunks)
        if total > allowed:
            break
        coded = [chunk.path_in_schema for chunk in chunks if _many_repeats(chunk, allowed)]
        total += sum(_longest(path, group, name) * meta.row_group(group).num_rows for name in coded)
    if total > allowed:
        raise InputError(
            f"{path}: its {meta.num_rows:,} rows expand to more than {max_expansion:g} times the file: refused as a "
            "decompression bomb.",
            "read and write it once with a tool that you trust, in smaller parts.",
        )


def _many_repeats(chunk: Any, allowed: int) -> bool:
    """Whether texts stored once could be repeated beyond the bound; none is longer than the chunk itself."""
    return bool(chunk.num_values * max(chunk.total_uncompressed_size, 1) > allowed)


def _longest(path: Path, group: int, name: str) -> int:
    """Return the bytes of the longest text in the dictionary of a column, read without any row but the first."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, read_dictionary=[name], pre_buffer=False) as table:
        if pa.types.is_nested(table.schema_arrow.field(name.split(".", maxsplit=1)[0]).type):
            return 0
        batch = next(table.iter_batches(batch_size=1, row_groups=[group], columns=[name], use_threads=False), None)
    if batch is None or batch.num_columns == 0 or not pa.types.is_dictionary(batch.column(0).type):
        return 0
    longest = pc.max(pc.binary_length(batch.column(0).dictionary)).as_py()
    return int(longest or 0)


def table_files(path: Path) -> list[Path]:
    """Return the files of a table: the path itself or, where it is a folder, its files in the order of their names."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


def read_table(path: Path, *, without: Sequence[str] = ()) -> pl.DataFrame:
    """Read a Parquet file or folder of a release, `without` some columns.

    What is damaged, or expands far beyond its size, is refused.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for part in table_files(path):
            with pq.ParquetFile(part, pre_buffer=False) as file:
                names = [name for name in file.schema_arrow.names if name not in without]
                refuse_expansion(file, part, names)
        return pl.read_parquet(table_files(path), columns=names)
    except (
        OSError, ValueError, KeyError, pl.exceptions.PolarsError, pa.ArrowException, pl.exceptions.PanicException
    ) as error:  # fmt: skip
        raise InputError(f"{path} is damaged: {(str(error).splitlines() or [''])[0][:200]}") from None
