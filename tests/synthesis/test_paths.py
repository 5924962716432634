from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from murmurate.synthesis.calibrate import correction, starting_weights
from murmurate.synthesis.moves import MoveWeights, Neighbourhood, grams, move_histograms
from murmurate.synthesis.paths import sample_paths
from murmurate.synthesis.shortest import most_probable_paths, step_costs

AROUND = Neighbourhood(rows=9, columns=11, reach=2)


def some_weights(seed, zero_share=0.0):
    generator = np.random.default_rng(seed)
    towards = generator.random((AROUND.n_relative, AROUND.n_offsets))
    steps = generator.random((AROUND.n_cells, AROUND.n_offsets)) * (generator.random((AROUND.n_cells, 1)) >= zero_share)
    return MoveWeights(towards, generator.random(AROUND.n_cells), steps)


def some_ends(n, seed):
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, AROUND.n_cells, (2, n))
    ends[1, ::10] = ends[0, ::10]
    return ends[0], ends[1], generator.integers(0, 24, n), generator.integers(2, 12, n)


def check(trips, sources, destinations, hours):
    assert (trips.sources == sources).all()
    assert (trips.destinations == destinations).all()
    assert (trips.hours == hours).all()
    assert (trips.sizes >= 2).all()
    inside = np.ones(len(trips.cells) - 1, dtype=bool)
    inside[trips.offsets[1:-1] - 1] = False
    assert (trips.cells[1:] != trips.cells[:-1])[inside].all()
    assert (AROUND.offset(trips.cells[:-1], trips.cells[1:])[inside] >= 0).all()


@pytest.mark.parametrize("zero_share", [0.0, 0.4, 1.0])
def test_sampled_paths_join_their_ends_within_reach(zero_share):
    sources, destinations, hours, sizes = some_ends(400, 1)
    made = sample_paths(
        sources, destinations, hours, sizes, weights=some_weights(1, zero_share), around=AROUND,
        generator=np.random.default_rng(2),
    )  # fmt: skip
    check(made, sources, destinations, hours)


def test_sizes_are_met_where_they_can_be():
    sources, destinations, hours, sizes = some_ends(500, 3)
    weights = starting_weights(np.zeros((AROUND.n_relative, AROUND.n_offsets)), 1.0, AROUND)
    weights.towards[:, AROUND.stop] = weights.towards.max()
    near = Neighbourhood(rows=9, columns=11, reach=2)
    few = sample_paths(
        sources, destinations, hours, sizes, weights=weights, around=near, generator=np.random.default_rng(2), tries=1
    )
    many = sample_paths(
        sources, destinations, hours, sizes, weights=weights, around=near, generator=np.random.default_rng(2), tries=64
    )
    assert np.abs(many.sizes - sizes).mean() < 0.5 * np.abs(few.sizes - sizes).mean()


@pytest.mark.parametrize("seed", range(4))
def test_most_probable_paths_are_the_shortest(seed):
    weights = some_weights(seed, zero_share=0.1)
    sources, destinations, hours, _ = some_ends(60, seed)
    made = most_probable_paths(sources, destinations, hours, weights=weights, around=AROUND)
    check(made, sources, destinations, hours)
    for trip in range(made.n):
        if sources[trip] == destinations[trip]:
            continue
        cost = step_costs(int(destinations[trip]), weights, AROUND)
        cell, at = np.nonzero(np.isfinite(cost))
        target = (cell // 11 + at // 5 - 2) * 11 + cell % 11 + at % 5 - 2
        graph = csr_matrix((cost[cell, at], (cell, target)), shape=(AROUND.n_cells, AROUND.n_cells))
        best = dijkstra(graph, indices=int(sources[trip]))[destinations[trip]]
        path = made.cells[made.offsets[trip] : made.offsets[trip + 1]]
        if np.isfinite(best):
            assert cost[path[:-1], AROUND.offset(path[:-1], path[1:])].sum() == pytest.approx(best)


def test_a_loop_takes_the_cheapest_way_out_and_back():
    weights = some_weights(7)
    made = most_probable_paths(np.array([50]), np.array([50]), np.array([0]), weights=weights, around=AROUND)
    cost = step_costs(50, weights, AROUND)
    path = made.cells
    mine = cost[path[:-1], AROUND.offset(path[:-1], path[1:])].sum()
    pairs = [
        cost[50, AROUND.offset(np.array([50]), np.array([cell]))[0]]
        + cost[cell, AROUND.offset(np.array([cell]), np.array([50]))[0]]
        for cell in range(AROUND.n_cells)
        if cell != 50 and AROUND.offset(np.array([50]), np.array([cell]))[0] >= 0
    ]
    assert mine <= min(pairs) + 1e-9


def test_relative_bins_tell_near_cells_apart_and_far_ones_by_direction():
    cell = np.full(AROUND.n_cells, 49)
    bins = AROUND.relative_of(cell, np.arange(AROUND.n_cells))
    near = np.maximum(abs(np.arange(99) // 11 - 49 // 11), abs(np.arange(99) % 11 - 49 % 11)) <= 2
    assert len(np.unique(bins[near])) == near.sum()
    assert bins.max() < AROUND.n_relative
    assert not set(bins[near]) & set(bins[~near])


def test_grams_end_with_an_arrival():
    made = sample_paths(*some_ends(20, 5), weights=some_weights(1), around=AROUND, generator=np.random.default_rng(1))
    found = grams(made, AROUND)
    assert (found.offset == AROUND.stop).sum() == 20
    tables = move_histograms(made, AROUND)
    assert tables["steps"].shape == (AROUND.n_cells, AROUND.n_offsets)
    assert tables["steps"][:, AROUND.stop].sum() == 0


def test_corrections_follow_clear_answers_only():
    factor = correction(np.array([100.0, 1.0, 0.0, 2.0]), np.array([10.0, 1.0, 100.0, 0.0]), 1.0)
    assert factor[0] > 5
    assert factor[1] == 1
    assert factor[2] < 0.05
    assert factor[3] == 1
