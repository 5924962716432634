"""Describe trips by numbers that can be compared without a pairing: ends, hour, and points along the way in metres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.attacks.tracks import degrees
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import NotMeasurable
from murmurate.spaces.sphere import METRES_PER_DEGREE

ALONG = 8
"""Points along a trip, evenly by their number, that describe its route."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Trips in metres around a common middle."""

    first: Floats
    """[trip, 2] where each begins."""
    last: Floats
    """[trip, 2] where each ends."""
    route: Floats
    """[trip, 2 * ALONG] points along the way."""
    hour: Integers
    """[trip] local hour of the start; 0 where there are no times."""
    person: Integers
    xy: Floats
    """[point, 2] all points."""
    offsets: Integers

    @property
    def n(self) -> int:
        """Return the number of trips."""
        return len(self.first)

    def take(self, chosen: Integers) -> Vectors:
        """Return the chosen trips."""
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.repeat(self.offsets[:-1][chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Vectors(
            self.first[chosen], self.last[chosen], self.route[chosen], self.hour[chosen], self.person[chosen], self.xy[rows],
            offsets,
        )  # fmt: skip


def middle_of(trips: Trips) -> tuple[float, float]:
    """Return the mean place, around which metres are counted."""
    lat, lng = degrees(trips)
    if not len(lat):
        raise NotMeasurable("there is no trip")
    return float(lat.mean()), float(lng.mean())


def vectors(trips: Trips, middle: tuple[float, float]) -> Vectors:
    """Describe trips in metres around a place."""
    lat, lng = degrees(trips)
    scale = METRES_PER_DEGREE * np.cos(np.radians(middle[0]))
    xy = np.column_stack([(lng - middle[1]) * scale, (lat - middle[0]) * METRES_PER_DEGREE])
    first, last = trips.offsets[:-1], trips.offsets[1:] - 1
    steps = first[:, None] + np.rint((last - first)[:, None] * np.linspace(0, 1, ALONG)).astype(np.int64)
    hour = np.zeros(trips.n_trips, dtype=np.int64)
    if trips.has_time:
        hour = trips.local_hour[first].astype(np.int64)
    return Vectors(
        xy[first], xy[last], xy[steps].reshape(trips.n_trips, -1), hour, np.asarray(trips.trip_user, np.int64), xy,
        trips.offsets,
    )  # fmt: skip
