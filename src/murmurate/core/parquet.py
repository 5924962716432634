"""Open untrusted Parquet files: each is checked by `check_parquet` before a library opens it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from murmurate.core import expansion
from murmurate.core.footers import Chunk, Footer, Pages, read_footer, read_pages
from murmurate.core.foreign import FOREIGN, shown
from murmurate.errors import Fault, InputError

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True)
class CheckedParquet:
    """A Parquet file whose footer was checked; made by `check_parquet`."""

    path: Path
    footer: Footer

    @property
    def n_rows(self) -> int:
        """Rows of all row groups."""
        return sum(self.footer.rows)

    def open(self, *, read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
        """Open the file; columns in `read_dictionary` are read as dictionary-encoded texts (see `fits_dictionary`).

        Do not use its `metadata.row_group(k).column(j)`: an error in there ends the process.
        """
        import pyarrow.parquet as pq

        known = _metadata(*_as_it_is_now(self.path))
        return pq.ParquetFile(self.path, read_dictionary=list(read_dictionary), pre_buffer=False, metadata=known)

    def fits_dictionary(self, column: str, groups: Iterable[int] | None = None) -> bool:
        """Return whether the library can read a column of texts dictionary-encoded: not from delta encodings."""
        with self.path.open("rb") as handle:
            chunks = (
                chunk
                for group in (range(len(self.footer.rows)) if groups is None else groups)
                for chunk in self.footer.groups[group]
                if chunk.name == column
            )
            pages = (read_pages(handle, self.path, chunk) for chunk in chunks)
            return not any(one.shares_beginnings or one.lengths_first for one in pages)

    def refuse_expansion(
        self,
        columns: Sequence[str] | None = None,
        *,
        groups: Iterable[int] | None = None,
        max_expansion: float = expansion.MAX_EXPANSION,
    ) -> None:
        """Refuse columns that would take far more memory than the file has bytes, before they are read.

        A value of fixed width counts its width. Pages of texts count their expanded size, according to their headers. Every
        value of a column with a dictionary counts the longest text of the dictionary, which is an upper bound.
        """
        allowed = max(expansion.TABLE_FLOOR_BYTES, int(max_expansion * self.path.stat().st_size))
        total = 0
        with self.path.open("rb") as handle:
            for group in range(len(self.footer.rows)) if groups is None else groups:
                wanted = [chunk for chunk in self.footer.groups[group] if columns is None or chunk.name in columns]
                pages = [(chunk, read_pages(handle, self.path, chunk)) for chunk in wanted]
                total += sum(max(one.n_bytes, chunk.n_values * max(chunk.width, 1)) for chunk, one in pages)
                for chunk, one in pages:
                    if total <= allowed and not chunk.width and chunk.n_values * one.n_bytes > allowed:
                        total += self._repeated_bytes(group, chunk, one, allowed)
                if total > allowed:
                    reason = f"its rows expand to more than {max_expansion:g} times the file: refused as a decompression bomb."
                    remedy = "read and write it once with a tool that you trust, in smaller parts."
                    raise InputError([Fault(reason, file=str(self.path))], remedy)

    def _repeated_bytes(self, group: int, chunk: Chunk, pages: Pages, allowed: int) -> int:
        """Return an upper bound on the bytes of a column of texts: every value counts as the longest text of the dictionary.

        Texts that share prefixes have no dictionary. They are read in batches that fit into the limit, and their bytes
        are added up.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if pages.shares_beginnings:
            total = 0
            with self.open() as table:
                rows = max(1, allowed // pages.largest)
                for batch in table.iter_batches(batch_size=rows, row_groups=[group], columns=[chunk.leaf], use_threads=False):
                    total += batch.nbytes
                    if total > allowed:
                        break
            return total
        if not pages.has_dictionary:
            return 0  # every text stands in its page
        with self.open(read_dictionary=[chunk.leaf]) as table:
            batch = next(table.iter_batches(batch_size=1, row_groups=[group], columns=[chunk.leaf], use_threads=False), None)
        if batch is None or batch.num_columns == 0:
            return 0
        values = batch.column(0)
        while pa.types.is_nested(values.type):
            values = values.field(0) if pa.types.is_struct(values.type) else values.values
        if not pa.types.is_dictionary(values.type):
            return 0
        return int(pc.max(pc.binary_length(values.dictionary)).as_py() or 0) * chunk.n_values


def check_parquet(path: Path) -> CheckedParquet:
    """Return a Parquet file after checking its footer; a damaged one is refused."""
    return CheckedParquet(path, _footer(*_as_it_is_now(path)))


def _as_it_is_now(path: Path) -> tuple[Path, int, int]:
    status = path.stat()
    return path, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=1)
def _footer(path: Path, _size: int, _changed_ns: int) -> Footer:
    return read_footer(path)


@lru_cache(maxsize=1)
def _metadata(path: Path, _size: int, _changed_ns: int) -> pq.FileMetaData:
    """Return the library's metadata of a file, parsed once for all pieces of it that a process reads.

    Those of a large file take megabytes. Parsed for each piece, they would also stay in memory for long: metadata and schema
    refer to each other, so only Python's cycle collector frees them.
    """
    import pyarrow.parquet as pq

    return pq.read_metadata(path)


def table_files(path: Path) -> list[Path]:
    """Return the files of a table: the path itself or, where it is a folder, its files in the order of their names."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


def read_table(path: Path, *, without: Sequence[str] = ()) -> pl.DataFrame:
    """Read a Parquet file or folder of a release, `without` some columns.

    Files that are damaged, or expand far beyond their size, are refused.
    """
    try:
        for part in table_files(path):
            checked = check_parquet(part)
            with checked.open() as file:
                names = [name for name in file.schema_arrow.names if name not in without]
            checked.refuse_expansion(names)
        return pl.read_parquet(table_files(path), columns=names)
    except InputError:
        raise
    except FOREIGN as error:
        raise InputError(f"{path.name} is damaged: {shown(error)}.") from None
