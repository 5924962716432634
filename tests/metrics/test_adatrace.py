"""The published scores against a slow, literal reading of their definition."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import jensenshannon, pdist

from murmurate.core.trips import Trips
from murmurate.judging.review import evaluate
from murmurate.metrics.adatrace import Lattice, _cell_strings, adatrace_query, kendall
from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import Side, to_metres
from small_town import GRID


def lines(trips):
    return [np.column_stack([trips.lat, trips.lng])[a:b] for a, b in zip(trips.offsets[:-1], trips.offsets[1:], strict=True)]


def literal_strings(trips, per_side):
    result = []
    for points in lines(trips):
        cells = []
        for lat, lng in points:
            u, v = (lng - GRID.west) / (GRID.east - GRID.west), (lat - GRID.south) / (GRID.north - GRID.south)
            inside = 0 <= u <= 1 and 0 <= v <= 1
            cell = (min(int(u * per_side), per_side - 1), min(int(v * per_side), per_side - 1)) if inside else (0, 0)
            if not cells or cells[-1] != cell:
                cells.append(cell)
        if len(cells) == 1:
            cells = cells * 2
        filled = [cells[0]]
        for here, there in pairwise(cells):
            if here == there:
                filled.append(there)
            while here != there:
                here = tuple(int(a + np.sign(b - a)) for a, b in zip(here, there, strict=True))
                filled.append(here)
        result.append(filled)
    return result


@pytest.mark.parametrize("per_side", [6, 15])
def test_strings_are_merged_filled_and_doubled(noise, per_side):
    few = noise.take_trips(np.arange(60))
    outside = few.with_columns({"lat": np.where(np.arange(few.n_points) % 9 == 0, 61.0, few.lat)})
    cells, offsets = _cell_strings(Side(outside, GRID), Lattice(per_side))
    got = [[divmod(int(cell), per_side) for cell in cells[a:b]] for a, b in pairwise(offsets)]
    assert got == literal_strings(outside, per_side)


def test_a_trip_within_one_cell_counts_twice():
    table = pl.DataFrame({"uid": [0, 0, 1], "tid": [0, 0, 1], "lat": [60.001, 60.002, 60.044], "lng": [24.001, 24.001, 24.089]})
    cells, offsets = _cell_strings(Side(Trips(table), GRID), Lattice(6))
    assert cells.tolist() == [0, 0, 35, 35]
    assert offsets.tolist() == [0, 2, 4]


def test_kendall_counts_pairs_as_published():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 5, 30), rng.integers(0, 5, 30)
    total = 0
    for i, j in combinations(range(30), 2):
        if one[i] > one[j]:
            total += 1 if other[i] > other[j] else -1
        if one[i] < one[j]:
            total += -1 if other[i] > other[j] else 1
    assert kendall(one, other) == pytest.approx(total / (30 * 29 / 2))
    order = np.arange(30)
    assert kendall(order, order) == 1
    assert kendall(order, order[::-1].copy()) == -1


def test_kendall_patterns_and_trip_by_definition(original, noise):
    mixed = noise.with_columns(
        {name: np.where(noise.point_trip % 2 == 0, getattr(noise, name), getattr(original, name)) for name in ("lat", "lng")}
    )
    found = evaluate(mixed, original, metrics=["adatrace_kendall", "adatrace_patterns", "adatrace_trip"])
    per_cell, mined, ends = [], [], []
    for side in (original, mixed):
        count = np.zeros((15, 15), dtype=int)
        for line in literal_strings(side, 15):
            for cell in set(line):
                count[cell] += 1
        per_cell.append(count.ravel())
        counter: Counter[tuple] = Counter()
        pairs = np.zeros((6, 6, 6, 6))
        for line in literal_strings(side, 6):
            counter.update(tuple(line[at : at + size]) for size in range(2, 9) for at in range(len(line) - size + 1))
            pairs[(*line[0], *line[-1])] += 1
        mined.append(counter)
        ends.append(pairs.ravel())
    assert found["adatrace_kendall"].value == pytest.approx(kendall(*per_cell))
    top = [set(sorted(counter, key=lambda pattern: (-counter[pattern], len(pattern), pattern))[:100]) for counter in mined]
    assert found["adatrace_patterns.f1"].value == pytest.approx(len(top[0] & top[1]) / 100)
    assert found["adatrace_trip"].value == pytest.approx(jensenshannon(*ends) ** 2)


def test_diameter_and_length_by_definition(original, noise):
    found = evaluate(noise, original, metrics=["adatrace_diameter", "adatrace_length"])
    diameters = []
    for side in (original, noise):
        xy = [np.column_stack(to_metres(GRID, line[:, 0], line[:, 1])) for line in lines(side)]
        diameters.append(np.array([pdist(points).max() for points in xy]))
    width = (diameters[0].max() - diameters[0].min()) / 20
    shares = [
        np.array([((part >= k * width) & (part < (k + 1) * width)).sum() for k in range(20)]) / len(part) for part in diameters
    ]
    middle = (shares[0] + shares[1]) / 2
    expected = sum(np.sum(share[share > 0] * np.log(share[share > 0] / middle[share > 0])) for share in shares) / 2
    assert found["adatrace_diameter"].value == pytest.approx(expected)


def test_queries_with_and_without_the_published_bug(original, noise):
    few = compare(noise.take_trips(np.arange(100)), original.take_trips(np.arange(100)))
    clean, published = adatrace_query(few, queries=20)
    assert clean.value == pytest.approx(published.value)  # no trip repeats a point here
    import shapely

    corners = np.column_stack(to_metres(GRID, np.array([GRID.south, GRID.north]), np.array([GRID.west, GRID.east])))
    centres = corners[0] + few.generator(3).uniform(size=(20, 2)) * (corners[1] - corners[0])
    radius = (corners[1] - corners[0]).max() / 3
    counts = []
    for side in few.sides:
        x, y = side.xy
        shapes = [
            shapely.LineString(np.column_stack([x, y])[a:b]) for a, b in zip(side.offsets[:-1], side.offsets[1:], strict=True)
        ]
        counts.append(np.array([sum(shape.distance(shapely.Point(c)) <= radius for shape in shapes) for c in centres]))
    expected = np.mean(np.abs(counts[1] - counts[0]) / np.maximum(counts[0], 1.0))
    assert clean.value == pytest.approx(expected)


def test_the_bug_counts_a_repeated_point_everywhere():
    table = pl.DataFrame({"uid": 0, "tid": [0, 0], "lat": [60.001, 60.001], "lng": [24.001, 24.001]})
    away = table.with_columns(lat=pl.Series([60.001, 60.0011]))
    comparison = compare(Trips(table), Trips(away), grid=GRID)
    clean, published = adatrace_query(comparison, queries=200)
    assert clean.value == 0
    assert published.value > 0.5


def test_a_tie_keeps_kendall_below_one_and_says_so(original):
    found = evaluate(original, original, metrics=["adatrace_kendall"])
    assert found["adatrace_kendall"].value < 1
    assert f"{found['adatrace_kendall'].value:.4f}" in found["adatrace_kendall"].note


def test_other_grids_notice_a_release_made_on_the_published_cells(original):
    """All points moved to one corner of their published cells: the published score is perfect, that of other grids is not."""
    moved = {}
    for name, low, high in (("lat", GRID.south, GRID.north), ("lng", GRID.west, GRID.east)):
        width = (high - low) / 6
        moved[name] = low + (np.floor((getattr(original, name) - low) / width) + 0.02) * width
    found = evaluate(original.with_columns(moved), original, grid=GRID, metrics=["adatrace_trip", "adatrace_patterns"])
    assert found["adatrace_trip"].value < 0.01 < 0.05 < found["adatrace_trip.other_grids"].value
    assert found["adatrace_patterns.f1_other_grids"].value < found["adatrace_patterns.f1"].value - 0.1
