"""Draw the noise of tables while their counts are still being made: noise does not depend on what it is added to."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

import numpy as np

from murmurate.core.space import Integers
from murmurate.noise.discrete import AT_ONCE, checked, gaussian_integers, laplace_integers
from murmurate.noise.stream import Randomness


@dataclass(frozen=True)
class Wanted:
    """Noise of one table."""

    kind: Literal["laplace", "gaussian"]
    n: int
    scale: float
    """Scale of the Laplace noise or standard deviation, in lattice steps."""


class NoiseAhead:
    """Draws noise in threads from the moment it is made; `add_to` uses the noise of each table once.

    Used as a context manager, which drops whatever was not used.

    >>> from murmurate.noise.stream import secure
    >>> counts = np.array([5, 0, 2])
    >>> with NoiseAhead({"trips": Wanted("laplace", 3, 2.0)}, secure()) as ahead:
    ...     len(ahead.add_to("trips", counts)), ahead.add_to("trips", counts)
    (3, None)
    """

    def __init__(self, wanted: Mapping[str, Wanted], rng: Randomness, threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(threads)
        self._wanted = dict(wanted)
        self._drawing: dict[str, list[Future[Integers]]] = {
            name: [self._pool.submit(_drawn, one, rng, first) for first in range(0, one.n, AT_ONCE)]
            for name, one in wanted.items()
        }

    def add_to(self, name: str, values: Integers) -> Integers | None:
        """Wait for the noise of a table and add it to its values; None where none was wanted, or where it was used already."""
        parts = self._drawing.pop(name, None)
        if parts is None:
            return None
        counts = checked(values, self._wanted[name].scale)
        return counts + np.concatenate([np.empty(0, np.int64), *(part.result() for part in parts)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _drawn(one: Wanted, rng: Randomness, first: int) -> Integers:
    zeros = np.zeros(min(AT_ONCE, one.n - first), dtype=np.int64)
    noise = laplace_integers if one.kind == "laplace" else gaussian_integers
    return noise(zeros, scale=one.scale, rng=rng)
