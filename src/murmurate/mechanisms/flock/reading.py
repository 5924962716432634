"""From private trips to tracks: a map of each trip by itself, so that sensitivities stay what they are."""

from __future__ import annotations

import numpy as np

from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import SECOND_US, main_hour, to_cells
from murmurate.mechanisms.flock.frame import Frame
from murmurate.mechanisms.flock.tracks import Tracks, joined, measured
from murmurate.spaces.grid import Grid
from murmurate.synthesis.sequences import CellTrips

AT_ONCE = 1_000_000
"""Points turned into tracks at a time."""


def inside_box(private: Trips, grid: Grid) -> Trips:
    """What lies in the public box; trips without a point there vanish."""
    inside = grid.locate(private.lat, private.lng) >= 0
    return private if inside.all() else private.take_points(inside)


def read(inside: Trips, frame: Frame, *, slot_s: int) -> Tracks:
    """Tracks of trips that lie in the box, some people at a time, because what is on the way there takes the most memory."""
    if inside.n_points <= AT_ONCE:
        return _read(inside, frame, slot_s)
    return joined([_read(part, frame, slot_s) for part in inside.partitions(AT_ONCE)])


def _read(inside: Trips, frame: Frame, slot_s: int) -> Tracks:
    grid = frame.grid
    walked = Grid(grid.south, grid.west, grid.north, grid.east, frame.walked_m)
    plain = inside.table.select([name for name in ("uid", "tid", "datetime", "lat", "lng") if name in inside.columns])
    cells = to_cells(Trips(plain, time_zone=inside.time_zone), walked, slot_s=slot_s, min_visits=1)
    row, column = np.divmod(cells.cell, walked.columns)  # the walked grid may have a sliver less than whole blocks
    walks = CellTrips(row * frame.columns + column, cells.offsets, hours_of(inside, frame.hours, slot_s))
    y, x = frame.place(inside.lat, inside.lng)
    fine = frame.fine_at(y, x)
    offsets = inside.offsets
    return measured(walks, y, x, offsets, source=fine[offsets[:-1]], destination=fine[offsets[1:] - 1], cell_m=grid.cell_m)


def hours_of(inside: Trips, hours: int, slot_s: int) -> Integers:
    """The part of the day (0 ... hours - 1) in which most of each trip lies."""
    first, last = inside.offsets[:-1], inside.offsets[1:] - 1
    if hours == 1:
        return np.zeros(len(first), dtype=np.int64)
    if not inside.has_time:
        return inside.local_hour[first] * hours // 24
    wall = inside.table["datetime"].dt.convert_time_zone(inside.time_zone).dt.replace_time_zone(None)
    start_us = wall.gather(first).to_physical().to_numpy()
    return main_hour(start_us, inside.time_us[last] - inside.time_us[first] + slot_s * SECOND_US) * hours // 24
