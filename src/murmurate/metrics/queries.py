"""Compare counts of trips from one region to another (Cormode et al. 2013)."""

from __future__ import annotations

import numpy as np

from murmurate.core.score import Score
from murmurate.core.space import Integers
from murmurate.metrics.bootstrap import mean_score
from murmurate.metrics.comparison import Comparison, NotMeasurable, Side
from murmurate.metrics.density import relative_errors
from murmurate.metrics.rectangles import random_rectangles

OD_QUERIES = 1_000
"""Random pairs of rectangles. Set by hand."""
SANITY_BOUND = 0.001
"""Counts below this share of all trips are taken as this share, so that empty pairs of regions do not rule the mean."""


def od_queries(comparison: Comparison, *, queries: int = OD_QUERIES, sanity_bound: float = SANITY_BOUND) -> list[Score]:
    """Measure the relative error of "how many trips go from this rectangle to that one", for random rectangles."""
    totals = [side.flows.total for side in comparison.sides]
    if not all(totals):
        raise NotMeasurable("no trip of one of the sides begins and ends inside the grid")
    boxes = query_boxes(comparison.original, queries, comparison.generator(5))
    answers = [side.between(boxes) for side in comparison.sides]
    errors = relative_errors(answers[0], answers[1], totals[0], totals[1], sanity_bound)
    note = "pairs of rectangles of 1/8 to 1/2 of the box each way; the release scaled to as many trips"
    return [
        mean_score("od_queries", errors, family="queries", note=note),
        Score(name="od_queries.median", value=float(np.median(errors)), better="lower", family="queries", n=queries, note=note),
    ]


def query_boxes(side: Side, queries: int, generator: np.random.Generator) -> Integers:
    """Draw [query, 8]: first and last row and column (half-open) of the origin's rectangle, then of the destination's."""
    grid, _ = side.squares
    return random_rectangles(grid.rows, grid.columns, 2 * queries, generator).reshape(queries, 8)
