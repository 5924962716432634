"""Lives and weeks: rare ones exist, and people keep their habits."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from murmurate.demo import City
from murmurate.demo.people import LIVES, SHARES


@pytest.fixture(scope="module")
def stays(town: City) -> pl.DataFrame:
    """One row a trip with local hour and weekday, and the life of its person."""
    local = pl.col("depart").dt.convert_time_zone(town.trips.time_zone)
    return town.truth.trips.with_columns(hour=local.dt.hour(), weekday=local.dt.weekday()).join(town.truth.people, on="uid")


def test_shares_of_lives_sum_to_one():
    assert SHARES.sum() == pytest.approx(1)


def test_rare_lives_exist_and_are_rare(town: City):
    counts = dict(town.truth.people["life"].value_counts().iter_rows())
    assert set(counts) == set(LIVES)
    for life in ("nights", "rounds", "host"):
        assert 1 <= counts[life] <= 12


def test_night_workers_are_at_work_while_others_sleep(town: City):
    people = town.truth.people
    at_three = town.daily.place[:, :, 9]  # 03:00 to 03:20
    at_main = (at_three == people["main_place"].to_numpy()[:, None]).mean(axis=1)
    nights = (people["life"] == "nights").to_numpy()
    assert at_main[nights].min() > 0.3
    assert at_main[(people["life"] == "office").to_numpy()].max() < 0.05


def test_office_workers_go_to_the_same_place_on_weekdays_and_not_at_weekends(town: City):
    people = town.truth.people
    office = (people["life"] == "office").to_numpy()
    at_eleven = town.daily.place[office][:, :, 33] == people["main_place"].to_numpy()[office][:, None]
    weekday = np.arange(14) % 7 < 5
    assert at_eleven[:, weekday].mean() > 0.75
    assert at_eleven[:, ~weekday].mean() < 0.02


def test_most_people_sleep_at_home(town: City):
    at_four = town.daily.place[:, :, 12] == town.truth.people["home"].to_numpy()[:, None]
    assert at_four.mean() > 0.9


def test_couriers_stop_often_and_at_the_same_customers(stays: pl.DataFrame):
    rounds = stays.filter(pl.col("life") == "rounds", pl.col("purpose") == "delivery")
    a_day = rounds.group_by("uid", pl.col("depart").dt.date()).len()
    assert a_day["len"].mean() > 7
    assert rounds.group_by("uid").agg(pl.col("destination").n_unique())["destination"].max() <= 16


def test_weeks_are_alike(town: City):
    weeks = town.daily.place.reshape(200, 2, 7, 72)
    same = (weeks[:, 0] == weeks[:, 1]).mean()
    shuffled = (weeks[:, 0] == np.roll(weeks[:, 1], 1, axis=0)).mean()
    assert same > 0.7
    assert shuffled < 0.45


def test_purposes_and_places_agree(stays: pl.DataFrame, town: City):
    joined = stays.join(town.truth.places, left_on="destination", right_on="place")
    for purpose in ("shop", "food", "park", "leisure", "school", "home", "night"):
        assert (joined.filter(pl.col("purpose") == purpose)["label"] == purpose).all()
    assert set(joined.filter(pl.col("purpose") == "visit")["label"]) == {"home"}
