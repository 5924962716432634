"""Patterns against a plain counter."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurate.core.trips import Trips
from murmurate.metrics import measure
from murmurate.metrics.cell_sets import frequent_sets
from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import merge_repeats
from murmurate.metrics.patterns import mine, number_keys, rank, top_patterns
from murmurate.spaces.grid import Grid


def strings(lines):
    return np.array([cell for line in lines for cell in line], dtype=np.int64), np.cumsum([0, *map(len, lines)])


def counted(lines, shortest, longest, by_trip):
    counter: Counter[tuple[int, ...]] = Counter()
    for line in lines:
        found = [
            tuple(line[at : at + size])
            for size in range(shortest, longest + 1)
            for at in range(len(line) - size + 1)
            if -1 not in line[at : at + size]
        ]
        counter.update(set(found) if by_trip else found)
    return counter


def ordered(counter):
    return sorted(counter, key=lambda pattern: (-counter[pattern], len(pattern), pattern))


lines_of_cells = st.lists(st.lists(st.integers(-1, 4), min_size=1, max_size=9), min_size=1, max_size=12)


@settings(max_examples=80, deadline=None)
@given(
    one=lines_of_cells, other=lines_of_cells, shortest=st.integers(1, 2), by_trip=st.booleans(), most=st.sampled_from([3, 100])
)
def test_mining_agrees_with_a_counter(one, other, shortest, by_trip, most):
    found = mine([strings(one), strings(other)], shortest=shortest, longest=4, by_trip=by_trip, most=most)
    for side, lines in enumerate((one, other)):
        counter = counted(lines, shortest, 4, by_trip)
        order = rank(found, side, most)
        got = [tuple(cell for cell in row if cell >= 0) for row in found.cells[order].tolist()]
        assert got == ordered(counter)[:most]
        assert found.counts[side, order].tolist() == [counter[pattern] for pattern in got]
        assert found.found[side] == len(counter)


def test_large_cell_ids_do_not_collide():
    # ids that agree in their low 31 bits would, if keys were cut
    far = 2**40
    found = mine([strings([[1, 2], [1 + far, 2], [1, 2 + far]])], shortest=2, longest=2)
    assert sorted(found.counts[0].tolist()) == [1, 1, 1]


def test_keys_are_numbered_as_they_appear():
    numbers, n = number_keys(np.array([9, -1, 4, 9, 4, 7]))
    assert numbers.tolist() == [0, -1, 1, 0, 1, 2]
    assert n == 3


def test_repeats_are_merged_within_trips_only():
    cells, offsets = merge_repeats(np.array([1, 1, 2, 2, 2, 3]), np.array([0, 3, 6]))
    assert cells.tolist() == [1, 2, 2, 3]
    assert offsets.tolist() == [0, 2, 4]


@pytest.mark.parametrize(("shortest", "by_trip"), [(2, False), (1, False), (2, True)])
def test_scores_by_definition(original, noise, shortest, by_trip):
    mixed = noise.with_columns(
        {name: np.where(noise.point_trip % 3 == 0, getattr(noise, name), getattr(original, name)) for name in ("lat", "lng")}
    )
    comparison = compare(mixed, original)
    scores = {score.name: score.value for score in top_patterns(comparison, shortest=shortest, by_trip=by_trip)}
    lines = []
    for side in comparison.sides:
        cells, offsets = side.merged
        lines.append([cells[a:b].tolist() for a, b in itertools.pairwise(offsets)])
    one, other = (counted(part, shortest, 4, by_trip) for part in lines)
    missed = 0
    for k in (10, 20, 50, 100):
        known, told = ordered(one)[:k], ordered(other)[:k]
        hits = len(set(known) & set(told))
        assert hits > 0
        missed += k - hits
        assert scores[f"patterns.true_positives_{k}"] == pytest.approx(hits / k)
        assert scores[f"patterns.f1_{k}"] == pytest.approx(hits / k)
        error = np.mean([abs(one[pattern] - other[pattern]) / one[pattern] for pattern in known])
        assert scores[f"patterns.support_error_{k}"] == pytest.approx(error)
    assert missed > 0


def test_sets_of_cells_are_counted_whatever_their_order():
    """Four trips by hand: 1 and 2 in either order in three of them, 3 in two, 1 with 3 in one."""
    cells, offsets = np.array([1, 2, 2, 1, 1, 2, 3, 3]), np.array([0, 2, 4, 7, 8])
    assert frequent_sets(cells, offsets, min_support=0.5, most=10) == [(1,), (2,), (1, 2), (3,)]
    assert frequent_sets(cells, offsets, min_support=0.75, most=10) == [(1,), (2,), (1, 2)]
    assert frequent_sets(cells, offsets, min_support=0.25, most=5) == [(1,), (2,), (1, 2), (3,), (1, 3)]


def test_sets_of_cells_are_divided_by_the_number_there_is():
    """Originals 1-2 three times and 3-4 once; the release has 1-2 and 3-5: all three sets of half the trips are found."""
    grid = Grid(0.0, 0.0, 0.1, 0.1, 1000.0)

    def trips(*strings):
        cells = np.concatenate(strings)
        sizes = [len(string) for string in strings]
        lat, lng = grid.centre(cells)
        tid = np.repeat(np.arange(len(strings)), sizes)
        return Trips(pl.DataFrame({"uid": tid.astype(str), "tid": tid.astype(str), "lat": lat, "lng": lng}))

    comparison = compare(trips([1, 2], [1, 2], [3, 5]), trips([1, 2], [2, 1], [1, 2], [3, 4]), grid=grid)
    scores = {score.name: (score.value, score.n) for score in measure("cell_sets", comparison, min_support=0.5)}
    assert scores["cell_sets.true_positives_10"] == (1.0, 3)
    worse = compare(trips([1, 7], [1, 8], [2, 5]), trips([1, 2], [2, 1], [1, 2], [3, 4]), grid=grid)
    assert measure("cell_sets", worse, min_support=0.5)[0].value == pytest.approx(1 / 3)
