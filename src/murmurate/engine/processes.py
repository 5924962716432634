"""Run parts in several processes on this machine. If a worker is killed, only its part runs again."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from pathlib import Path
from threading import Thread
from typing import Generic, Self, TypeVar

from murmurate.engine.shared import SharingEngine
from murmurate.errors import EngineError

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_ATTEMPTS = 3
"""Deaths of workers after which the work is given up, where no part was finished between them."""

PRELOADED = ("numpy", "polars", "pyarrow.parquet", "numba", "murmurate.asking.rounds", "murmurate.ingest.stream")
"""Modules that nearly every part needs, imported once in the process from which workers are forked."""


def cores() -> int:
    """Count the processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Deaths:
    """Distinguish parts that kill every worker from workers that something else killed.

    Nobody says which part a worker died of, and other parts run beside it. Those finish; a part that always ends its worker is
    left over, and then no part is finished between two deaths.
    """

    def __init__(self) -> None:
        self.finished = 0
        self._finished_before = -1
        self._fruitless = 0

    def note(self, finished: int) -> None:
        """Note that a worker died when so many parts were finished; give up where deaths follow each other."""
        self._fruitless = 1 if finished > self._finished_before else self._fruitless + 1
        self._finished_before = finished
        if self._fruitless >= MAX_ATTEMPTS:
            raise EngineError(
                f"a part of the work ended its process {MAX_ATTEMPTS} times, perhaps for want of memory.",
                "Use fewer workers, or a machine with more memory.",
            )


@dataclass
class _Waiting(Generic[Item, Result]):
    """An item under way, kept until its result is here, so that it can be run again."""

    item: Item
    future: Future[Result]

    @property
    def finished(self) -> bool:
        """Whether its result is here."""
        return self.future.done() and not self.future.cancelled() and self.future.exception() is None


class Processes(SharingEngine):
    """Runs items in a pool of processes that is kept for all calls; results come in the order of the items."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        """Start the process from which workers are forked. Its imports take seconds, while this process prepares the work."""
        if sys.platform.startswith("linux"):
            _context()
            with one_thread_each():
                forkserver.ensure_running()
        return super().__enter__()

    def start(self, *modules: str, work_in: str | Path | None = None) -> None:
        """Start the processes and let them import these modules, while this process goes on."""
        self._work_in = work_in or self._work_in
        for _ in range(self.workers):
            self._submit(_import, modules)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to each item, in order; at most 2 * workers items are under way."""
        waiting: deque[_Waiting[Item, Result]] = deque()
        deaths = Deaths()
        try:
            for item in items:
                waiting.append(_Waiting(item, self._submit(function, item)))
                if len(waiting) >= 2 * self.workers:
                    yield self._result(function, waiting, deaths)
            while waiting:
                yield self._result(function, waiting, deaths)
        finally:
            for one in waiting:
                one.future.cancel()

    def end(self) -> None:
        """End the processes."""
        self._end(wait=True)

    def _submit(self, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        try:
            with one_thread_each():  # the processes are started by the first item
                if self._pool is None:
                    self._pool = ProcessPoolExecutor(
                        self.workers, mp_context=_context(), initializer=_start_worker, initargs=(dict(os.environ),)
                    )
                return self._pool.submit(function, item)
        except BrokenProcessPool as error:  # a worker died while the pool was idle
            failed: Future[Result] = Future()
            failed.set_exception(error)
            return failed

    def _result(self, function: Callable[[Item], Result], waiting: deque[_Waiting[Item, Result]], deaths: Deaths) -> Result:
        while True:
            try:
                result = waiting[0].future.result()
            except BrokenProcessPool:
                self._end(wait=False)
                deaths.note(deaths.finished + sum(one.finished for one in waiting))
                for one in waiting:  # the pool does not say which item ended it: every unfinished one is run again
                    if not one.finished:
                        one.future = self._submit(function, one.item)
                continue
            deaths.finished += 1
            waiting.popleft()
            return result

    def _end(self, *, wait: bool) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=wait, cancel_futures=True)
            self._pool = None


_reaping = False


def _reap_forkserver() -> None:
    """Wait for the process that workers are forked from, so that what they used is counted as used by this process."""
    stop = getattr(forkserver._forkserver, "_stop", None)
    if stop is not None:
        stop()


def _context() -> BaseContext:
    """Return how workers are started: from a process that has imported much and started no thread pool, else anew.

    A forked child of this process, which may run polars' or JAX's threads, could hang.
    """
    if not sys.platform.startswith("linux"):
        return multiprocessing.get_context("spawn")
    global _reaping  # noqa: PLW0603  once a process
    if not _reaping:
        atexit.register(_reap_forkserver)
        _reaping = True
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", *PRELOADED])
    return context


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let processes that start in the block use one thread each: they share the processors already."""
    names = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _import(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)


def _start_worker(environment: dict[str, str]) -> None:
    """Take over the driver's environment, such as credentials of a store; that of the parent process may be older."""
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches it too; it ends without a word, and its parent says what is
    _end_with_parent()


def _end_with_parent() -> None:
    """End a worker whose parent was killed: it holds both ends of its own queue, so it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()
