"""Grid: the cells of a public box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurate.core.parameters import positive, whole
from murmurate.core.space import Floats, Integers
from murmurate.errors import ParameterError
from murmurate.spaces.places import areas_m2
from murmurate.spaces.sphere import METRES_PER_DEGREE_LAT, METRES_PER_DEGREE_LNG, great_circle_m

if TYPE_CHECKING:
    from murmurate.core.trips import Trips

MOST_CELLS = 10_000_000
"""Most cells of a grid; more is a mistake (a cell size in degrees, a box of the world). Set by hand."""

SMALLEST_CELL_M = 0.1
"""Least side of a cell in metres, the step of the plane's lattice."""

MOST_TABLE_ENTRIES = 250_000_000
"""Most entries of a neighbour table, 2 GB; set by hand."""

_SLIVER = 1e-6
"""Share of a cell below which a last row or column is rounding and joins its neighbour; set by hand."""


@dataclass(frozen=True)
class Grid:
    """Divides a public box into cells of `cell_m` metres; ids run row by row from the south-west corner.

    All rows have one height and all columns one width in degrees: `cell_m` metres along the mean meridian, and along
    the middle latitude of the box (`describe` says how wide columns are at its edges). The box is closed; the last row
    and column are cut at its edge, so a cell's centre always lies in the cell.

    >>> grid = Grid(37.6017, -122.5158, 37.8112, -122.3527, 500)
    >>> grid.rows, grid.columns, grid.n_cells
    (47, 29, 1363)
    >>> int(grid.locate(37.7749, -122.4194)), int(grid.locate(0, 0))
    (1118, -1)
    """

    south: float
    west: float
    north: float
    east: float
    cell_m: float

    def __post_init__(self) -> None:
        check_box(self.south, self.west, self.north, self.east)
        positive("cell_m", self.cell_m, at_most=40_000_000)
        if self.cell_m < SMALLEST_CELL_M:
            raise ParameterError(f"cell_m is in metres, and at least {SMALLEST_CELL_M:g}; got {self.cell_m!r}.")
        for name in ("south", "west", "north", "east", "cell_m"):
            object.__setattr__(self, name, float(getattr(self, name)))
        rows, columns = (_count(extent) for extent in self._extent_in_cells())
        if not rows * columns <= MOST_CELLS:
            raise ParameterError(
                f"a grid of {self.cell_m:g} m cells over this box has {rows * columns:.3g} cells; at most {MOST_CELLS:,} "
                "are taken. Give cell_m in metres, larger, or a smaller box."
            )

    @classmethod
    def from_extent(cls, trips: Trips, cell_m: float, *, extent_is_public: bool) -> Grid:
        """Make the grid of `cell_m` over the bounding box of `trips`; refused unless declared public by `extent_is_public`.

        Guarantee
            The outermost points of private data are somebody's places. A box drawn around them is part of what is
            published, so it costs no budget only where it was public to begin with (demo data, a known city limit).
        """
        if extent_is_public is not True:
            raise ParameterError(
                "the extent of private trips reveals their outermost points; give a public box "
                "(grid:SOUTH,WEST,NORTH,EAST:CELL_M), or pass extent_is_public=True if this extent is public already."
            )
        if not trips.n_points:
            raise ParameterError("trips without a point have no extent; give a public box.")
        # A box of no height or width (one point) still needs one cell, so it grows by half a cell all around.
        lat, lng = trips.lat, trips.lng
        half = cell_m / METRES_PER_DEGREE_LAT / 2
        lat_half, lng_half = half * (lat.min() == lat.max()), half * (lng.min() == lng.max())
        return cls(
            float(lat.min() - lat_half),
            float(lng.min() - lng_half),
            float(lat.max() + lat_half),
            float(lng.max() + lng_half),
            cell_m,
        )

    # -- size ------------------------------------------------------------------------------------------------------

    @cached_property
    def lat_step(self) -> float:
        """Return degrees of latitude in a row."""
        return self.cell_m / METRES_PER_DEGREE_LAT

    @cached_property
    def lng_step(self) -> float:
        """Return degrees of longitude in a column."""
        return self.cell_m / (METRES_PER_DEGREE_LNG * math.cos(math.radians((self.south + self.north) / 2)))

    @cached_property
    def rows(self) -> int:
        return int(_count(self._extent_in_cells()[0]))

    @cached_property
    def columns(self) -> int:
        return int(_count(self._extent_in_cells()[1]))

    @property
    def n_cells(self) -> int:
        return self.rows * self.columns

    def _extent_in_cells(self) -> tuple[float, float]:
        return (self.north - self.south) / self.lat_step, (self.east - self.west) / self.lng_step

    # -- the Space protocol ----------------------------------------------------------------------------------------

    def spec(self) -> str:
        """Return the words `--space` takes.

        >>> Grid(60.1, 24.8, 60.3, 25.2, 250).spec()
        'grid:60.1,24.8,60.3,25.2:250'
        """
        south, west, north, east, cell_m = (
            repr(value).removesuffix(".0") for value in (self.south, self.west, self.north, self.east, self.cell_m)
        )
        return f"grid:{south},{west},{north},{east}:{cell_m}"

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Return cell ids of points; -1 for a point outside the box (or not a number)."""
        lat, lng = np.asarray(lat, dtype=np.float64), np.asarray(lng, dtype=np.float64)
        inside = (lat >= self.south) & (lat <= self.north) & (lng >= self.west) & (lng <= self.east)
        # Points outside may be NaN or far away: they become 0 before the conversion to integers.
        row = np.where(inside, (lat - self.south) / self.lat_step, 0.0).astype(np.int64)
        column = np.where(inside, (lng - self.west) / self.lng_step, 0.0).astype(np.int64)
        cell = np.minimum(row, self.rows - 1) * self.columns + np.minimum(column, self.columns - 1)
        return np.asarray(np.where(inside, cell, -1), dtype=np.int64)

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Return latitude and longitude of the middle of each cell."""
        south, west, north, east = self.bounds(place)
        return (south + north) / 2, (west + east) / 2

    def distance(self, one: ArrayLike, other: ArrayLike) -> Floats:
        """Return great-circle metres between centres, element by element."""
        return great_circle_m(*self.centre(one), *self.centre(other))

    def neighbours(self, place: int, reach: int = 1) -> Integers:
        """Return the cells at most `reach` rows and columns away, itself included, in the order of their ids."""
        around = self.neighbour_table(reach, cells=[place])[0]
        return around[around >= 0]

    # -- the Places protocol ---------------------------------------------------------------------------------------

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Return south, west, north and east of the box."""
        return self.south, self.west, self.north, self.east

    def boundary(self, place: ArrayLike) -> NDArray[Any]:
        """Return the rectangle of each cell, x being longitude."""
        import shapely

        south, west, north, east = self.bounds(place)
        return np.asarray(shapely.box(west, south, east, north))

    def area_m2(self, place: ArrayLike) -> Floats:
        """Return the area of each cell on the sphere."""
        return areas_m2(self.boundary(place))

    def districts(self) -> Integers:
        """Return the block of cells that each cell lies in; blocks are squares of about as many cells as there are blocks.

        >>> Grid(0, 0, 0.04, 0.04, 1000).districts().reshape(5, 5)[0].tolist()
        [0, 0, 1, 1, 2]
        """
        side = max(1, round(self.n_cells**0.25))
        row, column = self.row_column(np.arange(self.n_cells))
        return (row // side) * -(-self.columns // side) + column // side

    def names(self) -> list[str]:
        """Return row and column of every cell."""
        row, column = self.row_column(np.arange(self.n_cells))
        return [f"r{r}c{c}" for r, c in zip(row.tolist(), column.tolist(), strict=True)]

    # -- more about cells ------------------------------------------------------------------------------------------

    def row_column(self, cell: ArrayLike) -> tuple[Integers, Integers]:
        """Return row (from the south) and column (from the west) of each cell."""
        row, column = np.divmod(self._known(cell), self.columns)
        return np.asarray(row), np.asarray(column)

    def cell_at(self, row: ArrayLike, column: ArrayLike) -> Integers:
        """Return the cell at each row and column, the inverse of `row_column`; -1 outside the grid."""
        row, column = np.asarray(row, dtype=np.int64), np.asarray(column, dtype=np.int64)
        inside = (row >= 0) & (row < self.rows) & (column >= 0) & (column < self.columns)
        return np.asarray(np.where(inside, row * self.columns + column, -1), dtype=np.int64)

    def neighbour_table(self, reach: int, *, cells: ArrayLike | None = None) -> Integers:
        """Return for every cell (or each of `cells`) the (2 reach + 1)^2 cells around it, south-west first; -1 outside.

        >>> Grid(0, 0, 0.02, 0.02, 1000).neighbour_table(1, cells=[0])
        array([[-1, -1, -1, -1,  0,  1, -1,  3,  4]])
        """
        whole("reach", reach, at_least=0)
        chosen = np.arange(self.n_cells, dtype=np.int64) if cells is None else np.atleast_1d(np.asarray(cells, dtype=np.int64))
        entries = len(chosen) * (2 * reach + 1) ** 2
        if entries > MOST_TABLE_ENTRIES:
            raise ParameterError(
                f"a neighbour table of {entries:,} entries is too large; take a smaller reach or larger cells."
            )
        row, column = self.row_column(chosen)
        row_offset, column_offset = neighbour_offsets(reach)
        return self.cell_at(row[:, None] + row_offset, column[:, None] + column_offset)

    def bounds(self, cell: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
        """Return south, west, north and east edge of each cell."""
        row, column = self.row_column(cell)
        lat_edges, lng_edges = self.edges()
        return lat_edges[row], lng_edges[column], lat_edges[row + 1], lng_edges[column + 1]

    def edges(self) -> tuple[Floats, Floats]:
        """Return latitudes of the rows + 1 horizontal lines and longitudes of the columns + 1 vertical lines, for maps."""
        return self._edges

    @cached_property
    def _edges(self) -> tuple[Floats, Floats]:
        lat = self.south + self.lat_step * np.arange(self.rows + 1, dtype=np.float64)
        lng = self.west + self.lng_step * np.arange(self.columns + 1, dtype=np.float64)
        lat[-1], lng[-1] = self.north, self.east
        lat.flags.writeable = lng.flags.writeable = False
        return lat, lng

    def describe(self) -> str:
        """Describe the grid in a sentence for statements and reports; public, as everything about a grid."""
        width = [self.lng_step * METRES_PER_DEGREE_LNG * math.cos(math.radians(lat)) for lat in (self.south, self.north)]
        return (
            f"{self.n_cells:,} cells of {self.cell_m:g} m ({self.rows:,} rows, {self.columns:,} columns) over "
            f"{self.south:g} to {self.north:g} N, {self.west:g} to {self.east:g} E; columns are {width[0]:.1f} m wide at the "
            f"southern edge and {width[1]:.1f} m at the northern."
        )

    def _known(self, cell: ArrayLike) -> Integers:
        cells = np.asarray(cell, dtype=np.int64)
        if cells.size and (cells.min() < 0 or cells.max() >= self.n_cells):
            raise ParameterError(
                f"cells of this grid are 0 to {self.n_cells - 1:,}; got {int(cells.min())} to {int(cells.max())}. "
                "A -1 from `locate` is a point outside the box: leave it out first."
            )
        return cells


def neighbour_offsets(reach: int) -> tuple[Integers, Integers]:
    """Return row and column offsets of a neighbourhood, in the order of `Grid.neighbour_table`."""
    steps = np.arange(-reach, reach + 1, dtype=np.int64)
    return np.repeat(steps, len(steps)), np.tile(steps, len(steps))


def check_box(south: float, west: float, north: float, east: float) -> None:
    """Refuse a box that is empty, lies outside the degrees there are, or crosses the 180th meridian."""
    for name, value in (("south", south), ("west", west), ("north", north), ("east", east)):
        limit = 90 if name in ("south", "north") else 180
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not -limit <= value <= limit:  # NaN fails the comparison
            raise ParameterError(f"{name} must be a number of degrees from -{limit} to {limit}; got {value!r}.")
    if not south < north:
        raise ParameterError(f"south must lie below north; got south {south:g} and north {north:g}.")
    if not west < east:
        raise ParameterError(
            f"west must lie left of east; got west {west:g} and east {east:g}. A box across the 180th meridian is not taken: "
            "cut it in two."
        )


def _count(extent_in_cells: float) -> float:
    """Return how many cells cover an extent; a float, because absurd parameters give infinity."""
    return max(1.0, np.ceil(extent_in_cells - _SLIVER))
