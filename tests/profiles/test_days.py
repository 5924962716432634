"""Daily traces: steps, stays, holes and midnight."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.profiles.days import DailyTraces, daily_traces, from_array
from plausible_days import GRID, made_days, trips_of

ZONE = "Europe/Helsinki"


def seen(points, *, zone=ZONE, uid="a"):
    """Points (day, hour, cell) of one person, local time."""
    start = datetime(2026, 3, 2, tzinfo=ZoneInfo(zone))
    when = [start + timedelta(days=day, hours=hour) for day, hour, _ in points]
    lat, lng = GRID.centre([cell for _, _, cell in points])
    table = pl.DataFrame({"uid": [uid] * len(points), "tid": [1] * len(points), "lat": lat, "lng": lng})
    return Trips(table.with_columns(pl.Series("datetime", when).dt.convert_time_zone("UTC")), time_zone=zone)


def traces(trips, **options):
    return daily_traces(trips, GRID, GRID.n_cells, **options)


def test_a_fully_seen_day_comes_back():
    days = made_days(5, 3)
    found = traces(trips_of(days))
    # the first steps of a first day, before anything was seen, and the last steps after everything cost coverage
    assert found.n_days == days.n_days
    assert (found.place == days.place).mean() > 0.999


@pytest.mark.parametrize("fill", ["hold", "gibbs"])
def test_chunks_of_days_change_nothing(fill, monkeypatch):
    city = mm.demo.city(people=12, days=3, seed=4, interval_s=600)
    grid = city.grid(500)
    options = {"min_coverage": 0.3, "fill": fill}
    whole = daily_traces(city.trips, grid, grid.n_cells, **options)
    monkeypatch.setattr("murmurate.profiles.days.ROWS_AT_ONCE", 5)
    parts = daily_traces(city.trips, grid, grid.n_cells, **options)
    assert whole.n_days > 10
    for name in ("person", "day", "place", "coverage"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()


def test_days_follow_from_each_persons_own_points():
    """Nothing is taken over all people: everybody's days are, bit by bit, what they are alone, whoever else is there."""
    city = mm.demo.city(people=25, days=3, seed=4, interval_s=600)
    grid = city.grid(500)
    table = city.trips.table.select("uid", "tid", "datetime", "lat", "lng").with_columns(pl.col("uid").cast(pl.String))
    strangers = [
        table.filter(pl.col("uid") == table["uid"][0]).with_columns(
            pl.lit(name).alias("uid"), pl.col("datetime").dt.offset_by(by)
        )
        for name, by in (("  first", "-100y"), ("zz last", "170y"))
    ]
    everybody = Trips(pl.concat([strangers[0], table, strangers[1]]), time_zone=city.trips.time_zone)
    together = daily_traces(everybody, grid, grid.n_cells, min_coverage=0.5)
    assert len(together.people) > 20
    for person in range(everybody.n_users):
        alone = everybody.take_trips(everybody.trip_user == person)
        found = daily_traces(alone, grid, grid.n_cells, min_coverage=0.5)
        mine = together.take(together.person == person)
        for name in ("day", "place", "coverage"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(found, name), err_msg=name)


def test_a_stay_fills_the_gap_and_a_journey_does_not():
    home = seen([(0, 0.1, 5), (0, 8.0, 5), (0, 8.5, 40), (0, 17.0, 40), (0, 17.5, 5), (0, 23.9, 5)])
    found = traces(home)
    assert found.n_days == 1
    assert found.place[0, 12] == 5  # 4 h in the morning
    assert found.place[0, 39] == 40  # 13 h
    away = seen([(0, 0.1, 5), (0, 8.0, 5), (0, 18.0, 77), (0, 23.9, 77)])
    assert traces(away).n_days == 0
    kept = traces(away, min_coverage=0.5)
    assert kept.coverage[0] == pytest.approx((24 + 17) / 72, abs=0.04)
    assert (kept.place[0, 26], kept.place[0, 52]) == (5, 77)  # the nearer end of the gap


def test_stays_have_an_end():
    long = seen([(0, 12.0, 5), (3, 12.0, 5)])
    assert traces(long, min_coverage=0.3).n_days == 0
    assert traces(long, min_coverage=0.3, max_stay_h=100).n_days == 2


def test_days_are_local_days():
    evening = seen([(0, 21.0, 5), (0, 23.5, 5), (1, 0.5, 5), (1, 2.0, 5)])
    assert len(set(traces(evening, min_coverage=0.05).day.tolist())) == 2
    assert (
        traces(Trips(evening.table, time_zone="UTC"), min_coverage=0.05).day.tolist()
        != traces(evening, min_coverage=0.05).day.tolist()
    )


def test_people_do_not_fill_each_others_days():
    one, two = seen([(0, 0.1, 5), (0, 23.9, 5)]), seen([(0, 12.0, 70)], uid="b")
    both = Trips(pl.concat([one.table, two.table]), time_zone=ZONE)
    found = traces(both)
    assert found.person.tolist() == [0]
    assert set(found.place.ravel().tolist()) == {5}


def test_what_lies_outside_the_grid_is_no_place():
    trips = seen([(0, 0.1, 5), (0, 23.9, 5)])
    outside = trips.with_columns({"lat": [0.0, 0.0]})
    assert traces(outside).n_days == 0


def test_trips_of_the_city_match_what_it_knows():
    city = mm.demo.city(people=30, days=4, seed=3, interval_s=60)
    grid = city.grid(1000)
    found = daily_traces(city.trips, grid, grid.n_cells)
    lat, lng = (city.daily.places[name].to_numpy() for name in ("lat", "lng"))
    truth = grid.locate(lat, lng)[city.daily.place]
    first = 20213  # Monday 2025-05-05
    uids = city.trips.user_ids.to_numpy()
    same = truth[uids[found.person], found.day - first] == found.place
    assert found.n_days > 40
    assert same.mean() > 0.9  # on the way, and where a street is a cell's edge, they differ


def test_nth_days_and_people():
    days = made_days(4, 3)
    assert days.nth_days(2).day.tolist() == [2, 2, 2, 2]
    assert days.nth_days(3).n_days == 0
    assert days.people.tolist() == [0, 1, 2, 3]


def test_holes_and_wrong_shapes_are_refused():
    with pytest.raises(InputError, match="hole"):
        DailyTraces(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full((1, 72), -1, np.int32), np.ones(1), 10)
    with pytest.raises(InputError, match="time"):
        traces(Trips(pl.DataFrame({"uid": [1], "tid": [1], "lat": [60.0], "lng": [24.0]})))
    assert from_array(np.zeros((2, 3, 72), dtype=np.int32), 4).n_days == 6
