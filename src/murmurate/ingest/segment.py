"""Split and select trips; each step also counts what it removed, for the custodian."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Literal

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import one_of, positive, whole
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.calendars import holidays_between
from murmurate.ingest.pipeline import Removed, difference
from murmurate.spaces.sphere import step_m

MONDAY_TO_FRIDAY = (0, 1, 2, 3, 4)
"""Weekdays that `keep_days` keeps unless given others; 0 is Monday."""
_FLAGS = {"0": False, "1": True, "false": False, "true": True, "f": False, "t": True, "no": False, "yes": True}
"""How files write whether a taxi has a passenger."""


def split_gaps(trips: Trips, *, max_gap_s: float = 300.0) -> tuple[Trips, Removed]:
    """Start a new trip after every pause longer than `max_gap_s`; if there is any, trips are numbered anew, in order."""
    after = _long_pause(trips, max_gap_s)
    split = trips if not after.any() else _numbered(trips, after | _first_points(trips), np.ones(trips.n_points, dtype=bool))
    return split, difference("split_gaps", trips, split, f"split at pauses over {max_gap_s:g} s")


def split_stays(trips: Trips, *, min_stay_s: float = 600.0, stay_m: float = 100.0) -> tuple[Trips, Removed]:
    """End a trip where somebody stays for `min_stay_s` or longer within `stay_m` of the first point of the stay.

    The trip ends with the first point of the stay, the next begins with its last; points between them are left out. If there
    is any stay, trips are numbered anew, in order.
    """
    positive("min_stay_s", min_stay_s)
    positive("stay_m", stay_m)
    keep, begins = _stays(trips.offsets, trips.time_us, trips.lat, trips.lng, min_stay_s * 1e6, stay_m)
    split = trips if not (begins & ~_first_points(trips)).any() else _numbered(trips, begins, keep)
    return split, difference("split_stays", trips, split, f"split at stays of {min_stay_s:g} s or more within {stay_m:g} m")


def drop_gappy(trips: Trips, *, max_gap_s: float = 300.0) -> tuple[Trips, Removed]:
    """Leave out trips with a pause longer than `max_gap_s`."""
    gappy = np.bincount(trips.point_trip, _long_pause(trips, max_gap_s), minlength=trips.n_trips) > 0
    return _choose("drop_gappy", trips, ~gappy, f"trips with a pause over {max_gap_s:g} s")


def occupied_runs(trips: Trips, *, column: str = "occupied") -> tuple[Trips, Removed]:
    """Keep only the points with a passenger (`column` true or 1); every unbroken run of them is a trip of its own."""
    if column not in trips.columns:
        raise InputError(f"there is no column {column!r}; these trips have {', '.join(trips.columns)}.")
    flag = trips.table[column]
    if flag.dtype == pl.String:
        known = flag.str.strip_chars().str.to_lowercase().replace_strict(_FLAGS, default=None, return_dtype=pl.Boolean)
        flag = flag if known.null_count() else known
    if flag.null_count() or not (flag.dtype == pl.Boolean or (flag.dtype.is_numeric() and flag.is_in([0, 1]).all())):
        raise InputError(f"column {column!r} must hold only 0 and 1, or true and false; it is of type {flag.dtype}.")
    occupied = flag.cast(pl.Boolean).to_numpy()
    if occupied.all():
        runs = trips
    else:
        begins = _first_points(trips)
        begins[1:] |= ~occupied[:-1]
        runs = _numbered(trips, begins & occupied, occupied)
    return runs, difference("occupied_runs", trips, runs, f"points where {column} is 0")


def keep_days(
    trips: Trips,
    *,
    weekdays: Collection[int] = MONDAY_TO_FRIDAY,
    holidays: str | Collection[date] = (),
    time_zone: str | None = None,
    by: Literal["trip", "point"] = "trip",
) -> tuple[Trips, Removed]:
    """Keep the given days of the week (0 is Monday) that are no holidays, as the calendar stands in `time_zone`.

    `holidays` is a name of `murmurate.ingest.calendars` ("US", "FI", "PT", "HU", "CN_fixed") or a collection of dates;
    `time_zone` is the trips' own unless given. A trip belongs to the day it begins on; `by="point"` judges every point.
    """
    one_of("by", by, ("trip", "point"))
    for day in weekdays:
        whole("weekdays", day, at_least=0, at_most=6)
    if trips.has_time:
        local = trips if time_zone is None else Trips(trips.table, trips.space, time_zone)
        days = local.local_day
        good = np.isin((days + 3) % 7, list(weekdays)) & ~np.isin(days, _holiday_numbers(days, holidays))
    elif "weekday" in trips.columns and not holidays:
        good = np.isin(trips.table["weekday"].to_numpy(), list(weekdays))
    else:
        raise InputError("days need a datetime (or a weekday column, and then no holidays); these trips have none.")
    if by == "trip":
        return _choose("keep_days", trips, good[trips.offsets[:-1]], "trips begun on other days or holidays")
    kept = trips if good.all() else trips.take_points(good)
    return kept, difference("keep_days", trips, kept, "points on other days or holidays")


def drop_brief(trips: Trips, *, min_duration_s: float) -> tuple[Trips, Removed]:
    """Leave out trips that last less than `min_duration_s` from first to last point."""
    positive("min_duration_s", min_duration_s)
    lasts_us = trips.time_us[trips.offsets[1:] - 1] - trips.time_us[trips.offsets[:-1]]
    return _choose("drop_brief", trips, lasts_us >= min_duration_s * 1e6, f"trips shorter than {min_duration_s:g} s")


def drop_single_visits(trips: Trips, *, min_visits: int = 2) -> tuple[Trips, Removed]:
    """Leave out trips of fewer than `min_visits` points or visits."""
    whole("min_visits", min_visits)
    enough = np.diff(trips.offsets) >= min_visits
    return _choose("drop_single_visits", trips, enough, f"trips of fewer than {min_visits} visits")


def _choose(step: str, trips: Trips, good: NDArray[np.bool_], why: str) -> tuple[Trips, Removed]:
    kept = trips if good.all() else trips.take_trips(good)
    return kept, difference(step, trips, kept, why)


def _long_pause(trips: Trips, max_gap_s: float) -> NDArray[np.bool_]:
    """Return where a point comes too long after the one before it in its trip."""
    positive("max_gap_s", max_gap_s)
    after = np.zeros(trips.n_points, dtype=bool)
    after[1:] = np.diff(trips.time_us) > max_gap_s * 1e6
    return after & ~_first_points(trips)


def _first_points(trips: Trips) -> NDArray[np.bool_]:
    first = np.zeros(trips.n_points, dtype=bool)
    first[trips.offsets[:-1]] = True
    return first


def _numbered(trips: Trips, begins: NDArray[np.bool_], keep: NDArray[np.bool_]) -> Trips:
    """Return the points to keep, with a new integer `tid` from each beginning on; each person's trips count from 0.

    Counting on from one person to the next would let one person's trips change the names of another's, and by them which
    trips are read of that other person.
    """
    number = np.cumsum(begins)
    first = trips.offsets[trips.user_offsets[:-1]]
    before: Integers = number[first] - begins[first]
    points = np.diff(trips.offsets[trips.user_offsets])
    names = np.subtract(number, np.repeat(before, points) + 1)
    table = trips.table.with_columns(pl.Series("tid", names)).filter(pl.Series(keep))
    return Trips(table, trips.space, trips.time_zone)


@njit(cache=True, nogil=True)
def _stays(  # noqa: PLR0917
    offsets: Integers, time_us: Integers, lat: Floats, lng: Floats, min_stay_us: float, stay_m: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which points stay, and at which a trip begins."""
    keep = np.ones(len(lat), np.bool_)
    begins = np.zeros(len(lat), np.bool_)
    for trip in range(len(offsets) - 1):
        end = offsets[trip + 1]
        begins[offsets[trip]] = True
        i = offsets[trip]
        while i < end:
            j = i
            while j + 1 < end and step_m(lat[i], lng[i], lat[j + 1], lng[j + 1]) <= stay_m:
                j += 1
            if j > i and time_us[j] - time_us[i] >= min_stay_us:
                keep[i + 1 : j] = False
                begins[j] = True
                i = j
            else:
                i += 1
    return keep, begins


def _holiday_numbers(days: Integers, holidays: str | Collection[date]) -> Integers:
    """Return holidays as days since 1970."""
    if not len(days):
        return np.zeros(0, dtype=np.int64)
    epoch = date(1970, 1, 1).toordinal()
    if isinstance(holidays, str):
        first, last = (date.fromordinal(int(day) + epoch) for day in (days.min(), days.max()))
        holidays = holidays_between(holidays, first, last)
    if not all(isinstance(day, date) for day in holidays):
        raise ParameterError("holidays must be the name of a calendar or dates.")
    return np.array([day.toordinal() - epoch for day in holidays], dtype=np.int64)
