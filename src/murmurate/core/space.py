"""Define the protocols of public places: any space, and spaces that divide an area into numbered places."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

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


@runtime_checkable
class Places(Space, Protocol):
    """A public area divided into places numbered 0 to `n_cells - 1`: cells of a grid, hexagons, zones, stops."""

    @property
    def n_cells(self) -> int:
        """Return the number of places."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Return south, west, north and east of the whole area."""

    def boundary(self, place: ArrayLike) -> NDArray[Any]:
        """Return the outline of each place as a shapely geometry, x being longitude."""

    def area_m2(self, place: ArrayLike) -> Floats:
        """Return the area of each place in square metres."""

    def districts(self) -> Integers:
        """Return the district (0, 1, ...) of every place: a public hierarchy of about sqrt(`n_cells`) districts."""

    def names(self) -> list[str]:
        """Return a name for every place, as tables and maps show it."""

    def describe(self) -> str:
        """Describe the places in a sentence."""
