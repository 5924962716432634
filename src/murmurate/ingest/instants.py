"""Times written as text: a kernel that reads ISO 8601 and tells the offset of each."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

NAIVE = 32_767
"""The offset of a time that states none."""
UNREADABLE = 32_766


def parse(text: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Microseconds since 1970 as the clock on the wall shows them, and the offset from UTC in minutes (or NAIVE, UNREADABLE).

    Read are `YYYY-MM-DD[T ]HH:MM[:SS[.fraction]]` with `/` or `-`, one or two digits a field, and nothing, `Z`, `UTC`,
    `+HH`, `+HHMM` or `+HH:MM` after it. Times are UTC once the offset is taken off.

    >>> clock, offset = parse(pl.Series(["1970-01-01T02:00:00+02:00", "1970-01-01 00:00", "soon"]))
    >>> clock.tolist(), offset.tolist()
    ([7200000000, 0, 0], [120, 32767, 32766])
    """
    starts, data = text_buffers(text)
    clock = np.zeros(len(text), np.int64)
    offset = np.empty(len(text), np.int16)
    _parse(data, starts, clock, offset)
    return clock, offset


def text_buffers(text: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each string starts (and the last one ends), and all their bytes; nothing for a null."""
    array = text.fill_null("").to_arrow()
    array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return starts, bytes_


@njit(cache=True, nogil=True)
def _number(data: NDArray[np.uint8], at: int, end: int, most: int) -> tuple[int, int]:
    """The digits from `at` on, at most `most`, and where they end."""
    value = 0
    first = at
    while at < end and at - first < most and 48 <= data[at] <= 57:
        value = value * 10 + (data[at] - 48)
        at += 1
    return value, at


@njit(cache=True, nogil=True)
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01, counted in years that begin in March so that the leap day comes last."""
    if month <= 2:
        year -= 1
        month += 12
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@njit(cache=True, nogil=True)
def _length(year: int, month: int) -> int:
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month in (4, 6, 9, 11) else 31


@njit(cache=True, nogil=True)
def _one(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """One time: its clock and offset."""
    while at < end and data[at] == 32:
        at += 1
    while at < end and data[end - 1] == 32:
        end -= 1
    first = at
    year, at = _number(data, at, end, 4)
    if at - first != 4 or at >= end or (data[at] != 45 and data[at] != 47):
        return 0, UNREADABLE
    separator = data[at]
    first = at + 1
    month, at = _number(data, first, end, 2)
    if at == first or at >= end or data[at] != separator:
        return 0, UNREADABLE
    first = at + 1
    day, at = _number(data, first, end, 2)
    if at == first or at >= end or (data[at] != 84 and data[at] != 32 and data[at] != 116):
        return 0, UNREADABLE
    first = at + 1
    hour, at = _number(data, first, end, 2)
    if at == first or at >= end or data[at] != 58:
        return 0, UNREADABLE
    first = at + 1
    minute, at = _number(data, first, end, 2)
    if at - first != 2:
        return 0, UNREADABLE
    second = 0
    micro = 0
    if at < end and data[at] == 58:
        first = at + 1
        second, at = _number(data, first, end, 2)
        if at - first != 2:
            return 0, UNREADABLE
        if at < end and (data[at] == 46 or data[at] == 44):
            first = at + 1
            micro, at = _number(data, first, end, 6)
            if at == first:
                return 0, UNREADABLE
            for _ in range(6 - (at - first)):
                micro *= 10
            while at < end and 48 <= data[at] <= 57:  # finer than a microsecond: cut off
                at += 1
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= _length(year, month):
        return 0, UNREADABLE
    if hour > 23 or minute > 59 or second > 59:
        return 0, UNREADABLE
    clock = ((_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    offset = _offset(data, at, end)
    return clock * 1_000_000 + micro, offset


@njit(cache=True, nogil=True)
def _offset(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Minutes that the clock is ahead of UTC, from what follows the time."""
    if at == end:
        return NAIVE
    if data[at] == 32:
        at += 1
    left = end - at
    if left == 1 and (data[at] == 90 or data[at] == 122):
        return 0
    if left == 3 and (
        (data[at] == 85 and data[at + 1] == 84 and data[at + 2] == 67) or (data[at] == 71 and data[at + 1] == 77)
    ):
        return 0  # UTC, GMT
    if left < 3 or (data[at] != 43 and data[at] != 45):
        return UNREADABLE
    sign = 1 if data[at] == 43 else -1
    first = at + 1
    hours, at = _number(data, first, end, 2)
    if at - first != 2:
        return UNREADABLE
    minutes = 0
    if at < end:
        if data[at] == 58:
            at += 1
        first = at
        minutes, at = _number(data, first, end, 2)
        if at - first != 2:
            return UNREADABLE
    if at != end or hours > 15 or minutes > 59:
        return UNREADABLE
    return sign * (hours * 60 + minutes)


@njit(cache=True, nogil=True)
def _parse(data: NDArray[np.uint8], starts: NDArray[np.int64], clock: NDArray[np.int64], offset: NDArray[np.int16]) -> None:
    for k in range(len(clock)):
        value, minutes = _one(data, starts[k], starts[k + 1])
        offset[k] = minutes
        clock[k] = 0 if minutes == UNREADABLE else value
