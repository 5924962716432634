"""Metres between points and along polylines, on the sphere."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from murmurate.core.space import Floats, Integers

EARTH_M = 6_371_008.8
METRES_PER_DEGREE = EARTH_M * np.pi / 180.0


def metres_between(lat: ArrayLike, lng: ArrayLike, other_lat: ArrayLike, other_lng: ArrayLike) -> Floats:
    """Great-circle metres, element by element.

    >>> round(float(metres_between(60.0, 24.0, 60.0, 24.001)), 1)
    55.6
    """
    lat_1, lng_1, lat_2, lng_2 = (np.radians(np.asarray(part, dtype=np.float64)) for part in (lat, lng, other_lat, other_lng))
    chord = np.sin((lat_2 - lat_1) / 2) ** 2 + np.cos(lat_1) * np.cos(lat_2) * np.sin((lng_2 - lng_1) / 2) ** 2
    return np.asarray(2 * EARTH_M * np.arcsin(np.sqrt(np.minimum(1.0, chord))), dtype=np.float64)


def polyline_lengths(offsets: Integers, lat: Floats, lng: Floats) -> Floats:
    """Metres along each polyline; polyline k is vertices offsets[k]:offsets[k + 1]."""
    if len(lat) == 0:
        return np.zeros(len(offsets) - 1)
    steps = np.zeros(len(lat))
    steps[1:] = metres_between(lat[:-1], lng[:-1], lat[1:], lng[1:])
    steps[offsets[:-1]] = 0.0  # the jump from one polyline to the next is no road
    along = np.cumsum(steps)
    return np.asarray(along[offsets[1:] - 1] - along[offsets[:-1]], dtype=np.float64)


@njit(cache=True, nogil=True)  # type: ignore[misc]
def straight_m(lat: float, lng: float, other_lat: float, other_lng: float) -> float:
    """Metres between two near points: a flat earth at their mean latitude, exact to 1e-5 within 50 km."""
    scale = np.cos(np.radians((lat + other_lat) * 0.5))
    dx = (other_lng - lng) * scale
    dy = other_lat - lat
    return np.sqrt(dx * dx + dy * dy) * METRES_PER_DEGREE  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)  # type: ignore[misc]
def points_along(
    offsets: Integers, lat: Floats, lng: Floats, links: Integers, share: Floats
) -> tuple[Floats, Floats]:
    """The point a share (0 to 1) of the way along each of these polylines."""
    out_lat = np.empty(len(links))
    out_lng = np.empty(len(links))
    for k in range(len(links)):
        first, last = offsets[links[k]], offsets[links[k] + 1] - 1
        total = 0.0
        for i in range(first, last):
            total += straight_m(lat[i], lng[i], lat[i + 1], lng[i + 1])
        left = total * share[k]
        out_lat[k], out_lng[k] = lat[last], lng[last]
        for i in range(first, last):
            step = straight_m(lat[i], lng[i], lat[i + 1], lng[i + 1])
            if step > 0.0 and left <= step:
                out_lat[k] = lat[i] + (lat[i + 1] - lat[i]) * left / step
                out_lng[k] = lng[i] + (lng[i + 1] - lng[i]) * left / step
                break
            left -= step
    return out_lat, out_lng
