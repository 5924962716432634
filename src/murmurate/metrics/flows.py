"""Origins and destinations: earth mover's distance by hour, and the matrix of flows."""

from __future__ import annotations

import numpy as np

from murmurate import engine
from murmurate.core.score import Score
from murmurate.core.space import Floats
from murmurate.metrics.bootstrap import mean_score
from murmurate.metrics.comparison import Comparison, NotMeasurable
from murmurate.metrics.divergence import divergence_terms
from murmurate.metrics.mergeable import LabelCounts, Matched

FAMILY = "flows"
"""Family of these scores in reports."""
SAMPLED = 2_000
"""Trips drawn from each side, per hour (DP-Loc, section 8.4)."""

ZONES = 10
"""Zones per side of the box for the coarse flow matrix. Set by hand."""


def od_emd(
    comparison: Comparison, *, sampled: int = SAMPLED, floor: bool = True, workers: int | engine.Engine = 1
) -> list[Score]:
    """Measure the earth mover's distance between origin-destination pairs, hour by hour, and its mean over the hours.

    With `floor` also that of two samples of the originals, which takes as long again.
    """
    jobs, alone = [], 0
    for hour in range(24):
        here = [len(side.ends_of(hour)) for side in comparison.sides]
        alone += any(here) and not all(here)
        if all(here):
            drawn = _draw(comparison, hour, sampled, comparison.generator(100 + hour))
            jobs.append((hour, *(drawn if floor else (*drawn[:2], drawn[2][:0], drawn[3][:0]))))
    if not jobs:
        raise NotMeasurable("no hour of day has trips on both sides")
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
    second = Score(
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
    return [mean, *([second] if floor else []), *by_hour]


def od_emd_whole(comparison: Comparison, *, sampled: int = SAMPLED) -> list[Score]:
    """Measure the earth mover's distance between origin-destination pairs, whatever the hour."""
    job = (0, *_draw(comparison, None, sampled, comparison.generator(99)))
    _, value, floor, n = _hour(job)
    note = f"at most {sampled:,} trips drawn from each side"
    return [
        Score(name="od_emd_whole", value=value, better="lower", unit="m", family=FAMILY, n=n, note=note),
        Score(name="od_emd_whole.floor", value=floor, better="neither", unit="m", family=FAMILY, n=n),
    ]


def od_matrix(comparison: Comparison, *, zones: int = ZONES) -> list[Score]:
    """Measure the error of the origin-destination matrix, cell by cell and between coarse zones."""
    by_zone = [LabelCounts.of_table(side.zone_flows(zones)) for side in comparison.sides]
    scores: list[Score] = []
    for name, flows in (("od_matrix", [side.flows for side in comparison.sides]), ("od_matrix.zones", by_zone)):
        if not all(flow.total for flow in flows):
            raise NotMeasurable("no trip begins and ends inside the grid on one of the sides")
        both = Matched.of(*flows)
        p, q = both.shares
        note = "pairs of places with a trip on either side; the release scaled to as many trips as the originals"
        off, apart, squares = np.abs(p - q) / 2, divergence_terms(p, q) / np.log(2), (p - q) ** 2
        mean_square = both.sum_of(squares) / both.n_labels
        rmse = mean_square**0.5 * flows[0].total
        by_pair = (squares - mean_square) / both.n_labels * (rmse / (2 * mean_square) if mean_square else 0.0)
        scores += [
            Score(
                name=f"{name}.{word}", value=value, better="lower", unit=unit, family=FAMILY, n=both.n_labels, note=note + error
            )
            for word, value, unit, error in (
                ("total_variation", both.sum_of(off), "", both.note(off)),
                ("jsd", max(0.0, both.sum_of(apart)), "", both.note(apart)),
                ("rmse", rmse, "trips", both.note(by_pair)),
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
    nearest = cost.min(axis=0)
    cost -= nearest  # every matching pays it, and the solver is a quarter faster without
    rows, columns = linear_sum_assignment(cost)
    return float((cost[rows, columns] + nearest[columns]).mean())


def _draw(
    comparison: Comparison, hour: int | None, sampled: int, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Draw equal samples of both sides, then two disjoint ones of the originals; the same sets give the same samples."""
    original, released = (side.ends_of(hour) for side in comparison.sides)
    size = min(len(original), len(released), sampled)
    order = generator.permutation(len(original))
    half = min(size, len(original) // 2)
    halves = original[order[:half]], original[order[half : 2 * half]]
    if comparison.original.same_ends(comparison.released, hour):
        return original[:0], original[:0], *halves  # nothing has to move, whatever samples would say
    other = generator.choice(len(released), size=size, replace=False)
    return original[order[:size]], released[other], *halves


def _hour(job: tuple[int, Floats, Floats, Floats, Floats]) -> tuple[int, float, float, int]:
    hour, original, released, one_half, other_half = job
    value = earth_mover_m(original, released) if len(original) else 0.0
    return hour, value, earth_mover_m(one_half, other_half) if len(one_half) else np.nan, len(original)
