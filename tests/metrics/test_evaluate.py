"""Evaluate chooses what can be measured, says why the rest cannot, and refuses what does not belong together."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from murmurate import engine
from murmurate.core import progress
from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.judging.review import evaluate
from murmurate.metrics import metrics_of
from murmurate.spaces import Grid, Plane
from small_town import GRID, drawn, scrambled, town

QUICK = ["visits", "length", "length_change", "duration", "trip_size"]


def test_json_has_the_fixed_form(original, noise):
    values = json.loads(json.dumps(evaluate(noise, original, metrics=["visits", "duration_change"]).to_json(), allow_nan=False))
    assert {"name", "value", "low", "high", "better", "chance"} <= set(values["scores"][0])
    assert values["skipped"] == [{"name": "duration_change", "reason": "released trips are not paired with originals"}]
    assert values["grid"] == GRID.spec()
    assert values["trips"] == {"original": original.n_trips, "released": noise.n_trips}


def test_infinite_scores_become_null(original):
    stray = original.with_columns({"lat": np.where(np.arange(original.n_points) == 0, 60.03, original.lat)})
    scores = evaluate(stray, original, metrics=["dpmobility_visits"]).to_json()["scores"]
    assert next(score for score in scores if score["name"] == "dpmobility_visits.kl")["value"] is None


def test_everything_runs_with_a_pairing_and_workers(original, noise):
    one = evaluate(noise, original, pairing=np.arange(noise.n_trips), workers=1)
    assert all(name.startswith("day_") for name in one.skipped)  # whole days are not in these trips
    assert {score.name.split(".")[0] for score in one} | set(one.skipped) == set(metrics_of("trips"))


def test_workers_change_nothing(monkeypatch):
    # large enough that the hours really go to processes
    original = town(4000, seed=4)
    noise = scrambled(original, seed=5).with_columns({"datetime": original.table["datetime"]})
    asked = []
    real = engine.map
    monkeypatch.setattr(
        engine, "map", lambda *given, workers, **more: asked.append(workers) or real(*given, workers=workers, **more)
    )
    one, two = (evaluate(noise, original, metrics=["od_emd"], workers=workers) for workers in (1, 2))
    assert [type(one).__name__ for one in asked] == ["Serial", "Processes"]
    assert one.to_json() == two.to_json()


def test_progress_is_counted(original, noise):
    seen = []
    with progress.shown_by(lambda what, done, total: seen.append((what, done, total))):
        evaluate(noise, original, metrics=QUICK)
    assert ("metrics", len(QUICK), len(QUICK)) in seen


def test_without_time_the_metrics_of_time_are_skipped(original):
    bare = Trips(original.table.drop("datetime"), space=GRID)
    found = evaluate(bare, original, metrics=["visits", "duration", "trip_size", "time_of_day"])
    assert found.skipped["duration"] == "the released trips have no timestamps"
    assert found.skipped["trip_size"] == "the released trips have no hour of day"
    assert found["visits.jsd"].value == 0


def test_an_hour_is_enough_for_the_hours_but_not_for_durations(original):
    table = original.table.with_columns(hour=pl.Series(original.local_hour), weekday=0).drop("datetime")
    found = evaluate(Trips(table, space=GRID), original, metrics=["duration", "trip_size", "time_of_day", "od_emd"])
    assert list(found.skipped) == ["duration"]
    assert found["trip_size"].value == 0
    assert found["time_of_day.points_jsd"].value == 0


def test_cells_alone_are_measured_at_their_centres(original):
    cells = drawn(original)
    found = evaluate(cells, original, pairing=np.arange(original.n_trips), metrics=["visits", "patterns", "hausdorff"])
    assert found["visits.jsd"].value == 0
    assert found["patterns.f1_100"].value == 1
    assert 0 < found["hausdorff.max"].value <= 250 * np.sqrt(0.5) + 1


def test_cells_of_no_space_take_the_grid_that_is_given(original):
    table = drawn(original).table
    found = evaluate(Trips(table), original, grid=GRID, metrics=["visits"])
    assert found["visits.jsd"].value == 0
    with pytest.raises(InputError, match="found 9,999"):
        evaluate(Trips(table.with_columns(cell=pl.lit(9_999))), original, grid=GRID, metrics=["visits"])


def test_cells_of_another_grid_are_located_anew(original):
    other = Grid(60.0, 24.0, 60.045, 24.09, 500)
    coarse = Trips(
        original.table.with_columns(cell=pl.Series(other.locate(original.lat, original.lng))).drop("lat", "lng"), space=other
    )
    found = evaluate(coarse, original, grid=other, metrics=["visits"])
    assert found["visits.jsd"].value == 0
    assert evaluate(coarse, original, grid=GRID, metrics=["visits"])["visits.jsd"].value > 0.1


def test_without_a_grid_one_is_laid_over_the_originals(original, noise):
    here, there = (Trips(trips.table) for trips in (original, noise))
    found = evaluate(there, here, metrics=["visits"])
    assert found.grid.startswith("grid:")
    assert found.grid.endswith(":250")


def test_a_world_of_points_gets_larger_cells_not_a_fault():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"uid": range(100), "tid": 0, "lat": rng.uniform(-60, 60, 100), "lng": rng.uniform(-170, 170, 100)})
    found = evaluate(Trips(table), Trips(table), metrics=["visits"])
    assert float(found.grid.rpartition(":")[2]) > 1000


def test_bad_input_is_refused(original, noise):
    empty = original.take_trips(np.zeros(original.n_trips, dtype=bool))
    with pytest.raises(InputError, match="the released side has no trip"):
        evaluate(empty, original)
    with pytest.raises(InputError, match=r"no point of the original side.*\n.*no point of the released side"):
        evaluate(noise, original, grid=Grid(10, 10, 10.1, 10.1, 250))
    with pytest.raises(InputError, match="no space that tells where"):
        evaluate(Trips(drawn(original).table), Trips(drawn(original).table))
    links = Trips(original.table.with_columns(link=pl.lit(1)).drop("lat", "lng"))
    with pytest.raises(InputError, match="no road network"):
        evaluate(links, original, grid=GRID)
    with pytest.raises(ParameterError, match="grid must be a Grid"):
        evaluate(noise, original, grid=Plane(60.0, 24.0))
    with pytest.raises(ParameterError, match="one whole number for each of the 600"):
        evaluate(noise, original, pairing=[0, 1])
    with pytest.raises(ParameterError, match="0 to 599, or -1; got 0 to 600"):
        evaluate(noise, original, pairing=np.arange(1, 601) - (np.arange(600) == 0))
    with pytest.raises(ParameterError, match="no metric is called 'visit'"):
        evaluate(noise, original, metrics=["visit"])


def test_trips_without_an_original_are_left_out_of_pairs(original):
    pairing = np.arange(original.n_trips)
    pairing[::2] = -1
    assert evaluate(original, original, pairing=pairing, metrics=["hausdorff"])["hausdorff.mean"].n == original.n_trips // 2
    nobody = evaluate(original, original, pairing=np.full(original.n_trips, -1), metrics=["hausdorff"])
    assert nobody.skipped["hausdorff"] == "the pairing names no original for any released trip"
