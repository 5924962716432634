"""Hold two sets of trips side by side: what every metric reads, computed once and shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers, Places
from murmurate.core.trips import Trips
from murmurate.errors import Fault, InputError
from murmurate.metrics.bootstrap import summary
from murmurate.metrics.mergeable import Distribution, LabelCounts, digest
from murmurate.metrics.rectangles import count_between
from murmurate.profiles.days import DailyTraces, daily_traces
from murmurate.spaces.grid import Grid
from murmurate.spaces.sphere import METRES_PER_DEGREE, step_m

Lines = tuple[Floats, Floats, Integers]
"""Two coordinates of every point, and the offsets of the trips in them."""


class NotMeasurable(Exception):
    """Raised where data do not carry what a metric needs; the message is the reason a reader is shown."""


@dataclass(frozen=True, eq=False)
class Side:
    """Hold one set of trips as the arrays that metrics read."""

    trips: Trips
    grid: Places

    @cached_property
    def degrees(self) -> tuple[Floats, Floats]:
        """Latitude and longitude of every point; centres of cells or links where there are no coordinates."""
        trips = self.trips
        if trips.has_coordinates:
            return np.ascontiguousarray(trips.lat), np.ascontiguousarray(trips.lng)
        if "cell" in trips.columns:
            return (trips.space or self.grid).centre(trips.cell)
        if trips.space is None:
            raise InputError("the trips have links and no road network to tell where they are.", "give them their space.")
        return trips.space.centre(trips.link)

    @property
    def track(self) -> Lines:
        """Latitudes, longitudes and offsets of trips, for kernels."""
        return *self.degrees, self.offsets

    @property
    def lines(self) -> Lines:
        """Metres east, metres north and offsets of trips, for kernels."""
        return *self.xy, self.offsets

    @cached_property
    def xy(self) -> tuple[Floats, Floats]:
        """Metres east and north of the middle of the box of all places."""
        return to_metres(self.grid, *self.degrees)

    @cached_property
    def cell(self) -> Integers:
        """The place of every point; -1 outside."""
        trips = self.trips
        if "cell" in trips.columns:
            space = trips.space
            same = space is not None and space.spec() == self.grid.spec()
            if same or (space is None and not trips.has_coordinates):
                return self._known_cells(trips.cell)
        return self.grid.locate(*self.degrees)

    def _known_cells(self, cell: Integers) -> Integers:
        wrong = (cell < -1) | (cell >= self.grid.n_cells)
        if wrong.any():
            row = int(wrong.argmax())
            reason = f"{self.grid.spec()} has the cells 0 to {self.grid.n_cells - 1:,}; found {cell[row]:,}"
            raise InputError([Fault(reason, row=row, column="cell")], "give the grid that these cells belong to.")
        return cell

    @cached_property
    def squares(self) -> tuple[Grid, Integers]:
        """Equal squares over the box of all places, about as many, and the square that the centre of each place lies in.

        Rectangles are counted in them. The squares of a grid are its cells.
        """
        places = self.grid
        if isinstance(places, Grid):
            return places, np.arange(places.n_cells)
        south, west, north, east = places.box
        (left, right), (low, high) = to_metres(places, np.array([south, north]), np.array([west, east]))
        squares = Grid(south, west, north, east, max(float(((right - left) * (high - low) / places.n_cells) ** 0.5), 1.0))
        lat, lng = places.centre(np.arange(places.n_cells))  # a hexagon at the edge may have its centre outside
        return squares, squares.locate(np.clip(lat, south, north), np.clip(lng, west, east))

    @property
    def offsets(self) -> Integers:
        """Trip k is points offsets[k]:offsets[k + 1]."""
        return self.trips.offsets

    @property
    def n(self) -> int:
        """How many trips."""
        return self.trips.n_trips

    @cached_property
    def merged(self) -> tuple[Integers, Integers]:
        """Cell strings with consecutive repeats merged, and their offsets; -1 stands for a stretch outside."""
        return merge_repeats(self.cell, self.offsets)

    @cached_property
    def cells_per_trip(self) -> Integers:
        """Cells of each trip after merging, not counting what lies outside."""
        cells, offsets = self.merged
        inside = np.concatenate([[0], np.cumsum(cells >= 0)])
        return inside[offsets[1:]] - inside[offsets[:-1]]

    @cached_property
    def hour(self) -> Integers:
        """Local hour of each trip: the one that holds most of its points, the earlier one on a tie.

        An `hour` column has the last word: where visits were merged, it was taken while their durations were known.
        """
        given = "hour" in self.trips.columns
        hour = np.ascontiguousarray(self.trips.table["hour"].to_numpy()) if given else self.point_hour
        return _most_frequent_hour(hour, self.offsets)

    @cached_property
    def point_hour(self) -> Integers:
        """Local hour of each point."""
        return np.ascontiguousarray(self.trips.local_hour)

    @cached_property
    def visits(self) -> Integers:
        """Points in each place."""
        return np.bincount(self.cell[self.cell >= 0], minlength=self.grid.n_cells)

    @cached_property
    def hours(self) -> Integers:
        """Points, and in a second row departures, in each local hour."""
        begins = self.point_hour[self.offsets[:-1]]
        return np.array([np.bincount(hour, minlength=24) for hour in (self.point_hour, begins)])

    @cached_property
    def length_m(self) -> Floats:
        """Great-circle length of each trip."""
        return trip_lengths(*self.track)

    @cached_property
    def duration_s(self) -> Floats:
        """Seconds from the first to the last point of each trip."""
        time = self.trips.time_us
        return (time[self.offsets[1:] - 1] - time[self.offsets[:-1]]) / 1e6

    @cached_property
    def speed_kmh(self) -> Floats:
        """Length over duration; NaN for a trip that takes no time."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.duration_s > 0, self.length_m / self.duration_s * 3.6, np.nan)

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """Cell of the first and of the last point of each trip; -1 outside."""
        return self.cell[self.offsets[:-1]], self.cell[self.offsets[1:] - 1]

    @cached_property
    def ends_xy(self) -> Floats:
        """x, y of the first and x, y of the last point of each trip: centres of cells, the point itself outside."""
        columns: list[Floats] = []
        for cell, at in zip(self.ends, (self.offsets[:-1], self.offsets[1:] - 1), strict=True):
            inside = cell >= 0
            middle = to_metres(self.grid, *self.grid.centre(np.where(inside, cell, 0)))
            columns += [np.where(inside, centre, own[at]) for centre, own in zip(middle, self.xy, strict=True)]
        return np.column_stack(columns)

    # -- what may also come from sums over parts (`SummedSide`) -------------------------------------------------------

    def distribution(self, name: str) -> Distribution:
        """Return the finite values of all trips: `length_m`, `duration_s` or `speed_kmh`."""
        values = getattr(self, name)
        return Distribution(values[np.isfinite(values)])

    @cached_property
    def trip_sizes(self) -> LabelCounts:
        """Number of trips for each number of cells and hour; the label is 24 times the number of cells, plus the hour."""
        return LabelCounts.of(self.cells_per_trip * 24 + self.hour)

    @cached_property
    def flows(self) -> LabelCounts:
        """Number of trips for each pair of origin and destination, by `flow_labels`."""
        return LabelCounts.of(self.flow_labels)

    @property
    def flow_labels(self) -> Integers:
        """For each trip that begins and ends inside: origin times `n_cells`, plus destination."""
        return self._inner_ends[0] * self.grid.n_cells + self._inner_ends[1]

    def zone_flows(self, zones: int) -> Integers:
        """Count trips between zones, where the box has `zones` x `zones` of them."""
        grid, square = self.squares
        origin, destination = (grid.row_column(square[end]) for end in self._inner_ends)
        one, other = (
            row * zones // grid.rows * zones + column * zones // grid.columns for row, column in (origin, destination)
        )
        return np.bincount(one * zones**2 + other, minlength=zones**4)

    def between(self, boxes: Integers) -> Integers:
        """Count trips between pairs of rectangles, each given by first and last row and column of origin and destination."""
        grid, square = self.squares
        ends = [np.divmod(square[end], grid.columns) for end in self._inner_ends]
        return count_between(np.column_stack([*ends[0], *ends[1]]), boxes)

    @cached_property
    def end_visits(self) -> Integers:
        """First and last points in each place."""
        ends = np.concatenate(self.ends)
        return np.bincount(ends[ends >= 0], minlength=self.grid.n_cells)

    def ends_of(self, hour: int | None = None) -> Floats:
        """Return `ends_xy` of the trips of an hour, or of all trips."""
        return self.ends_xy if hour is None else self.ends_xy[self.hour == hour]

    def same_ends(self, other: Side, hour: int | None = None) -> bool:
        """Return whether both have the same ends of trips in an hour, or in all hours, whatever the order of the trips."""
        return bool((self.ends_digest(hour)[:2] == other.ends_digest(hour)[:2]).all())

    def same_end_points(self, other: Side) -> bool:
        """Return whether both have the same first and last points, whatever trips they belong to."""
        return bool((self.ends_digest()[::2] == other.ends_digest()[::2]).all())

    def ends_digest(self, hour: int | None = None) -> NDArray[np.uint64]:
        """Return the `digest` of the trips of an hour, or of all hours."""
        return digest(self.ends_of(hour))

    @property
    def _inner_ends(self) -> tuple[Integers, Integers]:
        """Cells of the first and last point of each trip that begins and ends inside."""
        origin, destination = self.ends
        inside = (origin >= 0) & (destination >= 0)
        return origin[inside], destination[inside]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Hold a release beside its originals, on the same public places; `pairing[k]` is the original of released trip k."""

    original: Side
    released: Side
    pairing: NDArray[np.int64] | None = None
    seed: int = 0
    """Fixes which trips and queries are sampled, so that scores repeat; no privacy rests on it."""
    summarise: Callable[..., list[Score]] = summary
    """Makes scores of a measure taken trip by trip; a study that repeats a release many times puts its own here."""

    @property
    def grid(self) -> Places:
        """Return the places that both sides are counted in."""
        return self.original.grid

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.original, self.released

    def generator(self, purpose: int) -> np.random.Generator:
        """Random numbers for one purpose; another purpose draws others."""
        return np.random.default_rng([self.seed, purpose])

    @cached_property
    def days(self) -> tuple[DailyTraces, DailyTraces]:
        """Whole days of both sides."""
        original, released = (daily_traces(side.trips, self.grid, self.grid.n_cells) for side in self.sides)
        return original, released

    @cached_property
    def paired(self) -> tuple[Integers, Integers]:
        """Positions of released trips that have an original, and of those originals."""
        if self.pairing is None:
            raise NotMeasurable("no pairing of released trips with their originals was given")
        known = np.flatnonzero(self.pairing >= 0)
        if not len(known):
            raise NotMeasurable("the pairing names no original for any released trip")
        return known, self.pairing[known]

    def missing(self) -> dict[str, str]:
        """Return what these data lack of what metrics need, each with the sentence that says so."""
        missing: dict[str, str] = {}
        if self.pairing is None:
            missing["pairing"] = "released trips are not paired with originals"
        for name, side in (("original", self.original), ("released", self.released)):
            if not side.trips.has_time:
                missing["time"] = f"the {name} trips have no timestamps"
                if "hour" not in side.trips.columns:
                    missing["hour"] = f"the {name} trips have no hour of day"
        return missing


def merge_repeats(cell: Integers, offsets: Integers) -> tuple[Integers, Integers]:
    """Return strings of cells without consecutive repeats, and the offsets of the trips in them.

    >>> merge_repeats(np.array([5, 5, 7, 7, 5]), np.array([0, 3, 5]))
    (array([5, 7, 7, 5]), array([0, 2, 4]))
    """
    keep = np.ones(len(cell), dtype=bool)
    keep[1:] = cell[1:] != cell[:-1]
    keep[offsets[:-1]] = True
    before = np.concatenate([[0], np.cumsum(keep)])
    return cell[keep], before[offsets]


def to_metres(places: Places, lat: Floats, lng: Floats) -> tuple[Floats, Floats]:
    """Return metres east and north of the middle of the box of all places, on one scale (x at the middle latitude)."""
    south, west, north, east = places.box
    lat0, lng0 = (south + north) / 2, (west + east) / 2
    return (lng - lng0) * (METRES_PER_DEGREE * np.cos(np.radians(lat0))), (lat - lat0) * METRES_PER_DEGREE


@njit(cache=True, nogil=True)
def trip_lengths(lat: Floats, lng: Floats, offsets: Integers) -> Floats:
    """Return the great-circle metres along each trip."""
    lengths = np.zeros(len(offsets) - 1)
    for trip in range(len(offsets) - 1):
        for point in range(offsets[trip] + 1, offsets[trip + 1]):
            lengths[trip] += step_m(lat[point - 1], lng[point - 1], lat[point], lng[point])
    return lengths


@njit(cache=True, nogil=True)
def _most_frequent_hour(hour: Integers, offsets: Integers) -> Integers:
    result = np.zeros(len(offsets) - 1, dtype=np.int64)
    count = np.zeros(24, dtype=np.int64)
    for trip in range(len(offsets) - 1):
        count[:] = 0
        for point in range(offsets[trip], offsets[trip + 1]):
            count[hour[point]] += 1
        best = hour[offsets[trip]]
        for point in range(offsets[trip], offsets[trip + 1]):
            if count[hour[point]] > count[best]:
                best = hour[point]
        result[trip] = best
    return result
