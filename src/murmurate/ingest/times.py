"""Convert a column of times in any known form to UTC, or say why not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.trips import TIME
from murmurate.ingest.faults import Faults, Place, written_like
from murmurate.ingest.instants import NAIVE, UNREADABLE, parse, parse_as
from murmurate.ingest.options import TIME_UNITS

EARLIEST_US = -2_208_988_800_000_000
"""Earliest time accepted, in microseconds since 1970: the beginning of 1900. Set by hand."""
LATEST_US = 7_258_118_400_000_000
"""Time before which all must lie, in microseconds since 1970: the beginning of 2200. Set by hand."""

_EXCEL_1970, _EXCEL_DAYS = 25_569, (29_221, 73_051)
"""Days of spreadsheets, which count from 1899-12-30: the one of 1970-01-01, and those of 1980 and 2100."""
_FIRST_S, _LAST_S = 315_532_800, 4_102_444_800
"""Seconds since 1970 at the beginning of 1980 and 2100, between which the size of a count shows its unit."""

_SCALES = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of a unit are one second."""
ZONE_REMEDY = (
    "Say which zone the times are in, such as --time-zone Europe/Helsinki (in Python time_zone='Europe/Helsinki'), or UTC."
)
"""What to do about times without a zone."""
FORMAT_REMEDY = "Say how times are written, such as --time-format '%d/%m/%Y %H:%M' (in Python time_format='%d/%m/%Y %H:%M')."
"""What to do about times in an unknown format."""
UNIT_REMEDY = (
    "Say which unit counts since 1970 are in: --time-unit s, ms, us or ns, or excel for days as spreadsheets count them (in "
    "Python time_unit='s')."
)
"""What to do about counts in an unknown unit."""


@dataclass
class Clock:
    """Reads the times of one file and remembers the form of the first rows, so that a mixture is noticed."""

    time_zone: str | None
    time_unit: str | None
    faults: Faults
    column: str
    time_format: str | None = None
    ambiguous: int = 0
    """Local times that happened twice (clocks set back); read as the earlier one."""
    _offset: int | None = field(default=None, init=False)
    _unit: str | None = field(default=None, init=False)
    _order: str | None = field(default=None, init=False)

    @property
    def form(self) -> tuple[int | None, str | None, str | None]:
        """How the times read so far were understood: offset of the first one, unit of counts, order of day and month."""
        return self._offset, self._unit, self._order

    def instants(self, times: pl.Series, place: Place) -> pl.Series | None:
        """Return the column in UTC; None where there is a fault."""
        before = len(self.faults)
        if times.null_count():
            self.faults.add_rows("empty", times.is_null(), place, column=self.column)
            return None
        if isinstance(times.dtype, pl.Datetime) and self._absurd(counts_of(times), times.dtype.time_unit, place):
            return None  # before polars meets them: it panics on some
        found = self._read(times, place)
        if found is None or (found is not times and self._absurd(counts_of(found), "us", place)):
            return None
        return found if len(self.faults) == before else None

    def _absurd(self, counts: NDArray[np.int64], unit: str, place: Place) -> bool:
        low, high = (_in_unit(bound, unit) for bound in (EARLIEST_US, LATEST_US))
        if not len(counts) or (int(counts.min()) >= low and int(counts.max()) < high):
            return False
        self.faults.add_rows("time outside 1900 to 2200", (counts < low) | (counts >= high), place, column=self.column)
        return True

    def _read(self, times: pl.Series, place: Place) -> pl.Series | None:
        if isinstance(times.dtype, pl.Datetime):
            if times.dtype.time_zone is not None:
                return times if times.dtype == TIME else times.dt.convert_time_zone("UTC").cast(TIME)
            return self._localise(times.dt.cast_time_unit("us"), place)
        if self.time_format is not None and (times.dtype.is_integer() or times.dtype == pl.String):
            return self._formatted(times.cast(pl.String), self.time_format, place)
        if times.dtype.is_numeric():
            return self._since_1970(times, place)
        if isinstance(times.dtype, (pl.String, pl.Categorical, pl.Enum)):
            return self._text(times.cast(pl.String), place)
        self.faults.add(f"wrong type: {times.dtype} is not a time", file=place.file, column=self.column)
        return None

    # -- counts since 1970 -----------------------------------------------------------------------------------------

    def _since_1970(self, times: pl.Series, place: Place) -> pl.Series | None:
        values = times.to_numpy()
        if values.dtype == np.float16:  # holds no time, and comparing it with one overflows
            values = values.astype(np.float64)
        if times.dtype.is_float() and not np.isfinite(values).all():
            self.faults.add_rows("not a number", ~np.isfinite(values), place, column=self.column)
            return None
        unit = self.time_unit or self._unit or _tell_unit(values)
        if unit == "excel":
            self._unit = unit
            return self._localise(pl.Series(times.name, _excel_microseconds(values)).cast(pl.Datetime("us")), place)
        if unit is None:
            bad = ~np.logical_or.reduce([_within(values, name) for name in _SCALES])
            reason = "not a count of seconds, milliseconds, microseconds or nanoseconds since 1970"
            if bad.any():
                self.faults.add_rows(reason, bad, place, column=self.column, values=times, remedy=UNIT_REMEDY)
            else:
                self.faults.add(
                    "mixed units: some times count seconds and others something finer", file=place.file, column=self.column
                )
            return None
        if self.time_unit is None:
            self._unit = unit
            bad = ~_within(values, unit)
            if bad.any():
                reason = f"not {unit} since 1970 between 1980 and 2100, as the rest is"
                self.faults.add_rows(reason, bad, place, column=self.column, values=times, remedy=UNIT_REMEDY)
                return None
        if np.abs(values.astype(np.float64)).max(initial=0) > 9.2e18 / max(1, TIME_UNITS[unit]):
            self.faults.add("counts too large to be times", file=place.file, column=self.column, remedy=UNIT_REMEDY)
            return None
        return pl.Series(times.name, _microseconds(values, unit)).cast(TIME)

    # -- text ------------------------------------------------------------------------------------------------------

    def _text(self, times: pl.Series, place: Place) -> pl.Series | None:
        order = self._order or "ymd"
        clock, offset = parse(times, order)
        if self._order is None and len(offset) and (offset == UNREADABLE).all():
            other, (clock, offset) = _day_or_month_first(times, offset)
            if other == "either":
                reason = f"day or month first? every date can be read both ways, written like {written_like(times[0])}"
                self.faults.add(reason, file=place.file, column=self.column, remedy=_order_remedy(times[0]))
                return None
            order = other or order
        unreadable = offset == UNREADABLE
        if not unreadable.any():
            self._order = order
        else:
            bare = times.str.strip_chars().str.replace(",", ".", literal=True)
            counts = bare.cast(pl.Float64, strict=False)
            if not counts.null_count():
                whole = bare.cast(pl.Int64, strict=False)
                return self._since_1970(counts if whole.null_count() else whole, place)
            blank = (times.str.strip_chars() == "").to_numpy()
            self.faults.add_rows("empty", blank, place, column=self.column)
            reason = "not a time (expected such as 2008-05-17T10:00:00Z or 2008-05-17 10:00:00)"
            self.faults.add_rows(reason, unreadable & ~blank, place, column=self.column, values=times, remedy=FORMAT_REMEDY)
            return None
        if self._offset is None and len(offset):
            self._offset = int(offset[0])
        odd = offset != self._offset
        if not odd.any() and self._offset == NAIVE:
            return self._localise(pl.Series(times.name, clock).cast(pl.Datetime("us")), place)
        utc = pl.Series(times.name, clock - offset.astype(np.int64) * 60_000_000).cast(TIME)
        if not odd.any() or self._explained(utc, offset):
            return utc
        first = "no zone" if self._offset == NAIVE else f"offset {_offset_words(self._offset or 0)}"
        reason = f"mixed time zones: the first row has {first}, this one another"
        remedy = (
            "Convert all times to one zone; offsets that only follow summer time are accepted once time_zone names the zone."
        )
        self.faults.add_rows(reason, odd, place, column=self.column, values=times, remedy=remedy)
        return None

    def _formatted(self, times: pl.Series, time_format: str, place: Place) -> pl.Series | None:
        found = parse_as(times, time_format)
        if found.null_count():
            reason = f"not a time as {time_format!r} writes it"
            self.faults.add_rows(reason, found.is_null(), place, column=self.column, values=times)
            return None
        aware = isinstance(found.dtype, pl.Datetime) and found.dtype.time_zone is not None
        return found if aware else self._localise(found, place)

    def _explained(self, utc: pl.Series, offset: NDArray[np.int16]) -> bool:
        """Return whether every stated offset is the one of the given zone at that moment (summer and winter time)."""
        if self.time_zone is None or (offset == NAIVE).any():
            return False
        local = utc.dt.convert_time_zone(self.time_zone)
        minutes = (local.dt.base_utc_offset() + local.dt.dst_offset()).dt.total_minutes().to_numpy()
        return bool((minutes == offset).all())

    # -- local times ----------------------------------------------------------------------------------------

    def _localise(self, wall: pl.Series, place: Place) -> pl.Series | None:
        if self.time_zone is None:
            self.faults.add("times carry no time zone", file=place.file, column=self.column, remedy=ZONE_REMEDY)
            return None
        if self.time_zone == "UTC":
            return wall.dt.replace_time_zone("UTC")
        early = wall.dt.replace_time_zone(self.time_zone, ambiguous="earliest", non_existent="null")
        if early.null_count():
            reason = f"a local time that {self.time_zone} skipped when its clocks went forward"
            self.faults.add_rows(reason, early.is_null(), place, column=self.column, values=wall)
            return None
        late = wall.dt.replace_time_zone(self.time_zone, ambiguous="latest", non_existent="null")
        self.ambiguous += int((early != late).sum())
        return early.dt.convert_time_zone("UTC")


def _day_or_month_first(
    times: pl.Series, unread: NDArray[np.int16]
) -> tuple[str | None, tuple[NDArray[np.int64], NDArray[np.int16]]]:
    """Find the one order of day and month in which every text is a time, and its result; "either" where both are."""
    found = {order: parse(times, order) for order in ("dmy", "mdy")}
    whole = [order for order, (_, offset) in found.items() if not (offset == UNREADABLE).any()]
    if len(whole) == 1:
        return whole[0], found[whole[0]]
    return ("either" if whole else None), (np.zeros(len(unread), np.int64), unread)


def _order_remedy(text: str) -> str:
    """Say how to tell day from month, in the format of this very text."""
    date, _, clock = text.strip().partition(" ")
    mark = next((mark for mark in "./-" if mark in date), "/")
    rest = "%I:%M:%S %p" if clock[-1:] in "mM" and clock else "%H:%M:%S" if clock.count(":") == 2 else "%H:%M"
    first, second = (f"{mark.join(parts)} {rest}" for parts in (("%d", "%m", "%Y"), ("%m", "%d", "%Y")))
    return (
        f"Say --time-format '{first}' if the day comes first, --time-format '{second}' if the month does (in Python "
        "time_format=...)."
    )


def counts_of(times: pl.Series) -> NDArray[np.int64]:
    """Return the bare counts of a column of datetimes, not copied."""
    return times.to_numpy().view(np.int64)


def _tell_unit(values: NDArray[np.number[Any]]) -> str | None:
    """Find the one unit in which every value lies between 1980 and 2100 (or nearly every: the rest are faults)."""
    if not len(values):
        return "s"
    low, high = _EXCEL_DAYS
    if ((values >= low) & (values < high)).all() and (values != np.floor(values)).any():
        return "excel"  # whole numbers of this size may as well count seconds of something else
    inside = {unit: float(_within(values, unit).mean()) for unit in _SCALES}
    best = max(inside, key=lambda unit: inside[unit])
    others = sum(share for unit, share in inside.items() if unit != best)
    return best if inside[best] > 0.5 and others == 0 else None


def _within(values: NDArray[np.number[Any]], unit: str) -> NDArray[np.bool_]:
    scale = _SCALES[unit]
    inside: NDArray[np.bool_] = (values >= _FIRST_S * scale) & (values < _LAST_S * scale)
    return inside


def _excel_microseconds(values: NDArray[np.number[Any]]) -> NDArray[np.int64]:
    """Return local clock time from days; rounded to milliseconds, because a day's fraction holds no more."""
    return np.rint((values.astype(np.float64) - _EXCEL_1970) * 86_400_000).astype(np.int64) * 1000


def _microseconds(values: NDArray[np.number[Any]], unit: str) -> NDArray[np.int64]:
    if unit == "ns":
        return (values.astype(np.int64) // 1000).astype(np.int64)
    if np.issubdtype(values.dtype, np.floating):
        return np.rint(values.astype(np.float64) * TIME_UNITS[unit]).astype(np.int64)
    return values.astype(np.int64) * TIME_UNITS[unit]


def _in_unit(us: int, unit: str) -> int:
    return us * 1000 if unit == "ns" else us // TIME_UNITS[unit]


def _offset_words(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
