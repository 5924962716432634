"""Run one function over many parts: here, in several processes or on a cluster, with the same results in the same order.

Nothing here may change what is computed. Functions are pure, randomness travels with the items, so that neither a guarantee
nor a released number depends on the engine, and a part that is run again gives the same result again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from murmurate.core import progress
from murmurate.core.parameters import whole
from murmurate.engine.processes import Processes, cores
from murmurate.engine.protocol import Engine
from murmurate.engine.serial import Serial
from murmurate.errors import ParameterError

Item = TypeVar("Item")
Result = TypeVar("Result")

ENGINES = (
    "serial, processes:N, dask-local:N, dask://tls://HOST:PORT, dask://tcp://127.0.0.1:PORT, local[N] or spark://HOST:PORT"
)
"""What `--engine` takes."""


def engine(which: int | str | Engine = 1) -> Engine:
    """Return an engine: a number of processes, a word of `ENGINES`, or an engine, which is used as it is.

    Use it as a context manager, which ends what it started.

    >>> with engine("serial") as here:
    ...     list(here.map(abs, [-1, 2, -3])), here.fold(abs, [-1, 2, -3], sum)
    ([1, 2, 3], 6)
    """
    if isinstance(which, Engine):
        return which
    if isinstance(which, str):
        return _parsed(which)
    whole("workers", which)
    return Serial() if which == 1 else Processes(which)


def _parsed(word: str) -> Engine:
    if word == "serial":
        return Serial()
    if word.startswith("dask://"):
        from murmurate.engine.dask_cluster import Dask

        return Dask(word.removeprefix("dask://"))
    if word.startswith("spark://") or re.fullmatch(r"local\[\d{1,4}\]", word):
        from murmurate.engine.spark_cluster import Spark

        return Spark(word)
    found = re.fullmatch(r"(processes|dask-local):(\d{1,4})", word)
    if not found or int(found[2]) < 1:
        raise ParameterError(f"an engine is {ENGINES}; got {word!r}.")
    if found[1] == "processes":
        return engine(int(found[2]))
    from murmurate.engine.dask_cluster import Dask

    return Dask(workers=int(found[2]))


def map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int | str | Engine = 1,
    describe: str | None = None,
    total: int | None = None,
) -> Iterator[Result]:
    """Apply a `function` to each of `items`, in their order, on an engine of its own.

    `describe` and `total` name the work and its size where progress is shown. On other engines than `serial` the function must
    be importable (a top-level function or a partial of one), and few items for each worker are under way, so that a stream of
    parts never piles up.

    >>> list(map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    with engine(workers) as opened:
        results = opened.map(function, items)
        yield from progress.track(results, describe, total) if describe else results


__all__ = ["ENGINES", "Engine", "Processes", "Serial", "cores", "engine", "map"]
