"""flock reads and counts private trips some at a time, which changes nothing but the memory it takes."""

from __future__ import annotations

import numpy as np

from diagonal_city import GRID, city
from murmurate import noise
from murmurate.mechanisms.flock import fitting, reading
from murmurate.mechanisms.flock.frame import Frame
from murmurate.synthesis.measure import Noise

FRAME = Frame(grid=GRID, block=1, reach=3, hours=24, max_cells=100)


def test_tracks_are_the_same_however_many_are_read_at_once(monkeypatch):
    private = city(120, users=30)
    whole = reading.read(private, FRAME, slot_s=60)
    monkeypatch.setattr(reading, "AT_ONCE", private.n_points // 7)
    apart = reading.read(private, FRAME, slot_s=60)
    for name in ("y", "x", "offsets", "source", "destination", "diameter_m", "length_m", "repeats"):
        assert np.array_equal(getattr(whole, name), getattr(apart, name)), name
    assert np.array_equal(whole.walks.cells, apart.walks.cells)
    assert np.array_equal(whole.walks.offsets, apart.walks.offsets)
    assert np.array_equal(whole.walks.hours, apart.walks.hours)


def test_tables_are_the_same_however_many_trips_are_counted_at_once(monkeypatch):
    tracks = reading.read(city(120, users=30), FRAME, slot_s=60)

    def answers():
        counting = fitting.Counting(Noise(kind="laplace", scale=1.0), noise.seeded(4))
        counting.shares = dict.fromkeys(("visits", "ends", "towards", "diameter"), 0.25)
        counting.tables(("visits", "ends", "towards", "diameter"), tracks, FRAME)
        return counting.answers

    whole = answers()
    monkeypatch.setattr(fitting, "AT_ONCE", 17)
    apart = answers()
    assert whole.keys() == apart.keys() and len(whole) == 4
    assert all(np.array_equal(whole[name].noisy, apart[name].noisy) for name in whole)
