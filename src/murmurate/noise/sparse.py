"""Add discrete Laplace noise to very many zeros, of which only those above a threshold are kept."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from murmurate.core.parameters import positive, whole
from murmurate.core.space import Integers
from murmurate.noise.stream import Randomness


def laplace_survivors(n: int, *, scale: float, threshold: int, rng: Randomness) -> tuple[Integers, Integers]:
    """Draw which of `n` zeros reach `threshold` (at least 1) under noise of P(z) proportional to exp(-|z|/scale).

    Returns their positions and noisy values. The distribution is that of adding noise to every zero and keeping those at or
    above the threshold, at the cost of those kept: a zero passes
    with probability a^t / (1 + a), a = exp(-1/scale), so the gaps between passing ones are geometric, and what a passing
    one has above the threshold is geometric too. Geometric draws come from 52-bit uniforms, so probabilities of each kept
    one are off by at most 2^-52 in all: far in the tail that is more than the probability itself, so an exact epsilon holds
    up to a delta of 2^-52 for each.

    >>> from murmurate.noise.stream import seeded
    >>> places, values = laplace_survivors(10**12, scale=2.0, threshold=40, rng=seeded(1))
    >>> bool((values >= 40).all()), 500 < len(places) < 2000
    (True, True)
    """
    positive("scale", scale)
    whole("threshold", threshold)
    whole("n", n, at_least=0)
    log_pass = -threshold / scale - math.log1p(math.exp(-1 / scale))
    passing = math.exp(log_pass)
    places: list[Integers] = []
    at = -1
    while passing > 0:
        expected = (n - 1 - at) * passing
        gaps = _geometric(rng.uniforms(int(expected + 6 * math.sqrt(expected) + 16)), math.log1p(-passing)) + 1
        found = at + np.cumsum(np.minimum(gaps, float(n) + 1))
        places.append(found[found < n].astype(np.int64))
        if found[-1] >= n:
            break
        at = int(found[-1])
    kept = np.concatenate([np.zeros(0, dtype=np.int64), *places])
    above = _geometric(rng.uniforms(len(kept)), -1 / scale)
    return kept, threshold + above.astype(np.int64)


def _geometric(uniforms: NDArray[np.float64], log_fail: float) -> NDArray[np.float64]:
    """Return failures before the first success, P(k or more) = exp(k * log_fail)."""
    return np.floor(np.log(uniforms) / log_fail)
