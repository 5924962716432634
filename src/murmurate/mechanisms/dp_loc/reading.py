"""From private trips to sequences of cells: a map of each trip by itself, so that sensitivities stay what they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from murmurate.asking.bounding import units_of_trips
from murmurate.core.guarantee import Unit
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import to_cells
from murmurate.spaces.grid import Grid
from murmurate.synthesis.sequences import CellTrips


@dataclass(frozen=True, eq=False)
class Read:
    """Cell trips and the unit each belongs to."""

    trips: CellTrips
    unit: Integers


def read(private: Trips, *, grid: Grid, unit: Unit, slot_s: int, hours: int) -> Read:
    """Visited cells of the public grid, slot by slot; trips that stay in one cell (or outside) are left out."""
    cells = to_cells(private, grid, slot_s=slot_s, hour=True)
    first = cells.offsets[:-1]
    hour = cells.table["hour"].gather(first).to_numpy() * hours // 24
    units = _trip_keys(private).with_columns(unit=units_of_trips(private, unit))
    kept = _trip_keys(cells).join(units, on=["uid", "tid"], how="left", maintain_order="left")
    return Read(CellTrips(cells.cell, cells.offsets, hour.astype(np.int64)), kept["unit"].to_numpy())


def _trip_keys(trips: Trips) -> pl.DataFrame:
    return trips.table.select(pl.col("uid", "tid").gather(trips.offsets[:-1]))
