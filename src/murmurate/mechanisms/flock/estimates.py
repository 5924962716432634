"""Estimate cell counts from noisy tables by shrinkage, and weight candidate trips so that they reproduce all tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit

from murmurate.asking import STEPS, Answer
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tables import Parts
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.synthesis.ends import believed_cells

GROUPS = 8
"""Of cells of similar size, each believed by its own error."""
LAYS = 8
MANY_CELLS = 10_000
"""From here on half as many lays: noise of single cells is then far above what they hold."""
LEFT = 0.35
"""Of the deviation of a noisy cell, after its neighbours have been asked."""
LAID = 0.381966
"""The golden section spreads the lays evenly, whatever their number."""


def estimate_cells(answer: Answer, rows: int, columns: int, prior: Floats | None = None) -> Floats:
    """[cell] counts from a noisy table, mean over blocks that start at different cells; `prior` says how blocks divide."""
    noisy = answer.noisy.reshape(rows, columns)
    expected = np.ones((rows, columns)) if prior is None else prior.reshape(rows, columns)
    total = max(float(answer.noisy.sum()), 1.0)
    side = 1 << (max(rows, columns) - 1).bit_length() >> 1
    lays = LAYS if noisy.size < MANY_CELLS else LAYS // 2
    mean = np.zeros((rows, columns))
    for lay in range(lays):
        south, west = int(side * lay / lays), int(side * ((lay * LAID) % 1.0))
        table = np.pad(noisy, ((south, 0), (west, 0)))
        area = np.pad(expected, ((south, 0), (west, 0)))
        found = believed_cells(
            table.ravel(), rows=rows + south, columns=columns + west, n=total, deviation=answer.deviation,
            prior=area.ravel(), groups=GROUPS,
        )  # fmt: skip
        mean += found.reshape(table.shape)[south:, west:] / lays
    return np.asarray(mean.ravel() * (total / max(float(mean.sum()), 1e-9)))


def with_estimated_cells(answers: Mapping[str, Answer], frame: Frame) -> dict[str, Answer]:
    """The answers, with estimates in place of the noisy visits and ends of coarse cells, and what error is left in them."""
    visits = estimate_cells(answers["visits"], frame.rows, frame.columns)
    ends = estimate_cells(answers["ends"], frame.rows, frame.columns, visits)
    return {
        **answers,
        "visits": Answer(visits, answers["visits"].deviation * LEFT),
        "ends": Answer(ends, answers["ends"].deviation * LEFT),
    }


def interpolate_density(coarse: Floats, frame: Frame) -> Floats:
    """[fine cell] what lies there if density changes evenly from the middle of one coarse cell to that of the next."""
    grid, block = frame.grid, frame.block
    rows, columns = (np.arange(size) + 0.5 for size in (frame.rows, frame.columns))
    north, east = ((np.arange(size) + 0.5) / block for size in (grid.rows, grid.columns))
    table = coarse.reshape(frame.rows, frame.columns)
    along = np.stack([np.interp(east, columns, row) for row in table])
    return np.stack([np.interp(north, rows, column) for column in along.T], axis=1).ravel()


ROUNDS = 40
SPREAD = (0.003, 4.0)
"""Bounds of the variance of a table's pulls; within them it is what the table shows beyond its noise."""
MOST = 3.0
"""Largest logarithm by which any single trip is weighed up or down."""


def fit_pulls(candidates: Mapping[str, Parts], answers: Mapping[str, Answer], n: float, n_candidates: int) -> dict[str, Floats]:
    """Pulls of every bin of every answered table: the most likely ones, given noise and how far each table is off."""
    names = list(candidates)
    starts = np.concatenate([[0], np.cumsum([candidates[name].n_bins for name in names])]).astype(np.int64)
    trip, bin_, weight = _stacked([candidates[name] for name in names], starts)
    each = n / n_candidates
    wanted, variance, spread = [], [], []
    for name in names:
        noisy, deviation = answers[name].noisy.ravel(), answers[name].deviation
        shown = candidates[name].table() * (each / STEPS)
        excess = float(((noisy - shown) ** 2).sum()) - noisy.size * deviation**2 - each * float(shown.sum())
        relative = excess / max(float((shown**2).sum()), 1e-9)
        wanted.append(noisy)
        variance.append(np.full(noisy.size, deviation**2))
        spread.append(np.full(noisy.size, np.clip(relative, *SPREAD)))
    pull = np.zeros(starts[-1])
    _solve(
        (trip, bin_, weight), np.concatenate(wanted), np.concatenate(variance), np.concatenate(spread), pull,
        (each, n_candidates, ROUNDS),
    )  # fmt: skip
    return {name: pull[low:high] for name, low, high in zip(names, starts[:-1], starts[1:], strict=True)}


def log_weights(candidates: Mapping[str, Parts], pulls: Mapping[str, Floats], n: int, *, most: float = MOST) -> Floats:
    """Logarithm of the weight of each candidate."""
    total = np.zeros(n)
    for name, part in candidates.items():
        total += np.bincount(part.trip, weights=part.weight / STEPS * pulls[name][part.bin], minlength=n)
    return np.clip(total - np.median(total), -most, most)


def resample(log_weight: Floats, n: int, generator: np.random.Generator) -> Integers:
    """`n` candidates by weight, in order: any stretch of them gives as many as its weight says, but for one."""
    cumulative = np.cumsum(np.exp(log_weight - log_weight.max()))
    at = (np.arange(n) + generator.random()) * (cumulative[-1] / n)
    return np.minimum(np.searchsorted(cumulative, at, side="right"), len(cumulative) - 1)


def _stacked(tables: list[Parts], starts: Integers) -> tuple[Integers, Integers, Floats]:
    trip = np.concatenate([part.trip for part in tables])
    bin_ = np.concatenate([part.bin + start for part, start in zip(tables, starts[:-1], strict=True)])
    return trip, bin_, np.concatenate([part.weight for part in tables]) / STEPS


@njit(cache=True, nogil=True)
def _solve(  # noqa: PLR0917
    stacked: tuple[Integers, Integers, Floats],
    wanted: Floats,
    variance: Floats,
    spread: Floats,
    pull: Floats,
    how: tuple[float, int, int],
) -> None:
    """Newton steps on all bins at once, each bin's curvature bounded by that of the trips it shares with others."""
    trip, bin_, weight = stacked
    each, n_candidates, rounds = how
    whole = np.zeros(n_candidates)
    for at in range(len(trip)):
        whole[trip[at]] += weight[at]
    for _ in range(rounds):
        log_mass = np.zeros(n_candidates)
        for at in range(len(trip)):
            log_mass[trip[at]] += weight[at] * pull[bin_[at]]
        mass = each * np.exp(np.minimum(np.maximum(log_mass, -8.0), 8.0))
        shown, moved = np.zeros(len(pull)), np.zeros(len(pull))
        for at in range(len(trip)):
            share = weight[at] * mass[trip[at]]
            shown[bin_[at]] += share
            moved[bin_[at]] += share * whole[trip[at]]
        for at in range(len(pull)):
            if shown[at] <= 0.0:
                continue
            noise = variance[at] + each * shown[at]
            slope = (wanted[at] - shown[at]) * shown[at] / noise - pull[at] / spread[at]
            step = slope / (shown[at] * moved[at] / noise + 1.0 / spread[at])
            pull[at] += min(max(step, -0.5), 0.5)
