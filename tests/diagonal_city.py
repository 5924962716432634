"""Trips along the two diagonals of a box, northward in the morning and back in the evening: for synthesisers."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl

from murmurate.core.trips import Trips
from murmurate.spaces.grid import Grid

GRID = Grid(60.10, 24.80, 60.16, 24.92, 600)


def city(n_trips=400, seed=1, users=40):
    """Trips along the two diagonals of the box, in the morning and in the evening."""
    generator = np.random.default_rng(seed)
    rows = []
    start = dt.datetime(2024, 5, 6, tzinfo=dt.UTC)
    for trip in range(n_trips):
        hour = int(generator.choice([8, 17]))
        points = int(generator.integers(6, 14))
        along = np.linspace(0.1, 0.9, points) + generator.normal(0, 0.02, points)
        along = along if hour == 8 else along[::-1]
        lat = 60.10 + 0.06 * np.clip(along, 0, 1)
        lng = 24.80 + 0.12 * np.clip(along if trip % 2 else 1 - along, 0, 1)
        when = start + dt.timedelta(days=trip % 5, hours=hour, minutes=int(generator.integers(0, 40)))
        rows.append(
            pl.DataFrame(
                {
                    "uid": [f"u{trip % users}"] * points,
                    "tid": [trip] * points,
                    "datetime": [when + dt.timedelta(minutes=k) for k in range(points)],
                    "lat": lat,
                    "lng": lng,
                }
            )
        )
    return Trips(pl.concat(rows), time_zone="UTC")
