"""Define the protocol that planes, grids and road networks share."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@runtime_checkable
class Space(Protocol):
    """A public set of places. Nothing in it may be read from private data."""

    def spec(self) -> str:
        """Return the public text that rebuilds it, as `--space` takes it."""

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Return the place ids of points; -1 for a point outside."""

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Return latitude and longitude of the middle of each place."""

    def distance(self, one: ArrayLike, other: ArrayLike) -> Floats:
        """Return the metres between places, element by element."""

    def neighbours(self, place: int, reach: int = 1) -> Integers:
        """Return the places within `reach` steps of one, itself included."""
