"""Compare where people are: visits of cells, counting and range queries, popular places, radius of gyration, time of day."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.score import Better, Score
from murmurate.core.space import Floats, Integers
from murmurate.metrics.bootstrap import mean_score
from murmurate.metrics.comparison import Comparison, NotMeasurable
from murmurate.metrics.divergence import jensen_shannon, kullback_leibler
from murmurate.metrics.rectangles import random_spans
from murmurate.spaces.sphere import step_m

FAMILY = "density"
"""Family of these scores in reports."""
SANITY_BOUND = 0.001
"""Counts below this share of all visits are taken as this share, so that rare places do not rule the mean."""
TOP = (10, 20, 50, 100)
"""Numbers of most visited cells that are compared."""
RANGE_QUERIES = 1_000
"""Random rectangles. Set by hand."""
HOT_SHARE = 0.05
"""Hot spots are this share of the cells visited on either side. Set by hand."""
GYRATION_BINS = 50
"""Equal bins of radii of gyration up to the greatest, for the divergence. Set by hand."""


def visits(comparison: Comparison) -> list[Score]:
    """Compare the distributions of visits (points) over cells."""
    _, original, released = _visits(comparison)
    by_popularity = kullback_leibler(np.sort(original), np.sort(released))
    n, note = len(original), "cells visited on either side; counts of zero set to 0.1 for KL"
    return [
        _score("visits.kl_by_label", kullback_leibler(original, released), n, note, unit="nats"),
        _score("visits.kl_by_popularity", by_popularity, n, note, unit="nats"),
        _score("visits.jsd", jensen_shannon(original, released), n, note),
    ]


def counting_queries(comparison: Comparison, *, sanity_bound: float = SANITY_BOUND) -> list[Score]:
    """Measure the mean relative error of "how many visits has this cell" over the cells visited on either side."""
    _, original, released = _visits(comparison)
    errors = relative_errors(original, released, original.sum(), released.sum(), sanity_bound)
    note = "the release scaled to as many visits as the originals"
    return [mean_score("counting_queries", errors, family=FAMILY, note=note)]


def range_queries(comparison: Comparison, *, queries: int = RANGE_QUERIES, sanity_bound: float = SANITY_BOUND) -> list[Score]:
    """Measure the mean relative error of visits counted in random rectangles of cells."""
    grid, square = comparison.original.squares
    generator = comparison.generator(2)
    rows, columns = (random_spans(size, queries, generator, narrowest=1 / 32) for size in (grid.rows, grid.columns))
    answers = []
    for side in comparison.sides:
        counts = np.zeros(grid.n_cells, dtype=np.int64)
        np.add.at(counts, square, side.visits)
        table = np.zeros((grid.rows + 1, grid.columns + 1), dtype=np.int64)
        table[1:, 1:] = counts.reshape(grid.rows, grid.columns).cumsum(axis=0).cumsum(axis=1)
        (low, high), (left, right) = rows, columns
        answers.append(table[high, right] - table[low, right] - table[high, left] + table[low, left])
    totals = [int(side.visits.sum()) for side in comparison.sides]
    if not all(totals):
        raise NotMeasurable("no point of one of the sides lies inside the grid")
    errors = relative_errors(answers[0], answers[1], totals[0], totals[1], sanity_bound)
    note = "rectangles of 1/32 to 1/2 of the box each way, drawn by a fixed seed; the release scaled to as many visits"
    return [mean_score("range_queries", errors, family=FAMILY, note=note)]


def top_places(comparison: Comparison, *, top: tuple[int, ...] = TOP) -> list[Score]:
    """Measure the share of the n most visited cells that are among the n most visited of the release."""
    labels, original, released = _visits(comparison)
    ranks = [_by_count(labels, counts) for counts in (original, released)]
    scores = []
    for n in top:
        known, found = (set(rank[:n].tolist()) for rank in ranks)
        coverage = len(known & found) / len(known)
        scores.append(_score(f"top_places.coverage_{n}", coverage, len(known), "by visits", better="higher"))
    return scores


def hot_spots(comparison: Comparison, *, share: float = HOT_SHARE) -> list[Score]:
    """Measure the overlap (Jaccard) of the most visited cells of both sides, and the share of visits they hold."""
    labels, original, released = _visits(comparison)
    n = max(1, round(share * len(labels)))
    known, found = (_by_count(labels, counts)[:n] for counts in (original, released))
    common = len(np.intersect1d(known, found))
    held = [counts[np.isin(labels, known)].sum() / counts.sum() for counts in (original, released)]
    note = f"the {n:,} most visited of {len(labels):,} cells"
    overlap = common / (len(known) + len(found) - common)
    return [
        _score("hot_spots.overlap", overlap, n, note, better="higher"),
        _score("hot_spots.share_change", abs(held[1] - held[0]), n, note),
    ]


def gyration(comparison: Comparison, *, bins: int = GYRATION_BINS) -> list[Score]:
    """Compare the radii of gyration of trips: root mean square distance of a trip's points from their mean."""
    from scipy.stats import wasserstein_distance

    original, released = (_gyration(*side.track) for side in comparison.sides)
    edges = np.linspace(0, max(original.max(), released.max(), 1.0), bins + 1)
    counts = [np.histogram(radii, edges)[0] for radii in (original, released)]
    n, note = len(released), f"per trip; {bins} equal bins up to the greatest radius"
    return [
        mean_score("gyration.released_mean", released, better="neither", unit="m", family=FAMILY),
        _score("gyration.mean_change", abs(released.mean() - original.mean()), n, note, unit="m"),
        _score("gyration.emd", wasserstein_distance(original, released), n, note, unit="m"),
        _score("gyration.jsd", jensen_shannon(*counts), n, note),
    ]


def time_of_day(comparison: Comparison) -> list[Score]:
    """Compare the hours of day of points and of departures (Jensen-Shannon, base 2)."""
    points, departures = zip(*(side.hours for side in comparison.sides), strict=True)
    return [
        _score("time_of_day.points_jsd", jensen_shannon(*points), 24, "local hours"),
        _score("time_of_day.departures_jsd", jensen_shannon(*departures), 24, "local hours"),
    ]


def _visits(comparison: Comparison) -> tuple[Integers, Floats, Floats]:
    original, released = (side.visits for side in comparison.sides)
    if not (original.any() and released.any()):
        raise NotMeasurable("no point of one of the sides lies inside the grid")
    labels = np.flatnonzero(original + released)
    return labels, original[labels].astype(np.float64), released[labels].astype(np.float64)


def _by_count(labels: Integers, counts: Floats) -> Integers:
    """Return the labels that occur, the most frequent first; the smaller label on a tie."""
    order = np.lexsort((labels, -counts))
    return labels[order][counts[order] > 0]


def relative_errors(
    original: Floats | Integers, released: Floats | Integers, total: float, released_total: float, sanity_bound: float
) -> Floats:
    """Return |original - released| over original, the release scaled to the same total and small counts raised to the bound."""
    scaled = released * (total / released_total)
    return np.asarray(np.abs(original - scaled) / np.maximum(original, sanity_bound * total))


def _score(name: str, value: float, n: int, note: str, *, better: Better = "lower", unit: str = "") -> Score:
    return Score(name=name, value=float(value), better=better, unit=unit, family=FAMILY, n=n, note=note)


@njit(cache=True, nogil=True)
def _gyration(lat: Floats, lng: Floats, offsets: Integers) -> Floats:
    result = np.empty(len(offsets) - 1)
    for trip in range(len(offsets) - 1):
        first, last = offsets[trip], offsets[trip + 1]
        north, east = lat[first:last].mean(), lng[first:last].mean()
        total = 0.0
        for point in range(first, last):
            total += step_m(lat[point], lng[point], north, east) ** 2
        result[trip] = np.sqrt(total / (last - first))
    return result
