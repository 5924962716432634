"""Estimate cell counts from noisy tables by shrinkage, and weight candidate trips so that they reproduce all tables.

The weight of a trip is exp(sum of the log-weights of its bins), as in maximum entropy models. Log-weights are the solution of a
convex problem over noisy tables only, so they cost no budget, and they apply to any further trip of the base model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.asking import STEPS, Answer
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tables import TripContributions
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.synthesis.ends import shrink_cells

if TYPE_CHECKING:
    from murmurate.mechanisms.flock.prediction import Prediction

SIZE_GROUPS = 8
"""Groups of cells of similar size, each shrunk by its own relative error, because a few large cells would decide for all.
Chosen by hand."""
N_PARTITIONS = 8
"""Shifted block partitions over which cell estimates are averaged, so that block edges do not show. Eight instead of one raised
Kendall's score on Geolife from .58 to .62 (docs/mechanisms/flock.md, variants)."""
HALF_PARTITIONS_CELLS = 10_000
"""Cells from which half as many partitions are used: noise then far exceeds the count of a cell. Chosen by hand."""
REMAINING_ERROR = 0.35
"""Standard error of an estimated cell count, as a fraction of its noise standard deviation. Chosen by hand."""
GOLDEN_SHIFT = 0.381966
"""Shift of consecutive partitions along a row, as a fraction of a block: one minus the golden ratio's inverse, which spreads
shifts evenly whatever their number."""
NEWTON_ROUNDS = 40
"""Newton steps of all log-weights. Chosen by hand."""
LOG_WEIGHT_VARIANCES = (0.003, 4.0)
"""Smallest and largest prior variance of the log-weights of a table; between them it is estimated from the table. Chosen by
hand."""
MAX_LOG_WEIGHT = 3.0
"""Largest absolute log-weight of a candidate trip, so that no candidate is copied more than e^3 times as often as the median
one. Chosen by hand."""


def estimate_cells(answer: Answer, rows: int, columns: int, prior: Floats | None = None) -> Floats:
    """Estimate [cell] counts from a noisy table by hierarchical shrinkage, averaged over shifted block partitions.

    `prior` says how the count of a block is expected to divide among its cells; equally if None.
    """
    noisy = answer.noisy.reshape(rows, columns)
    expected = np.ones((rows, columns)) if prior is None else prior.reshape(rows, columns)
    total = max(float(answer.noisy.sum()), 1.0)
    side = 1 << (max(rows, columns) - 1).bit_length() >> 1
    n_partitions = N_PARTITIONS if noisy.size < HALF_PARTITIONS_CELLS else N_PARTITIONS // 2
    mean = np.zeros((rows, columns))
    for partition in range(n_partitions):
        south, west = int(side * partition / n_partitions), int(side * ((partition * GOLDEN_SHIFT) % 1.0))
        table = np.pad(noisy, ((south, 0), (west, 0)))
        area = np.pad(expected, ((south, 0), (west, 0)))
        found = shrink_cells(
            table.ravel(), rows=rows + south, columns=columns + west, n=total, deviation=answer.deviation,
            prior=area.ravel(), groups=SIZE_GROUPS, scaled=True,
        )  # fmt: skip
        mean += found.reshape(table.shape)[south:, west:] / n_partitions
    return np.asarray(mean.ravel() * (total / max(float(mean.sum()), 1e-9)))


def with_estimated_cells(
    answers: Mapping[str, Answer], frame: Frame, predicted: Prediction
) -> tuple[dict[str, Answer], Floats]:
    """Replace noisy visits and ends of coarse cells by estimates with their remaining standard errors."""
    counted = estimate_cells(answers["visits"], frame.rows, frame.columns, predicted.counted)
    visits = predicted.visits * counted / np.maximum(predicted.counted, 1e-12)
    ends = estimate_cells(answers["ends"], frame.rows, frame.columns, visits)
    found = {
        **answers,
        "visits": Answer(counted, answers["visits"].deviation * REMAINING_ERROR),
        "ends": Answer(ends, answers["ends"].deviation * REMAINING_ERROR),
    }
    return found, visits


def separate_ends(answers: Mapping[str, Answer], frame: Frame, both: Floats) -> tuple[Floats, Floats]:
    """Estimate [coarse cell] origins and destinations, shrunk towards the estimate of `both` ends."""
    origins, destinations = (
        estimate_cells(answers[name], frame.rows, frame.columns, both) for name in ("origins", "destinations")
    )
    return origins, destinations


def interpolate_density(coarse: Floats, frame: Frame) -> Floats:
    """Interpolate [grid cell] counts between the centres of coarse cells: density is linear, times the area of each cell."""
    grid, block = frame.grid, frame.block
    rows, columns = (np.arange(size) + 0.5 for size in (frame.rows, frame.columns))
    north, east = ((np.arange(size) + 0.5) / block for size in (grid.rows, grid.columns))
    land = frame.coarse_area > 0
    table = np.where(land, coarse / np.where(land, frame.coarse_area, 1.0), 0.0).reshape(frame.rows, frame.columns)
    along = np.stack([np.interp(east, columns, row) for row in table])
    density = np.stack([np.interp(north, rows, column) for column in along.T], axis=1).ravel()
    return np.asarray(density * frame.area)


def fit_log_weights(
    candidates: Mapping[str, TripContributions], answers: Mapping[str, Answer], n: float, n_candidates: int
) -> dict[str, Floats]:
    """Fit the log-weights of every bin of every measured table: maximum a posteriori, given noise and prior variance.

    The prior variance of a table is what its differences from the candidates show beyond noise and sampling error.
    """
    names = list(candidates)
    starts = np.concatenate([[0], np.cumsum([candidates[name].n_bins for name in names])]).astype(np.int64)
    trip, bin_, weight = _stack([candidates[name] for name in names], starts)
    each = n / n_candidates
    wanted, variance, prior_variance = [], [], []
    for name in names:
        noisy, deviation = answers[name].noisy.ravel(), answers[name].deviation
        shown = candidates[name].table() * (each / STEPS)
        # weighted by squared counts, which has the least variance where there is only noise
        excess = (shown**2 * ((noisy - shown) ** 2 - deviation**2 - each * shown)).sum()
        relative = float(excess) / max(float((shown**4).sum()), 1e-9)
        wanted.append(noisy)
        variance.append(np.full(noisy.size, deviation**2))
        prior_variance.append(np.full(noisy.size, np.clip(relative, *LOG_WEIGHT_VARIANCES)))
    log_weight = np.zeros(starts[-1])
    _newton(
        (trip, bin_, weight), np.concatenate(wanted), np.concatenate(variance), np.concatenate(prior_variance), log_weight,
        (each, n_candidates, NEWTON_ROUNDS),
    )  # fmt: skip
    return {name: log_weight[low:high] for name, low, high in zip(names, starts[:-1], starts[1:], strict=True)}


def candidate_log_weights(
    candidates: Mapping[str, TripContributions],
    log_weights: Mapping[str, Floats],
    n: int,
    *,
    max_log_weight: float = MAX_LOG_WEIGHT,
) -> Floats:
    """Return the log-weight of each candidate relative to the median one, clipped to `max_log_weight`."""
    total = np.zeros(n)
    for name, part in candidates.items():
        total += np.bincount(part.trip, weights=part.weight / STEPS * log_weights[name][part.bin], minlength=n)
    return np.clip(total - np.median(total), -max_log_weight, max_log_weight)


def resample(log_weight: Floats, n: int, generator: np.random.Generator) -> Integers:
    """Draw `n` candidates by weight with systematic sampling, in their order."""
    cumulative = np.cumsum(np.exp(log_weight - log_weight.max()))
    at = (np.arange(n) + generator.random()) * (cumulative[-1] / n)
    return np.minimum(np.searchsorted(cumulative, at, side="right"), len(cumulative) - 1)


def _stack(tables: list[TripContributions], starts: Integers) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Concatenate the contributions to all tables, with bins numbered on; in 32 bits, as every round goes over all of them."""
    trip = np.concatenate([part.trip for part in tables], dtype=np.int32, casting="same_kind")
    bin_ = np.concatenate([(part.bin + start).astype(np.int32) for part, start in zip(tables, starts[:-1], strict=True)])
    return trip, bin_, np.concatenate([part.weight / STEPS for part in tables])


@njit(cache=True, nogil=True)
def _newton(  # noqa: PLR0917
    stacked: tuple[NDArray[np.int32], NDArray[np.int32], Floats],
    wanted: Floats,
    variance: Floats,
    prior_variance: Floats,
    log_weight: Floats,
    how: tuple[float, int, int],
) -> None:
    """Update `log_weight` by Newton steps on all bins at once, each bin's curvature bounded by that of the trips it shares."""
    trip, bin_, weight = stacked
    each, n_candidates, rounds = how
    whole = np.zeros(n_candidates)
    for at in range(len(trip)):
        whole[trip[at]] += weight[at]
    for _ in range(rounds):
        log_mass = np.zeros(n_candidates)
        for at in range(len(trip)):
            log_mass[trip[at]] += weight[at] * log_weight[bin_[at]]
        mass = each * np.exp(np.minimum(np.maximum(log_mass, -8.0), 8.0))
        shown, curvature = np.zeros(len(log_weight)), np.zeros(len(log_weight))
        for at in range(len(trip)):
            share = weight[at] * mass[trip[at]]
            shown[bin_[at]] += share
            curvature[bin_[at]] += share * whole[trip[at]]
        for at in range(len(log_weight)):
            if shown[at] <= 0.0:
                continue
            noise = variance[at] + each * shown[at]
            slope = (wanted[at] - shown[at]) * shown[at] / noise - log_weight[at] / prior_variance[at]
            step = slope / (shown[at] * curvature[at] / noise + 1.0 / prior_variance[at])
            log_weight[at] += min(max(step, -0.5), 0.5)
