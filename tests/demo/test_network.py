"""The road network: connected, classed, with one-ways, a ring and bridges, for any seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from murmurate.demo.network import StreetMap, street_map

SEEDS = (1, 2, 3, 11, 12, 13, 99)


@pytest.fixture(params=SEEDS, scope="module")
def any_streets(request: pytest.FixtureRequest) -> StreetMap:
    return street_map(across_km=8.0, seed=request.param)


def test_every_crossing_can_be_reached_from_every_other(any_streets: StreetMap):
    network = any_streets.network
    links = coo_array((np.ones(network.n_links), (network.link_from, network.link_to)), shape=(network.n_nodes,) * 2)
    assert connected_components(links, connection="strong")[0] == 1


def test_size_and_classes_are_those_of_a_city(any_streets: StreetMap):
    network = any_streets.network
    assert 1500 <= network.n_nodes <= 4000
    length = np.bincount(network.road_class, weights=network.length_m, minlength=6)
    assert (length[1:] > 0).all()
    assert length[0] == 0
    assert length[5] > length[4] > length[2]
    extent = [np.ptp(any_streets.node_x), np.ptp(any_streets.node_y)]
    assert all(5_500 < across < 10_000 for across in extent)


def test_some_streets_are_one_way_and_most_of_them_in_the_old_town(any_streets: StreetMap):
    network = any_streets.network
    one_way = network.twin < 0
    assert 0.02 < one_way.mean() < 0.25
    old_town = np.hypot(any_streets.node_x, any_streets.node_y)[network.link_from] < 900
    assert one_way[old_town].mean() > 2 * one_way[~old_town].mean()
    assert (network.road_class[one_way] >= 4).all()


def test_only_bridges_cross_the_river_and_they_are_few_and_main_roads(any_streets: StreetMap):
    plan, network = any_streets.plan, any_streets.network
    x, y = any_streets.shape_x.reshape(-1, 3), any_streets.shape_y.reshape(-1, 3)
    wet = np.zeros(network.n_links, dtype=bool)
    for part in range(2):
        for share in np.linspace(0, 1, 12):
            wet |= plan.in_water(
                x[:, part] + share * (x[:, part + 1] - x[:, part]), y[:, part] + share * (y[:, part + 1] - y[:, part])
            )
    assert not (wet & ~any_streets.bridge).any()
    streets = int(any_streets.bridge.sum()) // 2
    assert 4 <= streets <= 10
    assert (network.road_class[any_streets.bridge] <= 2).all()


def test_no_crossing_stands_in_water(any_streets: StreetMap):
    assert not any_streets.plan.in_water(any_streets.node_x, any_streets.node_y).any()


def test_the_ring_closes_around_the_centre(any_streets: StreetMap):
    network = any_streets.network
    motorway = network.road_class == 1
    turn = np.arctan2(any_streets.node_y, any_streets.node_x)[network.link_from[motorway]]
    assert np.diff(np.sort(turn)).max() < 0.25  # a motorway in every direction


def test_links_are_sorted_and_shapes_begin_and_end_at_their_nodes(streets: StreetMap):
    network = streets.network
    assert (np.diff(network.link_from) >= 0).all()
    first, last = network.shape_offsets[:-1], network.shape_offsets[1:] - 1
    assert (network.shape_lat[first] == network.node_lat[network.link_from]).all()
    assert (network.shape_lng[last] == network.node_lng[network.link_to]).all()
    assert network.length_m.min() > 15
    assert network.length_m.max() < 700


def test_other_widths_give_other_cities():
    small, large = street_map(across_km=5.0, seed=1), street_map(across_km=11.0, seed=1)
    assert small.network.n_nodes < 1500 < 3000 < large.network.n_nodes
