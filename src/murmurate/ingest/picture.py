"""Count what a picture of private data shows: where, when, how long trips and pauses are. For the custodian only."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.trips import Trips

STEP_DEG = 0.005
"""Side in degrees of the squares in which points are counted: half a kilometre or less."""
PAUSES_S = (15, 60, 300, 1800, 6 * 3600)
"""Bounds of the classes of pauses between points, in seconds."""
PAUSE_WORDS = ("up to 15 s", "to 1 min", "to 5 min", "to 30 min", "to 6 h", "longer")
"""The classes of pauses in words."""


@dataclass(eq=False)
class Picture:
    """Counts over all parts of a source. Private."""

    hours: NDArray[np.int64] = field(default_factory=lambda: np.zeros(24, np.int64))
    """Points in each hour of the day."""
    pauses: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(PAUSE_WORDS), np.int64))
    """Pauses between neighbouring points of a trip, by class."""
    days: dict[int, int] = field(default_factory=dict)
    """Trips begun on each day, counted from 1970."""
    squares: pl.DataFrame | None = None
    """Points in squares of STEP_DEG: row, column, n."""

    def add(self, part: Trips) -> None:
        """Count one part."""
        if not part.n_points:
            return
        if part.has_time:
            self.hours += np.bincount(part.local_hour, minlength=24)
            pauses_s = np.diff(part.time_us)[np.diff(part.point_trip) == 0] / 1e6
            self.pauses += np.bincount(np.searchsorted(PAUSES_S, pauses_s), minlength=len(PAUSE_WORDS))
            for day, count in zip(*np.unique(part.first_local_day, return_counts=True), strict=True):
                self.days[int(day)] = self.days.get(int(day), 0) + int(count)
        if part.has_coordinates:
            here = pl.DataFrame({"row": np.floor(part.lat / STEP_DEG), "column": np.floor(part.lng / STEP_DEG)})
            counted = here.group_by("row", "column").len("n")
            both = counted if self.squares is None else pl.concat([self.squares, counted])
            self.squares = both.group_by("row", "column").agg(pl.col("n").sum())
