"""geoind: every point moves by Laplace noise of its own; geo-indistinguishability of points, trips, days or people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numba import njit

from murmurate.core.bounding import units_of_trips
from murmurate.core.guarantee import GeoInd, Unit, UnitName
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import one_of, positive, whole
from murmurate.core.space import Floats, Integers, Space
from murmurate.core.trips import Trips
from murmurate.errors import GuaranteeRefused, ParameterError
from murmurate.noise import geo_laplace, planar_laplace
from murmurate.spaces import Plane

_MICRO = 1e6
_NARROWEST_SCALE_STEPS = 1e9
_QUANTILE_95 = 4.743865


@dataclass(frozen=True, kw_only=True)
class GeoIndistinguishability:
    """Moves every point by Laplace noise on the sphere (or on a plane), rounded to the public lattice.

    Guarantee: `epsilon` at `radius_m` for one point; `max_points` times that for a unit. A unit with more points is
    refused here and cut by the door. With `memo` a place drawn once is repeated at every return to it within the unit:
    that stops averaging, and protects only among traces with the same pattern of returns.

    >>> geoind = GeoIndistinguishability(epsilon=1.0, radius_m=200.0, max_points=50)
    >>> geoind.guarantee().epsilon_per_m
    0.25
    """

    name: ClassVar[str] = "geoind"
    needs: ClassVar[frozenset[str]] = frozenset({"coordinates"})
    emits: ClassVar[tuple[str, ...]] = ("datetime", "weekday", "hour", "lat", "lng")
    """Carried columns (speed, altitude, cells, addresses) would tell the true place, so they stay behind."""
    paired: ClassVar[bool] = True
    local: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {"epsilon": 1.0, "radius_m": 100.0, "max_points": 100}

    epsilon: float
    """Spent by each point, at `radius_m`."""
    radius_m: float
    """The protection radius: two places this far apart are `epsilon` indistinguishable from one point."""
    max_points: int = 100
    """Points of a unit that are read, over all its trips; without meaning for unit point."""
    unit: UnitName = "trip"
    max_trips: int | None = None
    """Trips of a person (or of a day) that are read; None leaves the bound to `max_points`."""
    memo: bool = False
    space: Space | None = None
    """None: the public lattice of microdegrees. A `Plane`: its lattice, 0.1 m by default."""

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        positive("radius_m", self.radius_m, at_most=20_000_000)
        whole("max_points", self.max_points, at_most=10**9)
        one_of("unit", self.unit, ("point", "trip", "user_day", "user"))
        if not isinstance(self.memo, bool):
            raise ParameterError(f"memo must be true or false; got {self.memo!r}.")
        if self.memo and self.unit == "point":
            raise ParameterError("memo repeats a place within a unit, so it needs unit trip, user_day or user, not point.")
        if self.max_trips is not None:
            whole("max_trips", self.max_trips)
            if self.unit in ("point", "trip"):
                raise ParameterError(f"max_trips bounds the trips of a person or a day; unit {self.unit} has one trip at most.")
        if self.space is not None and not isinstance(self.space, Plane):
            raise ParameterError(
                f"geoind moves points on the microdegree lattice (no space) or on a plane (plane:LAT,LNG); got {self.space!r}."
            )
        if isinstance(self.space, Plane) and self.scale_m / self.space.step_m > _NARROWEST_SCALE_STEPS:
            raise ParameterError(f"radius_m / epsilon must be at most {_NARROWEST_SCALE_STEPS:g} steps of the plane's lattice.")
        self.guarantee()  # numbers whose product overflows are refused now, not at the door

    @property
    def scale_m(self) -> float:
        """Metres in which the noise density falls by a factor e; the mean displacement is twice this."""
        return self.radius_m / self.epsilon

    # -- the promise -----------------------------------------------------------------------------------------------

    def guarantee(self) -> GeoInd:
        """`max_points` draws of `epsilon / radius_m` each; one draw for a unit of one point."""
        per_unit = 1 if self.unit == "point" else self.max_points
        bounds = (
            Unit(name=self.unit)
            if self.unit == "point"
            else Unit(name=self.unit, max_trips=self.max_trips, max_points=per_unit)
        )
        where = (
            "great-circle metres between points snapped to the public microdegree lattice"
            if self.space is None
            else f"metres on the plane {self.space.spec()} between points snapped to its public lattice"
        )
        return GeoInd(
            epsilon_per_m=per_unit * self.epsilon / self.radius_m,
            unit=bounds,
            metric=where,
            radius_m=self.radius_m,
            assumptions=self._assumptions(),
        )

    def _assumptions(self) -> tuple[str, ...]:
        known: tuple[str, ...] = (
            "Times, the number of points and trips (up to the public bounds) and their order are taken as known to the reader.",
        )
        if self.memo:
            known += (
                "Which points of a unit lie at the same lattice place (the pattern of returns) is taken as known: the promise "
                "compares traces with the same pattern only.",
            )
        return known

    def statement(self) -> tuple[str, ...]:
        """What is and is not protected, in plain words."""
        per_metre = self.epsilon / self.radius_m
        sentences = [
            f"Every point was moved in a random direction by {2 * self.scale_m:,.4g} m on average.",
            f"One point costs epsilon {self.epsilon:g} at {self.radius_m:g} m ({per_metre:.4g} per metre), and costs add up: "
            f"n points of one trace cost n times as much.",
        ]
        if self.unit == "point":
            sentences.append(
                "The promise is about one point alone. A trip or a person with n points is protected n times less."
            )
        else:
            sentences.append(
                f"At most {self.max_points:,} points of each {_WORD[self.unit]} were read, which together cost epsilon "
                f"{self.max_points * self.epsilon:g} at {self.radius_m:g} m; this is what was charged."
            )
        if self.unit == "trip":
            sentences.append("A person with m trips in these data is protected m times less than one trip is.")
        if self.unit == "user_day":
            sentences.append("A person with m days in these data is protected m times less than one day is.")
        if self.memo:
            sentences += [
                f"Returns to one place (the same lattice point) within a {_WORD[self.unit]} repeat one draw, so that "
                "averaging them tells no more than one report does.",
                "Equal reports show that the true places were equal: the pattern of returns is not protected.",
            ]
            if self.unit != "trip":
                sentences.append(
                    "Equal reports in two trips show that both belong to one person, whatever their pseudonyms say."
                )
        else:
            sentences.append(
                "Many reports from one place can be averaged: 100 of them tell it ten times more precisely than one."
            )
        sentences += [
            "Exact times are not protected.",
            "The number of points is not protected"
            + ("." if self.unit == "point" else f" (up to {self.max_points:,}; what lies beyond was left out)."),
            "The order of points and trips is not protected, nor is the fact that somebody is in the data.",
        ]
        return tuple(sentences)

    def expected_error(self) -> str:
        """How far a point moves."""
        return (
            f"Each point moves by {2 * self.scale_m:,.4g} m on average and by less than {_QUANTILE_95 * self.scale_m:,.4g} m "
            "19 times in 20."
        )

    # -- what it does ----------------------------------------------------------------------------------------------

    def apply(self, private: Trips, rng: Rng) -> Trips:
        """The same points elsewhere; units beyond the bounds they were priced for are refused, never let through."""
        self._refuse_unbounded(private)
        x, y = self._snapped(private)
        if self.memo and private.n_points:
            x, y = self._one_name_each(x, y)
            units = np.repeat(units_of_trips(private, self.guarantee().unit), np.diff(private.offsets))
            # one draw for each different (unit, place); `inverse` hands it to every point that stands there
            first, inverse = _distinct(units, x, y)
            moved = self._moved(x[first], y[first], rng)
            lat, lng = moved[0][inverse], moved[1][inverse]
        else:
            lat, lng = self._moved(x, y, rng)
        kept = [name for name in ("uid", "tid", *self.emits) if name in private.columns]
        table = private.table.select(kept).with_columns(pl.Series("lat", lat), pl.Series("lng", lng))
        return Trips(table, time_zone=private.time_zone)

    def _refuse_unbounded(self, private: Trips) -> None:
        if self.unit == "point" or private.n_points == 0:
            return
        of_trips = units_of_trips(private, self.guarantee().unit)
        points = np.bincount(of_trips, weights=np.diff(private.offsets)).max()
        trips = np.bincount(of_trips).max()
        if points > self.max_points or (self.max_trips is not None and trips > self.max_trips):
            raise GuaranteeRefused(
                f"this guarantee was priced for at most {self.max_points:,} points"
                + ("" if self.max_trips is None else f" and {self.max_trips:,} trips")
                + f" of each {_WORD[self.unit]}, and a {_WORD[self.unit]} with more was handed in. "
                "Release through murmurate.release, which cuts to the bounds first."
            )

    def _snapped(self, private: Trips) -> tuple[Integers, Integers]:
        """Lattice coordinates: x east and y north on a plane; longitude and latitude in microdegrees else."""
        if isinstance(self.space, Plane):
            return self.space.snap(*self.space.to_xy(private.lat, private.lng))
        lng, lat = np.rint(private.lng * _MICRO), np.rint(private.lat * _MICRO)
        return lng.astype(np.int64), lat.astype(np.int64)

    def _one_name_each(self, x: Integers, y: Integers) -> tuple[Integers, Integers]:
        """One pair of coordinates for each place: 180 degrees east is 180 west, and at a pole longitude means nothing."""
        if self.space is not None:
            return x, y
        return np.where(np.abs(y) == 90_000_000, 0, np.where(x == 180_000_000, -180_000_000, x)), y

    def _moved(self, x: Integers, y: Integers, rng: Rng) -> tuple[Floats, Floats]:
        """Degrees of the noisy lattice points."""
        if isinstance(self.space, Plane):
            x, y = planar_laplace(x, y, epsilon_per_step=self.space.step_m / self.scale_m, rng=rng)
            return self.space.from_xy(*self.space.unsnap(x, y))
        lat, lng = geo_laplace(y.astype(np.int32), x.astype(np.int32), epsilon_per_m=1 / self.scale_m, rng=rng)
        return lat / _MICRO, lng / _MICRO


_WORD = {"point": "point", "trip": "trip", "user_day": "person's day", "user": "person"}


@njit(cache=True, nogil=True)
def _distinct(units: Integers, x: Integers, y: Integers) -> tuple[Integers, Integers]:
    """Where each different (unit, x, y) stands first, and which of them every row is; by a table of open addresses."""
    n = units.size
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    first, inverse = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    found = 0
    for i in range(n):
        # products wrap around; the upper bits are the mixed ones
        mixed = (units[i] * 0x1E3779B97F4A7C15) ^ (x[i] * 0x3F58476D1CE4E5B9) ^ (y[i] * 0x14D049BB133111EB)
        mixed = (mixed ^ (mixed >> 29)) * 0x2545F4914F6CDD1D
        at = (mixed >> 20) & (size - 1)
        while table[at] >= 0:
            row = first[table[at]]
            if units[row] == units[i] and x[row] == x[i] and y[row] == y[i]:
                break
            at = (at + 1) & (size - 1)
        if table[at] < 0:
            table[at] = found
            first[found] = i
            found += 1
        inverse[i] = table[at]
    return first[:found].copy(), inverse
