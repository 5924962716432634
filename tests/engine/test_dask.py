"""A Dask cluster of processes: the same results, killed workers, nothing private in sight, no open network."""

from __future__ import annotations

import logging
import pickle
import socket
from functools import partial

import pytest

import murmurate as mm
from diagonal_city import GRID, city
from engine_parts import always_killed, counts, counts_or_dies, failing, killed_once, shared_sum
from murmurate import engine, noise
from murmurate.asking import Facts
from murmurate.asking.rounds import Asking
from murmurate.core.work_files import WorkFiles
from murmurate.engine import tasks
from murmurate.engine.dask_cluster import Dask, check_address
from murmurate.errors import EngineError, InputError, ParameterError
from murmurate.mechanisms.flock import Flock
from murmurate.mechanisms.flock.model import FlockModel
from toy_rounds import Toy, trips_of


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with engine.engine("dask-local:2") as running:
        running.start(work_in=tmp_path_factory.mktemp("work"))
        yield running


def test_results_come_in_order_and_sums_are_the_same(cluster):
    assert list(cluster.map(abs, range(-5, 5))) == [5, 4, 3, 2, 1, 0, 1, 2, 3, 4]
    assert cluster.fold(abs, range(-9, 9), sum) == 81
    handle = cluster.share([1, 2, 3])
    assert list(cluster.map(partial(shared_sum, handle), range(4))) == [6, 7, 8, 9]


def test_killed_workers_cost_a_part_and_no_result(cluster, tmp_path):
    assert list(cluster.map(partial(killed_once, tmp_path), range(12))) == [k * k for k in range(12)]
    found = cluster.fold(partial(counts_or_dies, tmp_path, 7), range(30), sum)
    assert found.tolist() == sum(counts(7, k) for k in range(30)).tolist()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("points", [1, 40, 10**6])
def test_tables_are_those_of_one_process(cluster, points):
    toy = Toy(unit="user", max_trips=2)
    asked = toy.ask({}, Facts(carries=frozenset()))
    whole, found = (
        Asking(toy, trips_of(), noise.seeded(1), engine=one, key=b"k" * 16, part_points=size).exact(asked, "l1")
        for one, size in ((engine.Serial(), 10**6), (cluster, points))
    )
    assert all((one == other).all() for one, other in zip(whole["cells"], found["cells"], strict=True))


def test_a_whole_release_is_the_same_on_every_engine(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(FlockModel, "sample_trips", 40, raising=False)
    flock = Flock(epsilon=5.0, space=GRID, n_out=300)
    written = {}
    for name, running in (("serial", "serial"), ("processes", "processes:2"), ("dask", cluster)):
        with mm.Ledger.in_memory() as demo:
            made = mm.release(flock, city(300, users=30), ledger=demo, out=tmp_path / name, rng=noise.seeded(3), engine=running)
        written[name] = (made.folder / "data.parquet").read_bytes()
    assert written["serial"] == written["processes"] == written["dask"]


def test_errors_of_workers_are_raised_here_and_logged_nowhere(cluster, caplog, capfd):
    with caplog.at_level(logging.DEBUG), pytest.raises(InputError, match="Ada Lovelace"):
        list(cluster.map(failing, ["Ada Lovelace"]))
    assert "Lovelace" not in caplog.text + "".join(capfd.readouterr())


def test_tasks_show_nothing_of_what_they_carry(tmp_path):
    one = tasks.task(3, failing, "Ada Lovelace", WorkFiles(str(tmp_path)))
    assert repr(one) == "<part 3>"
    assert repr(tasks.run(one)) == "<outcome 3>"
    with pytest.raises(InputError, match="Lovelace"):
        tasks.run(one).result(3)
    with pytest.raises(EngineError, match="came back as part 3"):
        tasks.run(one).result(4)


def test_large_tasks_go_through_a_private_file(tmp_path):
    one = tasks.task(0, len, bytes(tasks.INLINE_BYTES + 1), WorkFiles(str(tmp_path)))
    assert len(pickle.dumps(one)) < 2000
    assert tasks.run(one).result(0) == tasks.INLINE_BYTES + 1


def test_other_versions_and_other_disks_are_refused(tmp_path, monkeypatch):
    one = tasks.task(0, abs, -1, WorkFiles(str(tmp_path)))
    monkeypatch.setattr(tasks, "versions", lambda: tuple(word + "1" for word in one.versions))
    with pytest.raises(EngineError, match=r"other versions: python .*expected python"):
        tasks.run(one).result(0)
    monkeypatch.undo()
    with pytest.raises(EngineError, match="cannot open the folder"):
        tasks.run(tasks.task(0, abs, -1, WorkFiles(str(tmp_path / "elsewhere")))).result(0)


def test_an_error_that_cannot_travel_is_told_by_its_kind(tmp_path):
    with pytest.raises(EngineError, match="failed with Unpicklable") as caught:
        tasks.run(tasks.task(0, unpicklable, None, WorkFiles(str(tmp_path)))).result(0)
    assert "secret" not in str(caught.value)


class Unpicklable(Exception):
    def __init__(self):
        super().__init__("secret")
        self.call = lambda: None


def unpicklable(item):
    raise Unpicklable


@pytest.mark.parametrize("address", ["tcp://10.0.0.7:8786", "tcp://cluster.example:8786", "tcp://0.0.0.0:8786"])
def test_a_network_without_tls_is_refused(address):
    with pytest.raises(ParameterError, match="without TLS"):
        engine.engine(f"dask://{address}")


@pytest.mark.parametrize("address", ["8786", "ws://127.0.0.1:8786", "tcp://", "tls://"])
def test_addresses_that_mean_nothing_are_refused(address):
    with pytest.raises(ParameterError, match="a Dask engine is"):
        check_address(address, "the scheduler")


def test_a_worker_on_the_network_without_tls_is_refused(cluster, monkeypatch):
    class Info:
        def scheduler_info(self, n_workers):
            return {"address": "tls://127.0.0.1:1", "workers": {"tcp://10.0.0.9:1": {"nthreads": 1}}}

    other = Dask("tls://127.0.0.1:1")
    monkeypatch.setattr(other, "_client", Info())
    with pytest.raises(ParameterError, match="a worker at tcp://10"):
        other._check_workers()


def test_an_unreachable_scheduler_is_one_message(monkeypatch):
    monkeypatch.setattr("murmurate.engine.dask_cluster.CONNECT_S", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EngineError, match="no Dask scheduler answers"):
        engine.engine(f"dask://tcp://127.0.0.1:{port}").start()


def test_a_cluster_that_lost_all_its_workers_is_made_anew(tmp_path, monkeypatch):
    """Dask gives up a worker that takes long to come back, and would wait for one for ever."""
    monkeypatch.setattr("murmurate.engine.dask_cluster.LOOK_S", 0.5)
    with engine.engine("dask-local:1") as running:
        running.start(work_in=tmp_path)
        first = running._cluster
        first.scale(0)
        assert list(running.map(abs, [-1, -2, -3])) == [1, 2, 3]
        assert running._cluster is not first


def test_tasks_that_dask_cancels_are_run_again(tmp_path):
    """As where the connection to the scheduler breaks."""
    from distributed import Future

    with engine.engine("dask-local:1") as running:
        running.start(work_in=tmp_path)
        results = running.map(abs, range(-6, 0))
        found = [next(results)]
        client = running._client
        client.cancel([Future(key, client) for key in client.futures], force=True)
        assert [*found, *results] == [6, 5, 4, 3, 2, 1]


def test_a_lost_connection_is_made_again(tmp_path):
    """As on a machine that stood still for minutes: the client has closed, and knows nothing of its scheduler."""
    with engine.engine("dask-local:1") as running:
        running.start(work_in=tmp_path)
        results = running.map(abs, range(-6, 0))
        found = [next(results)]
        running._client.close()
        assert [*found, *results] == [6, 5, 4, 3, 2, 1]
        running._client.close()
        assert (list(running.map(abs, [-1, -2])), running.workers) == ([1, 2], 1)


def test_a_part_that_always_kills_its_worker_ends_the_work(tmp_path):
    with engine.engine("dask-local:1") as running, pytest.raises(EngineError, match="3 times"):
        running.start(work_in=tmp_path)
        list(running.map(always_killed, range(2)))
    assert list(tmp_path.iterdir()) == []
