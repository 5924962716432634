"""The terms that geo-indistinguishable mechanisms share: what is priced, on which lattice, and what is free afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from numba import njit

from murmurate.asking.bounding import units_of_trips
from murmurate.core.guarantee import Unit, UnitName
from murmurate.core.parameters import one_of, positive, whole
from murmurate.core.space import Floats, Integers, Space
from murmurate.core.trips import Trips
from murmurate.errors import GuaranteeRefused, InputError, ParameterError
from murmurate.spaces import Plane, parse_specs

MICRO = 1e6
"""Microdegrees of a degree."""

MAX_SCALE_STEPS = 1e9
"""Largest noise scale on a plane, in lattice steps: draws of many scales still fit exact integers."""

FINEST_STEP_M = 0.1
"""Lattice step in metres that is always accepted: a plane's own default, so that snapping moves no place by a pace."""

WORD = {"point": "point", "trip": "trip", "user_day": "person's day", "user": "person"}
"""Units as sentences name them."""

WITHIN_ROADS_M = 1_000.0
"""Metres; a report farther than this from every road stays where it is. Set by hand."""

STRIDE = 4.0
"""Points from draw to draw for each square root of noise scale over step; chosen on the demo city at 15, 30 and 60 s."""
LEAST_STRIDE = 1.5
"""Strides below this draw every point instead: thinning out so little gains nothing."""

KNOWN = "Times, the number of points and trips (up to the public bounds) and their order are taken as known to the reader."
"""The assumption of all these mechanisms, as guarantees state it."""


@dataclass(frozen=True, kw_only=True)
class GeoIndTerms:
    """What is priced (epsilon at a radius, points of a unit), where (lattice), and the free options `smooth` and `roads`."""

    emits: ClassVar[tuple[str, ...]] = ("datetime", "weekday", "hour", "lat", "lng")
    """Carried columns (speed, altitude, cells, addresses) would tell the true place, so they stay behind."""
    paired: ClassVar[bool] = True
    local: ClassVar[bool] = True

    epsilon: float
    """Spent by each point, at `radius_m`."""
    radius_m: float
    """The protection radius: two places this far apart are `epsilon` indistinguishable from one point."""
    max_points: int = 100
    """Points of a unit that are read, over all its trips; without meaning for unit point."""
    unit: UnitName = "trip"
    """Whose places are protected together: point, trip, user_day or user."""
    max_trips: int | None = None
    """Trips of a person (or of a day) that are read; None leaves the bound to `max_points`."""
    space: Space | None = None
    """None: the public lattice of microdegrees. A `Plane`: its lattice, 0.1 m by default."""
    smooth: bool = False
    """Replace the noisy reports by the likeliest trace behind them: free, from public numbers alone."""
    speed_kmh: float = 30.0
    """A public guess of how fast people move in these data; it never touches the promise."""
    interval_s: float | None = None
    """Seconds between points; None takes the released times, which the promise counts as known."""
    roads: Space | None = None
    """A public road network whose nearest road every report is moved to, free as well."""

    def _check_terms(self) -> None:
        parse_specs(self)
        positive("epsilon", self.epsilon)
        positive("radius_m", self.radius_m, at_most=20_000_000)
        whole("max_points", self.max_points, at_most=10**9)
        one_of("unit", self.unit, WORD)
        if self.max_trips is not None:
            whole("max_trips", self.max_trips)
            if self.unit in ("point", "trip"):
                raise ParameterError(f"max_trips bounds the trips of a person or a day; unit {self.unit} has one trip at most.")
        if self.space is not None and not isinstance(self.space, Plane):
            raise ParameterError(
                "points move on the microdegree lattice (no space) or on a plane (plane:LAT,LNG); "
                f"got {self.space!r}. A road network goes into roads."
            )
        positive("radius_m / epsilon", self.scale_m, at_most=1e12)
        if isinstance(self.space, Plane) and self.space.step_m > max(FINEST_STEP_M, self.scale_m / 100):
            raise ParameterError(
                f"a lattice step of {self.space.step_m:g} m is coarse beside noise of {self.scale_m:g} m: places a metre apart "
                f"may snap a step apart. Use a plane with a step of at most {max(FINEST_STEP_M, self.scale_m / 100):g} m."
            )
        if isinstance(self.space, Plane) and self.scale_m / self.space.step_m > MAX_SCALE_STEPS:
            raise ParameterError(f"radius_m / epsilon must be at most {MAX_SCALE_STEPS:g} steps of the plane's lattice.")
        if not isinstance(self.smooth, bool):
            raise ParameterError(f"smooth must be true or false; got {self.smooth!r}.")
        positive("speed_kmh", self.speed_kmh, at_most=2_000)
        if self.interval_s is not None:
            positive("interval_s", self.interval_s, at_most=1e7)
        if self.roads is not None:
            from murmurate.spaces.road import RoadNetwork

            if not isinstance(self.roads, RoadNetwork):
                raise ParameterError(f"roads must be a road network (road:FILE); got {self.roads!r}.")

    @property
    def needs(self) -> frozenset[str]:
        """Return what trips must carry; smoothing needs the times of points, or their public interval."""
        timed = self.smooth and self.interval_s is None
        return frozenset({"coordinates", "time"} if timed else {"coordinates"})

    @property
    def scale_m(self) -> float:
        """Return metres in which the noise density of one point falls by a factor e; the mean displacement is twice this."""
        return self.radius_m / self.epsilon

    # -- words for promises ----------------------------------------------------------------------------------------

    def _bounds(self) -> Unit:
        if self.unit == "point":
            return Unit(name="point")
        return Unit(name=self.unit, max_trips=self.max_trips, max_points=self.max_points)

    def _metric(self) -> str:
        if self.space is None:
            return "great-circle metres between points snapped to the public microdegree lattice"
        return f"metres on the plane {self.space.spec()} between points snapped to its public lattice"

    def _other_units(self) -> list[str]:
        if self.unit == "trip":
            return ["The privacy loss of a person with m trips in these data is m times that of one trip."]
        if self.unit == "user_day":
            return ["The privacy loss of a person with m days in these data is m times that of one day."]
        return []

    def _open_ends(self) -> list[str]:
        most = "." if self.unit == "point" else f" (up to {self.max_points:,}; what lies beyond was left out)."
        done = []
        if self.smooth:
            done.append(f"Reports were smoothed with the public speed of {self.speed_kmh:g} km/h.")
        if self.roads is not None:
            done.append(f"Reports were moved to the nearest road of the public network {self.roads.spec()}.")
        if done:
            done.append("This happened after the noise and reads nothing but it, so it costs nothing and weakens nothing.")
        return [
            *done,
            "Exact times are not protected.",
            "The number of points is not protected" + most,
            "The order of points and trips is not protected, nor is the fact that somebody is in the data.",
        ]

    # -- in and out ------------------------------------------------------------------------------------------------

    def _refuse_unbounded(self, private: Trips) -> None:
        if self.unit == "point" or private.n_points == 0:
            return
        of_trips = units_of_trips(private, self._bounds())
        points = np.bincount(of_trips, weights=np.diff(private.offsets)).max()
        trips = np.bincount(of_trips).max()
        if points > self.max_points or (self.max_trips is not None and trips > self.max_trips):
            raise GuaranteeRefused(
                f"this guarantee was priced for at most {self.max_points:,} points"
                + ("" if self.max_trips is None else f" and {self.max_trips:,} trips")
                + f" of each {WORD[self.unit]}, and a {WORD[self.unit]} with more was handed in. "
                "Release through murmurate.release, which cuts to the bounds first."
            )

    def _snapped(self, lat: Floats, lng: Floats) -> tuple[Integers, Integers]:
        """Return the lattice coordinates: x east and y north on a plane; longitude and latitude in microdegrees else."""
        if isinstance(self.space, Plane):
            return self.space.snap(*self.space.to_xy(lat, lng))
        return _microdegrees(lng), _microdegrees(lat)

    def _degrees(self, x: Integers, y: Integers) -> tuple[Floats, Floats]:
        if isinstance(self.space, Plane):
            return self.space.from_xy(*self.space.unsnap(x, y))
        return np.asarray(y / MICRO), np.asarray(x / MICRO)

    def _seconds(self, private: Trips) -> Floats:
        """Return the seconds of each point from any zero: the released times, or the public interval."""
        if self.interval_s is not None:
            return np.asarray(np.arange(private.n_points) * float(self.interval_s), dtype=np.float64)
        if not private.has_time:
            raise InputError(
                "these trips have no times, so how far people move between points is unknown.",
                remedy="give the public seconds between points: interval_s.",
            )
        return np.asarray(private.time_us / 1e6, dtype=np.float64)

    def _steps_m(self, private: Trips) -> Floats:
        """Return the public metres a person moves from point to point, on average over each trip: speed x interval."""
        seconds = self._seconds(private)
        first, last = private.offsets[:-1], private.offsets[1:] - 1
        gaps = np.maximum(last - first, 1)
        return np.asarray((seconds[last] - seconds[first]) / gaps * (self.speed_kmh / 3.6))

    def _strides(self, steps_m: Floats) -> Floats:
        """Return the points from one draw to the next that err least, where people move so far between points.

        Noise falls as 1/stride and what is missed in between grows with the stride, so the best one grows as the root of
        noise scale over step; where noise is well below a step, every point is drawn.
        """
        strides = STRIDE * np.sqrt(self.scale_m / np.maximum(steps_m, 1.0))
        return np.asarray(np.where(strides < LEAST_STRIDE, 1.0, strides))

    def _released(self, private: Trips, lat: Floats, lng: Floats, scale_m: Floats | None = None) -> Trips:
        """Return times and noisy places after the free options; `scale_m` is the noise scale of each report."""
        lat, lng = self._tidied(private, lat, lng, scale_m)
        kept = [name for name in ("uid", "tid", *self.emits) if name in private.columns]
        table = private.table.select(kept).with_columns(pl.Series("lat", lat), pl.Series("lng", lng))
        if self.smooth or self.roads is not None:
            return Trips(table, time_zone=private.time_zone)
        return Trips._trusted(  # the rows of the input in their order, at places of the lattice
            table,
            space=None,
            time_zone=private.time_zone,
            source=None,
            offsets=private.offsets,
            user_offsets=private.user_offsets,
        )

    def _tidied(self, private: Trips, lat: Floats, lng: Floats, scale_m: Floats | None) -> tuple[Floats, Floats]:
        """Apply the free options; of `private` only offsets and times are read."""
        if self.smooth and private.n_points:
            from murmurate.mechanisms.smoothing import smooth

            scales = np.full(len(lat), self.scale_m) if scale_m is None else scale_m
            lat, lng = smooth(private.offsets, self._seconds(private), lat, lng, scales, speed_kmh=self.speed_kmh)
            lat, lng = np.rint(lat * MICRO) / MICRO, np.rint(lng * MICRO) / MICRO
        return self._on_roads(lat, lng)

    def _on_roads(self, lat: Floats, lng: Floats) -> tuple[Floats, Floats]:
        """Return the nearest point on a public road; a point far from all of them stays."""
        from murmurate.spaces.road import RoadNetwork
        from murmurate.spaces.road.geometry import points_along

        roads = self.roads
        if not isinstance(roads, RoadNetwork) or not len(lat):
            return lat, lng
        links, along_m, _ = roads.index.nearest(lat, lng, radius_m=WITHIN_ROADS_M)
        found = links >= 0
        share = np.clip(along_m[found] / np.maximum(roads.length_m[links[found]], 1e-9), 0.0, 1.0)
        moved = points_along(roads.shape_offsets, roads.shape_lat, roads.shape_lng, links[found], share)
        lat, lng = lat.copy(), lng.copy()
        lat[found], lng[found] = (np.rint(degrees * MICRO) / MICRO for degrees in moved)
        return lat, lng


def check_stride(stride: float | None) -> None:
    """Refuse a stride below one point."""
    if stride is not None:
        positive("stride", stride)
        if stride < 1:
            raise ParameterError(f"stride must be at least 1 point; got {stride!r}.")


def decisions_for(points: Floats, strides: Floats) -> Floats:
    """Return how many points of a trace are drawn at such a stride: its ends, and evenly between them."""
    return np.asarray(np.clip(np.rint((points - 1) / strides) + 1, np.minimum(2, points), points))


@njit(cache=True, nogil=True)
def _microdegrees(degrees: Floats) -> Integers:
    """Return the nearest lattice numbers, in one pass."""
    whole = np.empty(len(degrees), np.int64)
    for k in range(len(degrees)):
        whole[k] = np.int64(np.rint(degrees[k] * 1e6))
    return whole
