"""The whole city: deterministic in any partition, with peaks, weekends, and places told by use rather than position."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pytest

from murmurate.demo import City, city, city_partitions
from murmurate.errors import ParameterError

SMALL = {"people": 11, "days": 3, "seed": 5}


def _together(parts: list[City]) -> tuple[pl.DataFrame, pl.DataFrame, np.ndarray]:
    return (
        pl.concat([part.trips.table for part in parts]),
        pl.concat([part.truth.trips for part in parts]),
        np.concatenate([part.daily.place for part in parts]),
    )


@pytest.mark.parametrize("size", [1, 4, 50])
def test_partitions_never_change_the_data(size: int):
    whole = city(**SMALL)
    trips, truth, daily = _together(list(city_partitions(**SMALL, people_per_partition=size)))
    assert trips.equals(whole.trips.table)
    assert truth.equals(whole.truth.trips)
    assert (daily == whole.daily.place).all()


def test_the_first_people_and_days_of_a_larger_city_are_the_same_people_and_days():
    few, many = city(people=5, days=3, seed=5), city(people=9, days=4, seed=5)
    # A journey that would end after the last midnight is left out, so compare well before it.
    until = pl.col("datetime") < pl.datetime(2025, 5, 7, 22, time_zone="UTC")
    assert few.trips.table.filter(until).equals(many.trips.table.filter(until, pl.col("uid") < 5))
    assert (few.daily.place[:, :2] == many.daily.place[:5, :2]).all()


def test_another_seed_is_another_city():
    one, other = city(**SMALL), city(**{**SMALL, "seed": 6})
    assert one.network.fingerprint != other.network.fingerprint
    assert one.trips.identity.fingerprint != other.trips.identity.fingerprint


def test_weekdays_have_a_morning_and_an_evening_peak(town: City):
    local = town.truth.trips["depart"].dt.convert_time_zone(town.trips.time_zone)
    weekday = (local.dt.weekday() <= 5).to_numpy()
    hour = local.dt.hour().to_numpy()
    work = np.bincount(hour[weekday], minlength=24) / weekday.sum()
    rest = np.bincount(hour[~weekday], minlength=24) / (~weekday).sum()
    assert work[7:9].sum() > 0.17
    assert work[16:18].sum() > work[9:11].sum()
    assert work[1:5].sum() < 0.02
    assert rest[6:9].sum() < 0.06
    assert rest[22:24].sum() + rest[:3].sum() > work[22:24].sum() + work[:3].sum()
    assert weekday.mean() > 5 / 7


def test_trips_are_as_long_as_in_a_city_of_this_size(town: City):
    truth = town.truth.trips
    length = truth["length_m"].to_numpy()
    minutes = (truth["arrive"] - truth["depart"]).dt.total_seconds().to_numpy() / 60
    assert 1_800 < np.median(length) < 4_500
    assert length.max() < 16_000
    assert 3 < np.median(minutes) < 12
    assert minutes.max() < 45
    assert 2 < truth.height / (200 * 14) < 5


def test_the_same_drive_takes_longer_at_the_peak(town: City):
    local = town.truth.trips["depart"].dt.convert_time_zone(town.trips.time_zone)
    kmh = town.truth.trips["length_m"] / (town.truth.trips["arrive"] - town.truth.trips["depart"]).dt.total_seconds() * 3.6
    peak = kmh.filter((local.dt.hour() == 8) & (local.dt.weekday() <= 5)).median()
    night = kmh.filter(local.dt.hour().is_in([22, 23, 0])).median()
    assert peak < 0.85 * night


def test_routes_are_paths_of_the_network_and_change_with_the_hour(town: City):
    network, truth = town.network, town.truth.trips
    for route in truth["route"].to_list()[::50]:
        assert (network.link_to[route[:-1]] == network.link_from[route[1:]]).all()
    ways = truth.group_by("uid", "origin", "destination").agg(pl.len(), pl.col("route").n_unique().alias("ways"))
    repeated = ways.filter(pl.col("len") >= 5)
    assert 0.1 < (repeated["ways"] > 1).mean() < 0.95


def test_journeys_follow_each_other_without_overlap(town: City):
    truth = town.truth.trips
    same = (truth["uid"][1:] == truth["uid"][:-1]).to_numpy()
    assert ((truth["depart"][1:] >= truth["arrive"][:-1]).to_numpy() | ~same).all()
    assert ((truth["origin"][1:] == truth["destination"][:-1]).to_numpy() | ~same).all()


def test_daily_traces_follow_the_journeys(town: City):
    table = town.daily.table()
    assert table.height == 200 * 14
    assert table.schema["place"] == pl.Array(pl.Int32, 72)
    assert town.daily.place.min() >= 0
    assert town.daily.place.max() < town.daily.places.height
    moved = (np.diff(town.daily.place.reshape(200, -1), axis=1) != 0).sum()
    assert 0.8 * town.truth.trips.height < moved <= town.truth.trips.height


def _information(one: np.ndarray, other: np.ndarray) -> float:
    """Mutual information over the larger entropy, less what shuffled labels reach."""

    def entropy(counts: np.ndarray) -> float:
        share = counts[counts > 0] / counts.sum()
        return float(-(share * np.log(share)).sum())

    def mutual(a: np.ndarray, b: np.ndarray) -> float:
        joint = np.zeros((a.max() + 1, b.max() + 1))
        np.add.at(joint, (a, b), 1)
        return entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint.ravel())

    most = max(entropy(np.bincount(one)), entropy(np.bincount(other)))
    shuffled = np.mean([mutual(one, np.random.default_rng(k).permutation(other)) for k in range(20)])
    return (mutual(one, other) - shuffled) / (most - shuffled)


def test_labels_show_in_use_and_not_in_geography(town: City):
    place, labels = town.daily.place, town.truth.places["label"].cast(pl.Enum(sorted(set(town.truth.places["label"]))))
    n = len(labels)
    by_step = np.stack([np.bincount(place[:, :, step].ravel(), minlength=n) for step in range(72)], axis=1)
    often = by_step.sum(axis=1) >= 30
    label = labels.to_physical().to_numpy()[often].astype(np.int64)
    # The plainest description of use: the third of the day it is used most, and how long people stay.
    flat = place.reshape(200, -1)
    arrivals = np.bincount(flat[:, 1:][flat[:, 1:] != flat[:, :-1]], minlength=n)[often] + 1
    thirds = by_step[often].reshape(-1, 6, 12).sum(axis=2).argmax(axis=1)
    stay = np.digitize(by_step[often].sum(axis=1) / arrivals, [3.5, 6.5, 14, 30])
    xy = town.daily.places.select("lat", "lng").to_numpy()[often]
    where = np.digitize(xy[:, 0], np.quantile(xy[:, 0], [0.33, 0.67])) * 3 + np.digitize(
        xy[:, 1], np.quantile(xy[:, 1], [0.33, 0.67])
    )
    assert _information(label, thirds * 5 + stay) > 0.4
    assert _information(label, where) < 0.15


def test_grid_and_box_hold_everything(town: City):
    grid = town.grid(250)
    assert (grid.locate(town.trips.lat, town.trips.lng) >= 0).mean() > 0.9999
    assert (grid.locate(town.network.node_lat, town.network.node_lng) >= 0).all()
    assert 900 < grid.n_cells < 1600


def test_ids_are_unique_and_times_local(town: City):
    assert town.trips.n_trips == town.truth.trips["tid"].n_unique() == town.truth.trips.height
    assert (town.trips.trip_ids == town.truth.trips["tid"]).all()
    assert town.trips.local_day.min() == 20_213  # Monday, 5 May 2025


@pytest.mark.parametrize(
    "wrong", [{"people": 0}, {"days": 0}, {"seed": -1}, {"across_km": 40.0}, {"interval_s": -3}, {"noise_m": float("nan")}]
)
def test_impossible_cities_are_refused_before_anything_is_built(wrong: dict[str, float]):
    with pytest.raises(ParameterError):
        city_partitions(**wrong)


def test_outlines_draw_the_water_that_no_street_enters(town: City):
    from shapely import Polygon, contains_xy

    rings = town.outlines()
    assert len(rings["water"]) == 2
    assert len(rings["park"]) >= 4
    for lat, lng in rings["water"]:
        water = Polygon(np.column_stack([lng, lat]))
        assert not contains_xy(water, town.network.node_lng, town.network.node_lat).any()


def test_a_small_city_is_the_same_for_good():
    # Whole numbers only (streets, classes, routes, places, times): these must not change between machines or versions.
    town = city(**SMALL)
    digest = hashlib.sha256()
    for array in (town.network.link_from, town.network.link_to, town.network.road_class, town.daily.place):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(town.truth.trips["route"].explode().to_numpy().tobytes())
    digest.update(town.truth.trips["depart"].to_physical().to_numpy().tobytes())
    assert digest.hexdigest()[:16] == "5e307f47038f0d0c"
