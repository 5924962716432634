"""Record journeys as a receiver does: a point every so many seconds, with noise, gaps and outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from murmurate.core.parameters import positive, whole
from murmurate.core.space import Floats, Integers
from murmurate.demo.draws import TRACKERS, bell, stream, uniform
from murmurate.demo.journeys import Journeys
from murmurate.demo.network import StreetMap
from murmurate.errors import ParameterError

NOISE_MEMORY_S = 40.0
"""Correlation time of receiver errors, in seconds: they are a first-order autoregressive process. Set by hand."""


@dataclass(frozen=True, kw_only=True)
class Tracker:
    """Properties of the receivers that record the city."""

    interval_s: int = 15
    noise_m: float = 5.0
    """Standard deviation east-west and north-south."""
    gap_share: float = 0.004
    """Probability per point that the recording pauses for two to twelve points."""
    outlier_share: float = 0.001
    """Probability that a point lies 100 to 700 m off."""

    def __post_init__(self) -> None:
        whole("interval_s", self.interval_s, at_most=3600)
        if self.noise_m:
            positive("noise_m", self.noise_m, at_most=1000)
        for name in ("gap_share", "outlier_share"):
            if not 0 <= getattr(self, name) <= 0.5:
                raise ParameterError(f"{name} must lie between 0 and 0.5; got {getattr(self, name)!r}.")


def record(journeys: Journeys, streets: StreetMap, tracker: Tracker, *, seed: int) -> tuple[Integers, Integers, Floats, Floats]:
    """Return (journey, local second, x, y) of every recorded point; first and last points of a journey are always there."""
    memory = math.exp(-tracker.interval_s / NOISE_MEMORY_S)
    quality = (float(tracker.noise_m), float(tracker.gap_share), float(tracker.outlier_share), memory)
    return _record(journeys, (streets.shape_x, streets.shape_y), tracker.interval_s, quality, seed)


@njit(cache=True, nogil=True)
def _record(
    journeys: Journeys, shape: tuple[Floats, Floats], interval_s: int, quality: tuple[float, float, float, float], seed: int
) -> tuple[Integers, Integers, Floats, Floats]:
    noise_m, gap_share, outlier_share, memory = quality
    person, depart_s, arrive_s = journeys.person, journeys.depart_s, journeys.arrive_s
    capacity = 0
    for trip in range(len(person)):
        capacity += (arrive_s[trip] - depart_s[trip]) // interval_s + 2
    of_trip, second = np.empty(capacity, dtype=np.int64), np.empty(capacity, dtype=np.int64)
    x, y = np.empty(capacity), np.empty(capacity)
    fresh = math.sqrt(1 - memory * memory)
    n = 0
    for trip in range(len(person)):
        state = stream(seed, TRACKERS, person[trip], journeys.number[trip])
        east, north = noise_m * bell(state), noise_m * bell(state)
        lasted = arrive_s[trip] - depart_s[trip]
        at, missing = journeys.offsets[trip], 0
        for tick in range(lasted // interval_s + 2):
            elapsed = min(tick * interval_s, lasted)
            last = elapsed == lasted
            east = memory * east + fresh * noise_m * bell(state)
            north = memory * north + fresh * noise_m * bell(state)
            if missing == 0 and uniform(state) < gap_share:
                missing = 2 + int(11 * uniform(state))
            off, turn = uniform(state), uniform(state)
            if missing > 0 and tick > 0 and not last:
                missing -= 1
                continue
            at, px, py = _position(elapsed * 1000, at, trip, journeys, shape)
            if off < outlier_share:
                far = 100 + 600 * (off / outlier_share)
                px, py = px + far * math.cos(2 * math.pi * turn), py + far * math.sin(2 * math.pi * turn)
            of_trip[n], second[n], x[n], y[n] = trip, depart_s[trip] + elapsed, px + east, py + north
            n += 1
            if last:
                break
    return of_trip[:n].copy(), second[:n].copy(), x[:n].copy(), y[:n].copy()


@njit(cache=True, nogil=True)
def _position(
    elapsed_ms: int, at: int, trip: int, journeys: Journeys, shape: tuple[Floats, Floats]
) -> tuple[int, float, float]:
    """Return where along its links a journey is: (position in the list of links, x, y)."""
    (shape_x, shape_y), left_ms = shape, journeys.left_ms
    while at < journeys.offsets[trip + 1] - 1 and left_ms[at] <= elapsed_ms:
        at += 1
    begun = left_ms[at - 1] if at > journeys.offsets[trip] else 0
    share = min(1.0, (elapsed_ms - begun) / max(1, journeys.reached_ms[at] - begun))
    a = 3 * journeys.link[at]
    half_1 = math.sqrt((shape_x[a + 1] - shape_x[a]) ** 2 + (shape_y[a + 1] - shape_y[a]) ** 2)
    half_2 = math.sqrt((shape_x[a + 2] - shape_x[a + 1]) ** 2 + (shape_y[a + 2] - shape_y[a + 1]) ** 2)
    along = share * (half_1 + half_2)
    if along <= half_1:
        part = along / half_1
    else:
        part = (along - half_1) / half_2
        a += 1
    return at, shape_x[a] + part * (shape_x[a + 1] - shape_x[a]), shape_y[a] + part * (shape_y[a + 1] - shape_y[a])
