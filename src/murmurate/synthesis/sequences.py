"""Represent trips as sequences of grid cells with one hour each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Integers


@dataclass(frozen=True, eq=False)
class CellTrips:
    """Trip k visits `cells[offsets[k]:offsets[k + 1]]` (no cell twice in a row) in the hour `hours[k]`.

    >>> trips = CellTrips(np.array([4, 5, 6, 1, 2]), np.array([0, 3, 5]), np.array([8, 17]))
    >>> trips.sources, trips.destinations, trips.sizes
    (array([4, 1]), array([6, 2]), array([3, 2]))
    """

    cells: Integers
    offsets: Integers
    hours: Integers

    @property
    def n(self) -> int:
        """Return the number of trips."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Integers:
        """Return the number of cells of each trip."""
        return np.diff(self.offsets)

    @property
    def sources(self) -> Integers:
        """Return the first cell of each trip."""
        return self.cells[self.offsets[:-1]]

    @property
    def destinations(self) -> Integers:
        """Return the last cell of each trip."""
        return self.cells[self.offsets[1:] - 1]

    @property
    def trip_of_cell(self) -> Integers:
        """Return the trip (0, 1, ...) of each cell."""
        return np.repeat(np.arange(self.n, dtype=np.int64), self.sizes)

    def take(self, chosen: Integers) -> CellTrips:
        """Return the chosen trips, in the given order."""
        sizes = self.sizes[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        index = np.repeat(self.offsets[:-1][chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return CellTrips(self.cells[index], offsets, self.hours[chosen])
