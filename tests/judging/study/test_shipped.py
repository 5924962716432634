"""The shipped studies on files: a made one in Porto's shape, and the real taxis where they are."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from murmurate.judging.study import study

STUDIES = Path(__file__).resolve().parents[3] / "studies"


def shrunk(name, **changes):
    """A shipped study with fewer settings and one repeat."""
    values = tomllib.loads((STUDIES / f"{name}.toml").read_text(encoding="utf-8"))
    for mechanism in values["mechanisms"]:
        mechanism["sweep"] = {key: listed[-2:] for key, listed in mechanism["sweep"].items()}
    return {**values, "name": name, "repeats": 1, "seed": 3, **changes}


def write_porto(path):
    """Rows as the challenge wrote them: two days, a trip of one point, one marked as missing data."""
    generator = np.random.default_rng(1)
    noon = {day: int(datetime(2014, 4, day, 12, tzinfo=UTC).timestamp()) for day in (24, 25)}
    rows = []
    for trip in range(40):
        points = 1 if trip == 7 else int(generator.integers(4, 30))
        steps = generator.normal(0, 0.0008, (points, 2)).cumsum(axis=0) + np.array([-8.61, 41.15])
        when = noon[24 if trip < 30 else 25] + trip
        rows.append(
            [f"{trip}", "A", None, None, 100 + trip % 5, when, "A", str(trip == 8), json.dumps(steps.round(6).tolist())]
        )
    names = [
        "TRIP_ID",
        "CALL_TYPE",
        "ORIGIN_CALL",
        "ORIGIN_STAND",
        "TAXI_ID",
        "TIMESTAMP",
        "DAY_TYPE",
        "MISSING_DATA",
        "POLYLINE",
    ]
    pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None).write_csv(path, quote_style="always")


def test_the_porto_study_runs_on_a_file_of_that_shape(tmp_path, monkeypatch):
    write_porto(tmp_path / "porto_taxi.csv")
    monkeypatch.setenv("MURMURATE_DATA", str(tmp_path))
    result = study(shrunk("porto"), out=tmp_path / "out")
    assert not result.failed
    assert not result.skipped
    own = result.table.filter(pl.col("mechanism") == "original")
    duration = own.filter(pl.col("metric") == "duration.released_min")["value"][0]
    assert duration >= 15.0, "trips of one point are left out"
    per_trip = own.filter(pl.col("metric") == "length.released_sum")["value"][0]
    mean = own.filter(pl.col("metric") == "length.released_mean")["value"][0]
    assert 28 <= round(per_trip / mean) <= 29, "only the trips of that day"
    assert set(result.regression.second["mechanism"]) == {"simple", "predictive"}


def test_the_porto_study_is_skipped_where_there_is_no_file(tmp_path, monkeypatch):
    monkeypatch.delenv("MURMURATE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    result = study(shrunk("porto"), out=tmp_path / "out")
    assert "ECML/PKDD 2015" in result.skipped["dataset porto"]
    assert result.table.is_empty()


@pytest.mark.data
def test_the_taxi_study_runs(tmp_path, data_dir, monkeypatch):
    monkeypatch.setenv("MURMURATE_DATA", str(data_dir))
    wanted = shrunk("sf_taxi", metrics=["hausdorff", "duration"])
    wanted["datasets"]["sf_taxi"]["clean"]["sampled_trips"] = 100
    result = study(wanted, out=tmp_path / "out")
    assert not result.failed
    shortest = result.table.filter(pl.col("mechanism") == "original", pl.col("metric") == "duration.released_min")
    assert shortest["value"][0] >= 150


def test_across_families(tmp_path):
    wanted = shrunk("families", metrics=["hausdorff"], attacks=["reidentify"])
    wanted["datasets"]["city"] = {"people": 12, "days": 1}
    result = study(wanted, out=tmp_path / "out")
    assert not result.failed
    attacked = result.table.filter(pl.col("metric") == "reidentify.places.top1_k4", pl.col("mechanism") != "original")
    assert attacked["mechanism"].n_unique() == 4
    assert attacked["value"].is_between(0, 1).all()
