"""Run one function over many parts: in this process or in several, with the same results in the same order.

Nothing here may change what is computed. Functions are pure, randomness travels with the items, so that neither a guarantee
nor a released number depends on the number of workers, and a part that is run again gives the same result again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from murmurate.core import progress
from murmurate.core.parameters import whole
from murmurate.engine.processes import Processes, cores
from murmurate.engine.serial import Serial

Item = TypeVar("Item")
Result = TypeVar("Result")

Engine = Serial | Processes


def engine(workers: int | Engine = 1) -> Engine:
    """Open an engine with this many processes; use it as a context manager, which ends the processes.

    An engine that is open already is used as it is, and left open.

    >>> with engine(1) as here:
    ...     list(here.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    if isinstance(workers, Serial | Processes):
        return workers
    whole("workers", workers)
    return Serial() if workers == 1 else Processes(workers)


def map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int = 1,
    describe: str | None = None,
    total: int | None = None,
) -> Iterator[Result]:
    """Apply a `function` to each of `items`, in their order, on an engine of its own.

    `describe` and `total` name the work and its size where progress is shown. With `workers` > 1 the function must be
    importable (a top-level function or a partial of one), and at most 2 * workers items are under way, so that a stream of
    parts never piles up.

    >>> list(map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    with engine(workers) as opened:
        results = opened.map(function, items)
        yield from progress.track(results, describe, total) if describe else results


__all__ = ["Engine", "Processes", "Serial", "cores", "engine", "map"]
