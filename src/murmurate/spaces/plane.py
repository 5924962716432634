"""Plane: metres on a public lattice around a public origin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from murmurate.core.parameters import positive, whole
from murmurate.core.space import Floats, Integers
from murmurate.errors import ParameterError
from murmurate.spaces.sphere import EARTH_RADIUS_M, great_circle_m

REACH_M = 2_000_000.0
"""Largest distance from the origin, in metres: beyond it distances on the plane are over 1.7 % too long."""

_HALF = 2**30
"""Lattice coordinates lie within +-2^30 steps, so that a pair packs into one non-negative int64."""


@dataclass(frozen=True)
class Plane:
    """Projects to an azimuthal equidistant plane around a public origin, x east and y north, with a lattice of `step_m`.

    Distances from the origin are exact; a distance d between points within r of it is never shorter on the plane than
    on the sphere, and longer by at most a factor (r/R) / sin(r/R): 1.00001 at 50 km, 1.0041 at 1,000 km. Plane and
    sphere map onto each other in closed form, so a lattice point survives conversion to degrees and back.

    >>> plane = Plane(60.17, 24.94)
    >>> x, y = plane.to_xy(60.18, 24.94)
    >>> round(float(x), 3), round(float(y), 3)
    (0.0, 1111.951)
    >>> steps = plane.snap(x, y)
    >>> int(steps[0]), int(steps[1])
    (0, 11120)
    """

    lat: float
    lng: float
    step_m: float = 0.1

    def __post_init__(self) -> None:
        for name, limit in (("lat", 90), ("lng", 180)):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not -limit <= value <= limit:  # NaN fails the comparison
                raise ParameterError(f"{name} of the origin must be a number from -{limit} to {limit}; got {value!r}.")
        positive("step_m", self.step_m, at_most=10_000)
        if REACH_M / self.step_m >= _HALF:
            raise ParameterError(f"step_m must be at least {REACH_M / _HALF:.4f} m; got {self.step_m!r}.")
        for name in ("lat", "lng", "step_m"):
            object.__setattr__(self, name, float(getattr(self, name)))

    # -- metres and degrees ----------------------------------------------------------------------------------------

    def to_xy(self, lat: ArrayLike, lng: ArrayLike) -> tuple[Floats, Floats]:
        """Return metres east and north of the origin; NaN beyond the plane's reach."""
        lat, lng = np.broadcast_arrays(np.asarray(lat, dtype=np.float64), np.asarray(lng, dtype=np.float64))
        x, y = _project(np.ravel(lat), np.ravel(lng), self.lat, self.lng)
        return x.reshape(lat.shape), y.reshape(lat.shape)

    def from_xy(self, x_m: ArrayLike, y_m: ArrayLike) -> tuple[Floats, Floats]:
        """Return degrees of places in metres; the exact inverse of `to_xy`, defined on the whole sphere."""
        x, y = np.broadcast_arrays(np.asarray(x_m, dtype=np.float64), np.asarray(y_m, dtype=np.float64))
        lat, lng = _unproject(np.ravel(x), np.ravel(y), self.lat, self.lng)
        return lat.reshape(x.shape), lng.reshape(x.shape)

    # -- the lattice -----------------------------------------------------------------------------------------------

    def snap(self, x_m: ArrayLike, y_m: ArrayLike) -> tuple[Integers, Integers]:
        """Return the nearest lattice point, in whole steps; refused beyond the plane's reach, where there is none."""
        x, y = np.asarray(x_m, dtype=np.float64), np.asarray(y_m, dtype=np.float64)
        if x.size and not (np.abs(x).max() <= REACH_M and np.abs(y).max() <= REACH_M):
            raise ParameterError(
                f"some points lie over {REACH_M / 1000:,.0f} km from the origin {self.lat:g}, {self.lng:g} of the plane; "
                "choose an origin near the data, or leave those points out (`locate` marks them -1)."
            )
        return np.rint(x / self.step_m).astype(np.int64), np.rint(y / self.step_m).astype(np.int64)

    def unsnap(self, x_steps: ArrayLike, y_steps: ArrayLike) -> tuple[Floats, Floats]:
        """Return metres of lattice points."""
        return np.asarray(x_steps) * self.step_m, np.asarray(y_steps) * self.step_m

    # -- the Space protocol; a place is a lattice point ------------------------------------------------------------

    def spec(self) -> str:
        """Return the words `--space` takes."""
        lat, lng, step = (repr(value).removesuffix(".0") for value in (self.lat, self.lng, self.step_m))
        return f"plane:{lat},{lng}" + ("" if self.step_m == 0.1 else f":{step}")

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Return the lattice point of each point as one id; -1 beyond the plane's reach."""
        x, y = self.to_xy(lat, lng)
        inside = np.isfinite(x)
        x_steps, y_steps = self.snap(np.where(inside, x, 0.0), np.where(inside, y, 0.0))
        return np.asarray(np.where(inside, self.pack(x_steps, y_steps), -1))

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Return latitude and longitude of each lattice point."""
        return self.from_xy(*self.unsnap(*self.unpack(place)))

    def distance(self, one: ArrayLike, other: ArrayLike) -> Floats:
        """Return great-circle metres between lattice points, element by element."""
        return great_circle_m(*self.centre(one), *self.centre(other))

    def neighbours(self, place: int, reach: int = 1) -> Integers:
        """Return the lattice points at most `reach` steps away east-west and north-south, itself included."""
        whole("reach", reach, at_least=0, at_most=1000)
        x, y = self.unpack(place)
        steps = np.arange(-reach, reach + 1, dtype=np.int64)
        return self.pack(x + np.tile(steps, len(steps)), y + np.repeat(steps, len(steps)))

    def pack(self, x_steps: ArrayLike, y_steps: ArrayLike) -> Integers:
        """Pack two lattice coordinates into one place id."""
        x, y = np.asarray(x_steps, dtype=np.int64), np.asarray(y_steps, dtype=np.int64)
        return np.asarray((y + _HALF) * (2 * _HALF) + (x + _HALF))

    def unpack(self, place: ArrayLike) -> tuple[Integers, Integers]:
        """Return the lattice coordinates of place ids."""
        places = np.asarray(place, dtype=np.int64)
        if places.size and places.min() < 0:
            raise ParameterError("a place of -1 is a point beyond the plane's reach: leave it out first.")
        y, x = np.divmod(places, 2 * _HALF)
        return np.asarray(x - _HALF), np.asarray(y - _HALF)

    def describe(self) -> str:
        """Describe the plane in a phrase for statements and reports."""
        return f"a plane of metres around {self.lat:g}, {self.lng:g}, on a lattice of {self.step_m:g} m"


@njit(cache=True, nogil=True)
def _project(lat: Floats, lng: Floats, origin_lat: float, origin_lng: float) -> tuple[Floats, Floats]:
    """Project degrees to metres around the origin; NaN beyond the reach."""
    x, y = np.empty(len(lat)), np.empty(len(lat))
    radians = math.pi / 180
    sin_0, cos_0 = math.sin(origin_lat * radians), math.cos(origin_lat * radians)
    for i in range(len(lat)):
        phi, turn = lat[i] * radians, (lng[i] - origin_lng) * radians
        sin_half, cos_phi = math.sin(turn / 2), math.cos(phi)
        # North of the origin's tangent, written without the cancellation of nearby points.
        north = math.sin((lat[i] - origin_lat) * radians) + 2 * sin_0 * cos_phi * sin_half * sin_half
        east = cos_phi * math.sin(turn)
        sine = math.hypot(east, north)
        angle = math.atan2(sine, sin_0 * math.sin(phi) + cos_0 * cos_phi * math.cos(turn))
        if angle * EARTH_RADIUS_M <= REACH_M:
            scale = EARTH_RADIUS_M * (angle / sine if sine > 0 else 1.0)
            x[i], y[i] = east * scale, north * scale
        else:  # also where a coordinate is not a number
            x[i], y[i] = np.nan, np.nan
    return x, y


@njit(cache=True, nogil=True)
def _unproject(x: Floats, y: Floats, origin_lat: float, origin_lng: float) -> tuple[Floats, Floats]:
    """Turn metres around the origin into degrees."""
    lat, lng = np.empty(len(x)), np.empty(len(x))
    radians = math.pi / 180
    sin_0, cos_0 = math.sin(origin_lat * radians), math.cos(origin_lat * radians)
    for i in range(len(x)):
        angle = math.hypot(x[i], y[i]) / EARTH_RADIUS_M
        scale = (math.sin(angle) / angle if angle > 0 else 1.0) / EARTH_RADIUS_M
        east, north, up = x[i] * scale, y[i] * scale, math.cos(angle)
        radial = up * cos_0 - north * sin_0
        lat[i] = math.atan2(up * sin_0 + north * cos_0, math.hypot(radial, east)) / radians
        turned = origin_lng + math.atan2(east, radial) / radians
        lng[i] = turned - 360 if turned > 180 else turned + 360 if turned < -180 else turned
    return lat, lng
