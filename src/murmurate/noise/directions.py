"""Draw random directions, each with an independent uniform number: the step that plane and sphere noise share.

A point (u, v) uniform in the unit disc has a uniform direction, and w = u^2 + v^2 is uniform and independent of it. So one
accepted point gives the direction and half of a Gamma(2) radius, -ln(w * fraction)/epsilon, without any angle function.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats
from murmurate.noise.stream import Randomness

ATTEMPTS = 8192
"""Attempts per block. Set by hand so that their arrays stay in the second-level cache."""

_WORDS_EACH = 4
"""Random words per attempt: two coordinates, the fraction of the radius, and the further uniform number."""

_SPARE = 16
"""Spare words per block for fractions below `_SMALL`. A block needs 0.008 of them on average."""

_SMALL = np.uint64(1 << 44)
"""Words below this (one in a million) get 64 further bits, because the longest radii come from them."""


class Directions:
    """Draws blocks of accepted attempts into buffers that are reused."""

    def __init__(self) -> None:
        self._words = np.empty(ATTEMPTS * _WORDS_EACH + _SPARE, dtype=np.uint64)
        self._u, self._v, self._w, self._fraction, self._other = np.empty((5, ATTEMPTS))

    def draw(self, points: int, rng: Randomness) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return up to `points` attempts: u, v, w, a uniform fraction in (0, 1) and another one in [0, 1]."""
        attempts = min(ATTEMPTS, points + points // 3 + 16)  # an attempt succeeds with probability pi/4
        words = self._words[: attempts * _WORDS_EACH + _SPARE]
        rng.fill(words)
        kept = _accepted(words, self._u, self._v, self._w, self._fraction, self._other)
        n = min(kept, points)
        return self._u[:n], self._v[:n], self._w[:n], self._fraction[:n], self._other[:n]


@njit(cache=True, nogil=True)
def _accepted(words, u, v, w, fraction, other):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    spare = words.size - _SPARE
    kept = 0
    for at in range(0, words.size - _SPARE, _WORDS_EACH):
        one = np.float64(np.int64(words[at])) * 2.0**-63
        two = np.float64(np.int64(words[at + 1])) * 2.0**-63
        square = one * one + two * two
        third = words[at + 2]
        part = (np.float64(third) + 0.5) * 2.0**-64
        if third < _SMALL:
            # once in a million: 64 bits are coarse so near to zero, where the longest radii come from, so take 64 more
            if spare == words.size:
                break
            part = (np.float64(third) + (np.float64(words[spare]) + 0.5) * 2.0**-64) * 2.0**-64
            spare += 1
        u[kept] = one
        v[kept] = two
        w[kept] = square
        fraction[kept] = part
        other[kept] = np.float64(words[at + 3]) * 2.0**-64
        kept += 1 if 0.0 < square < 1.0 else 0  # no jump: a wrong guess would cost more than the attempt
    return kept


@njit(cache=True, nogil=True)
def nearest(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Round to the nearest whole number, for sizes below 2^51; unlike a call of rint it is vectorised."""
    return (value + 1.5 * 2.0**52) - 1.5 * 2.0**52
