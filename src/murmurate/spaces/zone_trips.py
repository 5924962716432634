"""ZoneTrips: where each trip begins and ends among public places, when, how long it is; what tables of flows count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from murmurate.core.space import Floats, Integers, Places
from murmurate.core.trips import Trips
from murmurate.spaces.sphere import great_circle_m
from murmurate.spaces.zone_flows import LENGTHS_KM, MINUTES


@dataclass(frozen=True, eq=False)
class ZoneTrips:
    """Trips that begin and end in the area, each with its bins; a trip's bins follow from its own points."""

    trip: Integers
    """Position of the trip in the input."""
    origin: Integers
    destination: Integers
    departure: Integers
    """Local hour of the first point."""
    arrival: Integers
    """Local hour of the last point."""
    classes: Mapping[str, Integers]
    """Classes of lengths, durations and, where one is declared, of a column."""

    @classmethod
    def of(cls, trips: Trips, places: Places, *, column: str | None = None, categories: Sequence[str] = ()) -> ZoneTrips:
        """Locate both ends of every trip and look up its hours, length, duration and category."""
        first, last = trips.offsets[:-1], trips.offsets[1:] - 1
        origin = places.locate(trips.lat[first], trips.lng[first])
        destination = places.locate(trips.lat[last], trips.lng[last])
        inside = np.flatnonzero((origin >= 0) & (destination >= 0))
        first, last = first[inside], last[inside]
        minutes = (trips.time_us[last] - trips.time_us[first]) / 60e6
        classes = {
            "lengths": np.searchsorted(LENGTHS_KM, _lengths_m(trips)[inside] / 1000, side="right"),
            "durations": np.searchsorted(MINUTES, minutes, side="right"),
        }
        if column is not None:
            classes[column] = _categories(trips, column, categories)[inside]
        hour = trips.local_hour
        return cls(inside, origin[inside], destination[inside], hour[first], hour[last], classes)


def _lengths_m(trips: Trips) -> Floats:
    """Return the great-circle metres along each trip; trip by trip, so that no other trip changes a rounding."""
    if not trips.n_points:
        return np.zeros(0)
    step = np.zeros(trips.n_points)
    step[1:] = great_circle_m(trips.lat[:-1], trips.lng[:-1], trips.lat[1:], trips.lng[1:])
    step[trips.offsets[:-1]] = 0.0
    return np.asarray(np.add.reduceat(step, trips.offsets[:-1]))


def _categories(trips: Trips, column: str, categories: Sequence[str]) -> Integers:
    """Return the position of each trip's value among the declared categories; the last class is for every other value."""
    first = trips.offsets[:-1]
    if column not in trips.columns:
        return np.full(len(first), len(categories), dtype=np.int64)
    value = trips.table[column].gather(first).cast(pl.String)
    numbers = list(range(len(categories)))
    return value.replace_strict(list(categories), numbers, default=len(categories), return_dtype=pl.Int64).to_numpy()
