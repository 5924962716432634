"""A small town for metrics: trips that follow streets, and a noise that keeps nothing but the number of points."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from murmurate.core.trips import Trips
from murmurate.spaces.grid import Grid

GRID = Grid(60.0, 24.0, 60.045, 24.09, 250)


def town(n: int = 600, seed: int = 0) -> Trips:
    """Trips between a few places with an L-shaped route, a morning and an evening peak."""
    rng = np.random.default_rng(seed)
    places = np.array([[60.01, 24.01], [60.035, 24.02], [60.02, 24.07], [60.04, 24.08], [60.005, 24.05]])
    rows = []
    for trip in range(n):
        home, work = rng.choice(5, size=2, replace=False, p=[0.35, 0.25, 0.2, 0.12, 0.08])
        start, end = places[[home, work]] + rng.normal(0, 0.0006, (2, 2))
        corner = np.array([start[0], end[1]])
        size = int(rng.integers(4, 12))
        along = np.linspace(0, 2, size)
        leg = np.where(
            along[:, None] < 1, start + (corner - start) * along[:, None], corner + (end - corner) * (along[:, None] - 1)
        )
        hour = int(rng.choice([7, 8, 17, 18]))
        first = datetime(2024, 5, 6, hour, 20, tzinfo=UTC) + timedelta(seconds=int(rng.integers(0, 1200)))
        rows += [(trip % 50, trip, first + timedelta(seconds=60 * k), *leg[k]) for k in range(size)]
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row"), space=GRID)


def scrambled(trips: Trips, seed: int = 1) -> Trips:
    """Uniform places and times, as many points a trip as before."""
    rng = np.random.default_rng(seed)
    n = trips.n_points
    # any moment of the day, later points later
    midnight = np.datetime64("2024-05-06T00:00:00", "us").astype(np.int64)
    start = midnight + (rng.uniform(0, 24 * 3600, trips.n_trips) * 1e6).astype(np.int64)
    step = (rng.uniform(200, 900, n) * 1e6).astype(np.int64)
    moment = start[trips.point_trip] + np.cumsum(step) - np.repeat(np.cumsum(step)[trips.offsets[:-1]], np.diff(trips.offsets))
    return trips.with_columns(
        {
            "lat": rng.uniform(GRID.south, GRID.north, n),
            "lng": rng.uniform(GRID.west, GRID.east, n),
            "datetime": pl.Series(moment).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
        }
    )


def drawn(trips: Trips) -> Trips:
    """The same trips without coordinates: cells only."""
    table = trips.table.with_columns(pl.Series("cell", GRID.locate(trips.lat, trips.lng))).drop("lat", "lng")
    return Trips(table, space=GRID)
