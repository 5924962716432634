"""The engine of a Dask cluster: one on this machine, or one that somebody operates. Needs the extra `[dask]`."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from murmurate.engine import tasks
from murmurate.engine.processes import Deaths
from murmurate.engine.shared import SharingEngine
from murmurate.errors import EngineError, MissingPart, ParameterError

Item = TypeVar("Item")
Result = TypeVar("Result")

CONNECT_S = 20
"""Seconds that a scheduler may take to answer. Set by hand."""
IDLE_S = 60.0
"""Seconds that a cluster may be without any worker before the work is given up: operators need that long to restart one."""
OWN_IDLE_S = 600.0
"""The same for a cluster of our own whose workers are starting: on a machine loaded ten times over, that takes minutes."""
LOOK_S = 5.0
"""Seconds between two looks at whether the cluster still has workers."""
CANCELLED = (CancelledError, asyncio.CancelledError, UnboundLocalError)
"""What Dask raises for a task that was cancelled, as all are where the connection to the scheduler breaks. The last is a
fault of Dask's: it does not catch the second and then has no result to return (github.com/dask/distributed/issues/8514)."""

LOCAL = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.preload": ["import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"],
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), 1
    ),
}
"""Settings of a cluster of our own: every death of a worker is told; no pages, which any account could open; workers that
Ctrl-C reaches too end without a word; and a worker that is started again on a busy machine is not given up because it takes
longer than the 15 seconds that Dask expects. Dask would also let workers give freed memory back at once
(MALLOC_TRIM_THRESHOLD_): a release of 36 M points took 98 CPU seconds with that setting and 76 without it."""


class Dask(SharingEngine):
    """Runs items as tasks of a Dask cluster. A killed worker costs its parts, which are run again.

    Without an `address` a cluster of `workers` processes is made on this machine, closed to other accounts by certificates of
    its own; where it loses all of them, it is made anew. A cluster elsewhere must use TLS: without it anybody on the network
    could read private data and run code.
    """

    def __init__(self, address: str | None = None, workers: int = 1) -> None:
        super().__init__()
        if address is not None:
            check_address(address, "the scheduler")
        self._address, self._own = address, workers
        self._settings = ExitStack()
        self._client: Any = None
        self._cluster: Any = None

    @property
    def workers(self) -> int:  # type: ignore[override]
        """Return how many parts run at a time, as the scheduler says now."""
        if self._client is None:
            return self._own
        return max(1, sum(one["nthreads"] for one in self._info()["workers"].values()))

    def start(self, *modules: str, work_in: str | Path | None = None) -> None:
        """Connect to the cluster, or make one; refuse workers that run other packages."""
        self._work_in = work_in or self._work_in
        self._connected()
        if self._address is not None and self._check_workers():
            self._check_packages()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to each item, in order; at most two items for each worker are under way."""
        files = self.files()
        self._check_workers()
        most = 2 * self.workers
        waiting: deque[_Waiting] = deque()
        deaths = Deaths()
        try:
            for number, item in enumerate(items):
                waiting.append(_Waiting(tasks.task(number, function, item, files)))
                self._submit(waiting, deaths)
                if len(waiting) >= most:
                    yield self._result(waiting, deaths)
            while waiting:
                yield self._result(waiting, deaths)
        finally:
            with suppress(*_lost(), RuntimeError):  # whatever went wrong is told, not that it cannot be cancelled
                for one in waiting:
                    if one.future is not None:
                        one.future.cancel()

    def end(self) -> None:
        """Disconnect, and end the cluster where it is our own."""
        self._disconnect()
        self._settings.close()

    def _disconnect(self) -> None:
        for thing in (self._client, self._cluster):
            if thing is not None:
                with suppress(*_lost(), RuntimeError):  # one that is lost need not be ended well
                    thing.close()
        self._client = self._cluster = None

    def _submit(self, waiting: deque[_Waiting], deaths: Deaths) -> None:
        """Run the task that came last."""
        try:
            waiting[-1].submit(self._connected())
        except _lost():
            self._run_again(waiting, deaths)

    def _result(self, waiting: deque[_Waiting], deaths: Deaths) -> Any:
        from distributed import KilledWorker

        one = waiting[0].task
        alone_since: float | None = None
        while True:
            try:
                outcome = waiting[0].future.result(timeout=LOOK_S)
                break
            except TimeoutError:
                alone_since = None if self._has_workers() else alone_since or time.monotonic()
                if alone_since is not None and self._is_given_up(time.monotonic() - alone_since):
                    self._run_again(waiting, deaths)
                    alone_since = None
            except KilledWorker:
                deaths.note(deaths.finished + sum(some.future.status == "finished" for some in waiting))
                for some in waiting:
                    if some.future.status == "error":
                        some.submit(self._connected())
            except ImportError:
                raise _without_package() from None
            except _lost():
                self._run_again(waiting, deaths)
        waiting.popleft()
        deaths.finished += 1
        if isinstance(one.content, str):
            one.files.remove([one.content])
        return outcome.result(one.number)

    def _has_workers(self) -> bool:
        """Return whether the cluster has workers; False as well where the scheduler is too busy to say."""
        try:
            return self._check_workers()
        except (TimeoutError, OSError):
            return False

    def _is_given_up(self, alone_s: float) -> bool:
        """Return whether a cluster of our own shall be made anew; raise where one of somebody else has no worker."""
        if self._cluster is None:
            if alone_s > IDLE_S:
                raise EngineError(f"the cluster had no worker for {IDLE_S:g} seconds.", "Start workers, then run it again.")
            return False
        starting = any(one.process is not None and one.process.is_alive() for one in self._cluster.workers.values())
        return alone_s > (OWN_IDLE_S if starting else LOOK_S)

    def _run_again(self, waiting: deque[_Waiting], deaths: Deaths) -> None:
        """Connect again, to a new cluster where it is our own, and run again whatever had not been handed over."""
        while True:
            deaths.note(deaths.finished)
            self._disconnect()
            try:
                for one in waiting:
                    one.submit(self._connected())
                return
            except _lost():
                continue

    def _connected(self) -> Any:
        if self._client is not None:
            return self._client
        try:
            import dask
            from distributed import Client, LocalCluster, Security
        except ImportError:
            raise MissingPart("this engine needs Dask: install the extra, `pip install 'murmurate[dask]'`.") from None
        if self._address is None:
            self._settings.enter_context(dask.config.set(LOCAL))
            self._cluster = LocalCluster(
                n_workers=self._own,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                security=Security.temporary(),
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                memory_limit=0,  # no spilling of private values into files of Dask's own
                local_directory=str(self._work().path / "dask"),
                silence_logs=logging.CRITICAL,
            )
            self._client = Client(self._cluster, set_as_default=False)
            return self._client
        try:
            self._client = Client(self._address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise EngineError(
                f"no Dask scheduler answers at {self._address}: {error}",
                "Start one there, and for tls:// name the certificates in Dask's configuration (distributed.comm.tls).",
            ) from None
        return self._client

    def _info(self) -> Any:
        """Return what the scheduler says of itself and its workers; connect again where the connection is lost."""
        found = self._connected().scheduler_info(n_workers=-1)
        if "workers" not in found:  # a client that lost its scheduler knows nothing of it
            self._disconnect()
            found = self._connected().scheduler_info(n_workers=-1)
        if "workers" not in found:
            raise TimeoutError("the scheduler does not answer")
        return found

    def _check_packages(self) -> None:
        """Refuse workers without this package, which Dask drops at their first task, and workers with other versions."""
        client = self._connected()
        if any(isinstance(one, ImportError) for one in client.run(version, "murmurate", on_error="return").values()):
            raise _without_package()
        for its in client.run(tasks.versions, on_error="return").values():
            if not isinstance(its, BaseException):  # a worker that was lost meanwhile
                tasks.check_versions(tasks.versions(), its)

    def _check_workers(self) -> bool:
        """Return whether the cluster has workers; refuse one that listens to the network without TLS."""
        found = self._info()
        check_address(found["address"], "the scheduler")
        for address in found["workers"]:
            check_address(address, "a worker")
        return bool(found["workers"])


def _without_package() -> EngineError:
    return EngineError("a worker cannot import murmurate.", "Install it on every worker, then run it again.")


def _lost() -> tuple[type[BaseException], ...]:
    """Return what Dask raises where a task was cancelled or the scheduler cannot be reached any more."""
    from distributed.client import ClosedClientError

    return (*CANCELLED, OSError, ClosedClientError)


class _Waiting:
    """A task under way, kept until its result is here, so that it can be run again."""

    future: Any = None

    def __init__(self, task: tasks.Task) -> None:
        self.task = task

    def submit(self, client: Any) -> None:
        """Run the task, under a new name that says nothing."""
        self.future = client.submit(tasks.run, self.task, key=f"part-{secrets.token_hex(8)}", pure=False)


def check_address(address: str, whose: str) -> None:
    """Refuse an address that others on the network can reach without TLS.

    >>> check_address("tls://cluster.example:8786", "the scheduler")
    >>> check_address("tcp://127.0.0.1:8786", "the scheduler")
    """
    parts = urlsplit(address)
    if parts.scheme == "inproc" or (parts.scheme == "tls" and parts.hostname):
        return
    if parts.scheme != "tcp" or not parts.hostname:
        raise ParameterError(f"a Dask engine is dask://tls://HOST:PORT, or dask://tcp://127.0.0.1:PORT; got {address!r}.")
    if not _is_loopback(parts.hostname):
        raise ParameterError(
            f"{whose} at {address} speaks without TLS: anybody on that network could read private data and run code. "
            "Use tls:// with certificates (docs/scale.md), or a cluster on this machine alone."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
