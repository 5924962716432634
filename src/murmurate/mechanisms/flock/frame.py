"""The public frame of a model: the fine grid of the caller, and a coarser one of whole blocks of it to walk on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.spaces.grid import Grid
from murmurate.synthesis.moves import Neighbourhood


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Everything that says what a bin means; public, or a function of noisy answers."""

    grid: Grid
    block: int
    """Fine cells along a side of a cell that is walked on."""
    reach: int
    """Walked cells a step may cross."""
    hours: int
    max_cells: int
    stride: float = 0.5
    """Walked cells between two points of a usual trip: the longer, the more often a step crosses a corner."""

    @cached_property
    def rows(self) -> int:
        return -(-self.grid.rows // self.block)

    @cached_property
    def columns(self) -> int:
        return -(-self.grid.columns // self.block)

    @cached_property
    def around(self) -> Neighbourhood:
        return Neighbourhood(rows=self.rows, columns=self.columns, reach=self.reach)

    @property
    def n_walked(self) -> int:
        return self.rows * self.columns

    @property
    def walked_m(self) -> float:
        return self.grid.cell_m * self.block

    def walked_of(self, fine: Integers) -> Integers:
        """The walked cell of each fine cell."""
        return (fine // self.grid.columns // self.block) * self.columns + fine % self.grid.columns // self.block

    def fine_at(self, y: Floats, x: Floats) -> Integers:
        """The fine cell at a place given in fine cells north and east of the corner."""
        row = np.clip(y.astype(np.int64), 0, self.grid.rows - 1)
        return row * self.grid.columns + np.clip(x.astype(np.int64), 0, self.grid.columns - 1)

    def walked_at(self, y: Floats, x: Floats) -> Integers:
        """The walked cell at such a place."""
        return self.walked_of(self.fine_at(y, x))

    def place(self, lat: Floats, lng: Floats) -> tuple[Floats, Floats]:
        """Fine cells north and east of the corner."""
        return (lat - self.grid.south) / self.grid.lat_step, (lng - self.grid.west) / self.grid.lng_step

    def degrees(self, y: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Latitude and longitude; never outside the box."""
        lat = np.clip(self.grid.south + y * self.grid.lat_step, self.grid.south, self.grid.north)
        return lat, np.clip(self.grid.west + x * self.grid.lng_step, self.grid.west, self.grid.east)

    @cached_property
    def top(self) -> tuple[float, float]:
        """Rows and columns of the box in fine cells, the last ones cut at its edge."""
        grid = self.grid
        return (grid.north - grid.south) / grid.lat_step, (grid.east - grid.west) / grid.lng_step
