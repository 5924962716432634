"""Compare visits and flows as dp-mobility-report does: only the first and last point of a trip count."""

from __future__ import annotations

import numpy as np

from murmurate.core.score import Better, Score
from murmurate.core.space import Floats, Integers
from murmurate.metrics.comparison import Comparison, NotMeasurable, Side
from murmurate.metrics.divergence import jensen_shannon, matched_counts, shares
from murmurate.metrics.flows import earth_mover_m, flow_labels, same_rows

TOP = (10, 50, 100)
"""Numbers of most frequent places or flows that are compared, as in dp-mobility-report."""
SAMPLED = 2_000
"""Trip ends drawn from each side for the earth mover's distance. Set by hand: its cost grows with the cube."""


def dpmobility_visits(comparison: Comparison, *, sampled: int = SAMPLED) -> list[Score]:
    """Measure the similarity of the visits per cell."""
    name = "dpmobility_visits"
    scores = _similarities(name, *(_visits(side) for side in comparison.sides), places=comparison.grid.n_cells)
    return [*scores, _visits_emd(comparison, name, sampled)]


def dpmobility_od(comparison: Comparison) -> list[Score]:
    """Measure the similarity of the flows between cells."""
    return _similarities("dpmobility_od", *(flow_labels(side) for side in comparison.sides), places=None)


def symmetric_error(one: Floats, other: Floats) -> Floats:
    """Return |a - b| over the mean of |a| and |b|; nothing where both are zero.

    >>> symmetric_error(np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    array([1., 0.])
    """
    middle = (np.abs(one) + np.abs(other)) / 2
    return np.divide(np.abs(one - other), middle, out=np.zeros_like(middle), where=middle > 0)


def _similarities(name: str, original: Integers, released: Integers, *, places: int | None) -> list[Score]:
    if not len(original) or not len(released):
        raise NotMeasurable("no trip of one of the sides ends inside the grid")
    labels, before, after = matched_counts(original, released)
    p, q = shares(before), shares(after)
    n = len(labels) if places is None else places
    there = q > 0
    with np.errstate(divide="ignore"):
        kl = float(np.sum(q[there] * np.log(q[there] / p[there])))
    note = "release against originals; infinite where the release goes where no original went"
    scores = [
        _score(f"{name}.jsd", float(np.sqrt(jensen_shannon(before, after, base=None))), "lower", n, "root of the divergence"),
        _score(f"{name}.kl", max(0.0, kl), "lower", n, note, unit="nats"),
        _score(f"{name}.smape", float(symmetric_error(p, q).sum() / n), "lower", n),
    ]
    ranks = [labels[np.lexsort((labels, -counts))][: np.count_nonzero(counts)] for counts in (before, after)]
    for top in TOP:
        known, found = (set(rank[:top].tolist()) for rank in ranks)
        scores.append(_score(f"{name}.coverage_{top}", len(known & found) / len(known), "higher", len(known)))
    return scores


def _visits_emd(comparison: Comparison, name: str, sampled: int) -> Score:
    """Estimate the earth mover's distance by matching equal samples one to one; the report moves percents between tiles."""
    points = [side.ends_xy.reshape(-1, 2) for side in comparison.sides]
    size = min(len(points[0]), len(points[1]), sampled)
    note = f"{size:,} ends drawn from each side by a fixed seed" if size < max(map(len, points)) else ""
    if same_rows(*points):
        return _score(f"{name}.emd", 0.0, "lower", size, note, unit="m")
    generator = comparison.generator(4)
    drawn = [part[generator.choice(len(part), size=size, replace=False)] for part in points]
    still = [np.column_stack([part, np.zeros_like(part)]) for part in drawn]
    return _score(f"{name}.emd", earth_mover_m(*still), "lower", size, note, unit="m")


def _visits(side: Side) -> Integers:
    ends = np.concatenate(side.ends)
    return ends[ends >= 0]


def _score(name: str, value: float, better: Better, n: int, note: str = "", *, unit: str = "") -> Score:
    return Score(name=name, value=value, better=better, family="dpmobility", n=n, note=note, unit=unit)
