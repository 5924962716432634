"""Reconstruct finds ends in raw counts, not in noise; its parts by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from murmurate.asking.rounds import fitted
from murmurate.attacks import NAMES
from murmurate.attacks.reconstruct import _allotted, _near, _near_nodes, attack_network, reconstruct
from murmurate.attacks.reconstruct_paths import Follower
from murmurate.mechanisms.road_counts import RoadCounts
from murmurate.metrics.comparison import NotMeasurable
from murmurate.noise import seeded
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(8)


@pytest.fixture(scope="module")
def cars():
    return traffic(TOWN, people=12, trips_each=3)


def test_raw_counts_give_the_ends_away_and_noisy_ones_do_not(cars):
    drives = drives_of(cars, TOWN)
    raw = {score.name: score for score in attack_network(LinkFlows.of_drives(drives, by_day=True), drives)}
    ends = raw["reconstruct.ends.imbalance.exact"]
    assert ends.value > 0.7 > ends.chance + 0.2
    assert raw["reconstruct.ends.imbalance.within_100m"].value >= ends.value
    assert raw["reconstruct.trips.count_one"].value > 0.5
    assert raw["reconstruct.trips.paths"].value > raw["reconstruct.trips.assignment"].value >= 0.0
    noisy = fitted(RoadCounts(epsilon=1.0, space=TOWN, unit="trip", zones=1), cars, seeded(1))
    hidden = {score.name: score for score in attack_network(noisy, drives)}
    assert hidden["reconstruct.ends.imbalance.exact"].value <= hidden["reconstruct.ends.imbalance.exact"].chance + 0.1
    assert hidden["reconstruct.trips.count_one"].value == 0.0


def test_it_is_registered_reads_networks_only_and_repeats(cars):
    function = NAMES.load("reconstruct")
    with pytest.raises(NotMeasurable, match="aggregated network"):
        function(cars, cars, pairing=None)
    raw = LinkFlows.of_drives(drives_of(cars, TOWN))
    once, again = (reconstruct(raw, cars, pairing=None, seed=3) for _ in range(2))
    assert [score.to_json() for score in once] == [score.to_json() for score in again]
    assert all(score.chance is not None and score.note and score.low <= score.value <= score.high for score in once)


def test_no_drive_on_the_network_is_told(cars):
    raw = LinkFlows.of_drives(drives_of(cars, TOWN))
    elsewhere = cars.with_columns({"lat": cars.lat + 1.0})
    with pytest.raises(NotMeasurable, match="no original drives"):
        reconstruct(raw, elsewhere)


def test_paths_are_followed_straight_on_through_a_crossing():
    count = np.zeros(TOWN.n_links)
    node = np.arange(64).reshape(8, 8)
    across, along = node[3], node[:, 4]
    for path in (across, along):
        for start, end in pairwise(path):
            count[(TOWN.link_from == start) & (TOWN.link_to == end)] += 1
    begun, ended = Follower(TOWN).trips(count)
    assert set(zip(begun.tolist(), ended.tolist(), strict=True)) == {(across[0], across[-1]), (along[0], along[-1])}


def test_guesses_are_allotted_by_largest_remainders():
    assert _allotted(np.array([2.0, 0.0, 1.0]), 3).tolist() == [0, 0, 2]
    assert _allotted(np.array([1.0, 1.0, 0.0]), 1).tolist() == [0]
    assert _allotted(np.zeros(3), 4).tolist() == []


def test_nodes_near_each_other_are_matched_once_each():
    places = np.array([[0.0, 0.0], [60.0, 0.0], [120.0, 0.0], [900.0, 0.0]])
    assert _near_nodes(np.array([1]), np.array([0, 2]), places, 100.0) == 1
    assert _near_nodes(np.array([1, 1, 3]), np.array([0, 2, 2]), places, 100.0) == 2
    assert _near_nodes(np.array([0, 1]), np.array([2, 2]), places, 100.0) == 1
    rng = np.random.default_rng(1)
    spots, guess, truth = rng.uniform(0, 800, (60, 2)), rng.integers(0, 60, 80), rng.integers(0, 60, 80)
    assert _near_nodes(guess, truth, spots, 100.0) == _near(spots[guess], spots[truth], 100.0)


def test_every_guess_is_used_once():
    truth = np.array([[0.0, 0.0], [10.0, 0.0], [500.0, 0.0]])
    assert _near(np.array([[5.0, 0.0]]), truth, 100.0) == 1
    assert _near(np.array([[5.0, 0.0], [50.0, 0.0], [700.0, 0.0]]), truth, 100.0) == 2
    pairs = np.array([[0.0, 0.0, 100.0, 0.0]])
    assert _near(pairs, np.array([[0.0, 50.0, 100.0, 300.0]]), 100.0) == 0
    assert _near(pairs, np.array([[0.0, 50.0, 100.0, 30.0]]), 100.0) == 1
