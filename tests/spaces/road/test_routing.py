"""Shortest paths against scipy, on graphs of every shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from murmurate.errors import InputError, ParameterError
from murmurate.spaces.road import RoadNetwork, route, routes
from murmurate.spaces.road.routing import costs_from
from road_town import grid_town


@st.composite
def networks(draw):
    """Random directed graphs: unreachable nodes, parallel links, dead ends."""
    n = draw(st.integers(2, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=40))
    pairs = [(a, b) for a, b in pairs if a != b] or [(0, 1)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return RoadNetwork.from_arrays(
        node_lat=rng.uniform(0, 0.01, n),
        node_lng=rng.uniform(0, 0.01, n),
        link_from=[a for a, _ in pairs],
        link_to=[b for _, b in pairs],
        road_class=rng.integers(1, 6, len(pairs)),
        length_m=rng.uniform(10, 500, len(pairs)),
    )


def by_scipy(network, cost):
    matrix = np.full((network.n_nodes, network.n_nodes), np.inf)
    np.minimum.at(matrix, (network.link_from, network.link_to), cost)
    rows, columns = np.nonzero(np.isfinite(matrix))
    return dijkstra(coo_array((matrix[rows, columns], (rows, columns)), shape=matrix.shape).tocsr())


@settings(deadline=None, max_examples=60)
@given(networks(), st.sampled_from(["time", "distance"]))
def test_costs_and_paths_agree_with_scipy(network, by):
    cost = network.time_s if by == "time" else network.length_m
    expected = by_scipy(network, cost)
    for start in range(network.n_nodes):
        np.testing.assert_allclose(costs_from(network, start, by=by), expected[start])
    starts, ends = (part.ravel() for part in np.indices((network.n_nodes, network.n_nodes)))
    for start, end, found in zip(starts, ends, routes(network, starts, ends, by=by), strict=True):
        if found is None:
            assert np.isinf(expected[start, end])
            continue
        at = start
        for link in found.links:
            assert network.link_from[link] == at
            at = network.link_to[link]
        assert at == end
        assert cost[found.links].sum() == pytest.approx(expected[start, end])
        assert found.length_m == pytest.approx(network.length_m[found.links].sum())


def test_one_ways_are_respected():
    town = grid_town(2, one_way_rows=(0, 1))
    assert route(town, 0, 1).links.tolist() == [0]
    assert route(town, 1, 0) is None


def test_a_limit_bounds_the_search(town):
    near = costs_from(town, 0, by="distance", limit=150.0)
    assert np.isfinite(near).sum() == 3
    assert near[np.isfinite(near)].max() <= 150.0


def test_own_costs_and_their_faults(town):
    expensive = np.where(town.road_class == 4, 1000.0, 1.0)
    assert route(town, 0, 6 * 3, cost=expensive).links.size == 3
    for bad in (np.ones(3), -expensive, np.full(town.n_links, np.nan)):
        with pytest.raises(ParameterError, match="cost must be"):
            route(town, 0, 1, cost=bad)


def test_unknown_nodes_and_words_are_refused(town):
    with pytest.raises(InputError, match="node 36 is not in this network"):
        route(town, 0, 36)
    with pytest.raises(ParameterError, match="time, distance"):
        route(town, 0, 1, by="beauty")
    with pytest.raises(ParameterError, match="pair up"):
        routes(town, [0, 1], [2])


def test_a_node_is_reached_from_itself(town):
    here = route(town, 5, 5)
    assert (here.links.size, here.length_m, here.time_s) == (0, 0.0, 0.0)
