"""Every metric on data that are small, flat, still or uneven: a number or a reason, never a crash or a warning."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurate.core.trips import Trips
from murmurate.ingest.discretise import to_cells
from murmurate.judging.review import evaluate
from murmurate.metrics import metrics_of
from murmurate.spaces.grid import Grid
from small_town import GRID


def trips(lines, step_s=60):
    rows = [
        (trip, trip, 1_700_000_000_000_000 + k * step_s * 1_000_000, lat, lng)
        for trip, line in enumerate(lines)
        for k, (lat, lng) in enumerate(line)
    ]
    table = pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row")
    return Trips(table.with_columns(pl.col("datetime").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")))


# a coarse lattice, some of it outside the grid, so that repeats, ties and empty cells are common
point = st.tuples(st.sampled_from([60.001, 60.02, 60.04, 60.06]), st.sampled_from([24.001, 24.05, 24.08, 24.2]))
some_trips = st.lists(st.lists(point, min_size=1, max_size=5), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(one=some_trips, other=some_trips, step_s=st.sampled_from([0, 60, 4000]))
def test_small_trips_never_break_a_metric(one, other, step_s):
    inside = [(60.001, 24.001)]  # something to compare on either side
    original, released = trips([*one, inside], step_s), trips([*other, inside], step_s)
    pairing = np.arange(released.n_trips) % original.n_trips
    found = evaluate(released, original, grid=GRID, pairing=pairing)
    json.dumps(found.to_json(), allow_nan=False)
    for score in found:
        if score.better == "lower" and not np.isnan(score.value):
            assert score.value >= 0, score
        if score.better == "higher" and not np.isnan(score.value):
            assert -1 <= score.value <= 1, score
        if score.low is not None:
            assert score.low <= score.value + 1e-9 or score.name.startswith("od_emd"), score
    assert {score.name.split(".")[0] for score in found} | set(found.skipped) == set(metrics_of("trips"))
    assert all(reason for reason in found.skipped.values())


def test_one_still_point():
    still = trips([[(60.02, 24.05)]])
    found = evaluate(still, still, grid=GRID, pairing=[0])
    # one point has no speed, no relative change of length and no string of two cells
    assert {"speed", "patterns", "patterns_by_trip"} <= set(found.skipped)
    assert found["hausdorff.mean"].value == 0
    assert found["adatrace_diameter"].value == 0
    assert found["dpmobility_od.jsd"].value == 0


def test_a_release_of_another_size(original):
    half = original.take_trips(np.arange(0, original.n_trips, 2))
    found = evaluate(half, original, pairing=np.arange(0, original.n_trips, 2))
    assert all(name.startswith("day_") for name in found.skipped)  # whole days are not in these trips
    assert found["hausdorff.max"].value == 0
    assert found["visits.jsd"].value < 0.02
    assert found["patterns.support_error_10"].value < 0.2
    assert found["adatrace_query"].value == pytest.approx(0.5, abs=0.05)  # absolute counts, as published


@pytest.mark.data
def test_a_second_sample_of_taxis_scores_what_it_should(data_dir):
    # two halves of the DP-Loc data at 500 m: about .006, and 97 to 98 of 100 patterns
    table = pl.read_parquet(data_dir / "sf_taxi_dploc200_trips.parquet")
    table = table.select(uid=pl.col("user_id").cast(pl.String), tid="trip_id", datetime="t", lat="lat", lng="lon")
    grid = Grid(37.6017, -122.5158, 37.8112, -122.3527, 500)
    cells = to_cells(Trips(table, time_zone="America/Los_Angeles"), grid, hour=True)
    assert cells.n_trips == 120_647
    half = cells.n_trips // 2
    order = np.random.default_rng(0).permutation(cells.n_trips)
    one, other = cells.take_trips(order[:half]), cells.take_trips(order[half : 2 * half])
    found = evaluate(other, one, metrics=["trip_size", "patterns", "od_emd_whole"])
    assert found["trip_size"].value == pytest.approx(0.006, abs=0.001)
    assert found["patterns.true_positives_100"].value >= 0.95
    assert found["od_emd_whole"].value == pytest.approx(found["od_emd_whole.floor"].value, rel=0.1)
