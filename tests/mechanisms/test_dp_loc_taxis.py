"""What `variant="own"` must keep of real taxi trips at epsilon 1."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from murmurate import noise
from murmurate.asking.rounds import fitted
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import to_cells
from murmurate.mechanisms.dp_loc import DPLoc
from murmurate.metrics import measure
from murmurate.metrics.compare import compare
from murmurate.spaces.grid import Grid

GRID = Grid(37.6017, -122.5158, 37.8112, -122.3527, 500)


def every_fourth_hour(trips):
    """From midnight on: a sixth of the cost, and the quiet hours of the night, which are the hardest, are among them."""
    first = trips.table["hour"].gather(trips.offsets[:-1]).to_numpy()
    return trips.take_trips(np.flatnonzero(first % 4 == 0))


@pytest.mark.data
def test_own_keeps_sizes_flows_and_patterns_of_taxis(data_dir):
    table = pl.read_parquet(data_dir / "sf_taxi_dploc200_trips.parquet").select(
        uid=pl.col("user_id").cast(pl.String), tid="trip_id", datetime="t", lat="lat", lng="lon"
    )
    private = Trips(table, time_zone="America/Los_Angeles")
    rng = noise.seeded(271)
    released = fitted(DPLoc(epsilon=1.0, delta=1e-6, space=GRID), private, rng).sample(120_000, rng)
    original = to_cells(private, GRID, hour=True)
    comparison = compare(released, original, grid=GRID)
    assert measure("trip_size", comparison)[0].value <= 0.03
    flows = measure("od_emd", compare(every_fourth_hour(released), every_fourth_hour(original), grid=GRID))
    assert flows[0].value <= 1450
    assert len(flows) == 2 + 6
    found = {score.name: score.value for score in measure("patterns", comparison)}
    assert found["patterns.true_positives_100"] >= 0.85
    assert np.diff(released.offsets).min() >= 2
