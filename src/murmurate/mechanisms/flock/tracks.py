"""Trips as flock sees them, private or synthetic alike: walked cells, hour, places, and how far and how long they go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.synthesis.sequences import CellTrips

TURNS = 16
"""Directions in which the width of a trip is taken: its diameter is missed by half a per cent at most."""


@dataclass(frozen=True, eq=False)
class Tracks:
    """Trip k visits the walked cells `walks` says; `y`, `x` are its points in fine cells, with offsets of their own."""

    walks: CellTrips
    y: Floats
    x: Floats
    offsets: Integers
    source: Integers
    """Fine cell of the first point."""
    destination: Integers
    diameter_m: Floats
    length_m: Floats
    repeats: NDArray[np.bool_]
    """Whether two points in a row are the same."""

    @property
    def n(self) -> int:
        return len(self.offsets) - 1

    @property
    def apart_m(self) -> Floats:
        """Metres between the ends, in units of `y` and `x`; scaled by the caller's cells in `measured`."""
        first, last = self.offsets[:-1], self.offsets[1:] - 1
        return np.hypot(self.y[last] - self.y[first], self.x[last] - self.x[first])

    def take(self, chosen: Integers) -> Tracks:
        """These trips, in this order."""
        offsets, index = taken(self.offsets, chosen)
        values: dict[str, Any] = {
            name: getattr(self, name)[chosen] for name in ("source", "destination", "diameter_m", "length_m", "repeats")
        }
        return Tracks(walks=self.walks.take(chosen), y=self.y[index], x=self.x[index], offsets=offsets, **values)

    def runs(self, trips: int) -> Iterator[Tracks]:
        """Themselves, or so many trips at a time, one after the other."""
        if self.n <= trips:
            yield self
            return
        for first in range(0, self.n, trips):
            yield self.take(np.arange(first, min(first + trips, self.n)))


def joined(runs: Sequence[Tracks]) -> Tracks:
    """Tracks one after the other."""
    if len(runs) == 1:
        return runs[0]
    values: dict[str, Any] = {
        name: np.concatenate([getattr(run, name) for run in runs])
        for name in ("y", "x", "source", "destination", "diameter_m", "length_m", "repeats")
    }
    walks = CellTrips(
        np.concatenate([run.walks.cells for run in runs]),
        _offsets([run.walks.sizes for run in runs]),
        np.concatenate([run.walks.hours for run in runs]),
    )
    return Tracks(walks=walks, offsets=_offsets([np.diff(run.offsets) for run in runs]), **values)


def _offsets(sizes: Sequence[Integers]) -> Integers:
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)


def taken(offsets: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Offsets and rows of chosen trips."""
    sizes = np.diff(offsets)[chosen]
    out = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return out, np.repeat(offsets[:-1][chosen] - out[:-1], sizes) + np.arange(out[-1])


def measured(
    walks: CellTrips, y: Floats, x: Floats, offsets: Integers, *, source: Integers, destination: Integers, cell_m: float
) -> Tracks:
    """Tracks with their diameters and lengths taken."""
    diameter, length, repeats = extents(y, x, offsets, TURNS)
    return Tracks(walks, y, x, offsets, source, destination, diameter * cell_m, length * cell_m, repeats)


@njit(cache=True, nogil=True)
def extents(y: Floats, x: Floats, offsets: Integers, turns: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Diameter (greatest width over a few directions), length, and whether a point is repeated, of each trip."""
    n = len(offsets) - 1
    diameter, length = np.zeros(n), np.zeros(n)
    repeats = np.zeros(n, dtype=np.bool_)
    for turn in range(turns):
        angle = np.pi * turn / turns
        along_x, along_y = np.cos(angle), np.sin(angle)
        for trip in range(n):
            low, high = np.inf, -np.inf
            for at in range(offsets[trip], offsets[trip + 1]):
                value = x[at] * along_x + y[at] * along_y
                low, high = min(low, value), max(high, value)
            diameter[trip] = max(diameter[trip], high - low)
    for trip in range(n):
        for at in range(offsets[trip] + 1, offsets[trip + 1]):
            step = np.hypot(y[at] - y[at - 1], x[at] - x[at - 1])
            length[trip] += step
            repeats[trip] |= step == 0.0
    return diameter, length, repeats
