"""geoind: every point moves by Laplace noise of its own; geo-indistinguishability of points, trips, days or people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from murmurate.asking.bounding import units_of_trips
from murmurate.core.guarantee import GeoInd
from murmurate.core.mechanism import Rng
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.geoind_terms import KNOWN, WORD, GeoIndTerms
from murmurate.noise import geo_laplace, planar_laplace
from murmurate.spaces import Plane

_QUANTILE_95 = 4.743865
"""Noise scales within which a planar Laplace draw lies with probability 0.95: (1 + q) exp(-q) = 0.05."""

RETURNS = (
    "Which points of a unit lie at the same lattice place (the pattern of returns) is taken as known: the promise compares "
    "traces with the same pattern only."
)
"""The further assumption of `memo`, as guarantees state it."""


@dataclass(frozen=True, kw_only=True)
class GeoIndistinguishability(GeoIndTerms):
    """Moves every point by Laplace noise on the sphere (or on a plane), rounded to the public lattice.

    Guarantee: `epsilon` at `radius_m` for one point; `max_points` times that for a unit. A unit with more points is
    refused here and cut by `release()`. With `memo` a place drawn once is repeated at every return to it within the unit:
    that stops averaging, and protects only among traces with the same pattern of returns.

    >>> geoind = GeoIndistinguishability(epsilon=1.0, radius_m=200.0, max_points=50)
    >>> geoind.guarantee().epsilon_per_m
    0.25
    """

    name: ClassVar[str] = "geoind"
    example: ClassVar[Mapping[str, Any]] = {"epsilon": 1.0, "radius_m": 100.0, "max_points": 100}

    memo: bool = False
    """Repeat one draw at every return to a place within the unit."""

    def __post_init__(self) -> None:
        self._check_terms()
        if not isinstance(self.memo, bool):
            raise ParameterError(f"memo must be true or false; got {self.memo!r}.")
        if self.memo and self.unit == "point":
            raise ParameterError("memo repeats a place within a unit, so it needs unit trip, user_day or user, not point.")
        self.guarantee()  # numbers whose product overflows are refused now, not by `release()`

    # -- the promise -----------------------------------------------------------------------------------------------

    def guarantee(self) -> GeoInd:
        """Promise `max_points` draws of `epsilon / radius_m` each; one draw for a unit of one point."""
        per_unit = 1 if self.unit == "point" else self.max_points
        return GeoInd(
            epsilon_per_m=per_unit * self.epsilon / self.radius_m,
            unit=self._bounds(),
            metric=self._metric(),
            radius_m=self.radius_m,
            assumptions=(KNOWN, *((RETURNS,) if self.memo else ())),
            # with a memo, one place that moves can change many reports together with the pattern of returns
            point_epsilon_per_m=None if self.memo else self.epsilon / self.radius_m,
        )

    def statement(self) -> tuple[str, ...]:
        """Say what is and is not protected, in plain words."""
        per_metre = self.epsilon / self.radius_m
        sentences = [
            f"Every point was moved in a random direction by {2 * self.scale_m:,.4g} m on average.",
            f"One point costs epsilon {self.epsilon:g} at {self.radius_m:g} m ({per_metre:.4g} per metre), and costs add up: "
            f"n points of one trace cost n times as much.",
        ]
        if self.unit == "point":
            sentences.append(
                "The promise is about one point alone. The privacy loss of a trip or person with n points is n times as large."
            )
        else:
            sentences.append(
                f"At most {self.max_points:,} points of each {WORD[self.unit]} were read, which together cost epsilon "
                f"{self.max_points * self.epsilon:g} at {self.radius_m:g} m; this is what was charged."
            )
        sentences += self._other_units()
        if self.memo:
            sentences += [
                f"Returns to one place (the same lattice point) within a {WORD[self.unit]} repeat one draw, so that "
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
        return (*sentences, *self._open_ends())

    def expected_error(self) -> str:
        """Say how far a point moves."""
        mean, most = _metres(2 * self.scale_m), _metres(_QUANTILE_95 * self.scale_m)
        return f"Each point moves by {mean} on average and by less than {most} 19 times in 20."

    # -- what it does ----------------------------------------------------------------------------------------------

    def apply(self, private: Trips, rng: Rng) -> Trips:
        """Move every point; units beyond the bounds they were priced for are refused, never let through."""
        self._refuse_unbounded(private)
        x, y = self._snapped(private.lat, private.lng)
        if self.memo and private.n_points:
            x, y = self._one_name_each(x, y)
            units = np.repeat(units_of_trips(private, self._bounds()), np.diff(private.offsets))
            # one draw for each different (unit, place); `inverse` hands it to every point that stands there
            first, inverse = _distinct(units, x, y)
            moved = self._moved(x[first], y[first], rng)
            lat, lng = moved[0][inverse], moved[1][inverse]
        else:
            lat, lng = self._moved(x, y, rng)
        return self._released(private, lat, lng)

    def _one_name_each(self, x: Integers, y: Integers) -> tuple[Integers, Integers]:
        """Give each place one pair of coordinates: 180 degrees east is 180 west, and at a pole longitude means nothing."""
        if self.space is not None:
            return x, y
        return np.where(np.abs(y) == 90_000_000, 0, np.where(x == 180_000_000, -180_000_000, x)), y

    def _moved(self, x: Integers, y: Integers, rng: Rng) -> tuple[Floats, Floats]:
        """Return the degrees of the noisy lattice points."""
        if isinstance(self.space, Plane):
            return self._degrees(*planar_laplace(x, y, epsilon_per_step=self.space.step_m / self.scale_m, rng=rng))
        lat, lng = geo_laplace(y.astype(np.int32), x.astype(np.int32), epsilon_per_m=1 / self.scale_m, rng=rng)
        return self._degrees(lng.astype(np.int64), lat.astype(np.int64))


@njit(cache=True, nogil=True)
def _distinct(units: Integers, x: Integers, y: Integers) -> tuple[Integers, Integers]:
    """Find where each different (unit, x, y) stands first, and which of them every row is; by a table of open addresses."""
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


def _metres(value: float) -> str:
    """Return a distance in words: whole metres from 1,000 on."""
    return f"{value:,.0f} m" if value >= 1000 else f"{value:.4g} m"
