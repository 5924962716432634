"""Which tables dp_loc measures, with which share of the budget, and what a trip adds to each: at most one in L2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from murmurate.asking import STEPS, Answer, Contributions, Part, Round, Table
from murmurate.asking.bounding import units_of_trips
from murmurate.asking.clipping import spread
from murmurate.asking.table import Answers, once
from murmurate.asking.units import SHARE as UNITS_SHARE
from murmurate.asking.units import count_units, units_table
from murmurate.core.guarantee import Unit
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.errors import ContractBroken
from murmurate.ingest.discretise import visit_hours, visited_cells
from murmurate.spaces.grid import Grid
from murmurate.synthesis.moves import Neighbourhood, grams, move_bins
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.sizes import n_rings_of, rings

END_SHARES = {
    "n": 0.01,
    "source_cell": 0.06,
    "destination_cell": 0.06,
    "source_hour": 0.30,
    "destination_hour": 0.30,
    "pairs": 0.15,
    "pairs_hour": 0.12,
}
"""Shares of the budget of the ends; a trip adds one to one bin of each table. Chosen on public taxi data."""

MOVE_SHARES = {"towards": 0.25, "visits": 0.20, "steps": 0.40, "sizes_by_ring": 0.075, "sizes_by_hour": 0.075}
"""Shares of the budget of the moves, where they are counted; a trip's distinct bins share its one count."""

BY_CELL = ("n", "source_cell", "destination_cell")
"""Tables of the ends that need no zones; the zones follow from their noisy counts."""

BY_ZONE = ("source_hour", "destination_hour", "pairs", "pairs_hour")
"""Tables of the ends over zones."""


WEIGHTED_TRIPS = {"n_cells": 0.005, "n_zones": 0.005}
"""Shares of the weighted numbers of trips of either round, where units are clipped jointly; each trip counts as its unit's
weight. The rounds are scaled by them. Chosen by hand."""


def joint_shares_of(ends_share: float) -> Mapping[str, float]:
    """Return the shares where units are clipped jointly: as `shares_of`, after the numbers of units and of weighted trips."""
    left = 1 - UNITS_SHARE - sum(WEIGHTED_TRIPS.values())
    return {name: left * part for name, part in shares_of(ends_share).items()} | WEIGHTED_TRIPS


def scaled(answers: Answers) -> Answers:
    """Scale joint tables to the number of trips: each trip entered them with its unit's weight in their round."""
    found = dict(answers)
    for total, names in (("n_cells", (*BY_CELL[1:], *MOVE_SHARES)), ("n_zones", BY_ZONE)):
        if total in found:
            factor = max(found["n"].noisy[0], 1.0) / max(found[total].noisy[0], 1.0)
            for name in names:
                found[name] = Answer(found[name].noisy * factor, found[name].deviation * factor)
    return found


def shares_of(
    ends_share: float, *, ends: Mapping[str, float] = END_SHARES, moves: Mapping[str, float] = MOVE_SHARES
) -> Mapping[str, float]:
    """Return the share of the whole budget of each table: `ends_share` is split over the ends, the rest over the moves."""
    shares = {name: ends_share * part for name, part in ends.items()}
    return shares | {name: (1 - ends_share) * part for name, part in moves.items()}


@dataclass(frozen=True, eq=False)
class Zones:
    """Zones of equal noisy mass; each table halves the grid as often as its noise allows."""

    of_cell: Integers
    """Fine zone of each cell; `zone >> 1` is its zone at one depth less."""
    fine: int
    """Depth of the tables zone x hour: 2^fine zones."""
    pair: int
    """Depth of both ends of `pairs`."""
    pair_hour: int
    """Depth of both ends of `pairs_hour`."""


@dataclass(frozen=True, eq=False)
class Read:
    """Cell trips and the unit each belongs to."""

    trips: CellTrips
    unit: Integers


@dataclass(frozen=True, kw_only=True)
class ReadTrips:
    """Find the visited cells of the public grid, slot by slot; trips that stay in one cell (or outside) are left out."""

    grid: Grid
    slot_s: int
    hours: int

    def __call__(self, part: Part) -> Read:
        """Read the trips of a part, each by itself."""
        visits = visited_cells(part.trips, self.grid, slot_s=self.slot_s)
        hour = visit_hours(part.trips, visits, visit_s=self.slot_s) * self.hours // 24
        return Read(CellTrips(visits.cells, visits.offsets, hour), part.unit[visits.trip])


def read(private: Trips, *, grid: Grid, unit: Unit, slot_s: int, hours: int) -> Read:
    """Read all trips at once: for networks, which are trained on whole data."""
    return ReadTrips(grid=grid, slot_s=slot_s, hours=hours)(Part(private, units_of_trips(private, unit)))


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The public sizes and shares of all tables; makes rounds of them."""

    around: Neighbourhood
    max_cells: int
    reading: ReadTrips
    limit: float
    """Norm of what a unit may add to each table: its trips, or the norm of all of them together where it is clipped jointly."""
    shares: Mapping[str, float]
    """Share of the whole budget by table."""
    joint: bool = False
    """Whether a unit is clipped over all tables of a round together."""
    counted: float = 1.0
    """Trips that a unit adds to the number of trips at most, where it is clipped jointly."""

    @property
    def hours(self) -> int:
        """Return the hours (or longer spans) of a day."""
        return self.reading.hours

    @property
    def n_sizes(self) -> int:
        """Return the number of sizes: from two cells to `max_cells` and more."""
        return self.max_cells - 1

    def round(self, names: tuple[str, ...], zones: Zones | None = None) -> Round:
        """Ask for these tables; those over zones need the zones."""
        sizes = self._n_bins(zones)
        if self.joint:
            names = (*names, "n_cells" if zones is None else "n_zones")
        tables = (
            Table(
                name=name,
                n_bins=sizes[name],
                share=self.shares[name],
                limit=self.counted if self.joint and name == "n" else self.limit,
                joint=self.joint and name != "n",
            )
            for name in names
        )
        return Round(tables=tuple(tables), prepare=self.reading, contribute=Count(names, self, zones), keep="cells")

    def unit_sizes(self) -> Round:
        """Ask for the numbers of trips per unit, from which the bounds of joint tables follow."""
        return Round(tables=(units_table(),), prepare=self.reading, contribute=_count_unit_sizes, keep="cells")

    def _n_bins(self, zones: Zones | None) -> dict[str, int]:
        around = self.around
        found = {
            "n": 1,
            "n_cells": 1,
            "n_zones": 1,
            "source_cell": around.n_cells,
            "destination_cell": around.n_cells,
            "towards": around.n_relative * around.n_offsets,
            "visits": around.n_cells,
            "steps": around.n_cells * around.n_offsets,
            "sizes_by_ring": n_rings_of(around.rows, around.columns) * self.n_sizes,
            "sizes_by_hour": self.hours * self.n_sizes,
        }
        if zones is not None:
            found |= dict.fromkeys(("source_hour", "destination_hour"), 2**zones.fine * self.hours)
            found |= {"pairs": 4**zones.pair, "pairs_hour": 4**zones.pair_hour * self.hours}
        return found


def _count_unit_sizes(found: Read) -> dict[str, Contributions]:
    return {"units": count_units(found.unit)}


@dataclass(frozen=True, eq=False)
class Count:
    """Count trips in some of the tables."""

    names: tuple[str, ...]
    tables: Tables
    zones: Zones | None = None

    def __call__(self, found: Read) -> dict[str, Contributions]:
        """Add one count a trip to each table, in one bin or shared by its distinct ones with weights 1/sqrt(m)."""
        moves = [name for name in self.names if name in ("towards", "visits", "steps")]
        rows = {name: once(found.unit, self._bins(name, found.trips)) for name in self.names if name not in moves}
        if moves:
            steps = grams(found.trips, self.tables.around)
            bins = move_bins(steps, self.tables.around)
            for name in moves:
                trip, place, weight = spread(bins[name][0], steps.trip, STEPS, True)
                rows[name] = Contributions(found.unit[trip], place, weight)
        return rows

    def _bins(self, name: str, trips: CellTrips) -> Integers:
        """Return the one bin of each trip."""
        hours, n_sizes = self.tables.hours, self.tables.n_sizes
        if name in ("n", "n_cells", "n_zones"):
            return np.zeros(trips.n, dtype=np.int64)
        if name in ("source_cell", "destination_cell"):
            return trips.sources if name == "source_cell" else trips.destinations
        if name in ("sizes_by_ring", "sizes_by_hour"):
            ring = rings(trips.sources, trips.destinations, self.tables.around.columns)
            row = ring if name == "sizes_by_ring" else trips.hours
            return row * n_sizes + np.clip(trips.sizes, 2, self.tables.max_cells) - 2
        if self.zones is None:
            raise ContractBroken("a round answers its tables", f"{name} is counted over zones; none were given.")
        source, destination = self.zones.of_cell[trips.sources], self.zones.of_cell[trips.destinations]
        if name in ("source_hour", "destination_hour"):
            return (source if name == "source_hour" else destination) * hours + trips.hours
        depth = self.zones.pair if name == "pairs" else self.zones.pair_hour
        both = ((source >> (self.zones.fine - depth)) << depth) + (destination >> (self.zones.fine - depth))
        return both if name == "pairs" else both * hours + trips.hours
