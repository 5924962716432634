"""The engine of several processes on this machine: a killed worker costs a part, never the whole work."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.context import BaseContext
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar

from murmurate.engine.shared import SharingEngine
from murmurate.errors import EngineError

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_ATTEMPTS = 3
"""Times a part is run before the work is given up; a part that kills its worker three times will do so again."""

PRELOADED = ("numpy", "polars", "pyarrow.parquet", "numba", "murmurate.asking.rounds", "murmurate.ingest.stream")
"""Modules that nearly every part needs, imported once in the process from which workers are forked."""


def cores() -> int:
    """Count the processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def given_up(attempts: int = MAX_ATTEMPTS) -> EngineError:
    """Return the error of a part that ended its worker again and again."""
    return EngineError(
        f"a part of the work ended its process {attempts} times, perhaps for want of memory.",
        "Use fewer workers, or a machine with more memory.",
    )


@dataclass
class _Waiting(Generic[Item, Result]):
    """An item under way, kept until its result is here, so that it can be run again."""

    item: Item
    future: Future[Result]
    attempts: int = 1


class Processes(SharingEngine):
    """Runs items in a pool of processes that is kept for all calls; results come in the order of the items."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def start(self, *modules: str, work_in: Path | None = None) -> None:
        """Start the processes and let them import these modules, while this process goes on."""
        self._work_in = work_in or self._work_in
        for _ in range(self.workers):
            self._submit(_import, modules)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to each item, in order; at most 2 * workers items are under way."""
        waiting: deque[_Waiting[Item, Result]] = deque()
        try:
            for item in items:
                waiting.append(_Waiting(item, self._submit(function, item)))
                if len(waiting) >= 2 * self.workers:
                    yield self._result(function, waiting)
            while waiting:
                yield self._result(function, waiting)
        finally:
            for one in waiting:
                one.future.cancel()

    def end(self) -> None:
        """End the processes."""
        self._end(wait=True)

    def _submit(self, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.workers, mp_context=_context(), initializer=_end_with_parent)
        try:
            with one_thread_each():  # the processes are started by the first item
                return self._pool.submit(function, item)
        except BrokenProcessPool as error:  # a worker died while the pool was idle
            failed: Future[Result] = Future()
            failed.set_exception(error)
            return failed

    def _result(self, function: Callable[[Item], Result], waiting: deque[_Waiting[Item, Result]]) -> Result:
        while True:
            try:
                result = waiting[0].future.result()
            except BrokenProcessPool:
                if waiting[0].attempts >= MAX_ATTEMPTS:
                    raise given_up() from None
                self._end(wait=False)
                for one in waiting:  # the pool does not say which item ended it: every unfinished one is run again
                    if not (one.future.done() and one.future.exception() is None):
                        one.future, one.attempts = self._submit(function, one.item), one.attempts + 1
                continue
            waiting.popleft()
            return result

    def _end(self, *, wait: bool) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=wait, cancel_futures=True)
            self._pool = None


def _context() -> BaseContext:
    """Return how workers are started: from a process that has imported much and started no thread pool, else anew.

    A forked child of this process, which may run polars' or JAX's threads, could hang.
    """
    if not sys.platform.startswith("linux"):
        return multiprocessing.get_context("spawn")
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


def _end_with_parent() -> None:
    """End a worker whose parent was killed: it holds both ends of its own queue, so it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()
