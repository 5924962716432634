"""Origins and destinations: earth mover's distance by hour, and the matrix of flows."""

from __future__ import annotations

import numpy as np

from murmurate import engine
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.metrics.bootstrap import mean_score
from murmurate.metrics.comparison import Comparison, NotMeasurable, Side
from murmurate.metrics.divergence import jensen_shannon, matched_counts, shares, total_variation

FAMILY = "flows"
"""Family of these scores in reports."""
SAMPLED = 2_000
"""Trips drawn from each side, per hour (DP-Loc, section 8.4)."""

ZONES = 10
"""Zones per side of the box for the coarse flow matrix. Set by hand."""


def od_emd(comparison: Comparison, *, sampled: int = SAMPLED, workers: int | engine.Engine = 1) -> list[Score]:
    """Measure the earth mover's distance between origin-destination pairs, hour by hour, and its mean over the hours."""
    hours = [side.hour for side in comparison.sides]
    ends = [side.ends_xy for side in comparison.sides]
    jobs = []
    for hour in range(24):
        parts = [end[at == hour] for end, at in zip(ends, hours, strict=True)]
        if len(parts[0]) and len(parts[1]):
            jobs.append((hour, *_draw(parts[0], parts[1], sampled, comparison.generator(100 + hour))))
    if not jobs:
        raise NotMeasurable("no hour of day has trips on both sides")
    alone = len(np.unique(np.concatenate(hours))) - len(jobs)
    # the results of a few small hours are there before a process has started
    heavy = sum(len(job[1]) ** 2 for job in jobs) > 2_000_000
    results = list(engine.map(_hour, jobs, workers=workers if heavy else 1, describe="flows by hour", total=len(jobs)))
    values = np.array([value for _, value, _, _ in results])
    floors = np.array([floor for _, _, floor, _ in results])
    mean = mean_score(
        "od_emd",
        values,
        unit="m",
        family=FAMILY,
        note=f"mean over the hours with trips on both sides; at most {sampled:,} trips drawn from each side an hour"
        + (f"; {alone} hours with trips on one side only are left out" if alone else ""),
    )
    floor = Score(
        name="od_emd.floor",
        value=float(np.nanmean(floors)) if np.isfinite(floors).any() else np.nan,
        better="neither",
        unit="m",
        family=FAMILY,
        note="between disjoint samples of the originals, at most half of an hour each: what a second sample gives",
    )
    by_hour = [
        Score(name=f"od_emd.hour_{hour:02d}", value=value, better="lower", unit="m", family=FAMILY, n=n)
        for hour, value, _, n in results
    ]
    return [mean, floor, *by_hour]


def od_emd_whole(comparison: Comparison, *, sampled: int = SAMPLED) -> list[Score]:
    """Measure the earth mover's distance between origin-destination pairs, whatever the hour."""
    job = (0, *_draw(comparison.original.ends_xy, comparison.released.ends_xy, sampled, comparison.generator(99)))
    _, value, floor, n = _hour(job)
    note = f"at most {sampled:,} trips drawn from each side"
    return [
        Score(name="od_emd_whole", value=value, better="lower", unit="m", family=FAMILY, n=n, note=note),
        Score(name="od_emd_whole.floor", value=floor, better="neither", unit="m", family=FAMILY, n=n),
    ]


def od_matrix(comparison: Comparison, *, zones: int = ZONES) -> list[Score]:
    """Measure the error of the origin-destination matrix, cell by cell and between coarse zones."""
    scores: list[Score] = []
    for name, per_side in (("od_matrix", None), ("od_matrix.zones", zones)):
        flows = [flow_labels(side, per_side) for side in comparison.sides]
        if not all(len(flow) for flow in flows):
            raise NotMeasurable("no trip begins and ends inside the grid on one of the sides")
        _, original, released = matched_counts(*flows)
        p, q = shares(original), shares(released)
        rmse = float(np.sqrt(np.mean((p - q) ** 2)) * len(flows[0]))
        note = "pairs of places with a trip on either side; the release scaled to as many trips as the originals"
        scores += [
            Score(name=f"{name}.{word}", value=value, better="lower", unit=unit, family=FAMILY, n=len(original), note=note)
            for word, value, unit in (
                ("total_variation", total_variation(original, released), ""),
                ("jsd", jensen_shannon(original, released), ""),
                ("rmse", rmse, "trips"),
            )
        ]
    return scores


def earth_mover_m(one: Floats, other: Floats) -> float:
    """Return the mean cost of the best one-to-one matching; the cost of a pair is the metres between origins plus those between
    destinations. Rows are x, y of the origin and x, y of the destination.

    >>> trip = np.array([[0.0, 0.0, 10.0, 0.0]])
    >>> earth_mover_m(trip, trip + [0, 3, 0, 4])
    7.0
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    if one.var(axis=0).sum() < other.var(axis=0).sum():
        one, other = other, one  # the value is the same; the solver is about twice as fast with the wider side as rows
    cost = cdist(one[:, :2], other[:, :2])
    cost += cdist(one[:, 2:], other[:, 2:])
    rows, columns = linear_sum_assignment(cost)
    return float(cost[rows, columns].mean())


def _draw(
    original: Floats, released: Floats, sampled: int, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Draw equal samples of both sides, then two disjoint ones of the originals; the same sets give the same samples."""
    size = min(len(original), len(released), sampled)
    order = generator.permutation(len(original))
    half = min(size, len(original) // 2)
    halves = original[order[:half]], original[order[half : 2 * half]]
    if same_rows(original, released):
        return original[:0], original[:0], *halves
    other = generator.choice(len(released), size=size, replace=False)
    return original[order[:size]], released[other], *halves


def same_rows(one: Floats, other: Floats) -> bool:
    """Whether both hold the same rows: then nothing has to move, whatever samples would say."""
    return len(one) == len(other) and bool((one[np.lexsort(one.T)] == other[np.lexsort(other.T)]).all())


def _hour(job: tuple[int, Floats, Floats, Floats, Floats]) -> tuple[int, float, float, int]:
    hour, original, released, one_half, other_half = job
    value = earth_mover_m(original, released) if len(original) else 0.0
    return hour, value, earth_mover_m(one_half, other_half) if len(one_half) else np.nan, len(original)


def flow_labels(side: Side, zones: int | None = None) -> Integers:
    """Return one label per trip that begins and ends inside the grid: origin and destination in one number."""
    inside = (side.ends[0] >= 0) & (side.ends[1] >= 0)
    origin, destination = (end[inside] for end in side.ends)
    places = side.grid.n_cells
    if zones is not None:
        origin, destination = (_zone(side, cell, zones) for cell in (origin, destination))
        places = zones * zones
    return origin * places + destination


def _zone(side: Side, cell: Integers, zones: int) -> Integers:
    grid, square = side.squares
    row, column = grid.row_column(square[cell])
    return row * zones // grid.rows * zones + column * zones // grid.columns
