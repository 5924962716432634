"""Convert trips, private or synthetic, to tracks: coarse cells, hour, points, diameter and length.

Fine cells are the cells of the public grid. Coarse cells are square blocks of them, whose size `rounds.block_of` chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.asking import Part
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import SECOND_US, main_hour, visited_cells
from murmurate.mechanisms.flock.mask import Mask
from murmurate.spaces.grid import Grid
from murmurate.synthesis.moves import Neighbourhood
from murmurate.synthesis.sequences import CellTrips

WIDTH_DIRECTIONS = 16
"""Directions in which the width of a trip is measured; 16 underestimate a diameter by at most half a per cent."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Public definition of all bins: a function of parameters and earlier noisy counts."""

    grid: Grid
    block: int
    """Grid cells along a side of a coarse cell."""
    reach: int
    """Largest number of coarse cells a step may cross, by rows or columns."""
    hours: int
    max_cells: int
    stride: float = 0.5
    """Coarse cells between two points of a typical trip; the larger, the more often a step crosses a corner."""
    mask: Mask | None = None
    """Where trips may be; None: everywhere in the box."""

    @cached_property
    def rows(self) -> int:
        """Return the rows of coarse cells."""
        return -(-self.grid.rows // self.block)

    @cached_property
    def columns(self) -> int:
        """Return the columns of coarse cells."""
        return -(-self.grid.columns // self.block)

    @cached_property
    def around(self) -> Neighbourhood:
        """Return the coarse cells that one step can reach."""
        return Neighbourhood(rows=self.rows, columns=self.columns, reach=self.reach)

    @property
    def n_coarse(self) -> int:
        """Return the number of coarse cells."""
        return self.rows * self.columns

    @property
    def coarse_m(self) -> float:
        """Return the side of a coarse cell in metres."""
        return self.grid.cell_m * self.block

    @cached_property
    def area(self) -> Floats:
        """Return [grid cell] the area in the box and the mask, in whole cells: the last row and column are cut."""
        if self.mask is not None:
            return self.mask.share
        tall, wide = (np.minimum(edge - np.arange(size), 1.0) for edge, size in zip(self.top, self._shape, strict=True))
        return np.outer(tall, wide).ravel()

    @cached_property
    def coarse_area(self) -> Floats:
        """Return [coarse cell] the area that lies in the box, in whole grid cells."""
        of_fine = self.coarse_of(np.arange(self.grid.n_cells))
        return np.bincount(of_fine, weights=self.area, minlength=self.n_coarse).astype(np.float64)

    @property
    def _shape(self) -> tuple[int, int]:
        """Return the rows and columns of the grid."""
        return self.grid.rows, self.grid.columns

    def coarse_of(self, fine: Integers) -> Integers:
        """Return the coarse cell of each grid cell."""
        return (fine // self.grid.columns // self.block) * self.columns + fine % self.grid.columns // self.block

    def fine_at(self, y: Floats, x: Floats) -> Integers:
        """Return the grid cell at points given in grid cells north and east of the box's south-west corner."""
        row = np.clip(y.astype(np.int64), 0, self.grid.rows - 1)
        return row * self.grid.columns + np.clip(x.astype(np.int64), 0, self.grid.columns - 1)

    def coarse_at(self, y: Floats, x: Floats) -> Integers:
        """Return the coarse cell at such points."""
        return self.coarse_of(self.fine_at(y, x))

    def place(self, lat: Floats, lng: Floats) -> tuple[Floats, Floats]:
        """Convert degrees to grid cells north and east of the box's south-west corner."""
        return (lat - self.grid.south) / self.grid.lat_step, (lng - self.grid.west) / self.grid.lng_step

    def degrees(self, y: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Convert grid cells north and east of the corner to latitude and longitude, clipped to the box."""
        lat = np.clip(self.grid.south + y * self.grid.lat_step, self.grid.south, self.grid.north)
        return lat, np.clip(self.grid.west + x * self.grid.lng_step, self.grid.west, self.grid.east)

    def settled(self, y: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return points moved into the box and the mask."""
        y, x = np.clip(y, 0.0, self.top[0]), np.clip(x, 0.0, self.top[1])
        return (y, x) if self.mask is None else self.mask.moved(y, x)

    @cached_property
    def top(self) -> tuple[float, float]:
        """Return the height and width of the box in grid cells; the last row and column are cut at its edge."""
        grid = self.grid
        return (grid.north - grid.south) / grid.lat_step, (grid.east - grid.west) / grid.lng_step


@dataclass(frozen=True, eq=False)
class Tracks:
    """Trips as sequences of coarse cells (`walks`) and of points `y`, `x` in grid cells, with offsets of their own."""

    walks: CellTrips
    y: Floats
    x: Floats
    offsets: Integers
    source: Integers
    """[trip] grid cell of the first point."""
    destination: Integers
    """[trip] grid cell of the last point."""
    diameter_m: Floats
    length_m: Floats
    repeats: NDArray[np.bool_]
    """[trip] whether two consecutive points are equal."""

    @property
    def n(self) -> int:
        """Return the number of trips."""
        return len(self.offsets) - 1

    @property
    def apart_cells(self) -> Floats:
        """Return the distance between the ends of each trip, in grid cells."""
        first, last = self.offsets[:-1], self.offsets[1:] - 1
        return np.hypot(self.y[last] - self.y[first], self.x[last] - self.x[first])

    def take(self, chosen: Integers) -> Tracks:
        """Return the chosen trips, in the given order."""
        offsets, index = taken(self.offsets, chosen)
        values: dict[str, Any] = {
            name: getattr(self, name)[chosen] for name in ("source", "destination", "diameter_m", "length_m", "repeats")
        }
        return Tracks(walks=self.walks.take(chosen), y=self.y[index], x=self.x[index], offsets=offsets, **values)


def taken(offsets: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Return the offsets and row numbers of chosen trips."""
    sizes = np.diff(offsets)[chosen]
    out = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return out, np.repeat(offsets[:-1][chosen] - out[:-1], sizes) + np.arange(out[-1])


def measured(
    walks: CellTrips, y: Floats, x: Floats, offsets: Integers, *, source: Integers, destination: Integers, cell_m: float
) -> Tracks:
    """Return tracks with their diameters and lengths computed."""
    diameter, length, repeats = extents(y, x, offsets, WIDTH_DIRECTIONS)
    return Tracks(walks, y, x, offsets, source, destination, diameter * cell_m, length * cell_m, repeats)


@njit(cache=True, nogil=True)
def extents(y: Floats, x: Floats, offsets: Integers, directions: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the diameter (greatest width over a few directions), the length, and whether a point is repeated, of each trip."""
    n = len(offsets) - 1
    diameter, length = np.zeros(n), np.zeros(n)
    repeats = np.zeros(n, dtype=np.bool_)
    along = np.empty(2 * directions)
    for k in range(directions):
        along[k], along[directions + k] = np.cos(np.pi * k / directions), np.sin(np.pi * k / directions)
    reach = np.empty(2 * directions)  # least and greatest value in every direction: all directions at once
    for trip in range(n):
        for k in range(directions):
            reach[k], reach[directions + k] = np.inf, -np.inf
        for at in range(offsets[trip], offsets[trip + 1]):
            for k in range(directions):
                value = x[at] * along[k] + y[at] * along[directions + k]
                reach[k], reach[directions + k] = min(reach[k], value), max(reach[directions + k], value)
        for k in range(directions):
            diameter[trip] = max(diameter[trip], reach[directions + k] - reach[k])
        for at in range(offsets[trip] + 1, offsets[trip + 1]):
            step = np.sqrt((y[at] - y[at - 1]) ** 2 + (x[at] - x[at - 1]) ** 2)
            length[trip] += step
            repeats[trip] |= step == 0.0
    return diameter, length, repeats


# -- private trips as tracks: a map of each trip by itself -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Inside:
    """Points of trips that lie in the public box; trips without one are left out."""

    trip: Integers
    """[kept trip] position among the trips of the part."""
    offsets: Integers
    lat: Floats
    lng: Floats
    first: Integers
    """[kept trip] first point in the box, among the points of the part."""
    last: Integers
    """[kept trip] last point in the box, among the points of the part."""


def inside_box(trips: Trips, grid: Grid) -> Inside:
    """Cut trips to the box."""
    lat, lng = np.ascontiguousarray(trips.lat), np.ascontiguousarray(trips.lng)
    inside = (lat >= grid.south) & (lat <= grid.north) & (lng >= grid.west) & (lng <= grid.east)
    if inside.all():
        trip = np.arange(trips.n_trips, dtype=np.int64)
        return Inside(trip, trips.offsets, lat, lng, trips.offsets[:-1], trips.offsets[1:] - 1)
    before = np.concatenate([[0], np.cumsum(inside)])
    sizes = before[trips.offsets[1:]] - before[trips.offsets[:-1]]
    trip = np.flatnonzero(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes[trip])]).astype(np.int64)
    points = np.flatnonzero(inside)
    return Inside(trip, offsets, lat[inside], lng[inside], points[offsets[:-1]], points[offsets[1:] - 1])


def hours_of(trips: Trips, cut: Inside, hours: int, slot_s: int) -> Integers:
    """Return the part of the day (0 ... hours - 1) in which most of each kept trip lies."""
    if hours == 1:
        return np.zeros(len(cut.trip), dtype=np.int64)
    if not trips.has_time:
        return trips.local_hour[cut.first] * hours // 24
    wall = trips.table["datetime"].gather(cut.first).dt.convert_time_zone(trips.time_zone).dt.replace_time_zone(None)
    lasts_us = trips.time_us[cut.last] - trips.time_us[cut.first] + slot_s * SECOND_US
    return main_hour(wall.to_physical().to_numpy(), lasts_us) * hours // 24


@dataclass(frozen=True, eq=False)
class Read:
    """Private tracks, the unit of each, and the duration of each in seconds (None without times)."""

    tracks: Tracks
    unit: Integers
    seconds: Floats | None


@dataclass(frozen=True)
class ReadTracks:
    """Convert the trips of a part to tracks."""

    frame: Frame
    slot_s: int

    def __call__(self, part: Part) -> Read:
        """Convert each trip by itself."""
        frame, trips, grid = self.frame, part.trips, self.frame.grid
        cut = inside_box(trips, grid)
        coarse = Grid(grid.south, grid.west, grid.north, grid.east, frame.coarse_m)
        plain = Trips._trusted(trips.table.drop("cell", strict=False), time_zone=trips.time_zone, offsets=trips.offsets)
        visits = visited_cells(plain, coarse, slot_s=self.slot_s, min_visits=1)  # by coordinates, whatever cells are carried
        row, column = np.divmod(visits.cells, coarse.columns)  # the coarse grid may have a sliver less than whole blocks
        walks = CellTrips(row * frame.columns + column, visits.offsets, hours_of(trips, cut, frame.hours, self.slot_s))
        y, x = frame.place(cut.lat, cut.lng)
        first, last = cut.offsets[:-1], cut.offsets[1:] - 1
        tracks = measured(
            walks, y, x, cut.offsets, source=frame.fine_at(y[first], x[first]), destination=frame.fine_at(y[last], x[last]),
            cell_m=grid.cell_m,
        )  # fmt: skip
        seconds = (trips.time_us[cut.last] - trips.time_us[cut.first]) / 1e6 if trips.has_time else None
        return Read(tracks, part.unit[cut.trip], seconds)


@dataclass(frozen=True, eq=False)
class End:
    """Grid cells of the two ends of trips, and their hours."""

    source: Integers
    destination: Integers
    hour: Integers


@dataclass(frozen=True)
class ReadUnits:
    """Find the trips of a part that have a point in the box."""

    grid: Grid

    def __call__(self, part: Part) -> Integers:
        """Return the unit of each of these trips."""
        return part.unit[inside_box(part.trips, self.grid).trip]
