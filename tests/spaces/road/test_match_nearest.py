"""The simple matcher follows every snap."""

import numpy as np
import pytest

from murmurate.spaces.road import match, prepare
from murmurate.spaces.road.match_nearest import join_nodes, nearest_nodes
from murmurate.spaces.sphere import METRES_PER_DEGREE
from road_town import nodes_of, trip
from road_truth import drive, precision_recall


def test_ends_are_links_and_the_middle_is_nodes(town):
    found = match(trip([(40, 2), (110, -3), (190, 5), (195, 90), (202, 150)]), town, matcher="nearest")
    passed = nodes_of(town, found.path(0))
    assert passed[0] in (0, 1)  # the direction of the first link is not told by its point
    assert passed[-1] in (8, 14)
    assert {1, 2, 8} <= set(passed)
    assert (found.distance_m < 6).all()


def test_points_off_the_map_are_left_out(town):
    found = match(trip([(40, 2), (5000, 5000), (150, 0)]), town, matcher="nearest")
    assert found.link[1] == -1
    assert found.part.tolist() == [0, -1, 0]
    alone = match(trip([(5000, 5000), (5000, 5100)]), town, matcher="nearest")
    assert len(alone.path(0)) == 0


def test_nodes_are_joined_by_routes(town):
    offsets, links, part, point = join_nodes(town, prepare(town), np.array([0, 3, 5]), np.array([0, 2, 14, 35, 35]))
    assert nodes_of(town, links[: offsets[1]])[0] == 0
    assert nodes_of(town, links[: offsets[1]])[-1] == 14
    assert offsets.tolist() == [0, 4, 4]
    assert part.tolist() == [0] * 4
    assert point.tolist() == [1, 1, 2, 2]


def test_nearest_nodes(town):
    lat, lng = np.array([10.0, np.nan]) / METRES_PER_DEGREE, np.array([190.0, 0.0]) / METRES_PER_DEGREE
    assert nearest_nodes(town, lat, lng).tolist() == [2, -1]


@pytest.mark.data
def test_it_is_less_precise_than_the_chain(sf):
    truth = drive(sf, n_trips=60, interval_s=15, seed=4)
    simple, chain = match(truth.trips, sf, matcher="nearest"), match(truth.trips, sf)
    simple_precision, simple_recall = precision_recall(truth, simple.path_offsets, simple.path_link)
    precision, _ = precision_recall(truth, chain.path_offsets, chain.path_link)
    assert simple_recall > 0.85
    assert precision > simple_precision + 0.2
