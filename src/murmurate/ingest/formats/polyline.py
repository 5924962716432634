"""Parse lines written as JSON text, `[[lng,lat],[lng,lat],...]`, a row each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.ingest.faults import Faults, Place


@dataclass(frozen=True)
class Lines:
    """The coordinates of all lines, one after another."""

    sizes: Integers
    lat: NDArray[np.float64]
    lng: NDArray[np.float64]

    def trip_and_position(self) -> tuple[Integers, Integers]:
        """Return the line of each point, and its position within it."""
        line = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return line, np.arange(len(line)) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)


def parse(column: pl.Series, place: Place, faults: Faults) -> Lines | None:
    """Parse every line of a column; None where one is no line.

    >>> parse(pl.Series(["[[-8.6,41.1],[-8.5,41.2]]", "[]"]), Place(), Faults()).lat.tolist()
    [41.1, 41.2]
    """
    if column.null_count():
        faults.add_rows("empty", column.is_null(), place, column=column.name)
        return None
    starts, data = _text_buffers(column)
    pairs = np.empty((int(np.count_nonzero(data[starts[0] : starts[-1]] == ord("["))), 2))  # at least as many as needed
    sizes, bad = _parse(data, starts, pairs)
    if bad.any():
        faults.add_rows("not a line such as [[-8.61,41.14],[-8.62,41.15]]", bad, place, column=column.name, values=column)
        return None
    points = pairs[: sizes.sum()]
    return Lines(sizes, points[:, 1].copy(), points[:, 0].copy())


def _text_buffers(text: pl.Series) -> tuple[Integers, NDArray[np.uint8]]:
    """Return where each string starts (and the last one ends), and all their bytes."""
    array = text.to_arrow().cast(pa.large_string())
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return starts, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)


@njit(cache=True, nogil=True)
def _decimal(data: NDArray[np.uint8], at: int, end: int) -> tuple[float, int]:
    """Parse a plain decimal number, exact up to 15 digits, and where it ends; the end is -1 where there is none."""
    sign = 1.0
    if at < end and data[at] == 45:
        sign = -1.0
        at += 1
    digits = 0
    value = 0
    scale = 1.0
    fraction = False
    while at < end:
        if 48 <= data[at] <= 57:
            if digits < 17:
                value = value * 10 + (data[at] - 48)
                digits += 1
                if fraction:
                    scale *= 10.0
            elif not fraction:
                return 0.0, -1
        elif data[at] == 46 and not fraction:
            fraction = True
        else:
            break
        at += 1
    return sign * value / scale, (at if digits else -1)


@njit(cache=True, nogil=True)
def _skip(data: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and (data[at] == 32 or data[at] == 9):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _line(data: NDArray[np.uint8], at: int, end: int, pairs: NDArray[np.float64], into: int) -> int:
    """Parse one line into `pairs` from `into` on; return the number of pairs, -1 where it is no line."""
    at = _skip(data, at, end)
    if at >= end or data[at] != 91:
        return -1
    at = _skip(data, at + 1, end)
    count = 0
    if at < end and data[at] == 93:
        return 0 if _skip(data, at + 1, end) == end else -1
    while at < end and data[at] == 91:
        x, at = _decimal(data, _skip(data, at + 1, end), end)
        at = _skip(data, at, end) if at >= 0 else end
        if at >= end or data[at] != 44:
            return -1
        y, at = _decimal(data, _skip(data, at + 1, end), end)
        at = _skip(data, at, end) if at >= 0 else end
        if at >= end or data[at] != 93:
            return -1
        pairs[into + count, 0] = x
        pairs[into + count, 1] = y
        count += 1
        at = _skip(data, at + 1, end)
        if at < end and data[at] == 93:
            return count if _skip(data, at + 1, end) == end else -1
        if at >= end or data[at] != 44:
            return -1
        at = _skip(data, at + 1, end)
    return -1


@njit(cache=True, nogil=True)
def _parse(data: NDArray[np.uint8], starts: Integers, pairs: NDArray[np.float64]) -> tuple[Integers, NDArray[np.bool_]]:
    sizes = np.zeros(len(starts) - 1, np.int64)
    bad = np.zeros(len(starts) - 1, np.bool_)
    into = 0
    for k in range(len(starts) - 1):
        count = _line(data, starts[k], starts[k + 1], pairs, into)
        if count < 0:
            bad[k] = True
        else:
            sizes[k] = count
            into += count
    return sizes, bad
