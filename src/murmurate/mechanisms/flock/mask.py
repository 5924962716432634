"""Mask: public places where trips may be, such as land, as a fine raster of the grid's cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError, ParameterError
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork, read_roads
from murmurate.spaces.zones import Zones

PART_M = 60.0
"""Side of a raster square in metres, about: a street and its houses. Chosen by hand."""
MAX_PARTS = 8
"""Most squares along a side of a grid cell. Chosen by hand."""
MAX_SQUARES = 2_000_000
"""Most squares of a raster; with more, they are wider. Chosen by hand for its time."""
POLYGON_FILES = (".geojson", ".json", ".gpkg", ".parquet", ".zip", ".shp")
"""Endings of files that may hold polygons; they may hold roads as well. All others are road files."""


def read_mask(words: str) -> Zones | RoadNetwork:
    """Read a mask: `zones:FILE`, `road:FILE`, or a file of polygons or roads."""
    if words.partition(":")[0] in ("zones", "road"):
        return parse(words)  # type: ignore[return-value]
    if not words.lower().endswith(POLYGON_FILES):
        return read_roads(words)
    try:
        return Zones.read(words)
    except InputError as error:
        try:
            return read_roads(words)
        except InputError:
            raise error from None


@dataclass(frozen=True, eq=False)
class Mask:
    """Raster of the squares in which trips may be."""

    open: NDArray[np.bool_]
    """[square from the south, square from the west]"""
    parts: int
    """Squares along a side of a grid cell."""

    @classmethod
    def over(cls, given: Zones | RoadNetwork, grid: Grid) -> Mask:
        """Return the raster over a grid; refuse a mask that leaves nothing of it."""
        parts = max(1, min(ceil(grid.cell_m / PART_M), MAX_PARTS, isqrt(MAX_SQUARES // grid.n_cells)))
        shape = grid.rows * parts, grid.columns * parts
        found = _near_roads(given, grid, shape, parts) if isinstance(given, RoadNetwork) else _within(given, grid, shape, parts)
        tall, wide = (grid.north - grid.south) / grid.lat_step, (grid.east - grid.west) / grid.lng_step
        found[np.arange(1, shape[0] + 1) > tall * parts + 1e-6] = False  # squares beyond the edge of the box
        found[:, np.arange(1, shape[1] + 1) > wide * parts + 1e-6] = False
        if not found.any():
            raise ParameterError(
                f"the mask ({given.spec()}) covers nothing of the box {grid.spec()}. Give polygons of land, or roads, that lie "
                "in it; coordinates are degrees, longitude first in GeoJSON."
            )
        return cls(found, parts)

    @cached_property
    def share(self) -> Floats:
        """Return [grid cell] the share of its area where trips may be."""
        rows, columns = (size // self.parts for size in self.open.shape)
        return self.open.reshape(rows, self.parts, columns, self.parts).mean(axis=(1, 3)).ravel()

    def moved(self, y: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Move points (in grid cells) from closed squares to the nearest open one, of their own cell where it has one."""
        row, column = self._square(y, x)
        target = np.divmod(self._target[row, column], self.open.shape[1])
        stays = (target[0] == row) & (target[1] == column)
        # not onto the edge of a square, where rounding may decide on which side a point lies
        within = (np.clip(at * self.parts - own, 0.01, 0.99) for at, own in ((y, row), (x, column)))
        to_y, to_x = ((to + part) / self.parts for to, part in zip(target, within, strict=True))
        return np.where(stays, y, to_y), np.where(stays, x, to_x)

    def closed(self, y: Floats, x: Floats) -> NDArray[np.bool_]:
        """Return whether points lie where trips may not be."""
        return ~self.open[self._square(y, x)]

    def _square(self, y: Floats, x: Floats) -> tuple[Integers, Integers]:
        """Return row and column of the squares of points."""
        rows, columns = self.open.shape
        return (
            np.clip((y * self.parts).astype(np.int64), 0, rows - 1),
            np.clip((x * self.parts).astype(np.int64), 0, columns - 1),
        )

    @cached_property
    def _target(self) -> Integers:
        """Return [square] the open square that points of it move to: itself where it is open."""
        from scipy.ndimage import distance_transform_edt

        rows, columns = self.open.shape
        near = distance_transform_edt(~self.open, return_distances=False, return_indices=True)
        target = (near[0] * columns + near[1]).astype(np.int64)
        # cells that are partly open keep their points: squares of a cell are compared with each other
        parts = self.parts

        def by_cell(squares: NDArray[Any]) -> NDArray[Any]:
            """Return [grid cell, square of it]."""
            return squares.reshape(rows // parts, parts, columns // parts, parts).transpose(0, 2, 1, 3).reshape(-1, parts**2)

        cells, number = by_cell(self.open), by_cell(np.arange(rows * columns))
        partly = np.flatnonzero(cells.any(axis=1) & ~cells.all(axis=1))
        place = np.stack(np.divmod(np.arange(parts**2), parts), axis=1)
        apart = ((place[:, None] - place[None]) ** 2).sum(axis=2)
        flat = target.ravel()
        for own in range(parts**2):  # one square of every such cell at a time, so that memory stays small
            chosen = np.where(cells[partly], apart[own], apart.max() + 1).argmin(axis=1)
            flat[number[partly, own]] = number[partly, chosen]
        return flat.reshape(rows, columns)


def _within(zones: Zones, grid: Grid, shape: tuple[int, int], parts: int) -> NDArray[np.bool_]:
    """Return the squares whose corners and centre lie in the polygons."""
    import shapely

    whole = shapely.union_all(zones.shapes)
    shapely.prepare(whole)

    def inside(shift: float, more: int) -> NDArray[np.bool_]:
        """Return whether points of a lattice lie in the polygons."""
        lat = grid.south + (np.arange(shape[0] + more) + shift) * grid.lat_step / parts
        lng = grid.west + (np.arange(shape[1] + more) + shift) * grid.lng_step / parts
        return np.asarray(shapely.contains_xy(whole, *np.meshgrid(lng, lat)))

    corner = inside(0.0, 1)
    return corner[:-1, :-1] & corner[1:, :-1] & corner[:-1, 1:] & corner[1:, 1:] & inside(0.5, 0)


def _near_roads(roads: RoadNetwork, grid: Grid, shape: tuple[int, int], parts: int) -> NDArray[np.bool_]:
    """Return the squares that a road passes, and those beside them."""
    from scipy.ndimage import binary_dilation

    found = np.zeros(shape, dtype=bool)
    y, x = (roads.shape_lat - grid.south) / grid.lat_step * parts, (roads.shape_lng - grid.west) / grid.lng_step * parts
    same = np.ones(max(len(y) - 1, 0), dtype=bool)
    same[roads.shape_offsets[1:-1] - 1] = False  # from the last vertex of a link to the first of the next
    first = np.flatnonzero(same)
    pieces = np.maximum(np.ceil(2 * np.hypot(y[first + 1] - y[first], x[first + 1] - x[first])), 1).astype(np.int64)
    at = np.repeat(first, pieces + 1)
    along = (np.arange(len(at)) - np.repeat(np.cumsum(pieces + 1) - pieces - 1, pieces + 1)) / np.repeat(pieces, pieces + 1)
    row, column = (np.floor(v[at] + along * (v[at + 1] - v[at])).astype(np.int64) for v in (y, x))
    inside = (row >= 0) & (row < shape[0]) & (column >= 0) & (column < shape[1])
    found[row[inside], column[inside]] = True
    return np.asarray(binary_dilation(found, np.ones((3, 3), dtype=bool)))
