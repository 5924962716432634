"""What a place is: the small protocol that planes, grids and road networks share."""

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
        """The public words that rebuild it, as `--space` takes them."""
        ...

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Place ids of points; -1 for a point outside."""
        ...

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Latitude and longitude of the middle of each place."""
        ...

    def distance(self, one: ArrayLike, other: ArrayLike) -> Floats:
        """Metres between places, element by element."""
        ...

    def neighbours(self, place: int, reach: int = 1) -> Integers:
        """The places within `reach` steps of one, itself included."""
        ...
