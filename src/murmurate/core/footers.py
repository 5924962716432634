"""Read the footer and page headers of an untrusted Parquet file, without the library that will read its data.

The library (pyarrow) ends the process on some damaged footers, and trusts sizes that nobody has checked. A footer, and the
header of every page, are structs of Thrift's compact protocol. This module parses each within its bounds. A field of the wrong
type, or one that occurs twice, is refused, because the library might use another value than the one checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from murmurate.errors import Fault, InputError

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
"""Types of fields. 11 is a map, which Parquet does not use."""
_MOST_FIELDS = 2**15 - 1
"""Highest number of a field. Parquet's are below 20, and this one is kept for extensions, which every reader passes over."""
_MOST_NESTED = 64
"""How deep structs and columns may be nested. Set by hand: the library recurses once for each level of the schema."""
_MOST_NAME_LETTERS = 2**24
"""Maximum of letters in the paths of all columns together. A long name above many columns is part of each of their paths. Set
by hand."""
_LEAST_ITEM_BYTES = 4
"""Minimum bytes of a struct in a list that is kept, so that a footer full of empty structs takes no memory."""
_HEADER_BYTES, _MOST_HEADER_BYTES = 2**10, 2**24
"""Bytes that are read for the header of a page, at first and at most. The library has the same maximum."""

_INT, _LONG, _BYTES = (_I32, None), (_I64, None), (_BINARY, None)
"""Types of fields that are not structs or lists."""
_ABOUT = {1: _INT, 5: _LONG, 7: _LONG, 9: _LONG, 11: _LONG}
"""Type, values, stored bytes, first page and dictionary of a column. Fields that are not listed are skipped."""
_CHUNK = {1: _BYTES, 3: (_STRUCT, _ABOUT), 8: (_STRUCT, {}), 9: _BYTES}
"""Of a column: the path of another file, its metadata, and two forms of encryption."""
_GROUP = {1: (_LIST, _CHUNK), 3: _LONG}
"""Columns and rows of a row group."""
_FOOTER = {2: (_LIST, {2: _INT, 4: _BYTES, 5: _INT}), 3: _LONG, 4: (_LIST, _GROUP), 8: (_STRUCT, {})}
"""Schema (width, name and children), rows, row groups and encryption."""
_PAGE = {1: _INT, 2: _INT, 3: _INT, 5: (_STRUCT, {1: _INT, 2: _INT}), 8: (_STRUCT, {1: _INT, 4: _INT})}
"""Kind, expanded bytes and stored bytes of a page, and its values and their encoding in the header of its kind."""
_VALUES_OF = {0: (5, 2), 3: (8, 4)}
"""Fields of the header with the values and their encoding, for the kinds of pages that have any."""
_TEXT, _FIXED_TEXT = 6, 7
"""Physical types of texts."""
_DICTIONARY, _LENGTHS_FIRST, _SHARED_BEGINNINGS = (2, 8), 6, 7
"""Encodings of texts: by number in a dictionary; all lengths before all letters; without the prefix of the previous text."""
_FIXED_BYTES = 8
"""Bytes of the widest kind of number in traces."""


class Chunk(NamedTuple):
    """A column of a row group, according to the footer."""

    name: str
    """Name of the column of the table."""
    leaf: str
    """Path to the values in a nested column."""
    width: int
    """Bytes of a value; 0 for texts of any length."""
    n_values: int
    first: int
    n_bytes: int


class Pages(NamedTuple):
    """Sizes of the pages of a column, according to their headers."""

    n_bytes: int
    """Expanded bytes."""
    largest: int
    """Expanded bytes of the largest page."""
    shares_beginnings: bool
    """Whether texts share prefixes, so that they may be far longer than their pages."""
    has_dictionary: bool
    """Whether values stand in a dictionary, so that one of them may be repeated at no cost."""
    lengths_first: bool
    """Whether texts stand behind all of their lengths."""


class Footer(NamedTuple):
    """Row groups: the rows of each, and its columns by their names in the table."""

    rows: list[int]
    groups: list[list[Chunk]]


def read_footer(path: Path) -> Footer:
    """Return the footer of a Parquet file; a damaged one is refused."""
    try:
        return _footer(path)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        reason = str(error) if type(error) is ValueError else "a value is missing or cut off"
        raise _damaged(path, f"its footer: {reason}") from None


def read_pages(handle: IO[bytes], path: Path, chunk: Chunk) -> Pages:
    """Return the expanded sizes of the pages of a column, according to their headers."""
    total, largest, shares, coded, lengths = 0, 0, False, False, False
    try:
        for size, encoding in _pages(handle, chunk):  # a file may have a page every seven bytes, so none is kept
            total, largest, shares = total + size, max(largest, size), shares or encoding == _SHARED_BEGINNINGS
            coded, lengths = coded or encoding in _DICTIONARY, lengths or encoding == _LENGTHS_FIRST
    except (ValueError, IndexError, KeyError, TypeError) as error:
        reason = str(error) if type(error) is ValueError else "a value is missing or cut off"
        raise _damaged(path, f"the header of a page: {reason}") from None
    return Pages(total, largest, shares, coded, lengths)


def _damaged(path: Path, where: str) -> InputError:
    return InputError([Fault(f"not a Parquet file, or damaged in {where}", file=str(path))], "write the file again.")


def _footer(path: Path) -> Footer:
    with path.open("rb") as handle:
        size = handle.seek(0, 2)
        if size < 12:
            raise ValueError("the file is too short")
        handle.seek(size - 8)
        length, mark = int.from_bytes(handle.read(4), "little"), handle.read(4)
        if mark != b"PAR1" or length > size - 12:
            raise ValueError("it does not end as Parquet does")
        handle.seek(size - 8 - length)
        found, _ = _struct(handle.read(length), 0, _FOOTER, 0)
    if 8 in found:
        raise ValueError("the file is encrypted")
    columns = _columns(found[2])
    groups, rows = [], []
    for group in found[4]:
        if len(group[1]) != len(columns):
            raise ValueError("a row group has other columns than the table")
        groups.append([_chunk(*column, chunk, size - 8 - length) for column, chunk in zip(columns, group[1], strict=True)])
        rows.append(_counted(group[3]))
    if _counted(found[3]) != sum(rows):
        raise ValueError("the rows of its groups do not add up")
    if sum(chunk.n_bytes for group in groups for chunk in group) > size:
        raise ValueError("columns lie over each other")  # the same pages would be read again and again
    return Footer(rows, groups)


def _columns(schema: list[dict[int, Any]]) -> list[tuple[str, str, int]]:
    """Return the column of the table, the path and the stated width of every column that holds values."""
    found: list[tuple[str, str, int]] = []
    path: list[str] = []
    letters = 0
    left = [schema[0].get(5, 0)]
    for element in schema[1:]:
        while left and left[-1] == 0:
            left.pop()
            path = path[:-1]
        if not left or len(left) > _MOST_NESTED:
            raise ValueError("columns are nested too deep, or belong to none")
        left[-1] -= 1
        here = [*path, element[4].decode("utf-8", "replace")]
        if element.get(5):
            left.append(_counted(element[5]))
            path = here
        else:
            letters += sum(map(len, here))
            if letters > _MOST_NAME_LETTERS:
                raise ValueError("the names of its columns are too long")
            found.append((here[0], ".".join(here), element.get(2, 0)))
    if any(left):
        raise ValueError("columns are missing")
    return found


def _chunk(name: str, leaf: str, width: int, found: dict[int, Any], end: int) -> Chunk:
    about = found[3]
    if found.get(1) or 8 in found or 9 in found:
        raise ValueError("a column lies in another file, or is encrypted")
    first = min(about[9], about[11]) if about.get(11, 0) > 0 else about[9]
    if _counted(first) + _counted(about[7]) > end:
        raise ValueError("a column lies outside the file")
    width = 0 if about[1] == _TEXT else _counted(width) if about[1] == _FIXED_TEXT else _FIXED_BYTES
    return Chunk(name, leaf, width, _counted(about[5]), first, about[7])


def _counted(value: int) -> int:
    if value < 0:
        raise ValueError("a number is below zero")
    return value


def _pages(handle: IO[bytes], chunk: Chunk) -> Iterator[tuple[int, int]]:
    """Yield the expanded bytes and the encoding of each page. Like the library, stop when all values are seen."""
    at, end, seen = chunk.first, chunk.first + chunk.n_bytes, 0
    while at < end and seen < chunk.n_values:
        header, length = _page_header(handle, at, end)
        encoding = 0
        if header[1] in _VALUES_OF:
            inner, coded = _VALUES_OF[header[1]]
            seen += _counted(header[inner][1])
            encoding = header[inner][coded]
        yield _counted(header[2]), encoding
        at += length + _counted(header[3])


def _page_header(handle: IO[bytes], at: int, end: int) -> tuple[dict[int, Any], int]:
    size = _HEADER_BYTES
    while True:
        handle.seek(at)
        data = handle.read(min(size, end - at))
        try:
            return _struct(data, 0, _PAGE, 0)
        except IndexError:
            if size >= min(_MOST_HEADER_BYTES, end - at):
                raise
            size *= 8


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    at += 1
    if value < 128:
        return value, at
    value &= 127
    for shift in range(7, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number is too long")


def _struct(data: bytes, at: int, kept: dict[int, Any], depth: int) -> tuple[dict[int, Any], int]:
    """Return the kept fields of a struct by their numbers, and where it ends."""
    if depth > _MOST_NESTED:
        raise ValueError("it is nested too deep")
    found: dict[int, Any] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return found, at
        kind, step = head & 15, head >> 4
        if step:
            number += step
        else:
            number, at = _varint(data, at)
            number = (number >> 1) ^ -(number & 1)
        if not 0 < number <= _MOST_FIELDS:
            raise ValueError("a field has no number of Parquet's")
        if number not in kept:
            at = _passed(data, at, kind, depth)
            continue
        wanted, inner = kept[number]
        if kind != wanted or number in found:
            raise ValueError("a field stands twice, or is of another type")
        if kind == _STRUCT:
            found[number], at = _struct(data, at, inner, depth + 1)
        elif kind == _LIST:
            found[number], at = _structs(data, at, inner, depth + 1)
        elif kind == _BINARY:
            length, at = _varint(data, at)
            found[number], at = data[at : at + length], _within(data, at + length)
        else:
            value, at = _varint(data, at)
            value = (value >> 1) ^ -(value & 1)
            bits = 31 if kind == _I32 else 63
            if not -(1 << bits) <= value < 1 << bits:
                raise ValueError("a number is too large")
            found[number] = value


def _structs(data: bytes, at: int, kept: dict[int, Any], depth: int) -> tuple[list[dict[int, Any]], int]:
    n, kind, at = _list_head(data, at)
    if (n and kind != _STRUCT) or n * _LEAST_ITEM_BYTES > len(data) - at:
        raise ValueError("a list is longer than the footer, or of another type")
    found = []
    for _ in range(n):
        item, at = _struct(data, at, kept, depth)
        found.append(item)
    return found, at


def _list_head(data: bytes, at: int) -> tuple[int, int, int]:
    head = data[at]
    n, at = (head >> 4, at + 1) if head < 0xF0 else _varint(data, at + 1)
    return n, head & 15, at


def _passed(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return where a value that is skipped ends."""
    if kind in (_TRUE, _FALSE):
        return at
    if kind in (_I16, _I32, _I64):
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == _BINARY:
        length, at = _varint(data, at)
        return _within(data, at + length)
    if kind == _STRUCT:
        return _struct(data, at, {}, depth + 1)[1]
    if kind in (_BYTE, _DOUBLE):
        return _within(data, at + (1 if kind == _BYTE else 8))
    if kind not in (_LIST, _SET) or depth > _MOST_NESTED:
        raise ValueError("a field is of no type of Parquet's")
    n, kind, at = _list_head(data, at)
    if n > len(data) - at:
        raise ValueError("a list is longer than the footer")
    if kind in (_TRUE, _FALSE):
        return _within(data, at + n)
    for _ in range(n):
        at = _passed(data, at, kind, depth + 1)
    return at


def _within(data: bytes, at: int) -> int:
    if at > len(data):
        raise IndexError
    return at
