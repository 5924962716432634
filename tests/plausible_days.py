"""Made-up person-days for tests: homes, work, errands; and trips whose daily traces are known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from murmurate.core.trips import Trips
from murmurate.profiles.days import DailyTraces
from murmurate.spaces.grid import Grid

GRID = Grid(60.0, 24.0, 60.09, 24.18, 1000)
"""11 x 11 cells of 1 km (the last row and column are cut); made-up people keep to the first 100."""


def made_days(people: int, days_each: int, *, seed: int = 0, n_places: int = 100) -> DailyTraces:
    """Everybody sleeps at home, most work, some run errands on the way back."""
    rng = np.random.default_rng(seed)
    place = np.empty((people * days_each, 72), dtype=np.int32)
    for person in range(people):
        home, work = rng.integers(0, n_places, 2)
        for day in range(days_each):
            row = place[person * days_each + day]
            row[:] = home
            if rng.random() < 0.8:
                leave, back = 24 + rng.integers(-3, 4), 51 + rng.integers(-4, 5)
                row[leave:back] = work
                if rng.random() < 0.5:
                    row[back : back + 1 + rng.integers(0, 4)] = rng.integers(0, n_places)
    return DailyTraces(
        person=np.repeat(np.arange(people), days_each),
        day=np.tile(np.arange(days_each), people),
        place=place,
        coverage=np.ones(len(place)),
        n_places=n_places,
    )


def restless_person(days_each: int, *, n_places: int = 100, seed: int = 1) -> np.ndarray:
    """[day, step]: somebody who is elsewhere at every step."""
    return np.random.default_rng(seed).integers(0, n_places, (days_each, 72)).astype(np.int32)


def with_person(days: DailyTraces, place: np.ndarray) -> DailyTraces:
    """The same people and one more."""
    newcomer = int(days.person.max()) + 1 if days.n_days else 0
    return DailyTraces(
        person=np.r_[days.person, np.full(len(place), newcomer)],
        day=np.r_[days.day, np.arange(len(place))],
        place=np.concatenate([days.place, place]).astype(np.int32),
        coverage=np.ones(days.n_days + len(place)),
        n_places=days.n_places,
    )


def trips_of(days: DailyTraces, grid: Grid = GRID, *, every: int = 1) -> Trips:
    """A point in the middle of each step (or every few), at the centre of its cell."""
    rows, steps = days.place.shape
    step = np.arange(0, steps, every)
    lat, lng = grid.centre(days.place[:, step].ravel())
    midnight = datetime(2026, 3, 2, tzinfo=UTC)
    when = [midnight + timedelta(days=int(day), minutes=20 * int(at) + 9) for day in days.day for at in step]
    return Trips(
        pl.DataFrame(
            {
                "uid": np.repeat(days.person, len(step)),
                "tid": np.repeat(np.arange(rows), len(step)),
                "datetime": when,
                "lat": lat,
                "lng": lng,
            }
        )
    )
