"""Datasets: made, read, cleaned, repeated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from murmurate.errors import InputError, ParameterError
from murmurate.judging.study import read_spec
from murmurate.judging.study.datasets import Absent, load


@pytest.fixture
def file(tmp_path):
    rows = []
    for trip, (day, points, step_s) in enumerate([(24, 1, 15), (24, 3, 15), (24, 20, 15), (25, 20, 15)]):
        start = datetime(2014, 4, day, 12, tzinfo=UTC)
        rows += [
            ("a" if trip < 2 else "b", trip, start + timedelta(seconds=k * step_s), 41.1 + k / 1000, -8.6)
            for k in range(points)
        ]
    path = tmp_path / "trips.parquet"
    pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row").write_parquet(path)
    return path


def dataset(small, file, **more):
    spec = read_spec({**small, "datasets": {"mine": {"file": str(file), **more}}})
    return load(spec.datasets[0], spec.folder)


@pytest.mark.parametrize(
    ("clean", "trips"),
    [
        ({}, 4),
        ({"day": "2014-04-24"}, 3),
        ({"day": "2014-04-24", "min_points": 2}, 2),
        ({"day": "2014-04-24", "min_points": 2, "min_duration_s": 150}, 1),
        ({"sampled_trips": 2}, 2),
    ],
)
def test_cleaning(small, file, clean, trips):
    assert dataset(small, file, clean=clean).trips.n_trips == trips


def test_nothing_left_is_told(small, file):
    with pytest.raises(InputError, match="no trip of dataset 'mine' is left"):
        dataset(small, file, clean={"day": "2013-01-01"})
    with pytest.raises(ParameterError, match="day must be a date"):
        dataset(small, file, clean={"day": "yesterday"})


def test_a_centre_is_a_plane_and_a_grid_is_a_grid(small, file):
    data = dataset(small, file, centre=[41.1456, -8.6109], grid="grid:41.05,-8.75,41.27,-8.45:250")
    assert data.spaces["plane"].lat == 41.1456
    assert data.side.grid.spec() == "grid:41.05,-8.75,41.27,-8.45:250"


def test_an_absent_file_is_told_with_where_to_get_it(small, tmp_path):
    with pytest.raises(Absent, match=r"MURMURATE_DATA.*ask the organisers"):
        dataset(small, tmp_path / "none.csv", cite="ask the organisers")


def test_a_file_is_found_beside_the_study_and_in_the_data_folder(small, file, monkeypatch):
    spec = read_spec({**small, "datasets": {"mine": {"file": file.name}}}).datasets[0]
    assert load(spec, str(file.parent)).trips.n_trips == 4
    monkeypatch.setenv("MURMURATE_DATA", str(file.parent))
    assert load(spec, "elsewhere").trips.n_trips == 4


def test_repeats_are_copies_of_different_people(small):
    spec = read_spec(small)
    data = load(spec.datasets[0])
    thrice = data.repeated(3)
    assert thrice.n_trips == 90
    assert thrice.n_users == 90
    repeat, original = data.positions(thrice)
    assert np.bincount(repeat).tolist() == [30, 30, 30]
    assert original.tolist() == [*range(30)] * 3
    assert np.array_equal(thrice.lat[: data.trips.n_points], data.trips.lat)
    assert np.array_equal(thrice.lat[-data.trips.n_points :], data.trips.lat)


def test_a_changed_file_has_another_identity(small, file):
    before = dataset(small, file).identity.fingerprint
    pl.read_parquet(file).head(10).write_parquet(file.with_name("other.parquet"))
    assert dataset(small, file.with_name("other.parquet")).identity.fingerprint != before
