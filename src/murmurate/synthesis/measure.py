"""Noisy histograms with exact sensitivity: fixed-point contributions, integer noise, floats only afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from murmurate.core.space import Floats, Integers

if TYPE_CHECKING:
    from murmurate.noise import Randomness

FULL_WEIGHT = 1 << 12
"""One trip's full weight in fixed point; shares of it are rounded down, so that no trip ever weighs more."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """How counts are perturbed: the kind, and its scale for a histogram that one *unit* changes by at most 1.

    For "gaussian" the change is measured in L2 and `scale` is a standard deviation; for "laplace" in L1 and `scale` is
    the Laplace parameter. A unit of several trips changes a per-trip histogram by up to `trips_per_unit`.
    """

    kind: Literal["gaussian", "laplace"] = "gaussian"
    scale: float
    trips_per_unit: int = 1

    def part(self, share: float) -> Noise:
        """The noise of a histogram that gets this share of the budget this noise stands for."""
        factor = sqrt(share) if self.kind == "gaussian" else share
        return Noise(kind=self.kind, scale=self.scale / factor, trips_per_unit=self.trips_per_unit)

    @property
    def deviation(self) -> float:
        """Standard deviation of a noisy count, in trips."""
        spread = self.scale if self.kind == "gaussian" else self.scale * sqrt(2)
        return spread * self.trips_per_unit


def measure(fixed: Integers, *, noise: Noise, rng: Randomness) -> Floats:
    """Noisy counts in trips, from fixed-point counts (`FULL_WEIGHT` a trip), any shape."""
    from murmurate import noise as draws

    scale = noise.scale * noise.trips_per_unit * FULL_WEIGHT
    flat = np.ascontiguousarray(fixed, dtype=np.int64).ravel()
    draw = draws.gaussian_integers if noise.kind == "gaussian" else draws.laplace_integers
    return (draw(flat, scale=scale, rng=rng) / FULL_WEIGHT).reshape(fixed.shape)


def once_per_trip(bins: Integers, n_bins: int) -> Integers:
    """Fixed-point histogram in which every trip adds its full weight to one bin."""
    return np.bincount(bins, minlength=n_bins).astype(np.int64) * FULL_WEIGHT


def spread_over_trip(bins: Integers, trip: Integers, n_bins: int, *, norm: Literal["l2", "l1"] = "l2") -> Integers:
    """Fixed-point histogram in which a trip's distinct bins share its weight, so that its change has norm at most 1.

    `bins` may hold -1 (left out); `trip` is sorted. With m distinct bins each weighs 1/sqrt(m) (L2) or 1/m (L1).
    """
    _, place, weight = parts_of_trips(bins, trip, n_bins, norm=norm)
    fixed = np.zeros(n_bins, dtype=np.int64)
    np.add.at(fixed, place, weight)
    return fixed


def parts_of_trips(
    bins: Integers, trip: Integers, n_bins: int, *, norm: Literal["l2", "l1"] = "l2"
) -> tuple[Integers, Integers, Integers]:
    """Trip, bin and fixed-point weight of every distinct bin of every trip, as `spread_over_trip` adds them up."""
    inside = bins >= 0
    pairs = np.sort(trip[inside] * n_bins + bins[inside])
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    owner, place = pairs // n_bins, pairs % n_bins
    distinct = np.bincount(owner)[owner] if len(owner) else owner
    weight = FULL_WEIGHT / np.sqrt(distinct) if norm == "l2" else FULL_WEIGHT / distinct
    return owner, place, np.floor(weight).astype(np.int64)
