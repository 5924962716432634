"""Add Laplace noise on the sphere, on the public lattice of microdegrees.

Noise and precision. The ideal output has density proportional to exp(-epsilon d) with respect to area on the sphere,
d being the great-circle distance. By symmetry its constant does not depend on where one stands, so the triangle
inequality alone gives epsilon per metre: no scale that depends on a private latitude enters. It is drawn as a uniform
azimuth and a radius of density sin(r) exp(-epsilon r): a Gamma(2) radius kept with probability sin(r)/r. The destination
is then rounded to microdegrees, which is post-processing. What the machine adds: numbers come from 64-bit words (128
bits where a small one decides the radius) and the destination of given numbers is computed to better than 10^-6 of a
lattice step. For 1/epsilon up to 10 km both together move the probability of an output cell by a factor within
1 ± 10^-4, outside an event of probability 2^-50 a point. The tail is not cut: every point of the sphere can be reached.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import positive
from murmurate.errors import ParameterError
from murmurate.noise.directions import Directions, nearest
from murmurate.noise.stream import Randomness
from murmurate.spaces.sphere import EARTH_RADIUS_M

Microdegrees = NDArray[np.int32]

UDEG = math.pi / 180e6
"""Radians in a microdegree."""

PER_RADIAN = 1.0 / UDEG
"""Microdegrees in a radian."""

POLE, HALF_TURN = 90_000_000, 180_000_000
"""Largest latitude and longitude, in microdegrees."""
SERIES_RADIUS, SERIES_LATITUDE = 0.01, 80_000_000
"""Series replace trigonometric functions below this arc in radians and up to this latitude in microdegrees: their
truncation error stays below 10^-6 of a lattice step there."""
_NEARLY_UNIFORM = 0.7
"""Below this epsilon per radian, proposals uniform on the sphere are accepted more often than Gamma(2) radii."""


def geo_laplace(
    lat_udeg: Microdegrees, lng_udeg: Microdegrees, *, epsilon_per_m: float, rng: Randomness
) -> tuple[Microdegrees, Microdegrees]:
    """Add Laplace noise on the sphere to points of the microdegree lattice and round to the lattice.

    Guarantee: each point alone is `epsilon_per_m` geo-indistinguishable per metre of great-circle distance.

    >>> from murmurate.noise.stream import seeded
    >>> lat, lng = geo_laplace(np.array([60_170_000]), np.array([24_940_000]), epsilon_per_m=0.01, rng=seeded(1))
    >>> abs(int(lat[0]) - 60_170_000) < 100_000
    True
    """
    positive("epsilon_per_m", epsilon_per_m)
    lat, lng = _checked(lat_udeg, POLE, "latitude"), _checked(lng_udeg, HALF_TURN, "longitude")
    if lat.shape != lng.shape:
        raise ParameterError(f"latitudes and longitudes must be as many; got {lat.size:,} and {lng.size:,}.")
    epsilon = epsilon_per_m * EARTH_RADIUS_M
    out_lat, out_lng = np.empty_like(lat), np.empty_like(lng)
    directions = Directions()
    done = 0
    while done < lat.size:
        u, v, w, fraction, other = directions.draw(lat.size - done, rng)
        if epsilon < _NEARLY_UNIFORM:
            r = 2.0 * np.arcsin(np.sqrt(fraction))
            keep = other <= np.exp(-epsilon * r)
        else:
            r = np.log(w * fraction) / -epsilon
            # sin(r)/r > 1 - r^2/6, so the sine is needed for the few that this does not keep
            keep = other <= 1.0 - r * r / 6.0
            doubtful = np.flatnonzero(~keep)
            keep[doubtful] = (r[doubtful] < math.pi) & (other[doubtful] * r[doubtful] <= np.sin(r[doubtful]))
        if not keep.all():
            u, v, w, r = u[keep], v[keep], w[keep], r[keep]
        part = slice(done, done + w.size)
        _move((lat[part], lng[part]), (u, v, w, r), (out_lat[part], out_lng[part]))
        done += w.size
    return out_lat, out_lng


def _checked(values: Microdegrees, bound: int, name: str) -> Microdegrees:
    array = np.ascontiguousarray(values)
    if array.dtype.kind != "i" or array.ndim != 1:
        raise ParameterError(f"{name}s must be a vector of integers; got {array.dtype} with {array.ndim} dimensions.")
    if array.size and (int(array.max()) > bound or int(array.min()) < -bound):
        raise ParameterError(f"{name}s must lie within {bound:,} microdegrees of zero.")
    return array.astype(np.int32, copy=False)


def _move(
    places: tuple[Microdegrees, Microdegrees],
    drawn: tuple[NDArray[np.float64], ...],
    out: tuple[Microdegrees, Microdegrees],
) -> None:
    """Write the destinations of one block; u and v are overwritten."""
    lat, lng = places
    u, v, w, r = drawn
    beyond = np.flatnonzero((r >= SERIES_RADIUS) | (np.abs(lat) > SERIES_LATITUDE))
    u_beyond, v_beyond = u[beyond], v[beyond]
    _north_east_by_series(lat, w, r, u, v)
    if beyond.size:
        u[beyond], v[beyond] = u_beyond, v_beyond
        _north_east_exactly(beyond, lat, w, r, u, v)
    _add_latitude(lat, u, out[0])
    _add_longitude(lng, v, out[1])


@njit(cache=True, nogil=True)
def _north_east_exactly(which, lat, w, r, u, v):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    for i in which:
        norm = 1.0 / math.sqrt(w[i])
        north, east = exact_offset(lat[i] * UDEG, r[i], u[i] * norm, v[i] * norm)
        u[i] = north * PER_RADIAN
        v[i] = east * PER_RADIAN


# The loops below are short and touch few arrays each: that lets the compiler vectorise them.


@njit(cache=True, nogil=True, error_model="numpy")
def _north_east_by_series(lat, w, r, u, v):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for i in range(lat.size):
        norm = 1.0 / math.sqrt(w[i])
        north, east = series_offset(lat[i] * UDEG, r[i], u[i] * norm, v[i] * norm)
        u[i] = north * PER_RADIAN
        v[i] = east * PER_RADIAN


@njit(cache=True, nogil=True)
def _add_latitude(lat, offset, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for i in range(lat.size):
        out[i] = np.int32(min(max(lat[i] + nearest(offset[i]), -POLE), POLE))


@njit(cache=True, nogil=True)
def _add_longitude(lng, offset, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add and wrap into -180 degrees up to but not including 180; the offset is half a turn at most."""
    for i in range(lng.size):
        moved = lng[i] + nearest(offset[i])
        moved = moved - 2.0 * HALF_TURN if moved >= HALF_TURN else moved
        out[i] = np.int32(moved + 2.0 * HALF_TURN if moved < -HALF_TURN else moved)


@njit(cache=True, nogil=True)
def exact_offset(phi, r, cos_azimuth, sin_azimuth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the change of latitude and longitude, in radians, after an arc of `r` radians; by the full formula."""
    a = math.sin(r) * cos_azimuth
    b = math.sin(r) * sin_azimuth
    x = math.cos(r) * math.cos(phi) - a * math.sin(phi)
    z = math.cos(r) * math.sin(phi) + a * math.cos(phi)
    return math.atan2(z, math.hypot(x, b)) - phi, math.atan2(b, x)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def series_offset(phi, r, cos_azimuth, sin_azimuth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the same within `SERIES_RADIUS` and `SERIES_LATITUDE`, without branches, so that it is vectorised."""
    sin_phi = sine(phi)
    return series_offset_at(sin_phi, math.sqrt(1.0 - sin_phi * sin_phi), r, cos_azimuth, sin_azimuth)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def series_offset_at(sin_phi, cos_phi, r, cos_azimuth, sin_azimuth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the same where sine and cosine of the latitude are known.

    In the plane of the meridian the point lies at angle psi = phi + atan(a/c). Leaving that plane by b turns the
    longitude by D with tan D = b/x and lowers the latitude: tan(phi2) = tan(psi) cos(D), so psi - phi2 is the arc tangent
    of z x m/(x^2 + z^2 (1 - m)) with m = 1 - cos(D).
    """
    r2 = r * r
    s = r * (1.0 - r2 * (1 / 6) * (1.0 - r2 * (1 / 20) * (1.0 - r2 * (1 / 42))))
    c = 1.0 - r2 * (1 / 2) * (1.0 - r2 * (1 / 12) * (1.0 - r2 * (1 / 30)))
    a = s * cos_azimuth
    b = s * sin_azimuth
    x = c * cos_phi - a * sin_phi
    z = c * sin_phi + a * cos_phi
    q = b / x
    turn = math.sqrt(1.0 + q * q)
    m = q * q / (turn * turn + turn)
    lowered = z * x * m / (x * x + z * z * (1.0 - m))
    return _small_atan(a / c) - _small_atan(lowered), _small_atan(q)


@njit(cache=True, nogil=True, inline="always")
def _small_atan(t):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    t2 = t * t
    return t * (1.0 - t2 * (1 / 3 - t2 * (1 / 5 - t2 * (1 / 7 - t2 * (1 / 9 - t2 * (1 / 11))))))


@njit(cache=True, nogil=True, inline="always")
def sine(t):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the sine by Taylor's series up to t^19: exact in doubles for |t| up to 1.4."""
    z = t * t
    p = 1.0 - z * (1 / 110) * (1.0 - z * (1 / 156) * (1.0 - z * (1 / 210) * (1.0 - z * (1 / 272) * (1.0 - z * (1 / 342)))))
    return t * (1.0 - z * (1 / 6) * (1.0 - z * (1 / 20) * (1.0 - z * (1 / 42) * (1.0 - z * (1 / 72) * p))))
