"""Trips in other tools' conventions, and back."""

from __future__ import annotations

import csv
import sys

import polars as pl
import pytest

from murmurate.errors import InputError, MissingPart, OutputError
from murmurate.ingest.export import to_movingpandas, to_pandas, to_skmob, to_trackintel, write_csv, write_parquet
from murmurate.ingest.read import read


@pytest.fixture
def trips():
    frame = pl.DataFrame(
        {
            "uid": ["a", "a", "b", "b"],
            "tid": [1, 1, 1, 1],
            "datetime": [1_600_000_000, 1_600_000_060] * 2,
            "lat": [60.1, 60.2, 61.1, 61.2],
            "lng": [24.9, 24.8, 25.9, 25.8],
            "mode": ["bus", None, "car", "car"],
        }
    )
    return read(frame, local_zone="Europe/Helsinki")


def test_pandas_and_skmob(trips):
    pytest.importorskip("pandas")
    frame = to_pandas(trips)
    assert list(frame.columns) == trips.columns
    assert str(frame["datetime"].dt.tz) == "UTC"
    assert read(frame).table.equals(trips.table)
    local = to_skmob(trips)
    assert list(local.columns)[:5] == ["uid", "tid", "datetime", "lat", "lng"]
    assert local["datetime"].dt.tz is None
    assert local["datetime"].dt.hour.tolist() == [15] * 4, "Helsinki in summer"
    assert read(local, time_zone="Europe/Helsinki").table.equals(trips.table)


def test_trackintel(trips):
    trackintel = pytest.importorskip("trackintel")
    fixes = to_trackintel(trips)
    trackintel.Positionfixes.validate(fixes)
    assert read(fixes, carry=("mode",)).table.equals(trips.table)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_movingpandas(trips):
    pytest.importorskip("movingpandas")
    collection = to_movingpandas(trips)
    assert len(collection.trajectories) == 2
    again = read(collection, time_zone="UTC")
    assert again.table.select("uid", "datetime", "lat", "lng").equals(trips.table.select("uid", "datetime", "lat", "lng"))


def test_conventions_need_their_columns():
    with pytest.raises(InputError, match="needs datetime"):
        to_skmob(read(pl.DataFrame({"uid": ["a"], "cell": [1]})))


def test_a_missing_extra_is_named(trips, monkeypatch):
    monkeypatch.setitem(sys.modules, "geopandas", None)
    with pytest.raises(MissingPart, match=r"murmurate\[geo\]"):
        to_trackintel(trips)


def test_files_and_back(trips, tmp_path):
    write_parquet(trips, tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet").table.equals(trips.table)
    write_csv(trips, tmp_path / "x.csv")
    again = read(tmp_path / "x.csv")
    assert again.table.select("uid", "datetime", "lat", "lng").equals(trips.table.select("uid", "datetime", "lat", "lng"))
    with pytest.raises(OutputError, match="exists"):
        write_csv(trips, tmp_path / "x.csv")
    with pytest.raises(OutputError, match="could not be written"):
        write_csv(trips, tmp_path / "nowhere" / "x.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv", "x.parquet"]


def test_csv_is_data_not_formulas(tmp_path):
    risky = ["=1+1", "+1", "-1", "@cmd", "\tx", "plain", "a=b"]
    frame = pl.DataFrame({"uid": risky, "lat": [-1.5] * 7, "lng": [1.0] * 7, "=note": ["=HYPERLINK(1)"] * 7})
    write_csv(read(frame), tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as handle:
        rows = list(csv.reader(handle))
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+@\t\r") or (cell[:1] == "-" and cell != "-1.5")]
    assert {"plain", "a=b", "'=1+1"} <= set(cells)
