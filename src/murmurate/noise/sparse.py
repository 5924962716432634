"""Add discrete Laplace or Gaussian noise to very many zeros, of which only those above a threshold are kept."""

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
    kept = _passing(n, math.exp(log_pass), rng)
    above = _geometric(rng.uniforms(len(kept)), -1 / scale)
    return kept, threshold + above.astype(np.int64)


def gaussian_survivors(n: int, *, scale: float, threshold: int, rng: Randomness) -> tuple[Integers, Integers]:
    """Draw which of `n` zeros reach `threshold` (at least 1) under noise of P(z) proportional to exp(-z^2/(2 scale^2)).

    Returns positions and noisy values, as `laplace_survivors` does. The tail is added up in double precision, term by term,
    so the chance to pass is off by a relative 1e-12 at most, and values come from 52-bit uniforms.

    >>> from murmurate.noise.stream import seeded
    >>> places, values = gaussian_survivors(10**9, scale=100.0, threshold=500, rng=seeded(1))
    >>> bool((values >= 500).all()), 200 < len(places) < 400
    (True, True)
    """
    positive("scale", scale, at_most=MAX_TAIL_SCALE)
    whole("threshold", threshold)
    whole("n", n, at_least=0)
    tail = np.exp(-((np.arange(threshold, threshold + math.ceil(TAIL_SCALES * scale)) / scale) ** 2) / 2)
    reached = np.cumsum(tail[::-1])[::-1]  # smallest terms first, so that none is lost
    # by Poisson's summation the sum over all integers is sqrt(2 pi) scale, up to a relative 2 exp(-2 pi^2 scale^2)
    kept = _passing(n, float(reached[0]) / (math.sqrt(2 * math.pi) * scale), rng)
    wanted = rng.uniforms(len(kept)) * reached[0]
    above = np.searchsorted(-reached, -wanted, side="right") - 1  # the last value that is reached with this chance
    return kept, threshold + above.astype(np.int64)


TAIL_SCALES = 40.0
"""Length of the tail that is added up, in scales; what lies beyond it has a chance below 1e-300."""

MAX_TAIL_SCALE = 2.0**20
"""Largest scale in steps, so that a tail has at most 42 million terms. Tables of few steps a count stay far below."""


def _passing(n: int, chance: float, rng: Randomness) -> Integers:
    """Draw which of `n` trials succeed, each with this chance, at the cost of those that do."""
    places: list[Integers] = []
    at = -1
    while chance > 0:
        expected = (n - 1 - at) * chance
        gaps = _geometric(rng.uniforms(int(expected + 6 * math.sqrt(expected) + 16)), math.log1p(-chance)) + 1
        found = at + np.cumsum(np.minimum(gaps, float(n) + 1))
        places.append(found[found < n].astype(np.int64))
        if found[-1] >= n:
            break
        at = int(found[-1])
    return np.concatenate([np.zeros(0, dtype=np.int64), *places])


def _geometric(uniforms: NDArray[np.float64], log_fail: float) -> NDArray[np.float64]:
    """Return failures before the first success, P(k or more) = exp(k * log_fail)."""
    return np.floor(np.log(uniforms) / log_fail)
