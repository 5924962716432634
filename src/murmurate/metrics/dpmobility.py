"""Compare visits and flows as dp-mobility-report does: only the first and last point of a trip count."""

from __future__ import annotations

import numpy as np

from murmurate.core.score import Better, Score
from murmurate.core.space import Floats
from murmurate.metrics.comparison import Comparison, NotMeasurable
from murmurate.metrics.divergence import divergence_terms
from murmurate.metrics.flows import earth_mover_m
from murmurate.metrics.mergeable import LabelCounts, Matched

TOP = (10, 50, 100)
"""Numbers of most frequent places or flows that are compared, as in dp-mobility-report."""
SAMPLED = 2_000
"""Trip ends drawn from each side for the earth mover's distance. Set by hand: its cost grows with the cube."""


def dpmobility_visits(comparison: Comparison, *, sampled: int = SAMPLED) -> list[Score]:
    """Measure the similarity of the visits per cell."""
    name = "dpmobility_visits"
    ends = Matched.of(*(LabelCounts.of_table(side.end_visits) for side in comparison.sides))
    scores = _similarities(name, ends, places=comparison.grid.n_cells)
    return [*scores, _visits_emd(comparison, name, sampled)]


def dpmobility_od(comparison: Comparison) -> list[Score]:
    """Measure the similarity of the flows between cells."""
    return _similarities("dpmobility_od", Matched.of(*(side.flows for side in comparison.sides)), places=None)


def symmetric_error(one: Floats, other: Floats) -> Floats:
    """Return |a - b| over the mean of |a| and |b|; nothing where both are zero.

    >>> symmetric_error(np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    array([1., 0.])
    """
    middle = (np.abs(one) + np.abs(other)) / 2
    return np.divide(np.abs(one - other), middle, out=np.zeros_like(middle), where=middle > 0)


def _similarities(name: str, both: Matched, *, places: int | None) -> list[Score]:
    if not all(both.totals):
        raise NotMeasurable("no trip of one of the sides ends inside the grid")
    p, q = both.shares
    n = both.n_labels if places is None else places
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.where(q > 0, q * np.log(q / p), 0.0)
    apart, errors = divergence_terms(p, q), symmetric_error(p, q)
    root, smape, kl = max(0.0, both.sum_of(apart)) ** 0.5, both.sum_of(errors) / n, max(0.0, both.sum_of(gains))
    by_root = apart / (2 * root) if root else apart
    infinite = "release against originals; infinite where the release goes where no original went"
    scores = [
        _score(f"{name}.jsd", root, "lower", n, f"root of the divergence{both.note(by_root)}"),
        _score(f"{name}.kl", kl, "lower", n, infinite + (both.note(gains) if np.isfinite(kl) else ""), unit="nats"),
        _score(f"{name}.smape", smape, "lower", n, both.note((errors - smape) / n).removeprefix("; ")),
    ]
    counts = both.original, both.released
    ranks = [both.labels[np.lexsort((both.labels, -count))][: np.count_nonzero(count)] for count in counts]
    for top in TOP:
        known, found = (set(rank[:top].tolist()) for rank in ranks)
        scores.append(_score(f"{name}.coverage_{top}", len(known & found) / len(known), "higher", len(known), both.ranked()))
    return scores


def _visits_emd(comparison: Comparison, name: str, sampled: int) -> Score:
    """Estimate the earth mover's distance by matching equal samples one to one; the report moves percents between tiles."""
    points = [side.ends_of().reshape(-1, 2) for side in comparison.sides]
    size = min(len(points[0]), len(points[1]), sampled)
    note = f"{size:,} ends drawn from each side by a fixed seed" if size < 2 * max(side.n for side in comparison.sides) else ""
    if comparison.original.same_end_points(comparison.released):
        return _score(f"{name}.emd", 0.0, "lower", size, note, unit="m")
    generator = comparison.generator(4)
    drawn = [part[generator.choice(len(part), size=size, replace=False)] for part in points]
    still = [np.column_stack([part, np.zeros_like(part)]) for part in drawn]
    return _score(f"{name}.emd", earth_mover_m(*still), "lower", size, note, unit="m")


def _score(name: str, value: float, better: Better, n: int, note: str = "", *, unit: str = "") -> Score:
    return Score(name=name, value=value, better=better, family="dpmobility", n=n, note=note, unit=unit)
