"""Make Tony-900: skaters leave the middle of a car park of 900 m radius in straight lines, as in the thesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from murmurate.core.parameters import whole
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.demo.draws import SKATERS, uniforms
from murmurate.spaces.plane import Plane

CAR_PARK = Plane(44.0, -30.0)
"""Public origin, at sea like the city."""
RADIUS_M, INTERVAL_S, STEP_M = 900.0, 15, 75.0
"""Radius of the car park, seconds between points, and metres skated in them at 5 m/s; from the thesis."""
START_US = 1_746_403_200_000_000
"""Time at which all leave, in microseconds since 1970: 2025-05-05 00:00 UTC."""


@dataclass(frozen=True, eq=False)
class Skaters:
    """Traces in exact metres: skater k is points offsets[k]:offsets[k + 1]."""

    offsets: Integers
    x_m: Floats
    y_m: Floats


def skate(*, skaters: int = 1000, seed: int = 1) -> Skaters:
    """Return the positions of `skaters` every 15 s while nearer than 900 m to the start, and the first that is not.

    Positions are added up step by step in floating point, so after twelve steps of 75 m some skaters stand a rounding
    error short of 900 m and get a fourteenth point; the published figures need exactly this.
    """
    whole("skaters", skaters, at_most=10_000_000)
    whole("seed", seed, at_least=0, at_most=2**53)
    angle = uniforms(seed, SKATERS, 0, skaters) * 2 * np.pi
    step_x, step_y = STEP_M * np.cos(angle), STEP_M * np.sin(angle)
    # Thirteen steps make 975 m: nobody needs a fourteenth.
    x, y = np.zeros((skaters, 14)), np.zeros((skaters, 14))
    for step in range(1, 14):
        x[:, step], y[:, step] = x[:, step - 1] + step_x, y[:, step - 1] + step_y
    inside = np.sqrt(x**2 + y**2) < RADIUS_M
    recorded = np.column_stack([np.ones(skaters, dtype=bool), inside[:, :-1]])
    offsets = np.r_[0, np.cumsum(recorded.sum(axis=1))].astype(np.int64)
    return Skaters(offsets, x[recorded], y[recorded])


def tony900(*, skaters: int = 1000, seed: int = 1) -> Trips:
    """Make Tony-900 with this many `skaters` as trips in degrees; `trips.space` gives the exact metres back.

    >>> trips = tony900(skaters=50)
    >>> trips.n_trips, sorted({int(n) for n in np.diff(trips.offsets)})
    (50, [13, 14])
    """
    traces = skate(skaters=skaters, seed=seed)
    sizes = np.diff(traces.offsets)
    skater = np.repeat(np.arange(skaters), sizes)
    step = np.arange(len(skater)) - np.repeat(traces.offsets[:-1], sizes)
    lat, lng = CAR_PARK.from_xy(traces.x_m, traces.y_m)
    when = pl.Series("datetime", START_US + step * INTERVAL_S * 1_000_000).cast(pl.Datetime("us", "UTC"))
    return Trips(pl.DataFrame({"uid": skater, "tid": skater, "datetime": when, "lat": lat, "lng": lng}), CAR_PARK)
