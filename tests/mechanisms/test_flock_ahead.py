"""Routes of flock look ahead: a way that is used draws trips before they reach it."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.mechanisms.flock.ahead import look_ahead
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.spaces.grid import Grid

GRID = Grid(60.0, 24.0, 60.08, 24.16, 1000)


@pytest.fixture(scope="module")
def frame():
    return Frame(grid=GRID, block=1, reach=2, hours=1, max_cells=100)


def test_even_visits_change_nothing(frame):
    wide_of, ahead = look_ahead(frame, np.full(frame.n_coarse, 1.0))
    assert np.array_equal(wide_of, np.arange(frame.n_coarse))  # few cells: each is its own wide cell
    assert np.allclose(ahead, 1.0)


def test_a_used_way_two_cells_further_on_draws_the_step_towards_it(frame):
    middle = frame.rows // 2
    visits = np.full((frame.rows, frame.columns), 0.1)
    visits[middle + 2, :] = 20.0  # a road to the north of the straight line
    _, ahead = look_ahead(frame, visits.ravel())
    destination = (middle + 2) * frame.columns + frame.columns - 1
    north, south = ((middle + aside) * frame.columns + 1 for aside in (1, -1))
    assert ahead[destination, north] > 1.5 * ahead[destination, south]


def test_weights_stay_above_zero_and_at_most_one_on_any_visits(frame):
    visits = np.where(np.arange(frame.n_coarse) % 7 == 0, 1e6, 1e-3)
    _, ahead = look_ahead(frame, visits)
    assert ahead.shape == (frame.n_coarse, frame.n_coarse)
    assert (ahead > 0).all()
    assert ahead.max() <= 1.0
    assert np.isfinite(ahead).all()
