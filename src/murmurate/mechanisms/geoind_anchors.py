"""geoind_anchors: few well-paid points, and the likeliest trace through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from murmurate.core.guarantee import GeoInd
from murmurate.core.mechanism import Rng
from murmurate.core.space import Floats
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.geoind_predictive import PredictiveGeoIndistinguishability
from murmurate.mechanisms.geoind_predictive.budgets import GRAINS
from murmurate.mechanisms.geoind_terms import KNOWN, MICRO, WORD, GeoIndTerms, check_stride, decisions_for


@dataclass(frozen=True, kw_only=True)
class AnchoredGeoIndistinguishability(GeoIndTerms):
    """Adds noise to every j-th point with j times the budget, and smooths and interpolates in between, which is free.

    Guarantee: `max_points * epsilon / radius_m` per metre for a unit, as for geoind: a trace of n points spends n times
    epsilon, on fewer points. How few follows from public numbers: the noise scale against speed x interval.

    >>> anchors = AnchoredGeoIndistinguishability(epsilon=1.0, radius_m=200.0, max_points=50)
    >>> anchors.guarantee().epsilon_per_m
    0.25
    """

    name: ClassVar[str] = "geoind_anchors"
    example: ClassVar[Mapping[str, Any]] = {"epsilon": 1.0, "radius_m": 300.0, "max_points": 100}

    stride: float | None = None
    """Points from anchor to anchor; None: from public numbers, 1 where noise is much smaller than a step."""
    smooth: bool = True

    def __post_init__(self) -> None:
        self._check_terms()
        check_stride(self.stride)
        if self.unit == "point":
            raise ParameterError("anchors share the budget of a whole trace: unit must be trip, user_day or user, not point.")
        self._draws()  # the same bounds on scale and points hold
        self.guarantee()

    def _draws(self) -> PredictiveGeoIndistinguishability:
        """Return the mechanism that draws: predictive without a single test."""
        return PredictiveGeoIndistinguishability(
            epsilon=self.epsilon,
            radius_m=self.radius_m,
            max_points=self.max_points,
            unit=self.unit,
            max_trips=self.max_trips,
            space=self.space,
        )

    def strides(self, steps_m: Floats) -> Floats:
        """Return the points from anchor to anchor where people move so far between points."""
        if self.stride is not None:
            return np.full(len(steps_m), float(self.stride))
        return self._strides(steps_m)

    # -- the promise -----------------------------------------------------------------------------------------------

    def guarantee(self) -> GeoInd:
        """Promise what geoind does for as many points; the budget is spent on fewer of them."""
        return GeoInd(
            epsilon_per_m=self.max_points * self.epsilon / self.radius_m,
            unit=self._bounds(),
            metric=self._metric(),
            radius_m=self.radius_m,
            assumptions=(KNOWN,),
        )

    def statement(self) -> tuple[str, ...]:
        """Say what is and is not protected, in plain words."""
        return (
            "Some points of each trip, chosen by their number alone, were moved by noise; the others were filled in between "
            "these noisy points without being read.",
            f"A trip of n points costs n times epsilon {self.epsilon:g} at {self.radius_m:g} m, shared by the points that were "
            "read: each of them costs several times epsilon, those in between nothing.",
            f"At most {self.max_points:,} points of each {WORD[self.unit]} are paid for, which together cost epsilon "
            f"{self.max_points * self.epsilon:g} at {self.radius_m:g} m; this is what was charged.",
            *self._other_units(),
            *self._open_ends(),
        )

    def expected_error(self) -> str:
        """Say how far an anchor lies from its place."""
        if self.stride is None and self.interval_s is None:
            return (
                f"A report lies up to {2 * self.scale_m:,.4g} m off on average where every point is drawn, and less the fewer "
                "are; give interval_s to see how many."
            )
        step_m = np.array([(self.interval_s or 0.0) * self.speed_kmh / 3.6])
        drawn = float(decisions_for(np.array([float(self.max_points)]), self.strides(step_m))[0])
        scale_m = self.scale_m * drawn / self.max_points
        return (
            f"About every {self.max_points / drawn:.3g} points one is drawn, {2 * scale_m:,.4g} m "
            "off on average before smoothing."
        )

    # -- what it does ----------------------------------------------------------------------------------------------

    def apply(self, private: Trips, rng: Rng) -> Trips:
        """Draw anchors with noise and fill in what lies between them; units beyond their bounds are refused."""
        self._refuse_unbounded(private)
        points = np.diff(private.offsets).astype(np.float64)
        steps_m = self._steps_m(private) if self.stride is None else np.zeros(len(points))
        plan = points * GRAINS, decisions_for(points, self.strides(steps_m)), np.zeros(len(points), dtype=bool)
        x, y, scale_m, _ = self._draws().run_planned(private, plan, rng)
        lat, lng = self._degrees(x, y)
        if not self.smooth and len(lat):
            lat, lng = _between(lat, lng, np.flatnonzero(np.isfinite(scale_m)))
        return self._released(private, lat, lng, scale_m)


def _between(lat: Floats, lng: Floats, anchors: np.ndarray[Any, np.dtype[np.intp]]) -> tuple[Floats, Floats]:
    """Draw straight lines from anchor to anchor; every trip begins and ends with one."""
    at = np.arange(len(lat))
    unrolled = np.unwrap(lng[anchors], period=360.0)
    between_lng = (np.interp(at, anchors, unrolled) + 180.0) % 360.0 - 180.0
    return np.rint(np.interp(at, anchors, lat[anchors]) * MICRO) / MICRO, np.rint(between_lng * MICRO) / MICRO
