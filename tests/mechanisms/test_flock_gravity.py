from __future__ import annotations

import numpy as np
import pytest

from murmurate.asking import Answer
from murmurate.mechanisms.flock.ends import EndsPool, Outlines, distance_shares, fit_gravity, place_ends
from murmurate.mechanisms.flock.estimates import estimate_cells, interpolate_density, resample
from murmurate.mechanisms.flock.shapes import Shapes, estimate_shapes, fit_pace
from murmurate.mechanisms.flock.tables import (
    APART_RATIO_EDGES,
    LENGTH_RATIO_EDGES,
    N_DIAMETERS,
    N_SHAPES,
    N_SPEED_ROWS,
    N_SPEEDS,
    diameter_bin,
)
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.spaces.grid import Grid

FRAME = Frame(grid=Grid(60.10, 24.80, 60.16, 24.92, 200), block=3, reach=2, hours=1, max_cells=50)


def rng():
    return np.random.default_rng(5)


def mass():
    made = rng().random(FRAME.n_coarse) ** 3 + 0.01
    return made / made.sum()


def test_every_two_cells_are_some_distance_apart():
    near = distance_shares(FRAME)
    np.testing.assert_allclose(near.sum(axis=0), 1.0)
    np.testing.assert_allclose(near, near[:, ::-1, ::-1])
    middle = near[:, FRAME.rows - 1, FRAME.columns - 1]
    assert middle[diameter_bin(np.array([5_000.0]))[0]] == 0 < middle[diameter_bin(np.array([300.0]))[0]]


def test_gravity_keeps_masses_and_distances():
    apart_m = np.where(rng().random(40_000) < 0.6, 500.0, 2_500.0)
    share = np.bincount(diameter_bin(apart_m), minlength=N_DIAMETERS) / len(apart_m)
    gravity = fit_gravity(FRAME, mass(), share)
    first, last = gravity.sample(apart_m, rng())
    ends = np.bincount(np.concatenate([first, last]), minlength=FRAME.n_coarse) / (2 * len(first))
    assert np.abs(ends - mass()).sum() < 0.08
    rows, columns = first // FRAME.columns - last // FRAME.columns, first % FRAME.columns - last % FRAME.columns
    cells_m = np.hypot(rows, columns) * FRAME.coarse_m
    assert cells_m[apart_m > 1_000].min() > 1_000
    assert cells_m[apart_m < 1_000].max() < 1_500


def test_places_are_as_far_apart_as_wanted_and_in_the_box():
    apart_m = np.full(4_000, 400.0)
    gravity = fit_gravity(FRAME, mass(), np.bincount(diameter_bin(apart_m), minlength=N_DIAMETERS))
    first, last = gravity.sample(apart_m, rng())
    y, x, end_y, end_x = place_ends(FRAME, np.ones(FRAME.grid.n_cells), first, last, apart_m, rng())
    far = np.hypot(end_y - y, end_x - x) * FRAME.grid.cell_m
    assert np.mean(np.abs(far / 400 - 1) < 0.01) > 0.9
    for values, top in ((y, 0), (end_y, 0), (x, 1), (end_x, 1)):
        assert values.min() >= 0 and values.max() <= FRAME.top[top]


def test_far_distances_that_the_box_does_not_hold_fall_back_to_the_farthest():
    gravity = fit_gravity(FRAME, mass(), np.ones(N_DIAMETERS))
    first, last = gravity.sample(np.full(50, 50_000.0), rng())
    assert (
        np.abs(first // FRAME.columns - last // FRAME.columns) + np.abs(first % FRAME.columns - last % FRAME.columns)
    ).min() > 3


def test_shapes_are_drawn_as_estimated():
    diameter = np.zeros((N_DIAMETERS, 2))
    diameter[8, 0], diameter[12, 0] = 3_000, 1_000
    shape = np.zeros((N_SHAPES // 30, len(APART_RATIO_EDGES) + 1, len(LENGTH_RATIO_EDGES) + 1))
    shape[4, 4, 1], shape[6, 2, 3] = 3_000, 1_000
    shapes = estimate_shapes(Answer(diameter.ravel(), 1.0), Answer(shape.ravel(), 1.0))
    wide, apart, long = shapes.draw(20_000, rng())
    bins = np.bincount(diameter_bin(wide), minlength=N_DIAMETERS) / len(wide)
    assert bins[8] == pytest.approx(0.75, abs=0.03) and bins[12] == pytest.approx(0.25, abs=0.03)
    short = diameter_bin(wide) == 8
    assert (apart / wide)[short].mean() > 0.9 and (apart <= wide * (1 + 1e-9)).all()
    assert np.median((long / wide)[short]) < 1.15 < 1.4 < np.median((long / wide)[~short])
    assert shapes.apart(rng()).sum() == pytest.approx(1.0)


def test_no_noise_alone_makes_trips_long():
    """What once made trips of a small file more than twice as long: a table of mostly noise."""
    diameter = np.zeros((N_DIAMETERS, 2))
    diameter[7:10, 0] = 1_000
    noise_ = rng().laplace(size=N_SHAPES) * 20
    shape = np.zeros((N_SHAPES // 30, len(APART_RATIO_EDGES) + 1, len(LENGTH_RATIO_EDGES) + 1))
    shape[3:5, 4, 1] = 1_500
    shapes = estimate_shapes(
        Answer(diameter.ravel() + rng().laplace(size=diameter.size) * 20, 28.0), Answer(shape.ravel() + noise_, 28.0)
    )
    _, _, long = shapes.draw(20_000, rng())
    true = Shapes(diameter.sum(axis=1) + 1e-9, shape + 1e-9).draw(20_000, rng())[2]
    assert 0.8 < long.mean() / true.mean() < 1.35


def test_no_noise_alone_makes_trips_slow():
    far = np.zeros((N_SPEED_ROWS, N_SPEEDS))
    far[1:4, 7:9] = 500
    noisy = far.ravel() + rng().laplace(size=far.size) * 25
    pace = fit_pace(Answer(noisy, 25 * 2**0.5), Answer(rng().laplace(size=24 * N_SPEEDS) * 50, 50 * 2**0.5), 24)
    assert pace.table[:, :, :6].sum() < 0.02 * pace.table.sum()


def test_estimated_cells_lie_nearer_than_the_noise_and_keep_the_total():
    rows = columns = 16
    north, east = np.indices((rows, columns))
    true = 200 * np.exp(-((north - 5) ** 2 + (east - 9) ** 2) / 12.0).ravel()
    noisy = true + rng().laplace(size=true.size) * 10
    found = estimate_cells(Answer(noisy, 10 * 2**0.5), rows, columns)
    assert found.min() >= 0 and found.sum() == pytest.approx(noisy.sum())
    assert np.abs(found - true).sum() < 0.5 * np.abs(noisy - true).sum()


def test_interpolated_density_changes_evenly():
    coarse = np.tile(np.arange(FRAME.columns, dtype=float), FRAME.rows) * FRAME.coarse_area
    fine = (interpolate_density(coarse, FRAME) / FRAME.area).reshape(FRAME.grid.rows, -1)
    assert (np.diff(fine, axis=1) >= -1e-9).all() and (np.abs(np.diff(fine, axis=0)) < 1e-9).all()


def test_cells_cut_by_the_box_have_their_true_area():
    whole_m2 = np.ptp(np.array([FRAME.grid.south, FRAME.grid.north])) / FRAME.grid.lat_step
    whole_m2 *= np.ptp(np.array([FRAME.grid.west, FRAME.grid.east])) / FRAME.grid.lng_step
    assert FRAME.area.sum() == pytest.approx(whole_m2) == FRAME.coarse_area.sum()
    assert FRAME.area.max() == 1.0 and FRAME.area.min() < 1.0


def test_drawing_is_even_over_what_is_alike():
    n = 1_000
    zeros = np.zeros(n)
    outlines = Outlines(zeros + 2.5, zeros + 3.5, zeros + 4.2, zeros + 1.1, zeros + 900, zeros + 1_000)
    pool = EndsPool(np.arange(n) // 100, np.arange(n) % 100, np.zeros(n, dtype=np.int64), np.cumsum(np.ones(n)), outlines)
    drawn = pool.sample(200, rng())
    assert (np.bincount(drawn.source) == 20).all()
    moved = drawn.outlines.shifted(FRAME.top, rng())
    assert len(np.unique(moved.first_y)) == 200
    assert (np.floor(moved.first_y) == 2).all() and (np.floor(moved.last_x) == 1).all()
    np.testing.assert_allclose(moved.last_y - moved.first_y, 1.7)
    assert (np.bincount(resample(np.log(np.array([1.0, 3.0])), 8, rng())) == [2, 6]).all()
    assert set(pool.where(pool.source < 3).sample(30, rng()).source) == {0, 1, 2}
