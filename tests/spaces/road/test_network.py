"""The noun: what it refuses, what it tells, and that it is a Space."""

import pickle

import numpy as np
import pytest

from murmurate.core.space import Space
from murmurate.errors import InputError, ParameterError
from murmurate.spaces.road import RoadNetwork
from road_town import BLOCK, grid_town


def two_nodes(**changes):
    arrays = {"node_lat": [0.0, 0.0], "node_lng": [0.0, 0.001], "link_from": [0, 1], "link_to": [1, 0], "road_class": [5, 5]}
    return RoadNetwork.from_arrays(**(arrays | changes))


def test_geometry_length_and_speed_have_defaults():
    network = two_nodes(road_class=[1, 5])
    assert network.length_m.round(1).tolist() == [111.2, 111.2]
    assert network.speed_kmh.tolist() == [90.0, 30.0]
    assert network.time_s[1] == pytest.approx(111.195 / (30 / 3.6), rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"link_from": [], "link_to": [], "road_class": []}, "no links"),
        ({"link_to": [1, 7]}, "outside 0 to 1"),
        ({"link_to": [1, 1]}, "self-loops"),
        ({"node_lat": [0.0, float("nan")]}, "NaN"),
        ({"node_lng": [0.0, 551_000.0]}, "projected"),
        ({"road_class": [5, 6]}, "classes are not 1 to 5"),
        ({"road_class": [5]}, "1 values where 2"),
        ({"length_m": [100.0, -1.0]}, "lengths"),
        ({"length_m": [100.0, float("inf")]}, "lengths"),
        ({"speed_kmh": [0.0, 30.0]}, "speeds"),
        ({"lanes": [-1, 2]}, "lane counts"),
        ({"link_from": [0.5, 1]}, "whole numbers"),
        ({"node_lng": [-179.0, 179.0]}, "180th meridian"),
        ({"name": ["only one"]}, "1 values where 2"),
        ({"shape_offsets": [0, 1, 3], "shape_lat": [0, 0, 0], "shape_lng": [0, 0.001, 0]}, "fewer than two vertices"),
    ],
)
def test_what_is_no_network_is_refused_with_its_reason(changes, says):
    with pytest.raises(InputError, match=says):
        two_nodes(**changes)


def test_all_faults_are_told_at_once():
    with pytest.raises(InputError) as caught:
        two_nodes(link_to=[1, 1], road_class=[0, 5], speed_kmh=[30, -3])
    assert {fault.column for fault in caught.value.faults} == {"link_to", "road_class", "speed_kmh"}
    assert {fault.row for fault in caught.value.faults} == {0, 1}


def test_nodes_at_one_place_are_joined_by_a_link_that_takes_time():
    network = RoadNetwork.from_arrays(
        node_lat=[60.0, 60.0, 60.01], node_lng=[25.0, 25.0, 25.0], link_from=[0, 1], link_to=[1, 2], road_class=[3, 3]
    )
    assert network.length_m[0] > 0 and network.time_s[0] > 0


def test_half_a_geometry_is_refused():
    with pytest.raises(ParameterError, match="together"):
        two_nodes(shape_lat=[0, 0])


def test_it_is_a_space_of_links(town):
    assert isinstance(town, Space)
    east = int(np.flatnonzero((town.link_from == 0) & (town.link_to == 1))[0])
    lat, lng = town.centre([east])
    assert (lat[0], lng[0]) == pytest.approx((0.0, BLOCK / 2))
    assert town.locate(lat, lng)[0] in (east, town.twin[east])
    assert town.locate([1.0, np.nan], [1.0, 0.0]).tolist() == [-1, -1]
    assert town.distance([east], [town.twin[east]]) == pytest.approx([0.0])
    assert set(town.neighbours(east)) >= {east, town.twin[east]}
    assert set(town.neighbours(east, 2)) > set(town.neighbours(east))
    with pytest.raises(InputError, match="link 999 is not in this network"):
        town.centre([999])
    with pytest.raises(InputError, match="link -1"):
        town.neighbours(-1)


def test_twins_are_the_same_street_the_other_way():
    town = grid_town(one_way_rows=(2,))
    pairs = town.twin >= 0
    assert (town.twin[town.twin[pairs]] == np.flatnonzero(pairs)).all()
    assert (town.link_from[town.twin[pairs]] == town.link_to[pairs]).all()
    row = town.link_from // 6
    assert ((row == 2) & (town.link_to // 6 == 2) == ~pairs).all()


def test_the_two_directions_of_a_street_lead_opposite_ways(town):
    both = np.flatnonzero(town.twin >= 0)
    assert two_nodes().heading.tolist() == [0, 2]
    assert set(town.heading.tolist()) == {0, 1, 2, 3}
    assert ((town.heading[both] + 2) % 4 == town.heading[town.twin[both]]).all()


def test_twins_of_parallel_streets_follow_the_geometry():
    # a straight street and a detour between the same nodes, both two-way
    network = RoadNetwork.from_arrays(
        node_lat=[0.0, 0.0],
        node_lng=[0.0, 0.001],
        link_from=[0, 1, 0, 1],
        link_to=[1, 0, 1, 0],
        road_class=[5] * 4,
        shape_offsets=[0, 2, 5, 8, 10],
        shape_lat=[0, 0, 0, 0.0005, 0, 0, 0.0005, 0, 0, 0],
        shape_lng=[0, 0.001, 0.001, 0.0005, 0, 0, 0.0005, 0.001, 0.001, 0],
    )
    assert network.twin.tolist() == [3, 2, 1, 0]


def test_arrays_are_frozen_and_the_callers_stay_free(town):
    lat = np.array([0.0, 0.0])
    network = two_nodes(node_lat=lat)
    lat[0] = 1.0
    assert network.node_lat[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        town.length_m[0] = 1.0


def test_pickles_without_its_indexes(town):
    assert town.index is not None
    copy = pickle.loads(pickle.dumps(town))
    assert copy.fingerprint == town.fingerprint
    assert "index" not in copy.__dict__


def test_taking_links_renumbers_and_keeps_geometry(town):
    some = town.take_links(town.road_class == 4, dropped={"other classes": 1})
    assert some.n_links == (town.road_class == 4).sum()
    assert some.dropped == {"other classes": 1}
    assert some.total_km == pytest.approx(town.length_m[town.road_class == 4].sum() / 1000)
    lat, lng = some.shape(0)
    assert (lat[0], lng[0]) == (some.node_lat[some.link_from[0]], some.node_lng[some.link_from[0]])
