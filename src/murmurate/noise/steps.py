"""Draw noise one step at a time, for adaptive mechanisms: a noisy threshold test, and Laplace steps on both lattices.

A mechanism whose next scale depends on its last result cannot draw in bulk. `Draws` prepares what does not depend on any scale
(words for tests; directions and unit radii) in blocks, and the kernels here finish one draw with the scale of the moment. The
distributions are those of `geo_laplace` and `planar_laplace`, with the same precision.

The test. `passes` draws whether a distance is at most a limit plus Laplace noise. With t = (distance - limit)/scale the
result is yes with probability exp(-t)/2 for t > 0 and 1 - exp(t)/2 else, so that is what is drawn, from one 64-bit word; no
noisy number is ever made, and nothing but the one bit leaves. t is first cut to +-20. Cutting is 1-Lipschitz, so the factor
exp(|t - t'|) holds for the cut test as it does for the ideal one, and since both results then have a probability of at least
10^-9, sixty-four bits hold each to a factor within 1 +- 10^-9. A distance computed to 1 mm adds 0.001/scale to the exponent.
"""

from __future__ import annotations

import math
import os
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import positive
from murmurate.core.space import Floats
from murmurate.errors import ParameterError
from murmurate.noise.directions import ATTEMPTS, Directions, nearest
from murmurate.noise.sphere import (
    HALF_TURN,
    PER_RADIAN,
    POLE,
    SERIES_LATITUDE,
    SERIES_RADIUS,
    UDEG,
    exact_offset,
    series_offset_at,
    sine,
)
from murmurate.noise.stream import Randomness
from murmurate.spaces.sphere import EARTH_RADIUS_M

WIDEST_SCALE_M = 1_000_000.0
"""Largest scale of a step on the sphere, in metres: with wider ones nearly every proposal would be rejected."""

_FARTHEST = 20.0
"""Bound on the excess of a threshold test, in noise scales: both results keep a probability of at least 10^-9."""


class Draws:
    """Holds blocks of scale-free randomness with counts of what is used; `ready` refills what a kernel has used up.

    `used` counts the test words and the directions that are gone; a kernel keeps it up to date. Blocks belong to one object in
    one process: a copy, a pickle or a forked child begins with empty ones, so that no noise is ever added twice.
    """

    def __init__(self, rng: Randomness, *, block: int = ATTEMPTS) -> None:
        self._rng, self._block = rng, block
        self._empty()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Draws, block=self._block), (self._rng,)

    def _empty(self) -> None:
        self._process = os.getpid()
        self._directions = Directions()
        self.words: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self.u = self.v = self.radius = self.other = np.empty(0)
        self.used = np.zeros(2, dtype=np.int64)

    def ready(self) -> None:
        """Replace the blocks that are used up; what remains of the others stays, unless it was drawn by another process."""
        if self._process != os.getpid():
            self._empty()
        if self.used[0] >= len(self.words):
            self.words, self.used[0] = self._rng.words(self._block), 0
        if self.used[1] >= len(self.u):
            u, v, w, fraction, other = self._directions.draw(self._block, self._rng)
            length = np.sqrt(w)
            self.u, self.v, self.other = u / length, v / length, other.copy()
            self.radius, self.used[1] = -np.log(w * fraction), 0


def within(distances: Floats, *, limit: float, scale: float, rng: Randomness) -> NDArray[np.bool_]:
    """Test whether each distance is at most the limit plus Laplace noise of its own.

    Guarantee: each result is 1/scale-indistinguishable per unit of distance.

    >>> from murmurate.noise.stream import seeded
    >>> within(np.array([0.0, 1e6]), limit=1e3, scale=10.0, rng=seeded(1)).tolist()
    [True, False]
    """
    positive("scale", scale)
    distances = np.ascontiguousarray(distances, dtype=np.float64)
    if distances.ndim != 1 or not math.isfinite(limit) or np.isnan(distances).any():
        raise ParameterError("within needs a vector of distances without NaN and a finite limit.")
    return np.asarray(_within(distances, float(limit), float(scale), rng.words(distances.size)))


@njit(cache=True, nogil=True, error_model="numpy")
def _within(distances, limit, scale, words):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    out = np.empty(distances.size, dtype=np.bool_)
    for i in range(distances.size):
        out[i] = passes(words[i], (distances[i] - limit) / scale)
    return out


@njit(cache=True, nogil=True, inline="always")
def passes(word, excess):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Draw whether an excess (distance - limit)/scale passes, from one random word."""
    share = np.float64(word) * 2.0**-64
    if excess > 0.0:
        return share < 0.5 * math.exp(-min(excess, _FARTHEST))
    return share >= 0.5 * math.exp(max(excess, -_FARTHEST))


@njit(cache=True, nogil=True, error_model="numpy")
def sines(lat_udeg):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return sine and cosine of latitudes in microdegrees, in bulk, for `step_on_sphere`."""
    out = np.empty((2, lat_udeg.size))
    for i in range(lat_udeg.size):
        one = sine(lat_udeg[i] * UDEG)
        out[0, i] = one
        out[1, i] = math.sqrt(max(1.0 - one * one, 0.0))
    return out


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def step_on_sphere(place, scale_m, north, east, radius, other):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, PLR0917
    """Make one proposal from a place (lng, lat, sine and cosine of lat): whether it is kept, and where it leads (lng, lat)."""
    lng, lat, sin_phi, cos_phi = place
    r = radius * scale_m * (1.0 / EARTH_RADIUS_M)
    # sin(r)/r > 1 - r^2/6, so the sine is needed for the few that this does not keep
    if other > 1.0 - r * r / 6.0 and not (r < math.pi and other * r <= math.sin(r)):
        return False, lng, lat
    if r < SERIES_RADIUS and abs(lat) <= SERIES_LATITUDE:
        up, right = series_offset_at(sin_phi, cos_phi, r, north, east)
    else:
        up, right = exact_offset(lat * UDEG, r, north, east)
    new_lat = min(max(lat + np.int64(nearest(up * PER_RADIAN)), -POLE), POLE)
    new_lng = lng + np.int64(nearest(right * PER_RADIAN))
    new_lng = new_lng - 2 * HALF_TURN if new_lng >= HALF_TURN else new_lng
    new_lng = new_lng + 2 * HALF_TURN if new_lng < -HALF_TURN else new_lng
    return True, new_lng, new_lat


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def step_on_plane(x, y, scale_steps, u, v, radius):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, PLR0917
    """Return where one draw leads from a lattice point of a plane."""
    length = radius * scale_steps
    return x + np.int64(nearest(length * u)), y + np.int64(nearest(length * v))
