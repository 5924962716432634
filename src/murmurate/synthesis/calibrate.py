"""Calibrate step weights by simulation: draw paths, count the measured tables, and correct each weight towards them.

It reads noisy tables only, so it costs no budget. Simulated trips divide their count among bins as private trips do, so the
division does not bias the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from murmurate.asking import STEPS, Norm
from murmurate.core.space import Floats
from murmurate.synthesis.moves import MoveWeights, Neighbourhood, move_histograms
from murmurate.synthesis.sequences import CellTrips

CALIBRATION_ROUNDS = 6
"""Rounds of simulation and correction. Chosen by hand."""
MIN_DIFFERENCE_SDS = 3.5
"""Smallest difference that is corrected, in noise standard deviations; smaller ones are taken for noise. Gaussian noise alone
exceeds it in about two of ten thousand bins. Chosen by hand."""


def calibrate(
    weights: MoveWeights,
    *,
    noisy: Mapping[str, Floats],
    deviations: Mapping[str, float],
    n: float,
    around: Neighbourhood,
    simulate: Callable[[MoveWeights], CellTrips],
    rounds: int = CALIBRATION_ROUNDS,
    norm: Norm = "l2",
) -> MoveWeights:
    """Return weights whose simulated trips reproduce the noisy tables (`towards`, `visits`, `steps`) of `n` trips."""
    current = {"towards": weights.towards.copy(), "visits": weights.visits.copy(), "steps": weights.steps.copy()}
    for _ in range(rounds):
        trips = simulate(MoveWeights(**current))
        shown = move_histograms(trips, around, norm=norm)
        for name, answer in noisy.items():
            expected = shown[name].astype(np.float64) * (n / (max(trips.n, 1) * STEPS))
            current[name] *= correction(answer, expected, deviations[name])
    return MoveWeights(**current)


def correction(noisy: Floats, simulated: Floats, deviation: float) -> Floats:
    """Return factors towards clearly present bins and away from clearly absent ones; 1 where noise may explain all."""
    clear = MIN_DIFFERENCE_SDS * deviation
    positive = np.maximum(noisy, 0.0)
    wanted = np.where(noisy > clear, noisy, np.where(simulated > positive + clear, positive, simulated))
    return np.asarray((wanted + deviation) / (simulated + deviation))


def starting_weights(noisy_towards: Floats, deviation: float, around: Neighbourhood) -> MoveWeights:
    """Return weights before calibration: the noisy table of directions where it is clear of the noise, and 1 elsewhere."""
    towards = np.where(noisy_towards > MIN_DIFFERENCE_SDS * deviation, noisy_towards, 0.0)
    towards = towards + 1e-3 * deviation * _approaching(around)
    return MoveWeights(towards, np.ones(around.n_cells), np.ones((around.n_cells, around.n_offsets)))


def _approaching(around: Neighbourhood) -> Floats:
    """Return [relative destination, offset] a small weight for steps that come nearer, so that every path can continue."""
    down, right = np.divmod(np.arange(around.n_offsets), around.side)
    step = np.stack([down - around.reach, right - around.reach]).astype(np.float64)
    middle = relative_middles(around)
    before = np.hypot(*middle)[:, None]
    after = np.hypot(middle[0][:, None] - step[0], middle[1][:, None] - step[1])
    return np.exp(np.minimum(before - after, 0.0)) * (after < before + 2.0)


def relative_middles(around: Neighbourhood) -> Floats:
    """Return [row or column, relative destination] the mean distance in cells of the destinations of a bin."""
    rows, columns = np.indices(around.relative.shape)
    counts = np.bincount(around.relative.ravel(), minlength=around.n_relative)
    return np.stack(
        [
            np.bincount(around.relative.ravel(), weights=(axis - shift).ravel(), minlength=around.n_relative)
            for axis, shift in ((rows, around.rows - 1), (columns, around.columns - 1))
        ]
    ) / np.maximum(counts, 1)
