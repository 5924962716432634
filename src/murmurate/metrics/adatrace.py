"""The six scores that AdaTrace (Gursoy et al., CCS 2018) and its followers publish, as its evaluator computes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.score import Better, Score
from murmurate.core.space import Floats, Integers
from murmurate.metrics.bootstrap import mean_score
from murmurate.metrics.comparison import Comparison, Lines, NotMeasurable, Side, merge_repeats, to_metres
from murmurate.metrics.divergence import jensen_shannon, relative_entropy
from murmurate.metrics.hausdorff import squared_to_polyline
from murmurate.metrics.mergeable import BIN_SHARE, Distribution
from murmurate.metrics.patterns import agreement, count_numbers, mine, rank

FAMILY = "adatrace"
"""Family of these scores in reports."""
QUERIES = 200
"""Random circles, as in the published evaluator."""
QUERY_SANITY_BOUND = 0.01
"""Counts below this share of all trips are taken as this share, as published."""
KENDALL_CELLS = 15
"""Cells per side of the box whose order of popularity is compared, as published."""
TRIP_CELLS = 6
"""Cells per side of the box for patterns and for origin-destination pairs, as published."""
SHIFTS = ((0.5, 0.5), (0.5, 0.0), (0.0, 0.5))
"""Shifts of the published grids, east and north in cells, over which `.other_grids` scores are averaged. A method that works on
the evaluator's own cells gains nothing on them."""
OTHER_KENDALL_CELLS = (11, 22)
"""Other numbers of cells per side for the order of popularity: 15 over and times about the square root of two."""
OTHER_TRIP_CELLS = (4, 9)
"""Other numbers of cells per side for patterns and pairs: 6 over and times one and a half."""
PATTERN_LENGTHS = (2, 8)
"""Shortest and longest string of cells that is mined, as published."""
PATTERN_TOP = 100
"""Most frequent strings that are compared, as published."""
BUCKETS = 20
"""Buckets of lengths and diameters, as published."""


def adatrace_query(comparison: Comparison, *, queries: int = QUERIES) -> list[Score]:
    """Measure the mean relative error of the number of trips that touch a random circle, as published and without its bug."""
    south, west, north, east = comparison.grid.box
    corners = np.column_stack(to_metres(comparison.grid, np.array([south, north]), np.array([west, east])))
    extent = corners[1] - corners[0]
    centres = corners[0] + comparison.generator(3).uniform(size=(queries, 2)) * extent
    radius = float(extent.max() / 3)
    note = f"{queries} circles, centres uniform in the box, radius a third of its extent, drawn by a fixed seed"
    bug = "; a trip that repeats a point counts for every circle, as in the published evaluator"
    scores = []
    for name, as_published in (("adatrace_query", False), ("adatrace_query.as_published", True)):
        counts = [_touched(side.lines, centres, radius, as_published) for side in comparison.sides]
        errors = np.abs(counts[1] - counts[0]) / np.maximum(counts[0], QUERY_SANITY_BOUND * comparison.original.n)
        scores.append(mean_score(name, errors, family=FAMILY, note=note + bug if as_published else note))
    return scores


def adatrace_kendall(comparison: Comparison) -> list[Score]:
    """Measure the rank agreement of the number of trips per cell, 15 x 15 as published, and the mean over other grids."""

    def counts(lattice: Lattice) -> list[Integers]:
        """Return the trips per cell of both sides."""
        return [
            count_numbers(cells, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), lattice.n_cells, by_trip=True)
            for cells, offsets in _strings(comparison, lattice)
        ]

    original, released = counts(Lattice(KENDALL_CELLS))
    ceiling = kendall(original, original)
    value = kendall(original, released)
    note = f"ties keep it below 1: the originals against themselves give {ceiling:.4f}"
    others = [kendall(*counts(lattice)) for lattice in other_lattices(KENDALL_CELLS, OTHER_KENDALL_CELLS)]
    return [
        _score("adatrace_kendall", value, "higher", len(original), note),
        _score("adatrace_kendall.of_ceiling", value / ceiling if ceiling > 0 else np.nan, "higher", len(original), note),
        _score("adatrace_kendall.other_grids", np.mean(others), "higher", len(original), _grids_note(len(others))),
    ]


def adatrace_patterns(comparison: Comparison) -> list[Score]:
    """Measure F1 and support error of the 100 most frequent strings of 2 to 8 cells, 6 x 6, and F1 over other grids."""
    shortest, longest = PATTERN_LENGTHS

    def compared(lattice: Lattice) -> tuple[dict[str, float], int]:
        """Return the agreement on one grid, and how many strings were compared."""
        found = mine(_strings(comparison, lattice), shortest=shortest, longest=longest, most=PATTERN_TOP)
        if not found.found.all():
            raise NotMeasurable("one of the sides has no trip")
        ranks = [rank(found, side, PATTERN_TOP) for side in (0, 1)]
        values = agreement(ranks[0], ranks[1], found.counts.astype(np.float64))
        return values, min(PATTERN_TOP, int(found.found[0]))

    values, n = compared(Lattice(TRIP_CELLS))
    others = [compared(lattice)[0]["f1"] for lattice in other_lattices(TRIP_CELLS, OTHER_TRIP_CELLS)]
    note = "uniform random short trips already reach an F1 of about .45 on real cities"
    return [
        _score("adatrace_patterns.f1", values["f1"], "higher", n, note),
        _score("adatrace_patterns.support_error", values["support_error"], "lower", n, "absolute counts, as published"),
        _score("adatrace_patterns.f1_other_grids", np.mean(others), "higher", n, _grids_note(len(others))),
    ]


def adatrace_trip(comparison: Comparison) -> list[Score]:
    """Measure the Jensen-Shannon divergence (nats) of origin-destination pairs, 6 x 6 cells, and its mean over other grids."""

    def divergence(lattice: Lattice) -> float:
        """Return the divergence of pairs of cells of one grid."""
        places = lattice.n_cells
        counts = [
            np.bincount(cells[offsets[:-1]] * places + cells[offsets[1:] - 1], minlength=places**2)
            for cells, offsets in _strings(comparison, lattice)
        ]
        return float(jensen_shannon(*counts, base=None))

    n = comparison.released.n
    others = [divergence(lattice) for lattice in other_lattices(TRIP_CELLS, OTHER_TRIP_CELLS)]
    return [
        _score("adatrace_trip", divergence(Lattice(TRIP_CELLS)), "lower", n, unit="nats"),
        _score("adatrace_trip.other_grids", np.mean(others), "lower", n, _grids_note(len(others)), unit="nats"),
    ]


def adatrace_diameter(comparison: Comparison) -> list[Score]:
    """Measure the Jensen-Shannon divergence (nats) of trip diameters in 20 buckets of the originals' range."""
    original, released = (Distribution(_diameters(*side.lines)) for side in comparison.sides)
    return [_score("adatrace_diameter", bucket_divergence(original, released), "lower", released.n, unit="nats")]


def adatrace_length(comparison: Comparison) -> list[Score]:
    """Measure the Jensen-Shannon divergence (nats) of trip lengths in 20 buckets of the originals' range."""
    original, released = (side.distribution("length_m") for side in comparison.sides)
    doubt = max(_near_edges(side, original) for side in (original, released))
    note = f"trips counted in fine bins: at most {1.01 * doubt:.3g} of a side may be in the next bucket" if doubt else ""
    return [_score("adatrace_length", bucket_divergence(original, released), "lower", released.n, note, unit="nats")]


def bucket_divergence(original: Distribution, released: Distribution, *, buckets: int = BUCKETS) -> float:
    """Return the divergence as published, in nats.

    The buckets begin at zero and are (max - min)/20 of the originals wide; what lies beyond them is lost, so that shares may
    sum to less than one.

    >>> bucket_divergence(Distribution(np.array([0.0, 10.0])), Distribution(np.array([0.0, 10.0])))
    0.0
    """
    edges = _edges(original, buckets)
    if not edges[-1]:
        return 0.0 if original.range == released.range else float(np.log(2))
    shares = []
    for side in (original, released):
        bucket = np.searchsorted(edges, side.values, side="right") - 1
        inside = bucket < buckets
        counts = None if side.counts is None else side.counts[inside]
        shares.append(np.bincount(bucket[inside], counts, minlength=buckets) / side.n)
    middle = (shares[0] + shares[1]) / 2
    return max(0.0, sum(relative_entropy(share, middle) for share in shares) / 2)


def _edges(original: Distribution, buckets: int) -> Floats:
    return np.asarray(np.arange(buckets + 1) * ((original.range[1] - original.range[0]) / buckets), dtype=np.float64)


def _near_edges(side: Distribution, original: Distribution) -> float:
    """Return the share of trips whose bin may hold an edge of a bucket; none where every trip has its own value."""
    if side.counts is None:
        return 0.0
    gaps = np.abs(side.values[:, None] - _edges(original, BUCKETS)[1:])
    return float(side.counts[(gaps <= BIN_SHARE * side.values[:, None]).any(axis=1)].sum() / side.n)


@njit(cache=True, nogil=True)
def kendall(original: Integers, released: Integers) -> float:
    """Return concordant less reversed pairs over all pairs, counting as the published evaluator does.

    A tie of the originals counts for nothing; a tie of the release counts as concordant where the later cell is the
    greater among the originals, and as reversed otherwise.
    """
    n = len(original)
    total = 0
    for i in range(n):
        for j in range(i + 1, n):
            if original[i] > original[j]:
                total += 1 if released[i] > released[j] else -1
            elif original[i] < original[j]:
                total += -1 if released[i] > released[j] else 1
    return total / (n * (n - 1) / 2)


@dataclass(frozen=True)
class Lattice:
    """A square lattice of cells over the box, `per_side` to a side, moved south-west by a part of a cell."""

    per_side: int
    east: float = 0.0
    north: float = 0.0

    @property
    def side(self) -> int:
        """Return the cells along a side; one more where the lattice is shifted."""
        return self.per_side + (1 if self.east or self.north else 0)

    @property
    def n_cells(self) -> int:
        """Return the number of cells."""
        return self.side**2


def other_lattices(per_side: int, others: tuple[int, ...]) -> list[Lattice]:
    """Return the published lattice shifted, and lattices of other sizes."""
    return [Lattice(per_side, east, north) for east, north in SHIFTS] + [Lattice(size) for size in others]


def _grids_note(n: int) -> str:
    return f"mean over {n} grids: the published one shifted by half a cell, and grids of other sizes"


def _score(name: str, value: float | np.floating[Any], better: Better, n: int, note: str = "", *, unit: str = "") -> Score:
    return Score(name=name, value=float(value), better=better, family=FAMILY, n=n, note=note, unit=unit)


def _strings(comparison: Comparison, lattice: Lattice) -> list[tuple[Integers, Integers]]:
    return [_cell_strings(side, lattice) for side in comparison.sides]


def _cell_strings(side: Side, lattice: Lattice) -> tuple[Integers, Integers]:
    """Return strings of cells: repeats merged, jumps filled in, a trip within one cell written twice."""
    south, west, north, east = side.grid.box
    lat, lng = side.degrees
    column = _index((lng - west) / (east - west), lattice.per_side, lattice.east)
    row = _index((lat - south) / (north - south), lattice.per_side, lattice.north)
    # what lies outside falls into the south-western cell, as published
    cell = np.where((column < 0) | (row < 0), 0, column * lattice.side + row)
    return _fill(*merge_repeats(cell, side.offsets), lattice.side)


def _index(share: Floats, per_side: int, shift: float) -> NDArray[np.int64]:
    """Return the row or column of each point, -1 outside; cells are closed, so a point on an edge belongs to the lower one."""
    inside = (share >= 0) & (share <= 1)
    at = np.ceil(np.where(inside, share, 0.0) * per_side + shift).astype(np.int64) - 1
    return np.where(inside, np.maximum(at, 0), -1)


@njit(cache=True, nogil=True)
def _fill(cells: Integers, offsets: Integers, per_side: int) -> tuple[Integers, Integers]:
    """Fill in the cells between two that do not touch, diagonally first, then straight."""
    total = 0
    for trip in range(len(offsets) - 1):
        total += 2
        for at in range(offsets[trip] + 1, offsets[trip + 1]):
            east, north = _step(cells[at - 1], cells[at], per_side)
            total += max(abs(east), abs(north))
    filled = np.empty(total, dtype=np.int64)
    ends = np.zeros(len(offsets), dtype=np.int64)
    size = 0
    for trip in range(len(offsets) - 1):
        first, last = offsets[trip], offsets[trip + 1]
        filled[size] = cells[first]
        size += 1
        if last - first == 1:
            filled[size] = cells[first]
            size += 1
        for at in range(first + 1, last):
            here = cells[at - 1]
            while here != cells[at]:
                east, north = _step(here, cells[at], per_side)
                here += np.sign(east) * per_side + np.sign(north)
                filled[size] = here
                size += 1
        ends[trip + 1] = size
    return filled[:size], ends


@njit(cache=True, nogil=True, inline="always")
def _step(here: int, there: int, per_side: int) -> tuple[int, int]:
    return there // per_side - here // per_side, there % per_side - here % per_side


@njit(cache=True, nogil=True)
def _touched(lines: Lines, centres: Floats, radius: float, as_published: bool) -> Integers:
    """Count the trips that come within the radius of each centre."""
    x, y, offsets = lines
    count = np.zeros(len(centres), dtype=np.int64)
    square = radius * radius
    for trip in range(len(offsets) - 1):
        first, last = offsets[trip], offsets[trip + 1]
        if as_published and last - first == 1:
            continue  # the published loop runs over segments, so a single point is never seen
        repeats = False
        if as_published:
            for k in range(first, last - 1):
                repeats = repeats or (x[k] == x[k + 1] and y[k] == y[k + 1])
        west, east = x[first:last].min(), x[first:last].max()
        south, north = y[first:last].min(), y[first:last].max()
        for circle in range(len(centres)):
            cx, cy = centres[circle]
            gap_x, gap_y = max(west - cx, 0.0, cx - east), max(south - cy, 0.0, cy - north)
            if repeats:
                count[circle] += 1
            elif gap_x * gap_x + gap_y * gap_y <= square:
                count[circle] += squared_to_polyline((cx, cy), x, y, (first, last), square) <= square
    return count


@njit(cache=True, nogil=True)
def _diameters(x: Floats, y: Floats, offsets: Integers) -> Floats:
    """Return the greatest distance between any two points of each trip."""
    result = np.zeros(len(offsets) - 1)
    for trip in range(len(offsets) - 1):
        best = 0.0
        for i in range(offsets[trip], offsets[trip + 1]):
            for j in range(i + 1, offsets[trip + 1]):
                best = max(best, (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2)
        result[trip] = np.sqrt(best)
    return result
