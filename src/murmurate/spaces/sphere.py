"""Great-circle distances on a sphere."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from murmurate.core.space import Floats

EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the Earth (IUGG); a great circle is within 0.6 % of the distance on the ellipsoid."""

METRES_PER_DEGREE = EARTH_RADIUS_M * math.pi / 180
"""Metres of a degree along a great circle of that sphere."""

METRES_PER_DEGREE_LAT = 40_007_862.917 / 360
"""Metres of a degree along a meridian of WGS84, on average from equator to pole; rows of grids are measured in it."""

METRES_PER_DEGREE_LNG = 40_075_016.686 / 360
"""Metres of a degree along the equator of WGS84; times the cosine of the latitude elsewhere. For columns of grids."""


def great_circle_m(lat: ArrayLike, lng: ArrayLike, other_lat: ArrayLike, other_lng: ArrayLike) -> Floats:
    """Return metres along the sphere, element by element (arrays broadcast).

    >>> round(float(great_circle_m(60.17, 24.94, 60.17, 24.95)))
    553
    """
    lat_1, lat_2 = np.radians(np.asarray(lat, dtype=np.float64)), np.radians(np.asarray(other_lat, dtype=np.float64))
    half_lng = np.radians(np.asarray(other_lng, dtype=np.float64) - np.asarray(lng, dtype=np.float64)) / 2
    chord = np.sin((lat_2 - lat_1) / 2) ** 2 + np.cos(lat_1) * np.cos(lat_2) * np.sin(half_lng) ** 2
    return np.asarray(2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(chord, 1.0))))


@njit(cache=True, inline="always")
def step_m(lat: float, lng: float, other_lat: float, other_lng: float) -> float:
    """Return one great-circle distance in metres, for kernels."""
    radians = math.pi / 180
    across = math.sin((other_lat - lat) * radians / 2)
    along = math.sin((other_lng - lng) * radians / 2)
    chord = across * across + math.cos(lat * radians) * math.cos(other_lat * radians) * along * along
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(chord, 1.0)))
