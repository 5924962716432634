"""Gibbs filling: holes of a day as the person's other days, known steps untouched."""

from __future__ import annotations

import numpy as np

from murmurate.profiles.days import daily_traces
from murmurate.profiles.filling import gibbs_fill
from plausible_days import GRID, made_days, trips_of


def test_holes_are_filled_as_the_person_moves():
    days = np.tile(np.repeat(np.array([1, 2, 3, 1], dtype=np.int32), [24, 2, 26, 20]), (12, 1))
    known = np.ones(days.shape, dtype=bool)
    holed = days.copy()
    known[0, 22:30] = False  # between home and work, always by way of 2
    holed[0, 22:30] = 1
    filled = np.stack([gibbs_fill(holed, known, np.zeros(12, dtype=np.int64), seed=k)[0] for k in range(30)])
    assert (filled[:, :22] == days[0, :22]).all()
    assert (filled[:, 30:] == days[0, 30:]).all()
    assert (filled[:, 22:30] == 2).any(axis=1).mean() > 0.6
    assert set(np.unique(filled).tolist()) <= {1, 2, 3}


def test_people_are_filled_by_their_own_days():
    place = np.concatenate([np.full((2, 72), 5), np.full((2, 72), 9)]).astype(np.int32)
    known = np.ones(place.shape, dtype=bool)
    known[0, 10:20] = known[3, 40:] = False
    assert (gibbs_fill(place, known, np.array([0, 0, 1, 1])) == place).all()


def test_nothing_missing_nothing_drawn_and_seeds_repeat():
    days = made_days(4, 2)
    assert (gibbs_fill(days.place, np.ones(days.place.shape, dtype=bool), days.person) == days.place).all()
    trips = trips_of(days, every=9)
    once, again = (daily_traces(trips, GRID, GRID.n_cells, min_coverage=0.2, fill="gibbs", seed=3) for _ in range(2))
    assert (once.place == again.place).all()
    held = daily_traces(trips, GRID, GRID.n_cells, min_coverage=0.2)
    assert held.n_days == once.n_days > 0
