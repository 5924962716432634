"""A cluster that fails says so in one message, with what was charged and how to go on; nothing half-made is left."""

from __future__ import annotations

import errno
from importlib.metadata import version

import polars as pl
import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate import noise
from murmurate.cli.show import fault
from murmurate.engine import Serial, tasks
from murmurate.engine.dask_cluster import Dask
from murmurate.errors import EngineError, OutputError
from murmurate.ingest.stream import scan
from murmurate.mechanisms.flock import Flock
from murmurate.mechanisms.flock.model import FlockModel

FLOCK = Flock(epsilon=20.0, space=GRID, n_out=50)
TRIPS = city(600, users=60)


class FailsLater(Serial):
    """Counts one round and then gives up, as an engine does whose part ended its worker three times."""

    rounds = 0

    def fold(self, *given, **more):
        self.rounds += 1
        if self.rounds > 1:
            raise EngineError("a part of the work ended its process 3 times.", "Use fewer workers.")
        return super().fold(*given, **more)


def test_a_part_that_fails_for_good_leaves_a_charge_that_can_be_resumed(tmp_path, capsys):
    with mm.Ledger.in_memory() as ledger:
        with pytest.raises(EngineError) as caught:
            mm.release(FLOCK, TRIPS, ledger=ledger, out=tmp_path / "out", rng=noise.seeded(1), engine=FailsLater())
        assert not (tmp_path / "out").exists()
        assert fault(caught.value) == 5
        said = capsys.readouterr().err
        assert f"the debit of release {caught.value.charged} stands" in said
        assert f"--resume {caught.value.charged}" in said and "3 times" in said
        resumed = {"rng": noise.seeded(2), "resume": caught.value.charged}
        made = mm.release(FLOCK, TRIPS, ledger=ledger, out=tmp_path / "out", **resumed)
        assert made.manifest.release_id == caught.value.charged
        assert len([line for line in ledger.history() if line.what == "debit"]) == 1


class RepeatsTrips(Serial):
    """Returns the first part of the drawn trips twice."""

    def map(self, function, items):
        for k, item in enumerate(items):
            yield (found := function(item))
            if k == 0 and getattr(function, "__name__", "") == "_sample_part":
                yield found


def test_trips_that_are_drawn_twice_are_not_released(tmp_path, monkeypatch):
    monkeypatch.setattr(FlockModel, "sample_trips", 10, raising=False)
    with mm.Ledger.in_memory() as ledger, pytest.raises(EngineError, match="came twice"):
        mm.release(FLOCK, TRIPS, ledger=ledger, out=tmp_path / "out", rng=noise.seeded(1), engine=RepeatsTrips())
    assert not (tmp_path / "out").exists()


class WithoutPackage:
    """A client whose only worker cannot import this package."""

    status = "error"

    def scheduler_info(self, n_workers):
        return {"address": "tls://10.0.0.1:1", "workers": {"tls://10.0.0.9:1": {"nthreads": 1}}}

    def run(self, *_, **__):
        return {"tls://10.0.0.9:1": ModuleNotFoundError("No module named 'murmurate'")}

    def submit(self, *_, **__):
        return self

    def result(self, timeout):
        raise ModuleNotFoundError("No module named 'murmurate'")

    def cancel(self):
        pass

    def close(self):
        pass


def test_a_worker_without_the_package_is_named(tmp_path, monkeypatch):
    with Dask("tls://10.0.0.1:1") as running, pytest.raises(EngineError, match="cannot import murmurate"):
        monkeypatch.setattr(running, "_client", WithoutPackage())
        with pytest.raises(EngineError, match="cannot import murmurate"):
            running.start(work_in=tmp_path)
        list(running.map(abs, [1]))


def test_a_worker_with_another_version_is_named_before_it_is_given_work(tmp_path, monkeypatch):
    class OtherVersion(WithoutPackage):
        def run(self, function, *_, **__):
            return {"tls://10.0.0.9:1": "0.1" if function is version else ("python 3.0", *tasks.versions()[1:])}

    with Dask("tls://10.0.0.1:1") as running, pytest.raises(EngineError, match=r"other versions: python 3\.0"):
        monkeypatch.setattr(running, "_client", OtherVersion())
        running.start(work_in=tmp_path)


@pytest.mark.parametrize("make", [mm.release, mm.fit])
def test_a_cluster_that_cannot_be_used_is_told_before_the_charge(tmp_path, monkeypatch, make):
    monkeypatch.setattr("murmurate.engine.dask_cluster.CONNECT_S", 0.2)
    with mm.Ledger.in_memory() as ledger:
        for engine, work, error in (("dask://tls://127.0.0.1:1", None, EngineError), ("processes:2", "/dev/null", OutputError)):
            options = {"ledger": ledger, "out": tmp_path / "out", "engine": engine, "work": work}
            with pytest.raises(error, match=r"no Dask scheduler answers|the work folder /dev/null cannot be used") as caught:
                make(FLOCK, TRIPS, rng=noise.seeded(1), **options)
            assert not hasattr(caught.value, "charged") or caught.value.charged is None
        assert not [entry for entry in ledger.history() if entry.what == "debit"]
    assert not (tmp_path / "out").exists()


class Two(Serial):
    """Runs pieces here as an engine of two workers would."""

    workers = 2


@pytest.mark.parametrize("ordered", [True, False])
def test_a_full_disk_is_told_before_the_charge(tmp_path, monkeypatch, ordered):
    trips = city(200, users=50).table
    (trips if ordered else trips.sample(fraction=1, shuffle=True, seed=1)).write_parquet(
        tmp_path / "x.parquet", row_group_size=100
    )

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_ipc", full)
    with pytest.raises(OutputError, match=r"cannot be used: No space left on device.*Name another"):
        scan(tmp_path / "x.parquet", engine=Two(), points_per_partition=150, work_dir=tmp_path / "work")
    assert not (tmp_path / "work").exists()
