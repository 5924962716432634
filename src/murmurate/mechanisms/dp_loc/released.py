"""Cell sequences as released trips: centres of cells, and plausible times within their hour on a fictional day."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from murmurate.core.space import Integers
from murmurate.core.trips import TIME, Trips
from murmurate.spaces.grid import Grid
from murmurate.synthesis.sequences import CellTrips

SECOND_US = 1_000_000


def released_trips(
    trips: CellTrips, *, grid: Grid, time_zone: str, day: str, slot_s: int, hours: int, generator: np.random.Generator
) -> Trips:
    """One row a visited cell, a slot of time apart; a trip starts so that most of it lies in its hour."""
    step_us = slot_s * SECOND_US
    span_us = 24 // hours * 3600 * SECOND_US
    lasts_us = trips.sizes * step_us
    room_us = np.maximum(span_us - lasts_us, 0)
    start_us = _hour_starts_us(time_zone, day, hours)[trips.hours]
    start_us = start_us + (generator.random(trips.n) * room_us // SECOND_US * SECOND_US).astype(np.int64)
    trip = trips.trip_of_cell
    visit = np.arange(len(trips.cells)) - trips.offsets[:-1][trip]
    lat, lng = grid.centre(trips.cells)
    table = pl.DataFrame(
        {
            "uid": trip,
            "tid": trip,
            "datetime": pl.Series(start_us[trip] + visit * step_us).cast(TIME),
            "hour": trips.hours[trip] * (24 // hours),
            "lat": lat,
            "lng": lng,
            "cell": trips.cells,
        }
    )
    return Trips(table, grid, time_zone)


def _hour_starts_us(time_zone: str, day: str, hours: int) -> Integers:
    zone = ZoneInfo(time_zone)
    midnight = datetime.combine(date.fromisoformat(day), datetime.min.time())
    starts = [(midnight + timedelta(hours=24 / hours * k)).replace(tzinfo=zone) for k in range(hours)]
    return np.array([int(start.timestamp()) * SECOND_US for start in starts], dtype=np.int64)
