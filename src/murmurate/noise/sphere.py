"""Laplace noise on the sphere, on the public lattice of microdegrees."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import positive
from murmurate.errors import ParameterError
from murmurate.noise.lattice import WORDS_AT_ONCE, signed_unit, unit_of_128, words_for

if TYPE_CHECKING:
    from murmurate.noise.stream import Randomness

Microdegrees = NDArray[np.int32]

EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the Earth: the sphere on which distances are measured."""

_UDEG_PER_RADIAN = 180e6 / math.pi
_QUARTER = 90_000_000
_TURN = 360_000_000
_SERIES_RADIUS = 0.01
_SERIES_LATITUDE = 80_000_000
_FLAT_PROPOSAL = 0.7
"""Below this epsilon per radian the law is nearly uniform on the sphere, so uniform proposals are accepted more often."""


def geo_laplace(
    lat_udeg: Microdegrees, lng_udeg: Microdegrees, *, epsilon_per_m: float, rng: Randomness
) -> tuple[Microdegrees, Microdegrees]:
    """Points of the microdegree lattice plus Laplace noise on the sphere, rounded to the lattice.

    Guarantee: each point alone is `epsilon_per_m` geo-indistinguishable per metre of great-circle distance.

    >>> from murmurate.noise.stream import seeded
    >>> lat, lng = geo_laplace(np.array([60_170_000]), np.array([24_940_000]), epsilon_per_m=0.01, rng=seeded(1))
    >>> abs(int(lat[0]) - 60_170_000) < 100_000
    True
    """
    positive("epsilon_per_m", epsilon_per_m)
    lat, lng = np.ascontiguousarray(lat_udeg, dtype=np.int32), np.ascontiguousarray(lng_udeg, dtype=np.int32)
    if lat.shape != lng.shape or lat.ndim != 1:
        raise ParameterError(f"latitudes and longitudes must be vectors of one length; got {lat.shape} and {lng.shape}.")
    if lat.size and (np.abs(lat).max() > _QUARTER or np.abs(lng).max() > _TURN // 2):
        raise ParameterError("latitudes must lie within 90 and longitudes within 180 million microdegrees.")
    out_lat, out_lng = np.empty_like(lat), np.empty_like(lng)
    buffer = np.empty(WORDS_AT_ONCE, dtype=np.uint64)
    done = 0
    while done < lat.size:
        words = buffer[: words_for(lat.size - done, 4)]
        rng.fill(words)
        done = _sphere(lat, lng, epsilon_per_m * EARTH_RADIUS_M, words, out_lat, out_lng, done)
    return out_lat, out_lng


@njit(cache=True, nogil=True)
def _sphere(lat, lng, epsilon, words, out_lat, out_lng, done):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    n = lat.size
    at = 0
    last = words.size - 5
    while done < n and at <= last:
        u = signed_unit(words[at])
        v = signed_unit(words[at + 1])
        at += 2
        w = u * u + v * v
        if w >= 1.0 or w == 0.0:
            continue
        accept = unit_of_128(words[at], np.uint64(0))
        word = words[at + 1]
        at += 2
        more = np.uint64(1) << np.uint64(63)
        if word < np.uint64(1) << np.uint64(34):
            more = words[at]
            at += 1
        if epsilon < _FLAT_PROPOSAL:
            r = 2.0 * math.asin(math.sqrt(unit_of_128(word, more)))
            if accept > math.exp(-epsilon * r):
                continue
        else:
            r = -math.log(w * unit_of_128(word, more)) / epsilon
            if r >= math.pi or accept * r > math.sin(r):
                continue
        norm = 1.0 / math.sqrt(w)
        if r < _SERIES_RADIUS and abs(lat[done]) <= _SERIES_LATITUDE:
            north, east = series_offset(lat[done] / _UDEG_PER_RADIAN, r, u * norm, v * norm)
        else:
            north, east = exact_offset(lat[done] / _UDEG_PER_RADIAN, r, u * norm, v * norm)
        new_lat = lat[done] + np.int64(np.rint(north * _UDEG_PER_RADIAN))
        new_lng = lng[done] + np.int64(np.rint(east * _UDEG_PER_RADIAN))
        out_lat[done] = min(max(new_lat, -_QUARTER), _QUARTER)
        out_lng[done] = (new_lng + _TURN // 2) % _TURN - _TURN // 2
        done += 1
    return done


@njit(cache=True, nogil=True)
def exact_offset(phi, r, cos_azimuth, sin_azimuth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Change of latitude and longitude, in radians, after an arc of `r` radians; by the full formula."""
    a = math.sin(r) * cos_azimuth
    b = math.sin(r) * sin_azimuth
    x = math.cos(r) * math.cos(phi) - a * math.sin(phi)
    z = math.cos(r) * math.sin(phi) + a * math.cos(phi)
    return math.atan2(z, math.hypot(x, b)) - phi, math.atan2(b, x)


@njit(cache=True, nogil=True)
def series_offset(phi, r, cos_azimuth, sin_azimuth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """The same for r < 0.01 and latitudes within 80 degrees, without inverse functions.

    In the plane of the meridian the point lies at angle psi = phi + atan(a/c). Leaving that plane by b turns the
    longitude by D with tan D = b/x and lowers the latitude: tan(phi2) = tan(psi) cos(D), so psi - phi2 is the arc tangent
    of z x m/(x^2 + z^2 (1 - m)) with m = 1 - cos(D).
    """
    r2 = r * r
    s = r * (1.0 - r2 / 6.0 * (1.0 - r2 / 20.0 * (1.0 - r2 / 42.0)))
    c = 1.0 - r2 / 2.0 * (1.0 - r2 / 12.0 * (1.0 - r2 / 30.0))
    a = s * cos_azimuth
    b = s * sin_azimuth
    cos_phi = math.cos(phi)
    sin_phi = math.sin(phi)
    x = c * cos_phi - a * sin_phi
    z = c * sin_phi + a * cos_phi
    q = b / x
    q2 = q * q
    turn = math.sqrt(1.0 + q2)
    m = q2 / (turn * turn + turn)
    lowered = z * x * m / (x * x + z * z * (1.0 - m))
    return _small_atan(a / c) - _small_atan(lowered), _small_atan(q)


@njit(cache=True, nogil=True)
def _small_atan(t):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    t2 = t * t
    return t * (1.0 - t2 * (1 / 3 - t2 * (1 / 5 - t2 * (1 / 7 - t2 * (1 / 9 - t2 / 11)))))
