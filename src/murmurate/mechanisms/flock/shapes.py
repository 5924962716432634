"""Draw how far, how long and how fast trips go, from noisy tables of diameter, shape and speed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from murmurate.asking import Answer
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tables import (
    APART_RATIO_EDGES,
    DIAMETER_GROWTH,
    DIAMETERS_PER_SHAPE_ROW,
    DIAMETERS_PER_SPEED_ROW,
    FIRST_DIAMETER_M,
    LENGTH_RATIO_EDGES,
    N_DIAMETERS,
    N_SPEED_ROWS,
    N_SPEEDS,
    diameter_bin,
)
from murmurate.mechanisms.flock.tracks import Tracks
from murmurate.synthesis.ends import draw_within
from murmurate.synthesis.shrink import nonnegative, shrink

N_SHAPE_ROWS = -(-N_DIAMETERS // DIAMETERS_PER_SHAPE_ROW)
"""Rows of the shape table; follows from the bins of diameter."""
MAX_LENGTH_RATIO = 8.0
"""Upper edge of the last bin of length over diameter when lengths are drawn. Chosen by hand."""
DIRECT_SHARE = 0.7
"""Share of the trips in the last bin of distance over diameter whose ends are a full diameter apart. Chosen by hand."""
SIMULATED_TRIPS = 200_000
"""Shapes drawn to compute the distribution of distances between the ends; sampling error below 0.2 % a bin."""
FIRST_SPEED_KMH = 0.7
"""Upper edge of the first bin of speed, in km/h. Chosen by hand."""
SPEED_GROWTH = 1.6
"""Ratio of the upper edges of two consecutive bins of speed. Chosen by hand."""
MIN_SPEED_COUNT_SDS = 3.0
"""Smallest count of a bin of speed that is kept, in noise standard deviations; smaller ones are taken for empty. Without it a
few noisy slow trips would multiply the mean duration."""
SECOND_US = 1_000_000
"""Microseconds in a second."""
MAX_DURATION_S = 12 * 3600.0
"""Longest duration of a released trip, in seconds. Chosen by hand."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """Estimated trips by diameter, and by diameter and both ratios."""

    diameter: Floats
    """[diameter bin] estimated trips."""
    ratios: Floats
    """[diameter row, distance of ends over diameter, length over diameter] estimated trips."""

    def draw(self, n: int, generator: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Draw diameters, distances of the ends, and lengths, in metres."""
        bin_ = draw_within(self.diameter.reshape(1, -1), np.zeros(n, dtype=np.int64), generator)
        edges = bin_edges_m()
        diameter = edges[bin_] * (edges[bin_ + 1] / edges[bin_]) ** generator.random(n)
        row = bin_ // DIAMETERS_PER_SHAPE_ROW
        flat = self.ratios.reshape(N_SHAPE_ROWS, -1) + 1e-12
        column = draw_within(flat, row, generator) // (len(LENGTH_RATIO_EDGES) + 1)
        return diameter, diameter * _apart_ratio(column, generator), diameter * self._length_ratio(row, column, generator)

    def apart(self, generator: np.random.Generator) -> Floats:
        """Return [distance bin] the share of trips whose ends lie that far apart, by simulation."""
        return np.bincount(diameter_bin(self.draw(SIMULATED_TRIPS, generator)[1]), minlength=N_DIAMETERS) / SIMULATED_TRIPS

    def _length_ratio(self, row: Integers, column: Integers, generator: np.random.Generator) -> Floats:
        """Draw lengths over diameter, given row and bin of the distance ratio."""
        edges = np.array([1.0, *LENGTH_RATIO_EDGES, MAX_LENGTH_RATIO])
        flat = self.ratios.reshape(-1, len(LENGTH_RATIO_EDGES) + 1) + 1e-9
        bin_ = draw_within(flat, row * (len(APART_RATIO_EDGES) + 1) + column, generator)
        return np.asarray(edges[bin_] + np.diff(edges)[bin_] * generator.random(len(row)))


def estimate_shapes(diameter: Answer, shape: Answer) -> Shapes:
    """Estimate shapes from two noisy tables: diameters shrunk towards smoothed ones, ratios towards those of all diameters."""
    by_diameter = diameter.noisy.reshape(-1, 2).sum(axis=1)
    smooth = np.convolve(np.pad(by_diameter, 2, mode="edge"), [1 / 9, 2 / 9, 3 / 9, 2 / 9, 1 / 9], mode="valid")
    estimate = shrink(by_diameter, np.maximum(smooth, 0.0) + 1e-6, deviation=diameter.deviation * 2**0.5, scaled=True)
    noisy = shape.noisy.reshape(N_SHAPE_ROWS, len(APART_RATIO_EDGES) + 1, len(LENGTH_RATIO_EDGES) + 1)
    rows = nonnegative(by_diameter).reshape(N_SHAPE_ROWS, DIAMETERS_PER_SHAPE_ROW).sum(axis=1)
    ratios = nonnegative(noisy.sum(axis=0))
    prior = rows[:, None, None] * (ratios / max(ratios.sum(), 1e-9))[None] + 1e-6
    return Shapes(estimate + 1e-9, shrink(noisy, prior, deviation=shape.deviation, scaled=True) + 1e-3 * prior)


def _apart_ratio(column: Integers, generator: np.random.Generator) -> Floats:
    """Draw distances of the ends over diameter, within their bins."""
    edges = np.array([0.0, *APART_RATIO_EDGES, 1.0])
    ratio = edges[column] + np.diff(edges)[column] * generator.random(len(column))
    direct = (column == len(APART_RATIO_EDGES)) & (generator.random(len(column)) < DIRECT_SHARE)
    return np.asarray(np.where(direct, 1.0, ratio))


def bin_edges_m() -> Floats:
    """Return the edges of the bins of diameter, in metres."""
    return np.concatenate([[0.2 * FIRST_DIAMETER_M], FIRST_DIAMETER_M * DIAMETER_GROWTH ** np.arange(N_DIAMETERS)])


@dataclass(frozen=True, eq=False)
class Pace:
    """Estimated trips by diameter, hour and speed."""

    table: Floats
    """[speed row, hour, speed bin] estimated trips."""

    def seconds(self, tracks: Tracks, generator: np.random.Generator) -> Floats:
        """Draw the duration of each trip, in seconds."""
        hours = self.table.shape[1]
        group = speed_row(tracks.diameter_m) * hours + tracks.walks.hours
        bin_ = draw_within(self.table.reshape(-1, N_SPEEDS), group, generator)
        speed_kmh = FIRST_SPEED_KMH * SPEED_GROWTH ** (bin_ - 1 + generator.random(len(bin_)))
        return np.clip(tracks.length_m / (speed_kmh / 3.6), 1.0, MAX_DURATION_S)


def pace_bins(tracks: Tracks, seconds: Floats, hours: int) -> dict[str, tuple[Integers, int]]:
    """Return the bins of trips in both speed tables."""
    speed_kmh = tracks.length_m / np.maximum(seconds, 1.0) * 3.6
    growing = np.floor(np.log(np.maximum(speed_kmh, 1e-3) / FIRST_SPEED_KMH) / np.log(SPEED_GROWTH)).astype(np.int64) + 1
    speed = np.clip(growing, 0, N_SPEEDS - 1)
    return {
        "pace": (speed_row(tracks.diameter_m) * N_SPEEDS + speed, N_SPEED_ROWS * N_SPEEDS),
        "pace_hour": (tracks.walks.hours * N_SPEEDS + speed, hours * N_SPEEDS),
    }


def speed_row(diameter_m: Floats) -> Integers:
    """Return the row of the speed table of each diameter."""
    return diameter_bin(diameter_m) // DIAMETERS_PER_SPEED_ROW


def fit_pace(by_far: Answer, by_hour: Answer | None, hours: int) -> Pace:
    """Estimate speeds by diameter, multiplied by the ratio of each hour's speeds to all speeds."""
    far, deviation = by_far.noisy.reshape(N_SPEED_ROWS, N_SPEEDS), by_far.deviation
    pooled = far.sum(axis=0)
    # a few slow trips that are only noise would multiply the mean duration
    clear = pooled > np.minimum(MIN_SPEED_COUNT_SDS * deviation * N_SPEED_ROWS**0.5, pooled.max())
    pooled = np.where(clear, pooled, 0.0) + 1e-3 if clear.any() else np.where(pooled == pooled.max(), 1.0, 1e-3)
    rows = np.maximum(far.sum(axis=1), 1e-3)
    prior = rows[:, None] * pooled / pooled.sum()
    estimate = shrink(far, prior, deviation=deviation, scaled=True) + 1e-3 * pooled / pooled.sum()
    estimate = np.minimum(estimate, np.where(pooled > 1e-2, np.inf, prior))
    factor = np.ones((hours, N_SPEEDS))
    if by_hour is not None:
        noisy = by_hour.noisy.reshape(hours, N_SPEEDS)
        prior = np.maximum(noisy.sum(axis=1), 1e-3)[:, None] * pooled / pooled.sum()
        shown = shrink(noisy, prior, deviation=by_hour.deviation, scaled=True)
        # one noise standard deviation on both sides keeps the factors of rare speeds near 1
        factor = (shown + by_hour.deviation) / (prior + by_hour.deviation)
    return Pace(estimate[:, None, :] * factor[None])


def times_us(
    tracks: Tracks, seconds: Floats, *, time_zone: str, day: str, generator: np.random.Generator, hours: int
) -> Integers:
    """Return microseconds of every point: constant speed along the trip, most of the trip in its part of the day."""
    span_s = 86_400 / hours
    start_us = _starts_us(time_zone, day, hours)[tracks.walks.hours]
    start_us = start_us + (generator.random(tracks.n) * np.maximum(span_s - seconds, 0.0)).astype(np.int64) * SECOND_US
    step = np.hypot(np.diff(tracks.y, prepend=0.0), np.diff(tracks.x, prepend=0.0))
    step[tracks.offsets[:-1]] = 0.0
    trip = np.repeat(np.arange(tracks.n), np.diff(tracks.offsets))
    whole = np.maximum(np.bincount(trip, weights=step, minlength=tracks.n), 1e-9)
    # even spacing keeps a repeated point later than its twin; the rest goes by distance
    place = np.arange(len(trip)) - tracks.offsets[:-1][trip]
    even = place / np.maximum(np.diff(tracks.offsets)[trip] - 1, 1)
    along = np.cumsum(step)
    along = (along - along[tracks.offsets[:-1]][trip]) / whole[trip]
    return start_us[trip] + np.asarray((0.9 * along + 0.1 * even) * seconds[trip], dtype=np.int64) * SECOND_US


def _starts_us(time_zone: str, day: str, hours: int) -> Integers:
    """Return the start of each part of the fictional day, in microseconds since 1970."""
    zone = ZoneInfo(time_zone)
    midnight = datetime.combine(date.fromisoformat(day), datetime.min.time())
    starts = [(midnight + timedelta(hours=24 / hours * k)).replace(tzinfo=zone) for k in range(hours)]
    return np.array([int(start.timestamp()) * SECOND_US for start in starts], dtype=np.int64)
