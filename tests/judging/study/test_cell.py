"""A cell gives what the metrics give, repeat by repeat, whether repeats run together or alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from murmurate.judging.study import cell as cells
from murmurate.judging.study import read_spec
from murmurate.judging.study.cell import _releases, _statistics, run_cell
from murmurate.judging.study.datasets import load
from murmurate.judging.study.grid import expand
from murmurate.metrics import METRICS, measure
from murmurate.metrics.compare import compare
from small_town import GRID, town

BY_TRIP = [name for name, found in METRICS.items() if found.by_trip]


def cell_of(small, number=1):
    spec = read_spec(small)
    return expand(spec, {part.name: load(part, spec.folder) for part in spec.datasets})[number]


@pytest.mark.parametrize("together", [1, 10**9])
def test_values_by_repeat_equal_the_metrics_of_that_repeat(small, monkeypatch, together):
    monkeypatch.setattr(cells, "TOGETHER_POINTS", together)
    small["metrics"] = [*BY_TRIP, "length", "speed", "hausdorff_nearest", "range_queries"]
    small["repeats"] = 3
    cell = cell_of(small)
    data = load(cell.dataset)
    rows = run_cell(cell).rows
    assert rows["repeat"].unique().sort().to_list() == [0, 1, 2]
    for batch in _releases(cell, data):  # the same seed, so the same releases again
        for k in range(int(batch.repeat.max()) + 1):
            mine = batch.repeat == k
            one = compare(
                batch.released.take_trips(mine),
                data.trips,
                grid=data.side.grid,
                pairing=batch.original[mine],
                seed=batch.first + k,
            )
            found = dict(rows.filter(pl.col("repeat") == batch.first + k).select("metric", "value").iter_rows())
            for name in cell.metrics:
                for score in measure(name, one):
                    if score.name in found:
                        assert found[score.name] == pytest.approx(score.value, rel=1e-9, abs=1e-12), score.name
            assert {
                "hausdorff.mean",
                "hausdorff.sd",
                "length.released_mean",
                "length.released_max",
                "hausdorff_nearest.mean",
                "range_queries",
            } <= set(found)


def test_repeats_are_different_and_seeds_repeat(small):
    once, again = (run_cell(cell_of(small)).rows for _ in range(2))
    assert once.equals(again)
    means = once.filter(pl.col("metric") == "hausdorff.mean")["value"]
    assert means.n_unique() == 2
    small["seed"] = 6
    assert not run_cell(cell_of(small)).rows.equals(once)


def test_without_a_seed_noise_is_drawn_anew(small):
    del small["seed"]
    once, again = (run_cell(cell_of(small)).rows for _ in range(2))
    assert not once.equals(again)


def test_originals_stand_where_there_is_no_noise(small):
    rows = run_cell(cell_of(small, 0)).rows
    assert rows.filter(pl.col("metric") == "hausdorff.mean")["value"].to_list() == [0.0]
    assert rows.filter(pl.col("metric") == "speed.released_mean")["value"][0] == pytest.approx(18.0, rel=1e-5)


def test_attacks_are_rows_of_their_own_kind(small):
    small["attacks"] = ["reidentify"]
    rows = run_cell(cell_of(small)).rows
    attacked = rows.filter(pl.col("kind") == "attack")
    assert attacked["repeat"].n_unique() == 2
    assert attacked.filter(pl.col("metric") == "reidentify.places.top1_k1")["chance"].to_list() == pytest.approx([1 / 30] * 2)


def test_membership_is_measured_by_releasing_again(small, tmp_path):
    town(150, 3).table.write_parquet(tmp_path / "town.parquet")
    small["datasets"] = {"town": {"file": str(tmp_path / "town.parquet"), "grid": GRID.spec()}}
    small["mechanisms"] = [{"name": "ngram", "set": {"epsilon": 50, "n_out": 100, "space": GRID.spec()}}]
    small |= {"metrics": [], "attacks": ["membership"], "repeats": 1}
    outcome = run_cell(cell_of(small))
    assert (outcome.failed, outcome.skipped) == (None, {})
    assert "membership.auc" in outcome.rows["metric"].to_list()


def test_a_metric_that_cannot_be_taken_is_skipped_with_its_reason(small, tmp_path):
    table = pl.DataFrame({"uid": [1, 1, 2, 2], "tid": [1, 1, 2, 2], "lat": [60.1, 60.11, 60.2, 60.21], "lng": [24.9] * 4})
    table.write_parquet(tmp_path / "still.parquet")
    small["datasets"] = {"still": {"file": str(tmp_path / "still.parquet")}}
    outcome = run_cell(cell_of(small))
    assert outcome.failed is None
    assert "timestamps" in outcome.skipped["speed"]
    assert outcome.rows.filter(pl.col("metric") == "hausdorff.mean").height == 2


def test_what_a_mechanism_refuses_is_told_and_not_raised(small, tmp_path):
    small["mechanisms"] = [{"name": "geoind", "set": {"epsilon": 1, "radius_m": 50, "unit": "user_day", "max_points": 100}}]
    table = pl.DataFrame({"uid": [1, 1], "tid": [1, 1], "lat": [60.1, 60.11], "lng": [24.9] * 2})
    table.write_parquet(tmp_path / "still.parquet")
    small["datasets"] = {"still": {"file": str(tmp_path / "still.parquet")}}
    small["metrics"] = ["hausdorff"]
    assert "time" in run_cell(cell_of(small)).failed


def test_statistics_of_groups_leave_out_what_is_not_finite():
    values = np.array([1.0, 3.0, np.nan, 10.0, np.inf])
    found = _statistics(values, np.array([0, 0, 0, 1, 2]), 3)
    assert found[0].tolist() == [2.0, 1.0, 1.0, 3.0, 4.0]
    assert found[1].tolist() == [10.0, 0.0, 10.0, 10.0, 10.0]
    assert np.isnan(found[2]).all()


def test_a_file_that_changes_under_the_study_is_told(small, tmp_path):
    table = pl.DataFrame({"uid": [1, 1], "tid": [1, 1], "lat": [60.1, 60.11], "lng": [24.9] * 2})
    table.write_parquet(tmp_path / "trips.parquet")
    small["datasets"] = {"mine": {"file": str(tmp_path / "trips.parquet")}}
    cell = cell_of(small)
    table.with_columns(lat=pl.col("lat") + 0.01).write_parquet(tmp_path / "trips.parquet")
    assert "was changed while the study ran" in run_cell(cell).failed
