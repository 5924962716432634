"""Gaussian noise on a clipped sum of gradients, on a lattice, from the secure stream."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

if TYPE_CHECKING:
    from murmurate.noise import Randomness

SLACK = 1e-3
"""Noise is drawn for a sensitivity this much above the clipping norm, for what single precision and the lattice add."""

LATTICE = 2.0**-20
"""The lattice's step times the root of the number of parameters, in clipping norms: rounding moves a sum by less."""


def noisy_sum(
    sums: dict[str, NDArray[Any]], *, clip: float, noise_multiplier: float, rng: Randomness, divisor: float = 1.0
) -> dict[str, NDArray[np.float32]]:
    """Each entry plus noise of deviation `noise_multiplier` * `clip`, everything rounded to one public lattice.

    The result is given in single precision and over `divisor`: what is done to noisy sums is post-processing.
    """
    size = sum(array.size for array in sums.values())
    step = clip * LATTICE / sqrt(max(size, 1))
    deviation = noise_multiplier * clip * (1 + SLACK) / step
    drawn = rng.normals(size)
    noisy = {}
    at = 0
    for name in sorted(sums):
        exact = np.ascontiguousarray(sums[name])
        out = np.empty(exact.shape, dtype=np.float32)
        _add(exact.reshape(-1), drawn[at : at + exact.size], (step, deviation, divisor), out.reshape(-1))
        noisy[name] = out
        at += exact.size
    return noisy


@njit(cache=True)
def _add(exact: NDArray[Any], drawn: NDArray[np.float64], scales: tuple[float, float, float], out: NDArray[np.float32]) -> None:
    step, deviation, divisor = scales
    for k in range(exact.size):
        out[k] = (np.rint(exact[k] / step) + np.rint(drawn[k] * deviation)) * step / divisor
