"""Add planar Laplace noise on the integer lattice of a plane.

Noise and precision. The ideal noise has density epsilon^2/(2 pi) exp(-epsilon |z|): a uniform direction and a Gamma(2)
radius. Adding it to a lattice point and rounding to the lattice is post-processing of the ideal mechanism, so epsilon
per step holds exactly for it. What the machine adds: numbers come from 64-bit words (128 bits where a small one decides
the radius), and a computed offset differs from the ideal one by less than 2^-36 of its length or of 1/epsilon, whichever
is greater, outside an event of probability 2^-50 a point. For 1/epsilon of 10 km on a lattice of 0.1 m the border of an
output cell moves by less than 10^-5 of a step, and its probability by a factor within 1 ± 4 * 10^-5. The tail is not cut:
the longest radius that can be drawn is beyond 120/epsilon, which the ideal radius passes with probability below 2^-160.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.parameters import positive
from murmurate.core.space import Integers
from murmurate.errors import ParameterError
from murmurate.noise.directions import Directions, nearest
from murmurate.noise.stream import Randomness

_COARSEST = 1e-9
"""Smallest epsilon per lattice step. Below it, double precision would no longer resolve the lattice."""


def planar_laplace(x: Integers, y: Integers, *, epsilon_per_step: float, rng: Randomness) -> tuple[Integers, Integers]:
    """Add planar Laplace noise to lattice points and round to the lattice.

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
    for values in (x, y):
        if values.size and not -(2**61) < int(values.min()) <= int(values.max()) < 2**61:
            raise ParameterError("lattice coordinates must stay within 2^61 steps so that noise cannot overflow them.")
    out_x, out_y = np.empty_like(x), np.empty_like(y)
    directions = Directions()
    done = 0
    while done < x.size:
        u, v, w, fraction, _ = directions.draw(x.size - done, rng)
        length = np.log(w * fraction) / (-epsilon_per_step * np.sqrt(w))
        part = slice(done, done + w.size)
        _add(x[part], length, u, out_x[part])
        _add(y[part], length, v, out_y[part])
        done += w.size
    return out_x, out_y


@njit(cache=True, nogil=True)
def _add(place, length, direction, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for i in range(place.size):
        out[i] = place[i] + np.int64(nearest(length[i] * direction[i]))
