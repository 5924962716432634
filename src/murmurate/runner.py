"""Runs one function over many parts: here or in processes; the same results, in order, with bounded memory.

Nothing here may change what is computed: randomness travels with the items, so a guarantee never depends on `workers`.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from threading import Thread
from typing import TypeVar

from murmurate import progress
from murmurate.core.parameters import whole

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many processes this machine gives us."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int = 1,
    describe: str | None = None,
    total: int | None = None,
) -> Iterator[Result]:
    """`function(item)` for each item, in the order of the items.

    With `workers` > 1 the function must be importable (a top-level function or a partial of one), and at most
    2 * workers items are under way, so that a stream of parts never piles up.

    >>> list(map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    whole("workers", workers)
    results = _here(function, items) if workers == 1 else _processes(function, items, workers)
    return progress.track(results, describe, total) if describe else results


def _here(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    for item in items:
        yield function(item)


def _processes(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    # spawn: a forked child of a process with polars' or JAX's threads may hang
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Ends a worker whose parent was killed: it holds both ends of its own queue, so it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()
