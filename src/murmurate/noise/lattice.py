"""Planar Laplace noise on the integer lattice of a plane.

Noise and precision. The ideal noise has density epsilon^2/(2 pi) exp(-epsilon |z|): a uniform direction and a Gamma(2)
radius. A point (u, v) uniform in the unit disc gives both, because its direction and w = u^2 + v^2 are independent and
w is uniform: radius = -ln(w * u2)/epsilon. Adding ideal noise to a lattice point and rounding to the lattice is
post-processing of the ideal mechanism, so epsilon per step holds exactly for it. What the machine adds: u and v come
from 64-bit words, u2 from 64 bits and, in the 2^-30 of cases where it is small, from 128; a computed offset differs from
the ideal one by less than 2^-40 of its length outside an event of probability 2^-58 a point, which moves the border of
an output cell by less than 10^-6 of a step for lengths up to 10^6 steps and its probability by a factor within
1 ± 4 * 10^-6. The tail is not cut: the longest radius that can be drawn is beyond 120/epsilon, passed by the ideal
law with probability below 2^-160.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import positive
from murmurate.errors import ParameterError

if TYPE_CHECKING:
    from murmurate.noise.stream import Randomness

Integers = NDArray[np.int64]

WORDS_AT_ONCE = 1 << 17
"""One mebibyte of words: large enough to hide the call, small enough to stay in the cache."""

_COARSEST = 1e-9
"""Below this epsilon per step doubles would no longer resolve the lattice."""


def planar_laplace(x: Integers, y: Integers, *, epsilon_per_step: float, rng: Randomness) -> tuple[Integers, Integers]:
    """Lattice points plus planar Laplace noise, rounded to the lattice.

    Guarantee: each point alone is `epsilon_per_step` geo-indistinguishable per lattice step of Euclidean distance.

    >>> from murmurate.noise.stream import seeded
    >>> x, y = planar_laplace(np.array([0]), np.array([0]), epsilon_per_step=0.01, rng=seeded(1))
    >>> x.dtype, len(y)
    (dtype('int64'), 1)
    """
    positive("epsilon_per_step", epsilon_per_step)
    if epsilon_per_step < _COARSEST:
        raise ParameterError(f"epsilon_per_step must be at least {_COARSEST:g}; got {epsilon_per_step!r}.")
    x, y = np.ascontiguousarray(x, dtype=np.int64), np.ascontiguousarray(y, dtype=np.int64)
    if x.shape != y.shape or x.ndim != 1:
        raise ParameterError(f"x and y must be vectors of one length; got shapes {x.shape} and {y.shape}.")
    out_x, out_y = np.empty_like(x), np.empty_like(y)
    buffer = np.empty(WORDS_AT_ONCE, dtype=np.uint64)
    done = 0
    while done < x.size:
        words = buffer[: words_for(x.size - done, 3)]
        rng.fill(words)
        done = _planar(x, y, 1.0 / epsilon_per_step, words, out_x, out_y, done)
    return out_x, out_y


def words_for(points: int, each: int) -> int:
    """How many words to draw for so many points still to do; a disc attempt succeeds with probability pi/4."""
    return min(WORDS_AT_ONCE, int(points * each * 1.35) + 64 * each)


@njit(cache=True, nogil=True)
def signed_unit(word: np.uint64) -> float:
    """A number in [-1, 1] that keeps all 64 bits where it is small."""
    return np.float64(np.int64(word)) * 2.0**-63


@njit(cache=True, nogil=True)
def unit_of_128(word: np.uint64, more: np.uint64) -> float:
    """A number in (0, 1], fine also where it is small."""
    return (np.float64(word) + (np.float64(more) + 0.5) * 2.0**-64) * 2.0**-64


@njit(cache=True, nogil=True)
def _planar(x, y, scale, words, out_x, out_y, done):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    n = x.size
    at = 0
    last = words.size - 4
    while done < n and at <= last:
        u = signed_unit(words[at])
        v = signed_unit(words[at + 1])
        at += 2
        w = u * u + v * v
        if w >= 1.0 or w == 0.0:
            continue
        word = words[at]
        at += 1
        more = np.uint64(1) << np.uint64(63)
        if word < np.uint64(1) << np.uint64(34):
            more = words[at]
            at += 1
        factor = -scale * math.log(w * unit_of_128(word, more)) / math.sqrt(w)
        out_x[done] = x[done] + np.int64(np.rint(factor * u))
        out_y[done] = y[done] + np.int64(np.rint(factor * v))
        done += 1
    return done
