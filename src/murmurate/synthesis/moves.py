"""Count steps from cell to cell: which neighbour is entered, given where the destination lies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from murmurate.asking import STEPS, Norm
from murmurate.asking.clipping import spread
from murmurate.core.space import Floats, Integers
from murmurate.synthesis.sequences import CellTrips

N_DIRECTIONS = 16
"""Sectors of direction in which distant destinations are distinguished. Chosen by hand."""
RING_GROWTH = 1.5
"""Ratio of the radii of two consecutive rings of distance. Chosen by hand."""
EXACT_WITHIN_CELLS = 2
"""Destinations within this many cells are distinguished exactly; farther ones by direction and ring. Chosen by hand."""


def reach_of(*, cell_m: float, max_speed_kmh: float, slot_s: float) -> int:
    """Return the cells a step may cross: what the public speed limit allows between two time slots, at least one.

    >>> reach_of(cell_m=250, max_speed_kmh=100, slot_s=60), reach_of(cell_m=500, max_speed_kmh=100, slot_s=60)
    (7, 4)
    """
    return max(1, ceil(max_speed_kmh / 3.6 * slot_s / cell_m))


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """The square of cells within `reach` of a cell of a grid; offset `stop` (the middle) means that the trip ends."""

    rows: int
    columns: int
    reach: int

    @property
    def n_cells(self) -> int:
        """Return the number of cells of the grid."""
        return self.rows * self.columns

    @property
    def side(self) -> int:
        """Return the cells along a side of the square."""
        return 2 * self.reach + 1

    @property
    def n_offsets(self) -> int:
        """Return the number of cells of the square."""
        return self.side**2

    @property
    def stop(self) -> int:
        """Return the offset that means the trip ends."""
        return self.n_offsets // 2

    def offset(self, cell: Integers, following: Integers) -> Integers:
        """Return the offset that leads from one cell to the other; -1 where that is out of reach."""
        down = following // self.columns - cell // self.columns
        right = following % self.columns - cell % self.columns
        inside = np.maximum(np.abs(down), np.abs(right)) <= self.reach
        return np.where(inside, (down + self.reach) * self.side + right + self.reach, -1)

    @cached_property
    def relative(self) -> Integers:
        """Return [row difference, column difference] the bin of where the destination lies; both differences start at 0."""
        down, right = np.meshgrid(np.arange(1 - self.rows, self.rows), np.arange(1 - self.columns, self.columns), indexing="ij")
        near = np.maximum(np.abs(down), np.abs(right)) <= EXACT_WITHIN_CELLS
        exact = (down + EXACT_WITHIN_CELLS) * (2 * EXACT_WITHIN_CELLS + 1) + right + EXACT_WITHIN_CELLS
        ring = np.floor(
            np.log(np.maximum(np.hypot(down, right), EXACT_WITHIN_CELLS) / EXACT_WITHIN_CELLS) / np.log(RING_GROWTH)
        ).astype(np.int64)
        turn = np.floor(np.arctan2(down, right) / (2 * np.pi) * N_DIRECTIONS + 0.5).astype(np.int64) % N_DIRECTIONS
        return np.where(near, exact, (2 * EXACT_WITHIN_CELLS + 1) ** 2 + ring * N_DIRECTIONS + turn)

    @property
    def n_relative(self) -> int:
        """Return the number of bins of where the destination lies."""
        return int(self.relative.max()) + 1

    def relative_of(self, cell: Integers, destination: Integers) -> Integers:
        """Return the bin of where the destination lies, seen from the cell."""
        down = destination // self.columns - cell // self.columns + self.rows - 1
        right = destination % self.columns - cell % self.columns + self.columns - 1
        return self.relative[down, right]


@dataclass(frozen=True, eq=False)
class Grams:
    """Every step of every trip, and every arrival: trip, cell, where the destination lies, and the offset taken."""

    trip: Integers
    cell: Integers
    relative: Integers
    offset: Integers
    """-1 for a step beyond the reach."""
    following: Integers


def grams(trips: CellTrips, around: Neighbourhood) -> Grams:
    """Return the steps and arrivals of trips; an arrival has the offset `around.stop`."""
    trip = trips.trip_of_cell
    last = np.zeros(len(trips.cells), dtype=bool)
    last[trips.offsets[1:] - 1] = True
    following = np.where(last, trips.cells, np.roll(trips.cells, -1))
    offset = around.offset(trips.cells, following)
    return Grams(trip, trips.cells, around.relative_of(trips.cells, trips.destinations[trip]), offset, following)


def move_histograms(trips: CellTrips, around: Neighbourhood, *, norm: Norm = "l2") -> dict[str, Integers]:
    """Return fixed-point histograms, each changed by one trip by at most 1 in L2 (or L1).

    `towards` [relative destination, offset], `visits` [cell entered], `steps` [cell, offset].
    """
    found = grams(trips, around)
    tables = {}
    for name, (bins, n_bins) in move_bins(found, around).items():
        _, place, weight = spread(bins, found.trip, STEPS, norm == "l2")
        tables[name] = np.zeros(n_bins, dtype=np.int64)
        np.add.at(tables[name], place, weight)
    return {name: table if name == "visits" else table.reshape(-1, around.n_offsets) for name, table in tables.items()}


def move_bins(found: Grams, around: Neighbourhood) -> dict[str, tuple[Integers, int]]:
    """Return the bin of every step in each table (-1: none), and the number of bins."""
    arrival = found.offset == around.stop
    towards = np.where(found.offset >= 0, found.relative * around.n_offsets + found.offset, -1)
    steps = np.where((found.offset >= 0) & ~arrival, found.cell * around.n_offsets + found.offset, -1)
    visits = np.where(arrival, -1, found.following)
    return {
        "towards": (towards, around.n_relative * around.n_offsets),
        "visits": (visits, around.n_cells),
        "steps": (steps, around.n_cells * around.n_offsets),
    }


@dataclass(frozen=True, eq=False)
class MoveWeights:
    """Unnormalised weights of a step: towards the destination, into a cell, and along a particular step."""

    towards: Floats
    visits: Floats
    steps: Floats
