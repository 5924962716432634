"""The engine of several processes on this machine: a killed worker costs a part, never the whole work."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from murmurate.core.work import WorkFolder
from murmurate.errors import EngineError

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_ATTEMPTS = 3
"""Times a part is run before the work is given up; a part that kills its worker three times will do so again."""


def cores() -> int:
    """Count the processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Waiting(Generic[Item, Result]):
    """An item under way, kept until its result is here, so that it can be run again."""

    item: Item
    future: Future[Result]
    attempts: int = 1


class Processes:
    """Runs items in a pool of processes that is kept for all calls; results come in the order of the items."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._folder: WorkFolder | None = None
        self._shared = 0
        self._users = 0

    def start(self, *modules: str) -> None:
        """Start the processes and let them import these modules, while this process goes on."""
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

    def share(self, value: Any) -> Shared:
        """Write a value that many items need to a private file once; each worker reads it once, by `opened`."""
        self._shared += 1
        path = self.place(f"shared-{self._shared}")
        with path.open("wb") as file:
            pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
        return Shared(path)

    def place(self, name: str) -> Path:
        """Return where a worker may leave a large result: a file is cheaper than a pipe."""
        self._folder = self._folder or WorkFolder()
        return self._folder.path / name

    def __enter__(self) -> Self:
        self._users += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._users -= 1
        if self._users:
            return
        self._end(wait=True)
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _submit(self, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        if self._pool is None:
            # spawn: a forked child of a process with polars' or JAX's threads may hang
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_end_with_parent)
        try:
            with _one_thread_each():  # the processes are started by the first item
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
                    raise EngineError(
                        f"a part of the work ended its process {MAX_ATTEMPTS} times, perhaps for want of memory.",
                        "Use fewer workers, or a machine with more memory.",
                    ) from None
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


@dataclass(frozen=True)
class Shared:
    """Where a shared value lies."""

    path: Path


_last: tuple[Path, Any] | None = None


def opened(handle: Any) -> Any:
    """Return the value behind a handle of `share`; the last one read is kept in this process."""
    global _last  # noqa: PLW0603  one value a process, so that a model is read once and not once a part
    if not isinstance(handle, Shared):
        return handle
    if _last is None or _last[0] != handle.path:
        with handle.path.open("rb") as file:
            _last = handle.path, pickle.load(file)  # noqa: S301  written by this very run, in a folder only it may open
    return _last[1]


@contextmanager
def _one_thread_each() -> Iterator[None]:
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
