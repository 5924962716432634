"""Cleaning: hand-worked cases, and what must hold for every table."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.clean import drop_duplicates, drop_fast, drop_outside, drop_reversals, drop_simultaneous
from murmurate.spaces import Grid

START = datetime(2024, 5, 1, 8, tzinfo=UTC)
BOX = Grid(0, 0, 0.05, 0.05, 500)


def trips_of(*points: tuple[str, int, float, float, float]) -> Trips:
    """Trips of (uid, tid, seconds, lat, lng)."""
    uid, tid, seconds, lat, lng = zip(*points, strict=True) if points else ([],) * 5
    table = {"uid": uid, "tid": tid, "datetime": [START + timedelta(seconds=s) for s in seconds], "lat": lat, "lng": lng}
    types = {"uid": pl.String, "tid": pl.Int64, "datetime": pl.Datetime("us", "UTC"), "lat": pl.Float64, "lng": pl.Float64}
    return Trips(pl.DataFrame(table, schema=types))


tables = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(0, 2),
        st.integers(0, 600).map(lambda s: s // 20 * 20),
        st.integers(-2, 8).map(lambda k: k * 0.01),
        st.integers(-2, 8).map(lambda k: k * 0.01),
    ),
    max_size=30,
).map(lambda points: trips_of(*points))

STEPS = {
    "outside": lambda trips: drop_outside(trips, space=BOX),
    "outside_trips": lambda trips: drop_outside(trips, space=BOX, remove="trips"),
    "fast": drop_fast,
    "fast_trips": lambda trips: drop_fast(trips, remove="trips"),
    "duplicates": drop_duplicates,
    "simultaneous": drop_simultaneous,
}


@pytest.mark.parametrize("name", STEPS)
@given(private=tables)
def test_steps_only_remove_add_up_and_settle(name, private):
    kept, removed = STEPS[name](private)
    assert (removed.points, removed.trips) == (private.n_points - kept.n_points, private.n_trips - kept.n_trips)
    assert kept.table.join(private.table, on=private.columns, how="anti").is_empty()
    again, nothing = STEPS[name](kept)
    assert again.table.equals(kept.table)
    assert (nothing.points, nothing.trips) == (0, 0)


def test_points_outside_the_box():
    private = trips_of(("a", 1, 0, 0.01, 0.01), ("a", 1, 60, 0.06, 0.01), ("b", 1, 0, -1, 0), ("c", 1, 0, 0.02, 0.02))
    kept, removed = drop_outside(private, space=BOX)
    assert (kept.n_points, removed.points, removed.trips) == (2, 2, 1)
    whole, removed = drop_outside(private, space=BOX, remove="trips")
    assert (whole.n_points, removed.points, removed.trips) == (1, 3, 2)


def test_a_leap_is_dropped_and_the_way_after_it_kept():
    # 0.01 degrees are 1,112 m: 67 km/h in a minute. The third point is 11 km off and comes back.
    private = trips_of(("a", 1, 0, 0, 0), ("a", 1, 60, 0.01, 0), ("a", 1, 120, 0.11, 0), ("a", 1, 180, 0.02, 0))
    kept, removed = drop_fast(private)
    assert kept.lat.tolist() == [0, 0.01, 0.02]
    assert removed.points == 1
    assert drop_fast(private, remove="trips")[0].n_points == 0
    assert drop_fast(private, max_speed_kmh=1000)[1].points == 0


def test_the_limit_itself_is_too_fast():
    private = trips_of(("a", 1, 0, 0, 0), ("a", 1, 3600, 1, 0))  # 111.195 km in an hour
    assert drop_fast(private, max_speed_kmh=111.19)[1].points == 1
    assert drop_fast(private, max_speed_kmh=111.20)[1].points == 0


def test_two_places_at_one_time_are_impossible_and_one_place_twice_is_not():
    private = trips_of(("a", 1, 0, 0, 0), ("a", 1, 0, 0, 0), ("a", 1, 0, 0.001, 0))
    assert drop_fast(private)[0].lat.tolist() == [0, 0]


def test_duplicates_need_time_place_and_trip_to_be_equal():
    private = trips_of(
        ("a", 1, 0, 0, 0), ("a", 1, 0, 0.01, 0), ("a", 1, 0, 0, 0), ("a", 1, 60, 0, 0), ("a", 2, 0, 0, 0), ("b", 1, 0, 0, 0)
    )
    kept, removed = drop_duplicates(private)
    assert (kept.n_points, removed.points, removed.trips) == (5, 1, 0)
    once, removed = drop_simultaneous(private)
    assert (once.n_points, removed.points) == (4, 2)
    assert once.lat.tolist() == [0, 0, 0, 0]


def test_a_clock_that_jumped_back():
    seconds = [0, 60, 30, 61, 10, 5]
    table = pl.DataFrame(
        {"uid": "a", "tid": [1, 1, 1, 1, 2, 2], "datetime": [START + timedelta(seconds=s) for s in seconds], "row": range(6)}
    )
    kept, removed = drop_reversals(table)
    assert kept["row"].to_list() == [0, 1, 3, 4]
    assert removed.points == 2
    assert drop_reversals(kept)[1].points == 0
    with pytest.raises(InputError, match="datetime"):
        drop_reversals(table.drop("datetime"))


def test_steps_say_what_they_need():
    timeless = Trips(pl.DataFrame({"uid": "a", "tid": [1, 1], "lat": [0.0, 0.1], "lng": [0.0, 0.0]}))
    for step in (drop_fast, drop_duplicates, drop_simultaneous):
        with pytest.raises(InputError, match="datetime"):
            step(timeless)
    private = trips_of(("a", 1, 0, 0, 0))
    for speed in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="max_speed_kmh"):
            drop_fast(private, max_speed_kmh=speed)
    with pytest.raises(ParameterError, match="remove"):
        drop_fast(private, remove="everything")
