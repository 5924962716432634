"""Bound what compressed files expand to, so that a small file from a stranger cannot fill the memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import polars as pl

from murmurate.core.foreign import FOREIGN, damaged, shown
from murmurate.errors import Fault, InputError

Item = TypeVar("Item")

MAX_EXPANSION = 25
"""Factor by which a file may expand. Set by hand: text of traces and roads shrinks by 3 to 12, tables of traces by about 3."""
TEXT_FLOOR_BYTES = 32 * 2**20
"""Bytes to which a small compressed text may expand by any factor: parsed, it takes about ten times as much memory."""
TABLE_FLOOR_BYTES = 256 * 2**20
"""Bytes that the columns of a small Parquet file may take in memory, whatever the factor."""
MIN_ITEMS = 250_000
"""Features, edges or rows that a small file may hold. Each takes up to 1 kB as Python objects, so 250 MB together."""
MIN_ROWS = 5_000_000
"""Points that a small file of traces may hold. Each takes about 70 bytes in memory while it is read."""
BYTES_PER_ROW = 4
"""Bytes of a file for each further point. Set by hand: compressed traces take 6 and more."""
BYTES_PER_ITEM = 20
"""Bytes of a file for each further feature, edge or row. Set by hand: roads and zones take 40 and more, compressed too."""
MIN_CELLS = 20_000_000
"""Cells that a table made of a few records may have: 160 MB."""
JSON_FLOOR_BYTES = 512 * 2**20
"""Bytes that the objects of a small JSON file may take in memory."""
JSON_EXPANSION = 60
"""Factor between a JSON file and its objects in memory. Set by hand: traces take about 8 times their text, gzipped 60 times."""
_OBJECT_BYTES, _LIST_BYTES, _VALUE_BYTES = 240, 72, 40
"""Bytes that Python takes for an object of JSON with a few members, for a list, and for a number or short text."""


_OPENERS: tuple[Callable[[Path], Any], ...] = (gzip.open, bz2.open)
"""What opens a gzip file, and a bzip2 file."""


class Bounded(io.RawIOBase):
    """Reads a gzip or bzip2 file that may expand to a bounded number of bytes; more is refused while it is read."""

    def __init__(self, file: Path, *, bzipped: bool = False) -> None:
        self._stream: IO[bytes] = _OPENERS[bzipped](file)
        self._left = max(TEXT_FLOOR_BYTES, MAX_EXPANSION * file.stat().st_size)
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with damaged(self._file, "a compressed file"):
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
    return io.BufferedReader(Bounded(file), 2**16) if zipped else file.open("rb")


def refuse_long(file: Path) -> None:
    """Refuse a gzip or bzip2 file that expands too far, before another program expands it."""
    with file.open("rb") as stream:
        begins = stream.read(3)
    if begins.startswith(b"\x1f\x8b") or begins == b"BZh":
        with damaged(file, "a compressed file"), Bounded(file, bzipped=begins == b"BZh") as content:
            while content.read(2**20):
                pass


def most_items(file: Path) -> int:
    """Return how many features, edges or rows a file of its size may hold."""
    return MIN_ITEMS + file.stat().st_size // BYTES_PER_ITEM


def counted(items: Iterable[Item], file: Path) -> Iterator[Item]:
    """Yield the features, edges or rows of a file, and refuse more of them than a file of its size may hold."""
    most = most_items(file)
    for number, item in enumerate(items, start=1):
        refuse_many(number, most, file)
        yield item


def refuse_many(number: int, most: int, file: Path) -> None:
    """Refuse more features, edges or rows than `most_items`."""
    if number > most:
        raise _too_many(file, f"more than {most:,} features, edges or rows")


def parse_json(raw: bytes | bytearray, file: Path) -> Any:
    """Parse a JSON file; one that is no JSON, is nested too deep or takes far more memory than its size is refused."""
    needed = len(raw) + _OBJECT_BYTES * raw.count(b"{") + _LIST_BYTES * raw.count(b"[") + _VALUE_BYTES * raw.count(b",")
    if needed > max(JSON_FLOOR_BYTES, JSON_EXPANSION * file.stat().st_size):
        raise _too_many(file, f"objects that take about {needed // 2**20:,} MiB in memory")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else f"not JSON, or truncated: {shown(error)}"
        raise InputError([Fault(reason, file=str(file))]) from None


def refuse_rows(rows: int, files: Iterable[Path]) -> None:
    """Refuse more points than files of their size hold."""
    if rows > MIN_ROWS:
        paths = list(files)
        if rows > MIN_ROWS + sum(path.stat().st_size for path in paths) // BYTES_PER_ROW:
            raise _too_many(paths[0], f"more than {rows:,} rows")


def refuse_repeats(texts: Iterable[object], file: Path) -> None:
    """Refuse texts that take far more memory together than their file: a long one that is repeated for every point."""
    if sum(len(text) for text in texts if isinstance(text, str)) > max(TEXT_FLOOR_BYTES, MAX_EXPANSION * file.stat().st_size):
        raise _too_many(file, "a long text that is repeated")


def refuse_cells(records: Sequence[Mapping[str, object]], n_keys: int, file: Path) -> None:
    """Refuse records that make a far larger table than they hold values, or that repeat a long text."""
    cells, values = n_keys * len(records), sum(len(record) for record in records)
    if cells > max(MIN_CELLS, MAX_EXPANSION * values):
        raise _too_many(file, f"{n_keys:,} different names for {len(records):,} records")
    refuse_repeats((value for record in records for value in record.values()), file)


def _too_many(file: Path, what: str) -> InputError:
    return InputError(
        [Fault(f"holds {what}, far more than a file of its size does: refused as a decompression bomb", file=str(file))],
        "decompress it yourself if it is right, or write it in smaller parts.",
    )


def as_schema(table: pl.DataFrame, schema: Mapping[str, Any], what: str) -> pl.DataFrame:
    """Return the columns of a table as these types; columns that are missing or cannot become them are refused."""
    absent = [column for column in schema if column not in table.columns]
    if absent:
        raise InputError(f"{what} lacks {', '.join(absent)}.")
    try:
        return table.select(pl.col(column).cast(kind) for column, kind in schema.items())
    except FOREIGN as error:
        raise InputError(f"{what} is damaged: a column is not of its type ({shown(error)}).") from None
