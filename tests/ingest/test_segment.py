"""Segmenting: pauses, passengers, days, brief trips."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.segment import drop_brief, drop_gappy, drop_single_visits, keep_days, occupied_runs, split_gaps

START = datetime(2024, 5, 3, 8, tzinfo=UTC)  # a Friday


def trips_at(seconds: list[float], *, time_zone: str = "UTC", **columns: object) -> Trips:
    """One person's points at these seconds; trip 7 unless told."""
    times = pl.Series([START + timedelta(seconds=s) for s in seconds], dtype=pl.Datetime("us", "UTC"))
    table = {"uid": "a", "tid": 7, "datetime": times, "lat": 60.0, "lng": 25.0, **columns}
    return Trips(pl.DataFrame(table), time_zone=time_zone)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 40))
    people = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    seconds = draw(st.lists(st.integers(0, 5 * 86_400), min_size=n, max_size=n))
    return trips_at(
        seconds,
        uid=people,
        tid=draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)),
        occupied=draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
    )


STEPS = {
    "split_gaps": lambda trips: split_gaps(trips, max_gap_s=40_000),
    "drop_gappy": lambda trips: drop_gappy(trips, max_gap_s=40_000),
    "occupied_runs": occupied_runs,
    "keep_days": lambda trips: keep_days(trips, holidays="FI", time_zone="Europe/Helsinki"),
    "keep_days_by_point": lambda trips: keep_days(trips, by="point"),
    "drop_brief": lambda trips: drop_brief(trips, min_duration_s=10_000),
    "drop_single_visits": drop_single_visits,
}


@pytest.mark.parametrize("name", STEPS)
@given(private=tables())
def test_steps_settle_add_up_and_invent_nobody(name, private):
    kept, removed = STEPS[name](private)
    assert (removed.points, removed.trips) == (private.n_points - kept.n_points, private.n_trips - kept.n_trips)
    points = ["uid", "datetime", "occupied"]
    assert kept.table.select(points).join(private.table, on=points, how="anti").is_empty()
    again, nothing = STEPS[name](kept)
    assert again.table.equals(kept.table)
    assert (nothing.points, nothing.trips) == (0, 0)


def test_a_pause_begins_a_new_trip():
    private = trips_at([0, 300, 601, 660], tid=[7, 7, 7, 7])
    split, removed = split_gaps(private)
    assert split.offsets.tolist() == [0, 2, 4]
    assert split.trip_ids.to_list() == [0, 1]
    assert (removed.points, removed.trips) == (0, -1)
    same, _ = split_gaps(private, max_gap_s=301)
    assert same.trip_ids.to_list() == [7]
    assert drop_gappy(private)[0].n_trips == 0


def test_runs_with_a_passenger_are_trips():
    private = trips_at([0, 60, 120, 180, 240, 300], tid=[1, 1, 1, 1, 2, 2], occupied=[1, 0, 1, 1, 1, 0])
    runs, removed = occupied_runs(private)
    assert runs.offsets.tolist() == [0, 1, 3, 4]
    assert (removed.points, removed.trips) == (2, -1)
    flags = [True, False, True, True, True, False]
    assert occupied_runs(private.with_columns({"occupied": flags}))[0].offsets.tolist() == [0, 1, 3, 4]
    for wrong in ([2, 0, 1, 1, 1, 0], ["maybe"] * 6, [None, 0, 1, 1, 1, 0]):
        with pytest.raises(InputError, match="occupied"):
            occupied_runs(private.with_columns({"occupied": wrong}))
    with pytest.raises(InputError, match="no column 'free'"):
        occupied_runs(private, column="free")


def test_a_day_is_a_day_where_people_live():
    # Friday 22:00 UTC is Friday afternoon in San Francisco and Saturday in Budapest.
    private = trips_at([14 * 3600, 14 * 3600 + 60], time_zone="America/Los_Angeles")
    assert keep_days(private)[0].n_trips == 1
    gone, removed = keep_days(private, time_zone="Europe/Budapest")
    assert (gone.n_points, removed.points, removed.trips) == (0, 2, 1)


def test_a_trip_belongs_to_the_day_it_begins_on():
    night = trips_at([15.5 * 3600, 16.5 * 3600])  # Friday 23:30 to Saturday 00:30
    assert keep_days(night)[0].n_points == 2
    assert keep_days(night, by="point")[0].n_points == 1
    assert keep_days(night, weekdays=(5, 6))[0].n_points == 0


def test_holidays_by_name_and_by_date():
    ascension = trips_at([6 * 86_400])  # Thursday, 9 May 2024
    assert keep_days(ascension)[0].n_trips == 1
    assert keep_days(ascension, holidays="FI")[0].n_trips == 0
    assert keep_days(ascension, holidays="US")[0].n_trips == 1
    assert keep_days(ascension, holidays={date(2024, 5, 9)})[0].n_trips == 0
    with pytest.raises(ParameterError, match="calendar"):
        keep_days(ascension, holidays="Mars")
    with pytest.raises(ParameterError, match="dates"):
        keep_days(ascension, holidays=["2024-05-09"])
    with pytest.raises(ParameterError, match="weekdays"):
        keep_days(ascension, weekdays=(7,))


def test_weekday_columns_will_do_for_days_of_the_week():
    weekly = Trips(pl.DataFrame({"uid": "a", "tid": [1, 2], "weekday": [4, 5], "hour": [8, 8], "cell": [0, 1]}))
    assert keep_days(weekly)[0].trip_ids.to_list() == [1]
    with pytest.raises(InputError, match="datetime"):
        keep_days(weekly, holidays="FI")


def test_brief_trips_and_single_visits():
    private = trips_at([0, 60, 0], tid=[1, 1, 2])
    assert drop_brief(private, min_duration_s=60)[0].trip_ids.to_list() == [1]
    assert drop_brief(private, min_duration_s=61)[0].n_trips == 0
    assert drop_single_visits(private)[0].trip_ids.to_list() == [1]
    assert drop_single_visits(private, min_visits=3)[1].trips == 2
    for step in (split_gaps, drop_gappy):
        with pytest.raises(ParameterError, match="max_gap_s"):
            step(private, max_gap_s=float("nan"))


def test_no_trips_stay_no_trips():
    empty = trips_at([0], occupied=[1]).take_points(np.array([False]))
    for step in STEPS.values():
        kept, removed = step(empty)
        assert (kept.n_trips, removed.points, removed.trips) == (0, 0, 0)
