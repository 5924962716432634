"""Tony-900 as the thesis has it."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.demo import skate, tony900
from murmurate.errors import ParameterError


def test_points_lengths_and_speed_are_the_published_ones():
    traces = skate(skaters=20_000, seed=3)
    sizes = np.diff(traces.offsets)
    assert set(sizes.tolist()) == {13, 14}
    assert 0.38 < (sizes == 14).mean() < 0.43
    steps = np.hypot(np.diff(traces.x_m), np.diff(traces.y_m))
    inside = np.ones(len(steps), dtype=bool)
    inside[traces.offsets[1:-1] - 1] = False
    assert np.allclose(steps[inside], 75)  # 5 m/s for 15 s
    length = (sizes - 1) * 75.0
    assert abs(length.mean() - 930) < 2.5  # the thesis prints 929.8


def test_recording_stops_at_the_first_point_outside():
    traces = skate(skaters=500, seed=1)
    reach = np.sqrt(traces.x_m**2 + traces.y_m**2)
    last = np.zeros(len(reach), dtype=bool)
    last[traces.offsets[1:] - 1] = True
    assert (reach[last] >= 900).all()
    assert (reach[~last] < 900).all()
    assert (reach[traces.offsets[:-1]] == 0).all()


def test_directions_are_uniform():
    traces = skate(skaters=40_000, seed=2)
    turn = np.arctan2(traces.y_m, traces.x_m)[traces.offsets[1:] - 1]
    counts = np.histogram(turn, bins=20, range=(-np.pi, np.pi))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 50


def test_degrees_give_the_exact_metres_back():
    traces, trips = skate(skaters=1000, seed=1), tony900(skaters=1000, seed=1)
    assert trips.n_trips == trips.n_users == 1000
    assert (trips.offsets == traces.offsets).all()
    x, y = trips.space.to_xy(trips.lat, trips.lng)
    assert np.abs(x - traces.x_m).max() < 1e-6
    assert np.abs(y - traces.y_m).max() < 1e-6
    assert set(np.diff(trips.time_us)[np.diff(trips.point_trip) == 0].tolist()) == {15_000_000}


def test_deterministic_and_refuses_nonsense():
    assert tony900(seed=4).table.equals(tony900(seed=4).table)
    assert not tony900(seed=4).table.equals(tony900(seed=5).table)
    with pytest.raises(ParameterError):
        tony900(skaters=0)
