"""Chosen places: the most visited cells, and every other cell the nearest of them."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.core.space import Space
from murmurate.errors import InputError
from murmurate.papers.plausible.places import most_visited
from plausible_days import GRID, made_days


def test_the_most_visited_are_kept_and_others_join_the_nearest():
    days = made_days(30, 2)
    fewer, places = most_visited(days, GRID, 20)
    assert isinstance(places, Space)
    assert places.n_places == fewer.n_places == 20
    count = np.bincount(days.place.ravel(), minlength=GRID.n_cells)
    assert count[places.cells].min() >= np.sort(count)[-20]
    for row in range(0, 60, 7):
        for step in range(0, 72, 9):
            far = GRID.distance(np.full(20, days.place[row, step]), places.cells)
            assert far[fewer.place[row, step]] == far.min()


def test_places_know_where_they_are():
    days = made_days(30, 2)
    _, places = most_visited(days, GRID, 500)
    lat, lng = places.centre(np.arange(places.n_places))
    assert (places.locate(lat, lng) == np.arange(places.n_places)).all()
    assert places.locate(0.0, 0.0)[0] == -1
    assert places.distance(0, 0) == 0
    assert 0 in places.neighbours(0)
    assert places.spec() == GRID.spec()


def test_nobody_visits_nothing():
    with pytest.raises(InputError, match="min_coverage"):
        most_visited(made_days(1, 1).take(np.zeros(1, dtype=bool)), GRID, 5)
