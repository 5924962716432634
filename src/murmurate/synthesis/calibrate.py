"""Calibration by simulation: walk, count what was counted in private, and turn each weight towards the noisy answer.

It reads noisy tables only, so it is free. It also undoes what the per-trip weighting of the tables does to them: the same
weighting is applied to the simulated trips.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from murmurate.core.space import Floats
from murmurate.synthesis.measure import ONE
from murmurate.synthesis.moves import MoveWeights, Neighbourhood, Norm, move_histograms
from murmurate.synthesis.sequences import CellTrips

ROUNDS = 6
CLEAR = 3.5
"""Deviations of noise after which a difference is taken for real; among millions of bins a handful is not."""


def calibrate(
    weights: MoveWeights,
    *,
    noisy: Mapping[str, Floats],
    deviations: Mapping[str, float],
    n: float,
    around: Neighbourhood,
    simulate: Callable[[MoveWeights], CellTrips],
    rounds: int = ROUNDS,
    norm: Norm = "l2",
) -> MoveWeights:
    """Weights whose simulated trips show the noisy tables (`towards`, `visits`, `steps`, of `n` trips) again."""
    have = {"towards": weights.towards.copy(), "visits": weights.visits.copy(), "steps": weights.steps.copy()}
    for _ in range(rounds):
        trips = simulate(MoveWeights(**have))
        shown = move_histograms(trips, around, norm=norm)
        for name, answer in noisy.items():
            expected = shown[name].astype(np.float64) * (n / (max(trips.n, 1) * ONE))
            have[name] *= correction(answer, expected, deviations[name])
    return MoveWeights(**have)


def correction(noisy: Floats, simulated: Floats, deviation: float) -> Floats:
    """By how much to multiply: towards clearly present bins, away from clearly absent ones, 1 where noise decides."""
    clear = CLEAR * deviation
    positive = np.maximum(noisy, 0.0)
    wanted = np.where(noisy > clear, noisy, np.where(simulated > positive + clear, positive, simulated))
    return np.asarray((wanted + deviation) / (simulated + deviation))


def starting_weights(noisy_towards: Floats, deviation: float, around: Neighbourhood) -> MoveWeights:
    """Before calibration only the way to the destination is known, where it is clear of the noise."""
    towards = np.where(noisy_towards > CLEAR * deviation, noisy_towards, 0.0)
    towards = towards + 1e-3 * deviation * _approaching(around)
    return MoveWeights(towards, np.ones(around.n_cells), np.ones((around.n_cells, around.n_offsets)))


def _approaching(around: Neighbourhood) -> Floats:
    """[relative destination, offset] a small weight for steps that come nearer, so that every walk can go on."""
    down, right = np.divmod(np.arange(around.n_offsets), around.side)
    step = np.stack([down - around.reach, right - around.reach]).astype(np.float64)
    middle = relative_middles(around)
    before = np.hypot(*middle)[:, None]
    after = np.hypot(middle[0][:, None] - step[0], middle[1][:, None] - step[1])
    return np.exp(np.minimum(before - after, 0.0)) * (after < before + 2.0)


def relative_middles(around: Neighbourhood) -> Floats:
    """[row or column, relative destination] how many cells away the destinations of a bin lie on average."""
    rows, columns = np.indices(around.relative.shape)
    counts = np.bincount(around.relative.ravel(), minlength=around.n_relative)
    return np.stack(
        [
            np.bincount(around.relative.ravel(), weights=(axis - shift).ravel(), minlength=around.n_relative)
            for axis, shift in ((rows, around.rows - 1), (columns, around.columns - 1))
        ]
    ) / np.maximum(counts, 1)
