"""Compare counts of trips from one region to another (Cormode et al. 2013)."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.score import Score
from murmurate.core.space import Integers
from murmurate.metrics.bootstrap import mean_score
from murmurate.metrics.comparison import Comparison, NotMeasurable
from murmurate.metrics.density import random_spans, relative_errors

OD_QUERIES = 1_000
"""Random pairs of rectangles. Set by hand."""
SANITY_BOUND = 0.001
"""Counts below this share of all trips are taken as this share, so that empty pairs of regions do not rule the mean."""


def od_queries(comparison: Comparison, *, queries: int = OD_QUERIES, sanity_bound: float = SANITY_BOUND) -> list[Score]:
    """Measure the relative error of "how many trips go from this rectangle to that one", for random rectangles."""
    grid, square = comparison.original.squares
    generator = comparison.generator(5)
    boxes = _rectangles(grid.rows, grid.columns, 2 * queries, generator).reshape(queries, 8)
    answers, totals = [], []
    for side in comparison.sides:
        start, end = side.ends
        inside = (start >= 0) & (end >= 0)
        if not inside.any():
            raise NotMeasurable("no trip of one of the sides begins and ends inside the grid")
        ends = [np.divmod(square[cell[inside]], grid.columns) for cell in (start, end)]
        answers.append(_between(np.column_stack([ends[0][0], ends[0][1], ends[1][0], ends[1][1]]), boxes))
        totals.append(int(inside.sum()))
    errors = relative_errors(answers[0], answers[1], totals[0], totals[1], sanity_bound)
    note = "pairs of rectangles of 1/8 to 1/2 of the box each way; the release scaled to as many trips"
    return [
        mean_score("od_queries", errors, family="queries", note=note),
        Score(name="od_queries.median", value=float(np.median(errors)), better="lower", family="queries", n=queries, note=note),
    ]


def _rectangles(rows: int, columns: int, n: int, generator: np.random.Generator) -> Integers:
    """Draw [n, 4]: first and last row and column (half-open) of random rectangles, log-uniform in their sides."""
    spans = [random_spans(size, n, generator, narrowest=1 / 8) for size in (rows, columns)]
    return np.column_stack([*spans[0], *spans[1]])


@njit(cache=True, nogil=True)
def _between(ends: Integers, boxes: Integers) -> Integers:
    """Count how many (row, column, row, column) of starts and ends lie in each pair of rectangles."""
    counts = np.zeros(len(boxes), dtype=np.int64)
    for q in range(len(boxes)):
        for k in range(len(ends)):
            if (
                boxes[q, 0] <= ends[k, 0] < boxes[q, 1]
                and boxes[q, 2] <= ends[k, 1] < boxes[q, 3]
                and boxes[q, 4] <= ends[k, 2] < boxes[q, 5]
                and boxes[q, 6] <= ends[k, 3] < boxes[q, 7]
            ):
                counts[q] += 1
    return counts
