"""From private trips to sequences of cells: a map of each trip by itself, so that sensitivities stay what they are."""

from __future__ import annotations

from dataclasses import dataclass

from murmurate.asking.bounding import units_of_trips
from murmurate.asking.table import Part
from murmurate.core.guarantee import Unit
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import visit_hours, visited_cells
from murmurate.spaces.grid import Grid
from murmurate.synthesis.sequences import CellTrips


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
