"""The chain of steps and its counts."""

import json
from functools import partial

import polars as pl

from murmurate.core.trips import Identity, Trips
from murmurate.ingest.clean import drop_outside
from murmurate.ingest.pipeline import pipeline
from murmurate.ingest.segment import drop_single_visits
from murmurate.spaces import Grid

TABLE = pl.DataFrame({"uid": ["a", "a", "b"], "tid": 1, "lat": [0.01, 0.01, 0.2], "lng": [0.01, 0.02, 0.01]})
STEPS = [partial(drop_outside, space=Grid(0, 0, 0.1, 0.1, 500)), drop_single_visits]


def test_steps_run_in_order_and_are_counted():
    prepared = pipeline(Trips(TABLE), STEPS)
    assert prepared.trips.n_points == 2
    assert [(item.step, item.points, item.trips) for item in prepared.removed] == [
        ("drop_outside", 1, 1),
        ("drop_single_visits", 0, 0),
    ]
    assert json.loads(json.dumps(prepared.to_json()))[0]["points"] == 1


def test_the_ledger_still_knows_the_file():
    source = Identity("fingerprint", ("a", "b"))
    private = Trips(TABLE, source=source)
    assert pipeline(private, STEPS).trips.identity == source
    assert pipeline(private, []).trips is private
