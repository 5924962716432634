"""Hexes: the H3 hexagons of one resolution that meet a public box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import h3.api.basic_int as h3
import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurate.core.parameters import whole
from murmurate.core.space import Floats, Integers
from murmurate.errors import ParameterError
from murmurate.spaces.grid import MOST_CELLS, check_box
from murmurate.spaces.places import areas_m2, n_districts
from murmurate.spaces.sphere import great_circle_m


@dataclass(frozen=True)
class Hexes:
    """Divides a public box into H3 hexagons (a few are pentagons); places are numbered by ascending H3 index.

    A hexagon that meets the box belongs to it as a whole, so points a little outside the box have a place too.

    >>> hexes = Hexes(7, 37.7, -122.52, 37.82, -122.35)
    >>> hexes.n_cells, hexes.spec()
    (51, 'hex:7@37.7,-122.52,37.82,-122.35')
    """

    resolution: int
    south: float
    west: float
    north: float
    east: float

    def __post_init__(self) -> None:
        whole("resolution", self.resolution, at_least=0, at_most=15)
        check_box(self.south, self.west, self.north, self.east)
        for name in ("south", "west", "north", "east"):
            object.__setattr__(self, name, float(getattr(self, name)))
        expected = areas_m2(np.array([_box(self.box)]))[0] / h3.average_hexagon_area(self.resolution, unit="m^2")
        if expected > MOST_CELLS:
            raise ParameterError(
                f"this box has about {expected:.3g} hexagons of resolution {self.resolution}; at most {MOST_CELLS:,} are "
                "taken. Give a coarser resolution (a smaller number), or a smaller box."
            )

    # -- the Space protocol ----------------------------------------------------------------------------------------

    def spec(self) -> str:
        """Return the words `--space` takes."""
        return f"hex:{self.resolution}@" + ",".join(repr(value).removesuffix(".0") for value in self.box)

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Return the hexagons of points; -1 for a point in none of them (or not a number)."""
        lat, lng = np.broadcast_arrays(np.asarray(lat, dtype=np.float64), np.asarray(lng, dtype=np.float64))
        known = (np.abs(lat) <= 90) & (np.abs(lng) <= 180)
        points = lat[known].tolist(), lng[known].tolist()
        found = np.fromiter(map(h3.latlng_to_cell, *points, repeat(self.resolution)), dtype=np.uint64, count=len(points[0]))
        at = np.minimum(np.searchsorted(self.cells, found), self.n_cells - 1)
        out = np.full(lat.shape, -1, dtype=np.int64)
        out[known] = np.where(self.cells[at] == found, at, -1)
        return out

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Return latitude and longitude of the middle of each hexagon."""
        lat, lng = self._centres
        return lat[np.asarray(place)], lng[np.asarray(place)]

    def distance(self, one: ArrayLike, other: ArrayLike) -> Floats:
        """Return great-circle metres between centres, element by element."""
        return great_circle_m(*self.centre(one), *self.centre(other))

    def neighbours(self, place: int, reach: int = 1) -> Integers:
        """Return the hexagons within `reach` steps, itself included, in the order of their numbers."""
        around = np.array(sorted(h3.grid_disk(int(self.cells[place]), reach)), dtype=np.uint64)
        at = np.minimum(np.searchsorted(self.cells, around), self.n_cells - 1)
        return at[self.cells[at] == around].astype(np.int64)

    # -- the Places protocol ---------------------------------------------------------------------------------------

    @cached_property
    def cells(self) -> NDArray[np.uint64]:
        """Return the H3 index of every place, ascending."""
        ring = [(self.south, self.west), (self.south, self.east), (self.north, self.east), (self.north, self.west)]
        found = h3.h3shape_to_cells_experimental(h3.LatLngPoly(ring), self.resolution, contain="overlap")
        return np.array(sorted(found), dtype=np.uint64)

    @property
    def n_cells(self) -> int:
        return len(self.cells)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Return south, west, north and east of the box."""
        return self.south, self.west, self.north, self.east

    def boundary(self, place: ArrayLike) -> NDArray[Any]:
        """Return the outline of each hexagon, x being longitude."""
        import shapely

        rings = [[(lng, lat) for lat, lng in h3.cell_to_boundary(int(cell))] for cell in self.cells[np.asarray(place)].ravel()]
        return np.array([shapely.Polygon(ring) for ring in rings]).reshape(np.shape(place))

    def area_m2(self, place: ArrayLike) -> Floats:
        """Return the area of each hexagon on the sphere."""
        return areas_m2(self.boundary(place))

    def districts(self) -> Integers:
        """Return the parent hexagon of each, at the resolution that gives about as many parents as each has children."""
        levels = [self._parents(up) for up in range(self.resolution + 1)]
        wanted = n_districts(self.n_cells)
        return min(levels, key=lambda parent: abs(np.log(max(int(parent.max()) + 1, 1) / wanted)))

    def names(self) -> list[str]:
        """Return the H3 index of every hexagon, as text."""
        return [h3.int_to_str(int(cell)) for cell in self.cells]

    def describe(self) -> str:
        """Describe the hexagons in a sentence."""
        side = (h3.average_hexagon_area(self.resolution, unit="m^2")) ** 0.5
        return (
            f"{self.n_cells:,} H3 hexagons of resolution {self.resolution} (each about as large as a square of {side:,.0f} m) "
            f"over {self.south:g} to {self.north:g} N, {self.west:g} to {self.east:g} E."
        )

    def _parents(self, up: int) -> Integers:
        parent = [h3.cell_to_parent(int(cell), self.resolution - up) for cell in self.cells]
        return np.unique(np.array(parent, dtype=np.uint64), return_inverse=True)[1].astype(np.int64)

    @cached_property
    def _centres(self) -> tuple[Floats, Floats]:
        degrees = np.array([h3.cell_to_latlng(int(cell)) for cell in self.cells])
        return degrees[:, 0], degrees[:, 1]


def _box(box: tuple[float, float, float, float]) -> Any:
    import shapely

    south, west, north, east = box
    return shapely.box(west, south, east, north)
