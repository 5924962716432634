"""Releases of many trips: a folder of files, the same from every engine, and refused where one of them is not as written."""

from __future__ import annotations

import hashlib
import shutil

import polars as pl
import pyarrow.parquet as pq
import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate import engine, noise
from murmurate.asking import samples
from murmurate.asking.rounds import fitted
from murmurate.asking.samples import Samples
from murmurate.engine import written_files
from murmurate.errors import VerifyError
from murmurate.judging.checking import verify
from murmurate.mechanisms.flock import Flock
from murmurate.releases.folder import open_release

EMITS = ("datetime", "lat", "lng", "cell")
"""Columns that the mechanism releases."""


@pytest.fixture(scope="module")
def model():
    made = fitted(Flock(epsilon=5.0, space=GRID), city(120), noise.seeded(3))
    object.__setattr__(made, "sample_trips", 40)
    return made


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(samples, "ONE_FILE_TRIPS", 50)
    monkeypatch.setattr(samples, "MAX_FILES", 3)


def written(model, path, running, n=250):
    hashes = Samples(model, n, noise.seeded(5), running).write_to(path, emits=EMITS)
    return hashes, {file.name: file.read_bytes() for file in path.iterdir()}


def test_files_are_the_same_from_any_number_of_workers(model, tmp_path):
    hashes, files = written(model, tmp_path / "one", engine.Serial())
    with engine.engine(2) as running:
        assert written(model, tmp_path / "two", running) == (hashes, files)
    assert sorted(files) == [f"part-0000{k}.parquet" for k in range(3)]
    assert hashes == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    groups = [pq.ParquetFile(tmp_path / "one" / name).num_row_groups for name in sorted(files)]
    assert groups == [3, 3, 1]  # 250 trips are seven batches of at most 40
    table = pl.read_parquet(tmp_path / "one")
    assert table["tid"].n_unique() == table["uid"].n_unique() == 250


def test_a_worker_that_cannot_open_the_folder_leaves_its_file_in_the_work_folder(model, tmp_path, monkeypatch):
    _, files = written(model, tmp_path / "one", engine.Serial())
    monkeypatch.setattr(written_files, "UNFINISHED", "elsewhere")  # here alone: workers look for the folder of the usual name
    with engine.engine(2) as running:
        assert written(model, tmp_path / "two", running)[1] == files


def test_few_trips_are_one_file(model, tmp_path):
    assert Samples(model, 50, noise.seeded(5), engine.Serial()).write_to(tmp_path / "data.parquet", emits=EMITS) == {}
    assert pl.read_parquet(tmp_path / "data.parquet")["tid"].n_unique() == 50


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "SAMPLE_TRIPS", 100)
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        made = mm.release(Flock(epsilon=5.0, space=GRID, n_out=240), city(200), ledger=ledger, out=tmp_path / "out")
    return made.folder


def test_a_release_of_many_files_is_used_as_any_other(folder, tmp_path):
    assert sorted(file.name for file in (folder / "data.parquet").iterdir()) == [f"part-0000{k}.parquet" for k in range(3)]
    assert verify(folder)["files"] == "4 match their hashes"
    release = open_release(folder, read_space=True)
    assert len(release) == 240 and "geometry" not in release.trips.columns
    rows = release.trips.n_points
    assert pq.read_table(folder / "data.parquet").num_rows == rows  # other tools open the folder under the old name
    assert mm.read(folder / "data.parquet", time_zone="UTC").n_trips == 240  # of rows that repeat each other it keeps one
    private = city(200)
    assert mm.evaluate(folder, against=private, metrics=["visits"]).scores
    assert mm.attack(folder, against=private, attacks=["copying"]).scores
    assert pl.read_csv(release.export(format="csv", out=tmp_path / "trips.csv")).height == rows


@pytest.mark.parametrize(
    ("break_it", "match"),
    [
        (lambda files: files[1].unlink(), "data.parquet/part-00001.parquet is missing"),
        (lambda files: shutil.copy(files[0], files[0].with_name("part-9.parquet")), "part-9.parquet is not in the manifest"),
        (lambda files: files[2].write_bytes(files[0].read_bytes()), "data.parquet/part-00002.parquet was changed"),
    ],
)
def test_a_file_that_is_not_as_written_is_named(folder, break_it, match):
    break_it(sorted((folder / "data.parquet").iterdir()))
    with pytest.raises(VerifyError, match=match):
        verify(folder)
