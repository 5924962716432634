"""Turn points into visited cells: minute slots, filled gaps, merged repeats, the hour of a trip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numba import njit

from murmurate.core.parameters import positive, whole
from murmurate.core.space import Integers, Places
from murmurate.core.trips import TIME, Trips
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.pipeline import Removed, difference
from murmurate.spaces.grid import Grid

SECOND_US, HOUR_US = 1_000_000, 3_600_000_000
"""Microseconds in a second and in an hour."""


def to_cells(
    trips: Trips, grid: Grid, *, slot_s: int | None = 60, fill_gaps_under_s: int = 300, min_visits: int = 2, hour: bool = False
) -> Trips:
    """Return sequences of visited cells: one row a visit, `datetime` of entry, and with `hour` that of the whole trip.

    Timed points are gathered in slots of `slot_s` seconds (the most frequent cell of each), gaps under `fill_gaps_under_s`
    are filled, repeats merged and trips of fewer than `min_visits` dropped; with `slot_s=None`, or without times, every
    point is a visit. Trips that carry
    cells of this grid already only have repeats merged.

    >>> import datetime as dt
    >>> start = dt.datetime(2024, 5, 1, 8, tzinfo=dt.timezone.utc)
    >>> table = {"uid": "a", "tid": 1, "datetime": [start + dt.timedelta(minutes=k) for k in (0, 1, 3)],
    ...          "lat": [0.001, 0.001, 0.001], "lng": [0.001, 0.011, 0.031]}
    >>> to_cells(Trips(pl.DataFrame(table)), Grid(0, 0, 0.1, 0.1, 1000)).cell
    array([0, 1, 2, 3])
    """
    if "cell" in trips.columns and trips.space == grid:
        cells = _known_cells(trips, grid)
    elif trips.has_time and slot_s is not None:
        cells = fill_gaps(slots(trips, grid=grid, slot_s=slot_s)[0], slot_s=slot_s, under_s=fill_gaps_under_s)[0]
    else:
        cells = locate(trips, grid=grid)[0]
    if hour and "hour" not in cells.columns:
        cells = trip_hour(cells, visit_s=slot_s or 0)[0]
    cells = merge_repeats(cells)[0]
    return cells.take_trips(np.diff(cells.offsets) >= min_visits)


@dataclass(frozen=True, eq=False)
class Visits:
    """Cells that trips visit, as arrays: the content of `to_cells` without a table."""

    cells: Integers
    """Visited cells, repeats merged, trip after trip."""
    offsets: Integers
    """Kept trip k visits cells[offsets[k]:offsets[k + 1]]."""
    trip: Integers
    """[kept trip] its position among the trips that were read."""
    point: Integers
    """[kept trip] the point that its first visit comes from, as a position among the points that were read."""
    start_us: Integers | None
    """[kept trip] UTC time of its first visit (the start of that slot); None where the trips carry no times."""
    last_us: Integers | None
    """[kept trip] UTC time of its last visit before repeats were merged."""


def visited_cells(
    trips: Trips, grid: Places, *, slot_s: int | None = 60, fill_gaps_under_s: int = 300, min_visits: int = 2
) -> Visits:
    """Find the cells each trip visits, exactly as `to_cells` does, but as arrays, for large inputs.

    >>> table = {"uid": "a", "tid": 1, "lat": [0.001, 0.001, 0.001], "lng": [0.001, 0.001, 0.031]}
    >>> visited_cells(Trips(pl.DataFrame(table)), Grid(0, 0, 0.1, 0.1, 1000)).cells
    array([0, 3])
    """
    known = "cell" in trips.columns and trips.space == grid
    cell = trips.cell if known else grid.locate(trips.lat, trips.lng)
    if known or not trips.has_time or slot_s is None:
        point = np.flatnonzero((cell >= 0) & (cell < grid.n_cells))
        cell = cell[point]
        time_us = trips.time_us[point] if trips.has_time else None
    else:
        whole("slot_s", slot_s, at_most=86_400)
        positive("fill_gaps_under_s", fill_gaps_under_s, at_most=86_400)
        slot_us = slot_s * SECOND_US
        point, slot, cell = _most_frequent(trips.offsets, trips.time_us // slot_us, cell)
        before, slot, cell = _filled(grid, np.searchsorted(point, trips.offsets), slot, cell, fill_gaps_under_s / slot_s)
        point, time_us = point[before], slot * slot_us
    offsets = np.searchsorted(point, trips.offsets)
    cells, merged, kept = _merged(offsets, cell, min_visits)
    first, last = offsets[kept], offsets[kept + 1] - 1
    start_us, last_us = (None, None) if time_us is None else (time_us[first], time_us[last])
    return Visits(cells, merged, kept, point[first], start_us, last_us)


def _filled(
    places: Places, offsets: Integers, slot: Integers, cell: Integers, under_slots: float
) -> tuple[Integers, Integers, Integers]:
    """Fill short gaps: rows and columns of a grid, or straight lines between centres of other places.

    Returns the visit before each slot, the slot and its place.
    """
    if isinstance(places, Grid):
        row, column = np.divmod(cell, places.columns)
        before, slot, row, column = _interpolate(offsets, slot, row, column, under_slots)
        return before, slot, row * places.columns + column
    lat, lng = (np.rint(degrees * 1e6).astype(np.int64) for degrees in places.centre(cell))
    before, slot, lat, lng = _interpolate(offsets, slot, lat, lng, under_slots)
    cell = cell[before]
    new = np.flatnonzero(before[1:] == before[:-1]) + 1
    cell[new] = places.locate(lat[new] / 1e6, lng[new] / 1e6)
    inside = cell >= 0  # a line may cross what belongs to no place
    return before[inside], slot[inside], cell[inside]


def visit_hours(trips: Trips, visits: Visits, *, visit_s: int = 0) -> Integers:
    """Return the local hour of day (0 to 23) of each kept trip: its `hour` column, or else as `trip_hour` does."""
    if "hour" in trips.columns:
        return trips.table["hour"].gather(visits.point).cast(pl.Int64).to_numpy()
    if visits.start_us is None or visits.last_us is None:
        raise InputError("the hour of a trip needs a datetime; these trips have none.")
    start = pl.Series(visits.start_us).cast(TIME).dt.convert_time_zone(trips.time_zone).dt.replace_time_zone(None)
    return main_hour(start.to_physical().to_numpy(), visits.last_us - visits.start_us + visit_s * SECOND_US)


def _known_cells(trips: Trips, grid: Grid) -> Trips:
    """Return the visits of cells that the grid has; others lie outside the public box."""
    known = (trips.cell >= 0) & (trips.cell < grid.n_cells)
    return trips if known.all() else Trips(trips.table.filter(pl.Series(known)), grid, trips.time_zone)


def locate(trips: Trips, *, grid: Grid) -> tuple[Trips, Removed]:
    """Find every point's cell; points outside the public box are left out."""
    cell = grid.locate(trips.lat, trips.lng)
    inside = cell >= 0
    table = trips.table.with_columns(pl.Series("cell", cell)).drop("lat", "lng").filter(pl.Series(inside))
    located = Trips(table, grid, trips.time_zone)
    return located, difference("locate", trips, located, "points outside the public box")


def slots(trips: Trips, *, grid: Grid, slot_s: int = 60) -> tuple[Trips, Removed]:
    """Return one row for each slot of time with a point in the box: its most frequent cell, the first seen where tied.

    `datetime` becomes the start of the slot of `slot_s` seconds; slots are counted from midnight UTC. Carried columns are
    dropped.
    """
    whole("slot_s", slot_s, at_most=86_400)
    if not trips.has_time:
        raise InputError("slots of time need a datetime; these trips have none. Use slot_s=None to keep every point.")
    cell = grid.locate(trips.lat, trips.lng)
    first, slot, chosen = _most_frequent(trips.offsets, trips.time_us // (slot_s * SECOND_US), cell)
    slotted = _cell_trips(trips, first, slot * (slot_s * SECOND_US), chosen, grid)
    return slotted, difference("slots", trips, slotted, f"points outside the box, or merged into slots of {slot_s} s")


def fill_gaps(trips: Trips, *, slot_s: int = 60, under_s: int = 300) -> tuple[Trips, Removed]:
    """Fill missing slots between two visits less than `under_s` apart with the cells on the straight line between them.

    Slots are `slot_s` seconds long. The line runs between rows and columns and is truncated to whole ones.
    """
    whole("slot_s", slot_s, at_most=86_400)
    positive("under_s", under_s, at_most=86_400)
    grid = trips.space
    if not isinstance(grid, Grid):
        raise ParameterError(f"cells of a grid are needed; the space of these trips is {grid!r}.")
    row, column = grid.row_column(trips.cell)
    slot = trips.time_us // (slot_s * SECOND_US)
    first, filled_slot, filled_row, filled_column = _interpolate(trips.offsets, slot, row, column, under_s / slot_s)
    cell = grid.cell_at(filled_row, filled_column)
    filled = _cell_trips(trips, first, filled_slot * (slot_s * SECOND_US), cell, grid)
    return filled, difference("fill_gaps", trips, filled, f"slots filled in where a gap was under {under_s} s")


def merge_repeats(trips: Trips) -> tuple[Trips, Removed]:
    """Merge consecutive visits of one cell into one, with the time of the first."""
    cell = trips.cell
    new = np.ones(len(cell), dtype=bool)
    new[1:] = cell[1:] != cell[:-1]
    new[trips.offsets[:-1]] = True
    merged = trips if new.all() else trips.take_points(new)
    return merged, difference("merge_repeats", trips, merged, "a visit of the same cell as before")


def trip_hour(trips: Trips, *, visit_s: int = 0) -> tuple[Trips, Removed]:
    """Add `hour`: the local hour of day in which the larger part of the trip lies, the earlier where equal.

    The trip lasts from its first to its last time and `visit_s` more (the length of a slot).
    """
    if not trips.has_time:
        raise InputError("the hour of a trip needs a datetime; these trips have none.")
    wall = trips.table["datetime"].dt.convert_time_zone(trips.time_zone).dt.replace_time_zone(None)
    wall_us = wall.gather(trips.offsets[:-1]).to_physical().to_numpy()
    lasts_us = trips.time_us[trips.offsets[1:] - 1] - trips.time_us[trips.offsets[:-1]] + visit_s * SECOND_US
    hour = main_hour(wall_us, lasts_us)
    timed = trips.with_columns({"hour": np.repeat(hour, np.diff(trips.offsets))})
    return timed, Removed("trip_hour", 0, 0, "nothing is removed")


def main_hour(start_us: Integers, lasts_us: Integers) -> Integers:
    """Return the hour of day (0 to 23) in which the larger part of each local time interval lies.

    >>> minute = 60_000_000
    >>> main_hour(np.array([1078, 1078]) * minute, np.array([4, 12]) * minute)  # from 17:58 for 4 and 12 minutes
    array([17, 18])
    """
    first_hour, into_us = np.divmod(start_us, HOUR_US)
    in_first = np.minimum(HOUR_US - into_us, lasts_us)
    in_second = np.minimum(lasts_us - in_first, HOUR_US)
    # A third hour can hold at most as much as the second, which is whole by then: it never wins.
    return np.asarray((first_hour + (in_second > in_first)) % 24)


def _cell_trips(trips: Trips, point: Integers, time_us: Integers, cell: Integers, grid: Grid) -> Trips:
    """Make cell trips whose rows belong to the trips of these points."""
    names = [name for name in ("uid", "tid", "hour") if name in trips.columns]
    table = trips.table.select(names)[point].with_columns(pl.Series("datetime", time_us).cast(TIME), pl.Series("cell", cell))
    return Trips(table, grid, trips.time_zone)


@njit(cache=True, nogil=True)
def _most_frequent(offsets: Integers, slot: Integers, cell: Integers) -> tuple[Integers, Integers, Integers]:
    """Return, for each trip and slot, a point of it, the slot, and its most frequent cell (first seen where tied)."""
    first, slots_, chosen = np.empty(len(slot), np.int64), np.empty(len(slot), np.int64), np.empty(len(slot), np.int64)
    n = 0
    for trip in range(len(offsets) - 1):
        low = offsets[trip]
        while low < offsets[trip + 1]:
            high = low + 1
            while high < offsets[trip + 1] and slot[high] == slot[low]:
                high += 1
            best = cell[low] if high == low + 1 else _mode(cell[low:high])
            if best >= 0:
                first[n], slots_[n], chosen[n] = low, slot[low], best
                n += 1
            low = high
    return first[:n], slots_[:n], chosen[:n]


@njit(cache=True, nogil=True)
def _mode(cells: Integers) -> int:
    """Return the most frequent of the cells that are not -1, the first seen where tied; -1 if there is none."""
    # Equal cells stand together once they are sorted, and the first seen of them in front. Shell's sort: short to compile, and
    # a huge slot of n points takes time in n^1.5 at most.
    n = len(cells)
    order = np.arange(n)
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, n):
            one, at = order[k], k
            while at >= gap and (
                cells[order[at - gap]] > cells[one] or (cells[order[at - gap]] == cells[one] and order[at - gap] > one)
            ):
                order[at] = order[at - gap]
                at -= gap
            order[at] = one
        gap //= 3
    best, best_count, best_seen = -1, 0, 0
    low = 0
    while low < n:
        high = low + 1
        while high < n and cells[order[high]] == cells[order[low]]:
            high += 1
        count, seen = high - low, order[low]
        if cells[order[low]] >= 0 and (count > best_count or (count == best_count and seen < best_seen)):
            best, best_count, best_seen = cells[order[low]], count, seen
        low = high
    return best


@njit(cache=True, nogil=True)
def _interpolate(
    offsets: Integers, slot: Integers, row: Integers, column: Integers, under_slots: float
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return each row and the slots missing after it, where the next visit of the trip is under `under_slots` away."""
    ahead = np.ones(len(slot), np.int64)
    for trip in range(len(offsets) - 1):
        for i in range(offsets[trip], offsets[trip + 1] - 1):
            gap = slot[i + 1] - slot[i]
            ahead[i] = gap if 1 < gap < under_slots else 1
    total = ahead.sum()
    point, new_slot = np.empty(total, np.int64), np.empty(total, np.int64)
    new_row, new_column = np.empty(total, np.int64), np.empty(total, np.int64)
    n = 0
    for i in range(len(slot)):
        parts = ahead[i]
        for k in range(parts):
            point[n], new_slot[n], new_row[n], new_column[n] = i, slot[i] + k, row[i], column[i]
            if k:
                # Integer division rounds down; rows and columns are never negative, so for them this truncates exactly.
                new_row[n] = (row[i] * parts + k * (row[i + 1] - row[i])) // parts
                new_column[n] = (column[i] * parts + k * (column[i + 1] - column[i])) // parts
            n += 1
    return point, new_slot, new_row, new_column


@njit(cache=True, nogil=True)
def _merged(offsets: Integers, cell: Integers, min_visits: int) -> tuple[Integers, Integers, Integers]:
    """Merge repeats; return cells, offsets and positions of the trips that have at least `min_visits` (and one) of them."""
    cells = np.empty(len(cell), np.int64)
    ends, kept = np.empty(len(offsets), np.int64), np.empty(len(offsets), np.int64)
    size, n = 0, 0
    ends[0] = 0
    for trip in range(len(offsets) - 1):
        first = size
        for k in range(offsets[trip], offsets[trip + 1]):
            if size == first or cells[size - 1] != cell[k]:
                cells[size] = cell[k]
                size += 1
        if size > first and size - first >= min_visits:
            kept[n], ends[n + 1] = trip, size
            n += 1
        else:
            size = first
    return cells[:size].copy(), ends[: n + 1].copy(), kept[:n].copy()
