"""Recognise how a text file is written: its separator, whether it has a header line, and what headerless columns hold."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from murmurate.ingest.columns import FILE_NAME, option
from murmurate.ingest.instants import ORDERS, UNREADABLE, parse
from murmurate.spaces.gazetteer import looks_swapped

_SEPARATORS = ("\t", ";", "|", ",")
"""Separators that are recognised, besides spaces where there is none of these."""
SAMPLE_LINES = 200
"""Lines that are looked at. Set by hand."""
GUESSED_COLUMNS = 50
"""Columns whose meaning is guessed, from the left. Set by hand: each takes milliseconds, and a line may have thousands."""
_NUMBER = re.compile(r"\s*[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?\s*")
"""A number, with a decimal point or comma."""
_FIRST_S, _LAST_S = 315_532_800, 4_102_444_800
"""Seconds since 1970 at the beginning of 1980 and 2100: numbers between look like times."""


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str
    skip: int
    """Lines before the first that matters, such as Excel's `sep=;`."""
    header: bool


def recognise(lines: Sequence[str], *, tabs: bool) -> Dialect:
    """Recognise the dialect of a file from its first lines; `tabs` says that its name promises tabs.

    >>> recognise(["1;2008-02-02 15:36:08;116,51;39,92"], tabs=False)
    Dialect(separator=';', skip=0, header=False)
    """
    skip, stated = 0, None
    if lines and (said := re.fullmatch(r'"?sep=(.)"?', lines[0].strip())):
        skip, stated = 1, said[1]
    while skip < len(lines) and not lines[skip].strip():
        skip += 1
    rest = [line for line in lines[skip : skip + SAMPLE_LINES] if line.strip()]
    separator = stated or ("\t" if tabs else _separator(rest))
    first = fields(rest[0], separator) if rest else []
    return Dialect(separator, skip, header=not _is_data(first))


def fields(line: str, separator: str) -> list[str]:
    """Return the values of a line."""
    if separator == " ":
        return line.split()
    try:
        return [value.strip() for value in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:  # a lone carriage return, or a value too long: whoever reads the table says what is wrong with it
        return line.split(separator)


def _separator(lines: Sequence[str]) -> str:
    """Return the separator that cuts every line into the same number of values; the most frequent one of the first if none."""
    if not lines:
        return ","
    counts = {sep: len(fields(lines[0], sep)) - 1 for sep in _SEPARATORS}
    even = [sep for sep in _SEPARATORS if counts[sep] and all(len(fields(line, sep)) - 1 == counts[sep] for line in lines[:20])]
    if even:
        return max(even, key=lambda sep: counts[sep])
    if any(counts.values()):
        return max(_SEPARATORS, key=lambda sep: counts[sep])
    return " " if len(lines[0].split()) > 2 else ","


def _is_data(values: Sequence[str]) -> bool:
    """Return whether most values of a first line are numbers or times, which are no names of columns."""
    filled = [value for value in values if value]
    others = [value for value in filled if not _NUMBER.fullmatch(value)]
    return bool(filled) and (len(filled) - len(others) + _n_times(others)) * 2 > len(filled)


def _n_times(values: Sequence[str]) -> int:
    """Count the texts that are times, all at once: the parser takes a millisecond, and a line may have thousands."""
    starting = [value for value in values if value.strip(" ")[:1].isdigit()]  # as every order does
    texts = pl.Series(starting, dtype=pl.String)
    return int(np.any([parse(texts, order)[1] != UNREADABLE for order in ORDERS], axis=0).sum())


def guess_columns(lines: Sequence[str], separator: str) -> dict[str, str]:
    """Guess which columns of a file without a header hold what: canonical name -> number of the column, counted from 1.

    Public rules, for a suggestion that a person checks: a column of times; two columns of decimal numbers, longitude being
    the one that goes beyond 90, or the one that makes a known city of them; the first other column whose values repeat
    is the person; 0 and 1 alone, unless they come first, say whether a taxi is occupied and name nobody.
    """
    rows = [fields(line, separator) for line in lines[:SAMPLE_LINES] if line.strip()]
    even = [row for row in rows if len(row) == len(rows[0])]
    width = min(len(rows[0]), GUESSED_COLUMNS) if rows else 0
    columns = [[row[k] for row in even] for k in range(width)]
    times = [k for k, values in enumerate(columns) if _are_times(values)]
    places = [k for k, values in enumerate(columns) if k not in times and _are_degrees(values)]
    guess: dict[str, str] = {}
    others = [k for k in range(width) if k not in times and k not in places[:2]]
    names = [k for k in others if k == 0 or not set(columns[k]) <= {"0", "1"}]
    repeating = [k for k in names if len(set(columns[k])) < len(columns[k])] or names
    guess["uid"] = str(repeating[0] + 1) if repeating else FILE_NAME
    if times:
        guess["datetime"] = str(times[0] + 1)
    if len(places) >= 2:
        first, second = places[:2]
        one, other = ([_float(value) for value in columns[k]] for k in (first, second))
        lng_first = max(map(abs, one)) > 90 or looks_swapped(one, other)
        lat, lng = (second, first) if lng_first else (first, second)
        guess |= {"lat": str(lat + 1), "lng": str(lng + 1)}
    return guess


def headerless_remedy(lines: Sequence[str], separator: str) -> str:
    """Say which options open a file without a header line."""
    guess = guess_columns(lines, separator)
    if not {"lat", "lng"} <= guess.keys():
        return f"Name the columns by number, such as {option(uid='1', datetime='2', lat='3', lng='4')}."
    return f"Name the columns by number; they look like {option(**guess)}."


def _are_times(values: Sequence[str]) -> bool:
    if all(re.fullmatch(r"[0-9]{9,10}(\.[0-9]+)?|[0-9]{12,13}", value) for value in values):
        return all(_FIRST_S <= _float(value) / (1000 if len(value.split(".")[0]) > 10 else 1) < _LAST_S for value in values)
    return _n_times(values[:20]) == len(values[:20])


def _are_degrees(values: Sequence[str]) -> bool:
    decimal = sum(bool(re.fullmatch(r"[-+]?[0-9]{1,3}[.,][0-9]{2,}", value)) for value in values)
    return bool(values) and decimal * 2 > len(values) and all(_NUMBER.fullmatch(v) and abs(_float(v)) <= 180 for v in values)


def _float(value: str) -> float:
    return float(value.replace(",", "."))
