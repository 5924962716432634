"""Daily traces: trips as person-days of equal steps over a public set of places, gaps filled where a stay explains them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import one_of, positive, share, whole
from murmurate.core.space import Floats, Integers, Space
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.profiles import Places
from murmurate.profiles.filling import gibbs_fill
from murmurate.spaces.sphere import great_circle_m

STEPS = 72
"""Steps of a day by default, of 20 minutes each, as in the publications compared with."""

DAY_US = 86_400_000_000
"""Microseconds of a day, the unit of `Trips.time_us`."""

HOUR_US = 3_600_000_000
"""Microseconds of an hour."""

ROWS_AT_ONCE = 4096
"""Person-days whose steps are in memory at once, about 30 MB of them. Changes nothing but memory."""


@dataclass(frozen=True, eq=False)
class DailyTraces:
    """Holds where each person was at each step of each kept day; people without a kept day do not appear."""

    person: Integers
    """Position of the person among the trips' `user_ids`, one for each row, ascending."""
    day: Integers
    """Days since 1970, local."""
    place: Places
    """[row, step], places of the space."""
    coverage: Floats
    """Share of the row's steps that were seen or lie within a stay; internal, never part of a release."""
    n_places: int

    def __post_init__(self) -> None:
        rows = len(self.person)
        if self.place.ndim != 2 or not rows == len(self.day) == len(self.place) == len(self.coverage):
            raise InputError(
                f"a daily trace is a row of steps for each person and day; got {self.place.shape} and {rows} rows."
            )
        if self.place.size and (self.place.min() < 0 or self.place.max() >= self.n_places):
            raise InputError(
                f"places are 0 to {self.n_places - 1:,}; found {int(self.place.min())} to {int(self.place.max())}. "
                "A day with a hole has no place there: fill it or leave the day out."
            )

    @property
    def steps(self) -> int:
        return self.place.shape[1]

    @property
    def n_days(self) -> int:
        return len(self.person)

    @property
    def people(self) -> Integers:
        """Return the people with a kept day, ascending."""
        return np.unique(self.person)

    def take(self, rows: NDArray[np.bool_] | Integers) -> DailyTraces:
        """Return the person-days at these positions, or where a mask holds."""
        return DailyTraces(self.person[rows], self.day[rows], self.place[rows], self.coverage[rows], self.n_places)

    def nth_days(self, n: int) -> DailyTraces:
        """Return the n-th kept day (0, 1, ...) of everyone who has that many."""
        return self.take(np.arange(self.n_days) - np.searchsorted(self.person, self.person) == n)


def from_array(place: NDArray[np.integer], n_places: int) -> DailyTraces:
    """Make daily traces of [person, day, step] places that are known already, such as the built-in city's."""
    people, days, steps = place.shape
    return DailyTraces(
        person=np.repeat(np.arange(people, dtype=np.int64), days),
        day=np.tile(np.arange(days, dtype=np.int64), people),
        place=np.ascontiguousarray(place.reshape(people * days, steps), dtype=np.int32),
        coverage=np.ones(people * days),
        n_places=n_places,
    )


def daily_traces(
    trips: Trips,
    space: Space,
    n_places: int,
    *,
    steps: int = STEPS,
    min_coverage: float = 0.8,
    stay_m: float = 500.0,
    max_stay_h: float = 24.0,
    max_pause_h: float = 1.0,
    fill: Literal["hold", "gibbs"] = "hold",
    seed: int = 0,
) -> DailyTraces:
    """Cut trips into person-days of `steps` equal steps over the `n_places` places of `space`.

    The place of a step is where the person was last seen before its middle. A gap is known where it is a pause of at most
    `max_pause_h`, or a stay: both its ends lie within `stay_m` of each other and at most `max_stay_h` apart. Days with less
    than `min_coverage` of known steps are dropped, each person's by their own points alone. Other holes take the nearer end
    of the gap; with fill="gibbs" they are drawn (by `seed`) from how the person moved elsewhere.
    """
    whole("steps", steps, at_least=2, at_most=1440)
    share("min_coverage", min_coverage, closed=True)
    for name, value in (("stay_m", stay_m), ("max_stay_h", max_stay_h), ("max_pause_h", max_pause_h)):
        positive(name, value)
    one_of("fill", fill, ("hold", "gibbs"))
    if not trips.has_time or not trips.has_coordinates:
        raise InputError("daily traces need a time and coordinates for every point.")
    if trips.n_points == 0:
        empty = np.zeros(0, dtype=np.int64)
        return DailyTraces(empty, empty, np.zeros((0, steps), dtype=np.int32), np.zeros(0), n_places)
    local = trips.table["datetime"].dt.convert_time_zone(trips.time_zone).dt.replace_time_zone(None)
    seen_us = local.to_physical().to_numpy()
    person = trips.trip_user[trips.point_trip]
    order = np.lexsort((seen_us, person))
    person, seen_us = person[order], seen_us[order]
    lat, lng = trips.lat[order], trips.lng[order]
    cell = space.locate(lat, lng)
    rows = pl.DataFrame({"person": person, "day": seen_us // DAY_US}).unique(maintain_order=True)
    of_person, of_day = rows["person"].to_numpy(), rows["day"].to_numpy()
    middle = (2 * np.arange(steps, dtype=np.int64) + 1) * DAY_US // (2 * steps)
    first = np.searchsorted(person, np.arange(trips.n_users + 1))
    kept: list[tuple[NDArray[np.bool_], Places, NDArray[np.bool_], Floats]] = []
    for start in range(0, len(of_person), ROWS_AT_ONCE):  # steps take many times the memory of points
        rows_now = slice(start, start + ROWS_AT_ONCE)
        people, midnight_us = of_person[rows_now], of_day[rows_now] * DAY_US
        before, after = _surrounding(seen_us, first, people, midnight_us, middle)
        inner_before, inner_after = np.maximum(before, 0), np.minimum(after, len(cell) - 1)
        gap_us = seen_us[inner_after] - seen_us[inner_before]
        known = (before >= 0) & (after < len(cell)) & (cell[inner_before] >= 0)
        pause = gap_us <= max_pause_h * HOUR_US
        stay = known & ~pause & (gap_us <= max_stay_h * HOUR_US)
        one, other = inner_before[stay], inner_after[stay]
        stay[stay] = great_circle_m(lat[one], lng[one], lat[other], lng[other]) <= stay_m
        known &= pause | stay
        middle_us = midnight_us[:, None] + middle
        later = (before < 0) | ((after < len(cell)) & (seen_us[inner_after] - middle_us < middle_us - seen_us[inner_before]))
        place = np.where(known | ~later, cell[inner_before], cell[inner_after])
        coverage = known.mean(axis=1)
        keep = (coverage >= min_coverage) & (place >= 0).any(axis=1)
        kept.append((keep, place[keep].astype(np.int32), known[keep], coverage[keep]))
    keep, place, known, coverage = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    filled = _fill_outside(place)
    if fill == "gibbs":
        filled = gibbs_fill(filled, known, of_person[keep], seed=seed)
    return DailyTraces(of_person[keep], of_day[keep], filled, coverage, n_places)


@njit(cache=True)
def _surrounding(
    seen_us: Integers, first: Integers, of_person: Integers, midnight_us: Integers, middle: Integers
) -> tuple[Integers, Integers]:
    """Find the last point at or before each step's middle (-1: none of this person) and the first one after (len: none)."""
    before = np.empty((len(of_person), len(middle)), dtype=np.int64)
    after = np.empty_like(before)
    for row in range(len(of_person)):
        low, high = first[of_person[row]], first[of_person[row] + 1]
        at = low + np.searchsorted(seen_us[low:high], midnight_us[row] + middle[0], side="right")
        for step in range(len(middle)):
            while at < high and seen_us[at] <= midnight_us[row] + middle[step]:
                at += 1
            before[row, step] = at - 1 if at > low else -1
            after[row, step] = at if at < high else len(seen_us)
    return before, after


@njit(cache=True)
def _fill_outside(place: Places) -> Places:
    """Fill steps outside the space with the place before them, or the first one after."""
    steps = place.shape[1]
    for row in range(len(place)):
        last = -1
        for step in range(steps):
            if place[row, step] >= 0:
                last = place[row, step]
            elif last >= 0:
                place[row, step] = last
        for step in range(steps - 1, -1, -1):
            if place[row, step] >= 0:
                last = place[row, step]
            else:
                place[row, step] = last
    return place
