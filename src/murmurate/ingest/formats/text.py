"""Read CSV and TSV, plain or compressed, in batches that never hold more than a chunk of the file."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import polars as pl

from murmurate.errors import Fault, InputError
from murmurate.ingest.columns import as_name
from murmurate.ingest.faults import Faults, Place, written_like
from murmurate.ingest.files import SourceFile, chunks, is_compressed
from murmurate.ingest.formats import dialect
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch

CHUNK_BYTES = 32 * 2**20
"""Bytes read at a time, and the longest line. Set by hand."""

MAX_COLUMNS = 10_000
"""Most columns of a file. Set by hand: every column costs memory of its own, and traces have ten."""

_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks and the encodings they stand for; those of UTF-32 before the UTF-16 ones that they begin with."""


def rows(
    file: SourceFile,
    options: ReadOptions,
    faults: Faults,
    *,
    names: Sequence[str] | None = None,
    separator: str | None = None,
    skip_lines: int = 0,
) -> Iterator[Batch]:
    """Yield the rows of a delimited file, every value as text; with `names` the file has no header line."""
    first_row, line = 1, 1
    header = list(names) if names is not None else None
    for piece in _whole_lines(_utf8(file.path, options), file.name):
        for _ in range(skip_lines):
            _, _, piece = piece.partition(b"\n")
            line += 1
        skip_lines = 0
        _check_text(piece, file.name, line)
        if header is None:
            found = _header(piece, file, options)
            header, separator = found.names, found.separator
            for _ in range(found.skip):
                _, _, piece = piece.partition(b"\n")
                line += 1
        separator = separator or ","
        frame = _parse(piece, header, separator, Place(file.name, first_row, line), faults)
        if frame is None:
            return
        lines = piece.count(b"\n") + (not piece.endswith(b"\n") and bool(piece))
        first_line = line if lines == frame.height else None  # quoted or blank lines: rows are not lines
        yield Batch(frame, Place(file.name, first_row, first_line))
        first_row += frame.height
        line += lines


def spans(file: SourceFile, options: ReadOptions, size: int) -> list[range]:
    """Cut a plain UTF-8 file into ranges of about `size` bytes that end where a line does; none where it is anything else."""
    if options.encoding is not None and codecs.lookup(options.encoding).name not in ("utf-8", "ascii"):
        return []
    with file.path.open("rb") as raw:
        start = raw.read(4)
        if is_compressed(start) or any(start.startswith(bom) for bom in _BOMS):
            return []
        end = raw.seek(0, 2)
        cuts = [0]
        for guess in range(size, end, size):
            raw.seek(max(guess, cuts[-1]))
            raw.readline(CHUNK_BYTES)
            cuts.append(raw.tell())
    return [range(low, high) for low, high in zip(cuts, [*cuts[1:], end], strict=True) if high > low]


def rows_within(file: SourceFile, options: ReadOptions, span: range) -> Iterator[Batch]:
    """Yield the rows of one of the `spans` of a file; an InputError where quotes or a fault make it one of many pieces no more.

    Rows are not numbered: whoever is told of a fault reads the file from its start.
    """
    with file.path.open("rb") as raw:
        found = _header(b"".join(islice(raw, dialect.SAMPLE_LINES + 3)), file, options)
        raw.seek(span.start)
        for _ in range(0 if span.start else found.skip):
            raw.readline(CHUNK_BYTES)
        stream = iter(lambda: raw.read(max(0, min(CHUNK_BYTES, span.stop - raw.tell()))), b"")
        for piece in _whole_lines(stream, file.name):
            _check_text(piece, file.name, 1)
            frame = None if b'"' in piece else _parse(piece, found.names, found.separator, Place(file.name), Faults())
            if frame is None:
                raise InputError([Fault("not a table that can be read in pieces", file=file.name)])
            yield Batch(frame, Place(file.name))


def _parse(piece: bytes, names: list[str], separator: str, place: Place, faults: Faults) -> pl.DataFrame | None:
    if not piece or piece.isspace():
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    try:
        return pl.read_csv(
            io.BytesIO(piece),
            has_header=False,
            schema=dict.fromkeys(names, pl.String),
            separator=separator,
            raise_if_empty=False,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if not _uneven_rows(piece, len(names), separator, place, faults):
            words = str(error).splitlines()[0][:160]
            faults.add(f"not a table: {words}", file=place.file)
        return None


def _uneven_rows(piece: bytes, width: int, separator: str, place: Place, faults: Faults) -> bool:
    """Add a fault for rows with more values than the header has names; return whether there was any."""
    found: dict[int, list[int]] = {}
    reader = csv.reader(io.StringIO(piece.decode("utf-8"), newline=""), delimiter=separator)
    try:
        for number, fields in enumerate(reader):
            if len(fields) > width:
                found.setdefault(len(fields), []).append(number + place.first_row)
    except csv.Error as error:
        faults.add(f"not a table: {error}", file=place.file)
        return True
    commas = separator == "," and any(count % 2 == 0 or count > width for count in found)
    remedy = "If numbers have decimal commas, separate values by semicolons or tabs." if commas else None
    for count, numbers in found.items():
        lines = [number - place.first_row + (place.first_line or 1) for number in numbers]
        reason = f"{count} values where the header names {width} columns"
        faults.add_numbered(reason, numbers, file=place.file, lines=lines, remedy=remedy)
    return bool(found)


@dataclass(frozen=True)
class _Header:
    names: list[str]
    separator: str
    skip: int
    """Lines before the first row of values."""


def _header(piece: bytes, file: SourceFile, options: ReadOptions) -> _Header:
    """Read the names of the columns; a file without a header line has numbers for names, once the caller uses them."""
    suffixes = "".join(file.path.suffixes).lower()
    lines = [line.decode("utf-8").rstrip("\r") for line in piece.split(b"\n", dialect.SAMPLE_LINES + 3)[: dialect.SAMPLE_LINES]]
    found = dialect.recognise(lines, tabs=".tsv" in suffixes or ".tab" in suffixes)
    rest = lines[found.skip :]
    names = dialect.fields(rest[0].removeprefix("#") if found.header else rest[0], found.separator) if rest else []
    if not any(names):
        raise InputError([Fault("the first line names no columns", file=file.name)])
    if len(names) > MAX_COLUMNS:
        raise InputError(
            [Fault(f"the first line has {len(names):,} values; at most {MAX_COLUMNS:,} columns are read", file=file.name)]
        )
    if not found.header:
        if not any(column is not None and column.isdigit() for column in options.columns.values()):
            shown = written_like(" | ".join(names)[:80])
            raise InputError(
                [Fault(f"the first line holds values, not column names, written like {shown}", file=file.name)],
                dialect.headerless_remedy(rest, found.separator),
                dialect.guess_columns(rest, found.separator),
            )
        return _Header([str(number + 1) for number in range(len(names))], found.separator, found.skip)
    repeated = sorted(name for name, n in Counter(names).items() if name and n > 1)
    if repeated:
        raise InputError(
            [Fault(f"ambiguous: more than one column is called {', '.join(map(as_name, repeated))}", file=file.name)]
        )
    return _Header(_all_named(names), found.separator, found.skip + 1)


def _all_named(names: list[str]) -> list[str]:
    """Give columns without a name one of their own, such as the row numbers that spreadsheets and R write first."""
    return [name or f"column {position}" for position, name in enumerate(names, start=1)]


def _utf8(path: Path, options: ReadOptions) -> Iterator[bytes]:
    """Yield the file's bytes as UTF-8 without a byte order mark."""
    stream = chunks(path, CHUNK_BYTES, options.max_expansion)
    first = next(stream, b"")
    bom, encoding = next(((bom, name) for bom, name in _BOMS.items() if first.startswith(bom)), (b"", options.encoding))
    if encoding is None or codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii"):
        yield first[len(bom) :]
        yield from stream
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    yield decoder.decode(first).encode("utf-8")
    for chunk in stream:
        yield decoder.decode(chunk).encode("utf-8")
    yield decoder.decode(b"", final=True).encode("utf-8")


def _whole_lines(stream: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the same bytes, cut where a line ends outside quotes."""
    rest = b""
    for chunk in stream:
        piece = rest + chunk
        cut = piece.rfind(b"\n") + 1
        quotes = piece.count(b'"', 0, cut)
        while quotes % 2:
            earlier = piece.rfind(b"\n", 0, piece.rfind(b'"', 0, cut)) + 1
            quotes -= piece.count(b'"', earlier, cut)
            cut = earlier
        if len(piece) - cut > CHUNK_BYTES:
            reason = f"a line of more than {CHUNK_BYTES // 2**20} MiB, or a quote that is never closed"
            raise InputError([Fault(reason, file=name)])
        if cut:
            yield piece[:cut]
        rest = piece[cut:]
    if rest:
        yield rest


def _check_text(piece: bytes, name: str, line: int) -> None:
    if piece.isascii() and b"\0" not in piece:
        return
    at = piece.find(b"\0")
    if at >= 0:
        where = line + piece.count(b"\n", 0, at)
        raise InputError([Fault(f"not text: a zero byte in file line {where}", file=name)])
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError as error:
        where = line + piece.count(b"\n", 0, error.start)
        raise InputError(
            [Fault(f"not UTF-8: byte {piece[error.start]:#04x} in file line {where}", file=name)],
            "Say which encoding it is, such as --encoding latin-1 (in Python encoding='latin-1').",
        ) from None
