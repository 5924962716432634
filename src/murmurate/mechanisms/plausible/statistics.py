"""The statistics that `own` measures: one person adds at most one to each, in L1, however many days they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.asking import Answer, Budget, Contributions, Part, Table
from murmurate.core.mechanism import Rng
from murmurate.core.space import Floats, Integers
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
from murmurate.profiles.days import DailyTraces, daily_traces
from murmurate.spaces.grid import Grid
from murmurate.spaces.sphere import step_m

UNIT = 1 << 20
"""Fixed-point steps of one person: shares of a person are rounded down, so that the bound on L1 holds exactly. Finer than
`asking.STEPS`, because a person's time is spread over hundreds of bins."""

MOVES_READ = 10
"""Moves a day that count fully; of a person with more, each counts less. Set by hand: few people move more often."""

PLACES_READ = 10
"""Different places a day that count fully; the same."""

REGION_CELLS = 5
"""Rows and columns of cells that make up a coarse region; set by hand."""

JUMP_EDGES_M = np.array([750.0, 1100, 1600, 2300, 3300, 4700, 6700, 9500, 13500, 19000, 27000])
"""Edges of the histogram of distances between successive places, in metres, each about 1.4 times the one before."""

JUMP_BINS = len(JUMP_EDGES_M) + 1
"""Bins of that histogram."""

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
"""Hundredths of epsilon spent on each statistic; together 100. Chosen on the built-in city."""

LIBRARY_SHARES: Mapping[str, int] = {"regions": 34, "cells": 36, "jumps": 15, "kinds": 15}
"""The same where rhythms come from a public library: of private days, only how often each kind occurs is measured."""

_SIZES: Mapping[str, int] = {
    "headcount": 1,
    "jumps": JUMP_BINS,
    "slots": ROLES * BLOCKS,
    "leaving_by_block": ROLES * BLOCKS,
    "slots_by_age": ROLES * AGES,
    "leaving_by_age": ROLES * AGES,
    "heading": ROLES * TO_ROLES,
    "traits": int(TRAIT_OFFSETS[-1]),
    "moves": 1,
    "places": 1,
    "kinds": KINDS,
}
"""Bins of the statistics whose size does not depend on the grid; side by side they are one row a person."""

_ENDS = np.cumsum(list(_SIZES.values()))
"""Column after the last one of each statistic in that row; the last entry is the width of the row."""

_JUMPS, _SLOTS, _LEAVING, _SLOTS_AGE, _LEAVING_AGE, _HEADING, _TRAITS, _MOVES, _PLACES, _KINDS = (int(k) for k in _ENDS[:-1])
"""First column of each in that row; headcount is column 0."""


def tables_of(grid: Grid, shares: Mapping[str, int]) -> tuple[Table, ...]:
    """Return the tables of the statistics in `shares`, hundredths of the budget."""
    sizes = {**_SIZES, "regions": 2 * regions_of(grid)[1], "cells": 2 * grid.n_cells}
    return tuple(Table(name=name, n_bins=sizes[name], share=part / 100, steps=UNIT) for name, part in shares.items())


def laplace_scale(answer: Answer) -> float:
    """Return the scale of the Laplace noise of a statistic, in people."""
    return answer.deviation / sqrt(2)


def regions_of(grid: Grid) -> tuple[Integers, int]:
    """Return the coarse public region of each cell, and how many there are."""
    row, column = grid.row_column(np.arange(grid.n_cells))
    across = -(-grid.columns // REGION_CELLS)
    return row // REGION_CELLS * across + column // REGION_CELLS, across * -(-grid.rows // REGION_CELLS)


@dataclass(frozen=True)
class ReadDays:
    """Cuts the trips of a part into person-days, each person's by their own points alone."""

    grid: Grid
    steps: int
    min_coverage: float

    def __call__(self, part: Part) -> DailyTraces:
        """Return the kept days; persons are numbered as the units of the part."""
        return daily_traces(part.trips, self.grid, self.grid.n_cells, steps=self.steps, min_coverage=self.min_coverage)


@dataclass(frozen=True)
class CountDays:
    """Contributes to the statistics of these names."""

    grid: Grid
    names: tuple[str, ...]

    def __call__(self, days: DailyTraces) -> dict[str, Contributions]:
        """Return what each person adds; at most `UNIT` to each statistic."""
        rows = contributions(days, self.grid)
        return {name: rows[name] for name in self.names}


def contributions(days: DailyTraces, grid: Grid) -> dict[str, Contributions]:
    """Return what each person adds to every statistic: all of a person's days together weigh one, rounded down."""
    region, n_regions = regions_of(grid)
    starts = np.flatnonzero(np.r_[True, days.person[1:] != days.person[:-1]]) if days.n_days else np.zeros(0, dtype=np.int64)
    bounds = np.r_[starts, days.n_days].astype(np.int64)
    lat, lng = grid.centre(np.arange(grid.n_cells))
    own, cells, regions = _read_days(days.place, bounds, region, n_regions, lat, lng)
    person = days.person[starts]
    rows = {}
    for (name, size), end in zip(_SIZES.items(), _ENDS.tolist(), strict=True):
        unit, column = np.nonzero(own[:, end - size : end])
        rows[name] = Contributions(person[unit], column, own[unit, end - size + column])
    for name, found in (("cells", cells), ("regions", regions)):
        rows[name] = Contributions(person[found[:, 0]], found[:, 1], found[:, 2])
    return rows


# -- for variants that read the trips themselves; sums of `own` are made and noised by `asking` alone --------------------


def exact_sums(days: DailyTraces, grid: Grid) -> dict[str, Integers]:
    """Add up what all people contribute to every statistic, in fixed-point steps of `UNIT`; private."""
    rows = contributions(days, grid)
    sums = {table.name: np.zeros(table.n_bins, dtype=np.int64) for table in tables_of(grid, {**SHARES, **LIBRARY_SHARES})}
    for name, total in sums.items():
        np.add.at(total, rows[name].bin, rows[name].weight)
    return sums


def measured(
    days: DailyTraces, grid: Grid, *, epsilon: float, rng: Rng, shares: Mapping[str, int] = SHARES
) -> dict[str, Answer]:
    """Draw noise on the sums of days that are in memory: what `own` would measure of them with this epsilon."""
    sums, budget = exact_sums(days, grid), Budget(epsilon=epsilon)
    return {table.name: budget.draw(table, sums[table.name], rng) for table in tables_of(grid, shares)}


@njit(cache=True)
def jump_bin(lat1: float, lng1: float, lat2: float, lng2: float) -> int:
    """Return the bin of the great-circle distance between two places."""
    return int(np.searchsorted(JUMP_EDGES_M, step_m(lat1, lng1, lat2, lng2)))


@njit(cache=True)
def _read_days(  # noqa: PLR0917
    place: NDArray[np.int32], bounds: Integers, region: Integers, n_regions: int, lat: Floats, lng: Floats
) -> tuple[Integers, Integers, Integers]:
    """Return [person, column] weights of the statistics of fixed size, and rows (person, bin, weight) of cells and regions."""
    n_cells, steps = len(region), place.shape[1]
    out = np.zeros((len(bounds) - 1, _ENDS[-1]), dtype=np.int64)
    cells, regions = np.empty((256, 3), dtype=np.int64), np.empty((256, 3), dtype=np.int64)
    n_cell_rows, n_region_rows = 0, 0
    by_cell = np.zeros(2 * n_cells, dtype=np.int64)  # main places, then the others
    by_region = np.zeros(2 * n_regions, dtype=np.int64)
    label, at = np.empty(steps, dtype=np.int16), np.empty(steps, dtype=np.int32)
    trait = np.empty(len(TRAITS), dtype=np.int64)
    seen = np.zeros(steps, dtype=np.bool_)
    for person in range(len(bounds) - 1):
        own = out[person]
        n_days = bounds[person + 1] - bounds[person]
        others = 0
        for row in range(bounds[person], bounds[person + 1]):
            n_labels = label_day(place[row], label, at)
            own[_PLACES] += n_labels
            own[_KINDS + kind_of(label)] += 1
            traits_of(label, n_labels, trait)
            for k in trait:
                own[_TRAITS + k] += 1
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
                own[_SLOTS + now * BLOCKS + block] += 1
                own[_SLOTS_AGE + now * AGES + age_class(age)] += 1
                seen[label[step]] = True
                if step + 1 < steps and label[step + 1] != label[step]:
                    own[_MOVES] += 1
                    own[_LEAVING + now * BLOCKS + block] += 1
                    own[_LEAVING_AGE + now * AGES + age_class(age)] += 1
                    to = role(label[step + 1])
                    again = 1 if to == OTHER and seen[label[step + 1]] else 0
                    own[_HEADING + now * TO_ROLES + to + again] += 1
                    one, two = place[row, step], place[row, step + 1]
                    own[_JUMPS + jump_bin(lat[one], lng[one], lat[two], lng[two])] += 1
        _share_out(own, n_days, steps)
        # half a person for the main places, half for the time spent at others; counts are cleared in the same walk
        for row in range(bounds[person], bounds[person + 1]):
            for step in range(steps):
                cell = np.int64(place[row, step])
                for slot, divisor in ((cell, n_days), (n_cells + cell, others)):
                    if by_cell[slot]:
                        weight = by_cell[slot] * UNIT // (2 * divisor)
                        cells, n_cell_rows = _put(cells, n_cell_rows, person, slot, weight)
                        by_cell[slot] = 0
                for slot, divisor in ((region[cell], n_days), (n_regions + region[cell], others)):
                    if by_region[slot]:
                        weight = by_region[slot] * UNIT // (2 * divisor)
                        regions, n_region_rows = _put(regions, n_region_rows, person, slot, weight)
                        by_region[slot] = 0
    return out, cells[:n_cell_rows].copy(), regions[:n_region_rows].copy()


@njit(cache=True)
def _share_out(own: Integers, n_days: int, steps: int) -> None:
    """Turn a person's counts into weights: each statistic adds up to one person at most, rounded down."""
    moves = max(own[_MOVES], MOVES_READ * n_days)
    places = max(own[_PLACES], PLACES_READ * n_days)
    own[0] = UNIT
    _divide(own, _JUMPS, _SLOTS, moves)
    _divide(own, _SLOTS, _LEAVING, steps * n_days)
    _divide(own, _LEAVING, _SLOTS_AGE, moves)
    _divide(own, _SLOTS_AGE, _LEAVING_AGE, steps * n_days)
    _divide(own, _LEAVING_AGE, _TRAITS, moves)  # and heading
    _divide(own, _TRAITS, _MOVES, len(TRAITS) * n_days)
    _divide(own, _MOVES, _MOVES + 1, moves)
    _divide(own, _PLACES, _PLACES + 1, places)
    _divide(own, _KINDS, len(own), n_days)


@njit(cache=True)
def _divide(own: Integers, low: int, high: int, by: int) -> None:
    """Make weights of a stretch of counts; element by element, because slices take numba seconds to compile."""
    for k in range(np.int64(low), np.int64(high)):
        own[k] = own[k] * UNIT // by


@njit(cache=True)
def _put(rows: Integers, size: int, person: int, slot: int, weight: int) -> tuple[Integers, int]:
    """Append a row, in an array twice as large where it is full."""
    if size == len(rows):
        grown = np.empty((2 * size, 3), dtype=np.int64)
        for k in range(size):
            grown[k, 0], grown[k, 1], grown[k, 2] = rows[k, 0], rows[k, 1], rows[k, 2]
        rows = grown
    rows[size, 0], rows[size, 1], rows[size, 2] = person, slot, weight
    return rows, size + 1
