"""Demo data as files: whole folders, streamed, the truth apart."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from murmurate.core import progress
from murmurate.demo import city, tony900, write_city, write_tony900
from murmurate.errors import OutputError, ParameterError
from murmurate.spaces import parse
from murmurate.spaces.road.storage import load

SMALL = {"people": 7, "days": 2, "seed": 5}


def test_files_hold_the_city_whatever_the_partitions(tmp_path: Path):
    folder = write_city(tmp_path / "town", **SMALL, people_per_partition=3)
    town = city(**SMALL)
    assert pl.read_parquet(folder / "trips.parquet").equals(town.trips.table)
    assert pl.read_parquet(folder / "truth" / "trips.parquet").equals(town.truth.trips)
    assert pl.read_parquet(folder / "truth" / "people.parquet").equals(town.truth.people)
    assert pl.read_parquet(folder / "truth" / "places.parquet").equals(town.truth.places)
    assert pl.read_parquet(folder / "places.parquet").equals(town.daily.places)
    daily = pl.read_parquet(folder / "daily.parquet")
    assert daily["place"].to_list() == town.daily.table()["place"].to_list()
    assert load(folder / "network.npz").fingerprint == town.network.fingerprint


def test_labels_stay_in_the_truth(tmp_path: Path):
    folder = write_city(tmp_path / "town", **SMALL)
    for file in folder.glob("*.parquet"):
        assert not {"label", "life", "purpose", "route"} & set(pl.read_parquet_schema(file))


def test_about_names_a_space_that_can_be_used(tmp_path: Path):
    about = json.loads((write_city(tmp_path / "town", **SMALL) / "about.json").read_text())
    assert parse(about["space"]).n_cells > 500
    assert about["time_zone"] == "Atlantic/South_Georgia"


def test_tony900_is_written(tmp_path: Path):
    folder = write_tony900(tmp_path / "deep" / "tony", skaters=20)
    assert pl.read_parquet(folder / "trips.parquet").equals(tony900(skaters=20).table)


def test_nothing_is_overwritten_and_nothing_half_written_is_left(tmp_path: Path):
    (tmp_path / "town").mkdir()
    (tmp_path / "town" / "mine.txt").write_text("keep")
    with pytest.raises(OutputError, match="exists already"):
        write_city(tmp_path / "town", **SMALL)
    with pytest.raises(ParameterError):
        write_city(tmp_path / "other", people=0)
    assert [path.name for path in tmp_path.iterdir()] == ["town"]
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        write_city(tmp_path / "file" / "below", **SMALL)


def test_an_empty_folder_may_be_filled(tmp_path: Path):
    (tmp_path / "town").mkdir()
    assert (write_tony900(tmp_path / "town", skaters=3) / "trips.parquet").exists()


def test_progress_counts_people(tmp_path: Path):
    seen: list[tuple[str, float, float | None]] = []
    with progress.shown_by(lambda *told: seen.append(told)):
        write_city(tmp_path / "town", **SMALL, people_per_partition=3)
    assert seen == [("people of the city", done, 7) for done in (3, 6, 7)]
