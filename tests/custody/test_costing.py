"""What a release takes of the machine is estimated from the size of the file and made-up trips, before anything is read."""

from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from diagonal_city import GRID
from murmurate.cli.ledger import app
from murmurate.custody import costing
from murmurate.custody.costing import Cost, machine_cost
from murmurate.engine import Serial
from murmurate.mechanisms.flock import Flock


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file that no release could be made of: its content must not matter."""
    monkeypatch.setattr(costing, "PROBE_TRIPS", 300)
    pl.DataFrame({"nothing": range(5000)}).write_parquet(tmp_path / "x.parquet")
    return str(tmp_path / "x.parquet")


def test_the_size_of_a_file_and_a_probe_give_the_cost(file):
    found = machine_cost(Flock(epsilon=5.0, space=GRID), file, {}, Serial())
    assert found.points == 5000
    assert 0 < found.cpu_s < 3600 and found.disk_bytes >= 5000 * costing.PART_BYTES
    assert found.one_machine and "One machine is enough" in found.words()
    assert f"{found.cpu_s:,.0f} CPU seconds" in found.words()


def test_fewer_trips_drawn_need_less_disk(file):
    few, many = (machine_cost(Flock(epsilon=5.0, space=GRID, n_out=n), file, {}, Serial()) for n in (10, 10_000))
    assert few.disk_bytes < many.disk_bytes


def test_more_than_a_day_of_one_machine_needs_a_cluster():
    large = Cost(points=10**13, cpu_s=1e9, disk_bytes=10**15, memory_mb=1000, workers=2)
    assert not large.one_machine
    assert "a cluster of 11,575 cores takes a day" in large.words()


class AllAtOnce:
    local = False


def test_what_cannot_be_probed_is_not_guessed(file):
    assert machine_cost(AllAtOnce(), file, {}, Serial()) is None


def test_plan_tells_it(file, tmp_path):
    words = ["plan", "geoind", "--set", "radius_m=200", "--set", "epsilon=1", "--engine", "serial", "--json", "--in"]
    done = CliRunner().invoke(app, [*words, file, "--ledger", str(tmp_path / "ledger.sqlite")])
    assert json.loads(done.output)["machine"]["points"] == 5000, done.output
