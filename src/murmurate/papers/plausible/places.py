"""The most visited cells of a grid, with all others joined to the nearest of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurate.core.parameters import whole
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.profiles.days import DailyTraces
from murmurate.spaces.grid import Grid
from murmurate.spaces.sphere import great_circle_m


@dataclass(frozen=True, eq=False)
class ChosenPlaces:
    """Numbers some cells of a grid as places; a `Space`."""

    grid: Grid
    cells: NDArray[np.int32]

    @property
    def n_places(self) -> int:
        return len(self.cells)

    def spec(self) -> str:
        """Return the grid's spec; which of its cells are meant was read from data."""
        return self.grid.spec()

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Return the nearest place of each point of the grid; -1 outside."""
        cell = np.atleast_1d(self.grid.locate(lat, lng))
        return np.where(cell >= 0, _nearest(self.grid, np.maximum(cell, 0), self.cells), -1)

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Return latitude and longitude of each place."""
        return self.grid.centre(self.cells[np.asarray(place)])

    def distance(self, one: ArrayLike, other: ArrayLike) -> Floats:
        """Return metres between places."""
        return self.grid.distance(self.cells[np.asarray(one)], self.cells[np.asarray(other)])

    def neighbours(self, place: int, reach: int = 1) -> Integers:
        """Return the places among the cells around one."""
        around = self.grid.neighbours(int(self.cells[place]), reach)
        return np.flatnonzero(np.isin(self.cells, around))


def most_visited(days: DailyTraces, grid: Grid, most: int) -> tuple[DailyTraces, ChosenPlaces]:
    """Restrict days to the `most` most visited cells; every other cell becomes the nearest of these.

    Guarantee
        None: which cells are visited is read from private data. For variants and measurements that promise nothing here.
    """
    whole("places", most, at_least=2)
    if not days.n_days:
        raise InputError("there is no day with enough coverage, so no place is visited; relax min_coverage.")
    count = np.bincount(days.place.ravel(), minlength=grid.n_cells)
    cells = np.sort(np.argsort(-count, kind="stable")[: min(most, int((count > 0).sum()))])
    visited = np.flatnonzero(count)
    to = np.full(grid.n_cells, -1, dtype=np.int32)
    to[visited] = _nearest(grid, visited, cells)
    return replace(days, place=to[days.place], n_places=len(cells)), ChosenPlaces(grid, cells.astype(np.int32))


def _nearest(grid: Grid, cell: NDArray[np.integer], cells: NDArray[np.integer]) -> Integers:
    lat, lng = grid.centre(cells)
    near = np.empty(len(cell), dtype=np.int64)
    for first in range(0, len(cell), 2000):
        y, x = grid.centre(cell[first : first + 2000])
        near[first : first + 2000] = great_circle_m(y[:, None], x[:, None], lat[None, :], lng[None, :]).argmin(axis=1)
    return near
