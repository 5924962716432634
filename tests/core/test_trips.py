from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


def table(**extra):
    return pl.DataFrame(
        {
            "uid": ["b", "a", "a", "a"],
            "tid": [1, 2, 1, 1],
            "datetime": [NOON, NOON, NOON + timedelta(minutes=1), NOON],
            "lat": [60.0, 60.1, 60.2, 60.3],
            "lng": [24.0, 24.1, 24.2, 24.3],
            **extra,
        }
    )


def test_sorts_and_offsets():
    trips = Trips(table())
    assert trips.table["uid"].to_list() == ["a", "a", "a", "b"]
    assert trips.lat.tolist() == [60.3, 60.2, 60.1, 60.0]
    assert trips.offsets.tolist() == [0, 2, 3, 4]
    assert trips.user_offsets.tolist() == [0, 2, 3]
    assert trips.trip_user.tolist() == [0, 0, 1]
    assert trips.point_trip.tolist() == [0, 0, 1, 2]
    assert trips.user_ids.to_list() == ["a", "b"]
    assert trips.trip_ids.to_list() == [1, 2, 1]


def test_the_table_given_is_not_changed():
    given_table = table()
    Trips(given_table)
    assert given_table["uid"].to_list() == ["b", "a", "a", "a"]


def test_two_people_may_use_one_trip_name():
    trips = Trips(pl.DataFrame({"uid": ["a", "b"], "tid": [1, 1], "cell": [3, 4]}))
    assert (trips.n_trips, trips.has_time) == (2, False)
    assert trips.carries() == {"cell"}


def test_sequences_keep_their_order():
    trips = Trips(pl.DataFrame({"uid": ["b", "a", "a"], "tid": [1, 1, 1], "cell": [9, 8, 7]}))
    assert trips.cell.tolist() == [8, 7, 9]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"lat": [91.0, 0, 0, 0]}, "lat"),
        ({"lng": [181.0, 0, 0, 0]}, "lng"),
        ({"lat": [float("nan"), 0, 0, 0]}, "lat"),
        ({"lng": [None, 0, 0, 0]}, "lng"),
        ({"uid": [None, "a", "a", "a"]}, "uid"),
        ({"datetime": [datetime(2024, 6, 1)] * 4}, "time zone"),
        ({"lat": ["x", "y", "z", "w"]}, "type"),
        ({"hour": [3, 24, 0, 0]}, "hour"),
        ({"weekday": [3, 6, -1, 0]}, "weekday"),
    ],
)
def test_bad_values_are_refused_with_their_column(change, match):
    with pytest.raises(InputError, match=match):
        Trips(table().with_columns(**{name: pl.Series(values) for name, values in change.items()}))


def test_missing_columns_are_all_named():
    with pytest.raises(InputError, match=r"uid, tid, lat and lng"):
        Trips(pl.DataFrame({"x": [1]}))


def test_unknown_zone_is_refused():
    with pytest.raises(ParameterError, match="IANA"):
        Trips(table(), time_zone="Mars/Olympus")


def test_local_hours_follow_the_zone():
    assert set(Trips(table(), time_zone="Asia/Tokyo").local_hour.tolist()) == {21}


def test_fingerprints_differ_with_content_only():
    assert Trips(table()).identity == Trips(table()[::-1]).identity
    assert Trips(table()).identity.fingerprint != Trips(table().with_columns(lat=pl.col("lat") + 1e-6)).identity.fingerprint
    assert Trips(table()).identity.uids == ("a", "b")


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-90, 90)), max_size=40), st.integers(1, 10))
def test_partitions_keep_people_whole_and_lose_nothing(rows, size):
    frame = pl.DataFrame(
        {
            "uid": [row[0] for row in rows],
            "tid": [row[1] for row in rows],
            "lat": [float(row[2]) for row in rows],
            "lng": [0.0] * len(rows),
        },
        schema={"uid": pl.Int64, "tid": pl.Int64, "lat": pl.Float64, "lng": pl.Float64},
    )
    trips = Trips(frame)
    parts = list(trips.partitions(size))
    people = [set(part.table["uid"].to_list()) for part in parts]
    assert sum(len(group) for group in people) == trips.n_users
    assert (pl.concat([part.table for part in parts]).equals(trips.table)) if parts else trips.n_points == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_offsets_agree_with_group_by(rows):
    trips = Trips(
        pl.DataFrame({"uid": [row[0] for row in rows], "tid": [row[1] for row in rows], "cell": list(range(len(rows)))})
    )
    sizes = trips.table.group_by("uid", "tid", maintain_order=True).len()["len"].to_list()
    assert np.diff(trips.offsets).tolist() == sizes


def test_take_trips_by_position_and_mask():
    trips = Trips(table())
    assert trips.take_trips([1]).lat.tolist() == [60.1]
    assert trips.take_trips(np.array([True, False, True])).n_trips == 2
    assert trips.take_trips([]).n_points == 0
