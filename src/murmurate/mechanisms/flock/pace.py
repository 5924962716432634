"""How fast trips go: two noisy tables of speed, by how far a trip goes and by the part of the day, made into times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from murmurate.asking import Answer
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tables import FAR_STEP, FARS, SPEEDS, diameter_bin
from murmurate.mechanisms.flock.tracks import Tracks
from murmurate.synthesis.ends import draw_within
from murmurate.synthesis.shrink import shrink

SLOWEST_KMH = 0.7
GROWTH = 1.6
CLEAR = 3.0
"""Deviations of noise above which a speed is taken to occur at all."""
SECOND_US = 1_000_000
LONGEST_S = 12 * 3600.0


@dataclass(frozen=True, eq=False)
class Pace:
    """[how far, hour, speed bin] expected trips."""

    table: Floats

    def seconds(self, tracks: Tracks, generator: np.random.Generator) -> Floats:
        """How long each trip takes."""
        hours = self.table.shape[1]
        group = far_bin(tracks.diameter_m) * hours + tracks.walks.hours
        bin_ = draw_within(self.table.reshape(-1, SPEEDS), group, generator)
        speed_kmh = SLOWEST_KMH * GROWTH ** (bin_ - 1 + generator.random(len(bin_)))
        return np.clip(tracks.length_m / (speed_kmh / 3.6), 1.0, LONGEST_S)


def pace_bins(tracks: Tracks, seconds: Floats, hours: int) -> dict[str, tuple[Integers, int]]:
    """The bins of private trips in both tables."""
    speed_kmh = tracks.length_m / np.maximum(seconds, 1.0) * 3.6
    growing = np.floor(np.log(np.maximum(speed_kmh, 1e-3) / SLOWEST_KMH) / np.log(GROWTH)).astype(np.int64) + 1
    speed = np.clip(growing, 0, SPEEDS - 1)
    return {
        "pace": (far_bin(tracks.diameter_m) * SPEEDS + speed, FARS * SPEEDS),
        "pace_hour": (tracks.walks.hours * SPEEDS + speed, hours * SPEEDS),
    }


def far_bin(diameter_m: Floats) -> Integers:
    """The row of each diameter."""
    return diameter_bin(diameter_m) // FAR_STEP


def fit_pace(by_far: Answer, by_hour: Answer | None, hours: int) -> Pace:
    """Speeds by distance, turned by how much faster or slower each hour is than all of them."""
    far, deviation = by_far.noisy.reshape(FARS, SPEEDS), by_far.deviation
    alike = far.sum(axis=0)
    # a few slow trips that are none would make the mean duration many times what it is
    clear = alike > np.minimum(CLEAR * deviation * FARS**0.5, alike.max())
    alike = np.where(clear, alike, 0.0) + 1e-3 if clear.any() else np.where(alike == alike.max(), 1.0, 1e-3)
    rows = np.maximum(far.sum(axis=1), 1e-3)
    prior = rows[:, None] * alike / alike.sum()
    believed = shrink(far, prior, deviation=deviation, scaled=True) + 1e-3 * alike / alike.sum()
    believed = np.minimum(believed, np.where(alike > 1e-2, np.inf, prior))
    factor = np.ones((hours, SPEEDS))
    if by_hour is not None:
        noisy = by_hour.noisy.reshape(hours, SPEEDS)
        prior = np.maximum(noisy.sum(axis=1), 1e-3)[:, None] * alike / alike.sum()
        shown = shrink(noisy, prior, deviation=by_hour.deviation, scaled=True)
        # speeds that hardly occur are turned by no more than noise could not have done alone
        factor = (shown + by_hour.deviation) / (prior + by_hour.deviation)
    return Pace(believed[:, None, :] * factor[None])


def times_us(
    tracks: Tracks, seconds: Floats, *, time_zone: str, day: str, generator: np.random.Generator, hours: int
) -> Integers:
    """Microseconds of every point: along the trip at one speed, most of the trip in its part of the day."""
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
    zone = ZoneInfo(time_zone)
    midnight = datetime.combine(date.fromisoformat(day), datetime.min.time())
    starts = [(midnight + timedelta(hours=24 / hours * k)).replace(tzinfo=zone) for k in range(hours)]
    return np.array([int(start.timestamp()) * SECOND_US for start in starts], dtype=np.int64)
