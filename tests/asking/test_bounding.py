from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurate import noise
from murmurate.asking.bounding import bound, new_key, units_of_trips
from murmurate.core.guarantee import Unit
from murmurate.core.trips import Trips
from murmurate.errors import InputError


def made(sizes):
    """`sizes[u][t]` points for each trip t of each person u, one trip an hour from 20:00, points a minute apart."""
    rows = [
        (f"u{u}", t, datetime(2024, 1, 1, 20, tzinfo=UTC) + timedelta(hours=t, minutes=p), 60.0, 24.0 + p * 1e-4)
        for u, trips in enumerate(sizes)
        for t, size in enumerate(trips)
        for p in range(size)
    ]
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row"))


SIZES = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=6), min_size=1, max_size=4)


@given(SIZES, st.sampled_from(["trip", "user_day", "user"]), st.integers(1, 4), st.integers(1, 7))
def test_no_unit_keeps_more_than_its_bounds(sizes, name, max_trips, max_points):
    unit = Unit(name=name, max_trips=max_trips, max_points=max_points)
    kept = bound(made(sizes), unit, new_key(noise.seeded(1)))
    units = units_of_trips(kept, unit)
    assert np.bincount(units).max() <= max_trips
    assert np.bincount(units, weights=np.diff(kept.offsets)).max() <= max_points


@given(SIZES)
def test_within_bounds_nothing_changes(sizes):
    trips = made(sizes)
    assert bound(trips, Unit(name="user", max_trips=100, max_points=1000), new_key(noise.seeded(1))).table.equals(trips.table)


def test_a_trip_belongs_to_the_day_it_began_on():
    trips = made([[1, 1, 1, 1, 300, 1]])  # 20:00 to 01:00; the trip at 00:00 lasts five hours
    assert units_of_trips(trips, Unit(name="user_day")).tolist() == [0, 0, 0, 0, 1, 1]


def test_points_are_cut_from_the_end():
    kept = bound(made([[5]]), Unit(name="trip", max_points=2), new_key(noise.seeded(1)))
    assert kept.lng.tolist() == pytest.approx([24.0, 24.0001])


def test_which_trips_stay_is_drawn_at_random():
    chosen = {
        tuple(bound(made([[1] * 6]), Unit(name="user", max_trips=1), new_key(noise.seeded(seed))).trip_ids.to_list())
        for seed in range(40)
    }
    assert len(chosen) > 3


def test_days_need_times():
    sequence = Trips(pl.DataFrame({"uid": ["a"], "tid": [1], "cell": [1]}))
    with pytest.raises(InputError, match="user_day"):
        bound(sequence, Unit(name="user_day", max_trips=1), new_key(noise.seeded(1)))
