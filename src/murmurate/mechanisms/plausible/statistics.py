"""The statistics that `own` measures: one person changes each by at most one unit in L1, however many days they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.core.space import Integers
from murmurate.mechanisms.plausible.patterns import (
    AGES,
    BLOCKS,
    KINDS,
    MAIN,
    OTHER,
    ROLES,
    TRAIT_OFFSETS,
    TRAITS,
    age_class,
    kind_of,
    label_day,
    role,
    traits_of,
)
from murmurate.noise import laplace_integers
from murmurate.profiles.days import DailyTraces
from murmurate.spaces.grid import Grid

UNIT = 1 << 20
"""One person, in fixed point: shares of a person are rounded down, so that the bound on L1 holds exactly."""

MOVES_READ = 10
"""Moves a day that count fully; a person with more has each count less."""

PLACES_READ = 10
"""Different places a day that count fully."""

REGION_CELLS = 5
"""A coarse region is a block of this many rows and columns of cells."""

JUMP_EDGES_M = np.array([750.0, 1100, 1600, 2300, 3300, 4700, 6700, 9500, 13500, 19000, 27000])
JUMP_BINS = len(JUMP_EDGES_M) + 1

TO_ROLES = 4
"""Where a move leads: main, second, an other place not yet seen that day, an other place again."""

SHARES: Mapping[str, int] = {
    "headcount": 4,
    "regions": 23,
    "cells": 24,
    "jumps": 8,
    "moves": 7,
    "places": 4,
    "slots": 3,
    "leaving_by_block": 5,
    "slots_by_age": 1,
    "leaving_by_age": 4,
    "heading": 5,
    "traits": 12,
}
"""Hundredths of epsilon spent on each statistic; together 100."""

LIBRARY_SHARES: Mapping[str, int] = {"regions": 34, "cells": 36, "jumps": 15, "kinds": 15}
"""The same where rhythms come from a public library: only how often each kind of day occurs is asked of the private ones."""

_TRAIT_COUNT = len(TRAITS)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over people, in units; exact (private) or noisy (may leave)."""

    values: Mapping[str, Integers]
    scales: Mapping[str, float] = field(default_factory=dict)
    """Scale of the noise on each, in people; none on exact sums."""

    def measured(self, epsilon: float, rng: Rng, shares: Mapping[str, int] = SHARES) -> Statistics:
        """The same with discrete Laplace noise: epsilon in all, split by `shares`, which are hundredths."""
        scales = {name: noise_scale(name, epsilon, shares) for name in shares}
        noisy = {name: laplace_integers(self.values[name], scale=scales[name] * UNIT, rng=rng) for name in shares}
        return Statistics(noisy, scales)

    def people(self, name: str) -> NDArray[np.float64]:
        """A statistic in people rather than units."""
        return self.values[name] / UNIT


def noise_scale(name: str, epsilon: float, shares: Mapping[str, int] = SHARES) -> float:
    """Scale of the noise on a statistic, in people."""
    return 100.0 / (epsilon * shares[name])


def regions_of(grid: Grid) -> tuple[Integers, int]:
    """The coarse public region of each cell, and how many there are."""
    row, column = grid.row_column(np.arange(grid.n_cells))
    across = -(-grid.columns // REGION_CELLS)
    return row // REGION_CELLS * across + column // REGION_CELLS, across * -(-grid.rows // REGION_CELLS)


def gather(days: DailyTraces, grid: Grid) -> Statistics:
    """The exact sums; each person's days together weigh one unit."""
    region, n_regions = regions_of(grid)
    starts = np.flatnonzero(np.r_[True, days.person[1:] != days.person[:-1]]) if days.n_days else np.zeros(0, dtype=np.int64)
    bounds = np.r_[starts, days.n_days].astype(np.int64)
    lat, lng = grid.centre(np.arange(grid.n_cells))
    parts = _gather(days.place, bounds, region, n_regions, np.radians(lat), np.radians(lng))
    names = (
        "regions", "cells", "jumps", "slots", "leaving_by_block", "slots_by_age", "leaving_by_age", "heading", "traits",
        "moves", "places", "kinds",
    )  # fmt: skip
    headcount = np.array([(len(bounds) - 1) * UNIT], dtype=np.int64)
    return Statistics({"headcount": headcount, **dict(zip(names, parts, strict=True))})


@njit(cache=True)
def jump_bin(lat1: float, lng1: float, lat2: float, lng2: float) -> int:
    """The bin of the great-circle distance between two places given in radians."""
    a = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lng2 - lng1) / 2) ** 2
    return int(np.searchsorted(JUMP_EDGES_M, 2 * 6_371_008.8 * np.arcsin(min(1.0, np.sqrt(a)))))


@njit(cache=True)
def _gather(  # noqa: PLR0917
    place: NDArray[np.int32],
    bounds: Integers,
    region: Integers,
    n_regions: int,
    lat: NDArray[np.float64],
    lng: NDArray[np.float64],
) -> tuple[Integers, ...]:
    n_cells = len(region)
    steps = place.shape[1]
    regions = np.zeros(2 * n_regions, dtype=np.int64)  # main places, then the others
    cells = np.zeros(2 * n_cells, dtype=np.int64)
    sums = (
        np.zeros(JUMP_BINS, dtype=np.int64),
        np.zeros(ROLES * BLOCKS, dtype=np.int64),
        np.zeros(ROLES * BLOCKS, dtype=np.int64),
        np.zeros(ROLES * AGES, dtype=np.int64),
        np.zeros(ROLES * AGES, dtype=np.int64),
        np.zeros(ROLES * TO_ROLES, dtype=np.int64),
        np.zeros(TRAIT_OFFSETS[-1], dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(KINDS, dtype=np.int64),
    )
    own = (
        np.zeros(JUMP_BINS, dtype=np.int64),
        np.zeros(ROLES * BLOCKS, dtype=np.int64),
        np.zeros(ROLES * BLOCKS, dtype=np.int64),
        np.zeros(ROLES * AGES, dtype=np.int64),
        np.zeros(ROLES * AGES, dtype=np.int64),
        np.zeros(ROLES * TO_ROLES, dtype=np.int64),
        np.zeros(TRAIT_OFFSETS[-1], dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(KINDS, dtype=np.int64),
    )
    by_cell = np.zeros(2 * n_cells, dtype=np.int64)
    by_region = np.zeros(2 * n_regions, dtype=np.int64)
    label = np.empty(steps, dtype=np.int16)
    at = np.empty(steps, dtype=np.int32)
    trait = np.empty(_TRAIT_COUNT, dtype=np.int64)
    seen = np.zeros(steps, dtype=np.bool_)
    for person in range(len(bounds) - 1):
        n_days = bounds[person + 1] - bounds[person]
        for part in own:
            part[:] = 0
        moves = 0
        others = 0
        for row in range(bounds[person], bounds[person + 1]):
            n_labels = label_day(place[row], label, at)
            own[8][0] += n_labels
            own[9][kind_of(label)] += 1
            traits_of(label, n_labels, trait)
            for k in trait:
                own[6][k] += 1
            by_cell[at[MAIN]] += 1
            by_region[region[at[MAIN]]] += 1
            seen[:] = False
            age = 0
            for step in range(steps):
                now, block = role(label[step]), step * BLOCKS // steps
                if label[step] != MAIN:
                    others += 1
                    by_cell[n_cells + place[row, step]] += 1
                    by_region[n_regions + region[place[row, step]]] += 1
                age = age + 1 if step and label[step] == label[step - 1] else 1
                own[1][now * BLOCKS + block] += 1
                own[3][now * AGES + age_class(age)] += 1
                seen[label[step]] = True
                if step + 1 < steps and label[step + 1] != label[step]:
                    moves += 1
                    own[7][0] += 1
                    own[2][now * BLOCKS + block] += 1
                    own[4][now * AGES + age_class(age)] += 1
                    to = role(label[step + 1])
                    own[5][now * TO_ROLES + to + (1 if to == OTHER and seen[label[step + 1]] else 0)] += 1
                    one, two = place[row, step], place[row, step + 1]
                    own[0][jump_bin(lat[one], lng[one], lat[two], lng[two])] += 1
        moves_weight = max(moves, MOVES_READ * n_days)
        weights = (
            moves_weight,
            steps * n_days,
            moves_weight,
            steps * n_days,
            moves_weight,
            moves_weight,
            _TRAIT_COUNT * n_days,
            moves_weight,
            max(own[8][0], PLACES_READ * n_days),
            n_days,
        )
        for part, counted, weight in zip(sums, own, weights):  # noqa: B905  numba knows no strict
            part += counted * UNIT // weight
        # places: half for the main ones, half for the time spent at others; undone in the same walk, so that memory is kept
        for row in range(bounds[person], bounds[person + 1]):
            for step in range(steps):
                cell = np.int64(place[row, step])
                for slot, half, divisor in ((cell, by_cell, n_days), (n_cells + cell, by_cell, others)):
                    if half[slot]:
                        cells[slot] += half[slot] * UNIT // (2 * divisor)
                        half[slot] = 0
                for slot, half, divisor in ((region[cell], by_region, n_days), (n_regions + region[cell], by_region, others)):
                    if half[slot]:
                        regions[slot] += half[slot] * UNIT // (2 * divisor)
                        half[slot] = 0
    return regions, cells, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7], sums[8], sums[9]
