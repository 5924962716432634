"""Single trips, worked by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import jensenshannon

from murmurate.core.trips import Trips
from murmurate.judging.review import evaluate
from murmurate.metrics.comparison import Side
from murmurate.spaces.grid import Grid
from murmurate.spaces.sphere import METRES_PER_DEGREE

GRID = Grid(-0.05, -0.05, 0.05, 0.05, 100)
METRE = 1 / METRES_PER_DEGREE
START = datetime(2024, 5, 6, 17, 58, tzinfo=UTC)


def trips(*lines, minutes=1.0, start=START):
    """Trips through points given in metres from 0 N 0 E, a point every `minutes`."""
    rows = [
        (0, tid, start + timedelta(minutes=minutes * k), y * METRE, x * METRE)
        for tid, line in enumerate(lines)
        for k, (x, y) in enumerate(line)
    ]
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row"))


def values(released, original, *metrics, pairing=None):
    pairing = np.arange(released.n_trips) if pairing is None else pairing
    found = evaluate(released, original, grid=GRID, pairing=pairing, metrics=metrics)
    assert not found.skipped
    return {score.name: score.value for score in found}


def test_changes_of_length_duration_and_speed_by_hand():
    original = trips([(0, 0), (300, 0)], [(0, 0), (0, 100)])
    released = trips([(0, 0), (600, 0)], [(0, 0), (0, 50)], minutes=2)
    got = values(released, original, "length_change", "duration_change", "speed_change", "length", "speed")
    assert got["length_change.relative.mean"] == pytest.approx((1.0 - 0.5) / 2)
    assert got["length_change.relative_absolute.mean"] == pytest.approx(0.75)
    assert got["length_change.relative_squared.mean"] == pytest.approx((1 + 0.25) / 2)
    assert got["length_change.absolute.sum"] == pytest.approx(350)
    assert got["length_change.absolute.min"] == pytest.approx(50)
    assert got["length_change.absolute.max"] == pytest.approx(300)
    assert got["length_change.absolute.sd"] == pytest.approx(125)
    assert got["duration_change.absolute.mean"] == pytest.approx(60)
    assert got["speed_change.relative.max"] == pytest.approx(0.0, abs=1e-9)
    assert got["length.original_mean"] == pytest.approx(200)
    assert got["length.relative_mean_change"] == pytest.approx(125 / 200)
    assert got["speed.original_mean"] == pytest.approx((18 + 6) / 2)


def test_the_pairing_decides_who_is_compared():
    original = trips([(0, 0), (300, 0)], [(0, 0), (0, 100)])
    swapped = trips([(0, 0), (0, 100)], [(0, 0), (300, 0)])
    assert values(swapped, original, "length_change", pairing=np.array([1, 0]))["length_change.absolute.max"] < 1e-6
    assert values(swapped, original, "length_change")["length_change.absolute.max"] > 100


def test_trips_of_no_length_have_no_relative_change():
    original = trips([(0, 0), (0, 0)], [(0, 0), (0, 100)])
    found = evaluate(original, original, grid=GRID, pairing=np.arange(2), metrics=["length_change"])
    assert found["length_change.relative.mean"].n == 1
    assert "1 pairs" in found["length_change.relative.mean"].note
    assert found["length_change.absolute.mean"].n == 2


def test_point_displacement_by_hand():
    original = trips([(0, 0), (100, 0), (200, 0)], [(0, 0), (1, 1)])
    released = trips([(0, 30), (100, 0), (200, 60)], [(0, 0), (1, 1), (2, 2)])
    got = values(released, original, "point_displacement")
    assert got["point_displacement.least.mean"] == pytest.approx(0, abs=1e-6)
    assert got["point_displacement.average.mean"] == pytest.approx(30, rel=1e-6)
    assert got["point_displacement.greatest.mean"] == pytest.approx(60, rel=1e-6)
    none = evaluate(trips([(0, 0)]), original, grid=GRID, pairing=[0], metrics=["point_displacement"])
    assert "as many points" in none.skipped["point_displacement"]


def test_centroids_with_and_without_repeats():
    original = trips([(0, 0), (100, 0)])
    released = trips([(0, 0), (0, 0), (0, 0), (100, 0)])
    got = values(released, original, "centroid_displacement")
    assert got["centroid_displacement.mean"] == pytest.approx(25, rel=1e-6)
    assert got["centroid_displacement.no_repeats.mean"] == pytest.approx(0, abs=1e-6)


def test_a_trip_belongs_to_the_hour_that_holds_most_of_it():
    late = trips([(k, 0) for k in range(12)])  # 17:58 to 18:09, as in DP-Loc section 8.2
    even = trips([(k, 0) for k in range(4)])  # two points before, two after
    assert Side(late, GRID).hour.tolist() == [18]
    assert Side(even, GRID).hour.tolist() == [17]


def test_an_hour_column_has_the_last_word():
    told = Trips(trips([(k, 0) for k in range(12)]).table.with_columns(hour=pl.lit(17)))
    assert Side(told, GRID).hour.tolist() == [17]


def test_trip_size_agrees_with_scipy(original, noise):
    found = evaluate(noise.with_columns({"datetime": original.table["datetime"]}), original, metrics=["trip_size"])
    grid = original.space
    sizes, hours = [], []
    for side in (original, noise):
        cell = grid.locate(side.lat, side.lng)
        parts = [cell[a:b] for a, b in zip(side.offsets[:-1], side.offsets[1:], strict=True)]
        sizes.append(np.array([1 + int((np.diff(part) != 0).sum()) for part in parts]))
    for a, b in zip(original.offsets[:-1], original.offsets[1:], strict=True):
        names, counts = np.unique(original.local_hour[a:b], return_counts=True)
        hours.append(names[counts.argmax()])
    hours = np.array(hours)
    expected = []
    for hour in np.unique(hours):
        counts = [np.bincount(size[hours == hour], minlength=30) for size in sizes]
        expected.append(jensenshannon(*counts, base=2) ** 2)
        assert found[f"trip_size.hour_{hour:02d}"].value == pytest.approx(expected[-1])
    assert found["trip_size"].value == pytest.approx(np.mean(expected))


def test_hours_on_one_side_only_count_as_all_different():
    morning, evening = trips([(0, 0), (500, 0)], start=START.replace(hour=6)), trips([(0, 0), (500, 0)])
    got = values(evening, morning, "trip_size")
    assert got["trip_size"] == 1
