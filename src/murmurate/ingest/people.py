"""Go over the people of parts without holding them: their names one by one, and whether one comes twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.engine import Engine, Serial

Hashes = NDArray[np.uint64]

CHECKED_AT_ONCE = 1 << 20
"""People that are compared with each other at once, about: 8 MB. More are compared range by range of their hashes."""


@dataclass(frozen=True, eq=False)
class PeopleInParts(Collection[str]):
    """Names of people, read part by part where somebody goes over them; no part of them stays in memory."""

    parts: Sequence[Callable[[], pl.Series]]
    """Returns the name of each person of a part, once."""
    count: int
    namespace: str = ""
    """Put before each name, where people of two files are numbered alike."""

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        for names in self.parts:
            yield from (self.namespace + name for name in names().cast(pl.String))

    def __contains__(self, name: object) -> bool:
        return any(name == one for one in self)

    def within(self, namespace: str) -> PeopleInParts:
        """Return the same people under a namespace."""
        return replace(self, namespace=namespace)


def hash_names(names: pl.Series) -> Hashes:
    """Return a hash of each person, sorted; only ever compared within one run, so the hash of this very polars will do."""
    return np.sort(names.cast(pl.String).hash(seed=0).to_numpy())


def anyone_twice(parts: Sequence[Callable[[], Hashes]], n_people: int, engine: Engine | None = None) -> bool:
    """Return whether a person is in two parts; two people of one hash count as one, and the caller then sorts by person.

    `parts` return the sorted hashes of their people. Memory is that of `CHECKED_AT_ONCE` people, whatever their number.
    """
    n_ranges = max(1, -(-n_people // CHECKED_AT_ONCE))
    edges = [(k << 64) // n_ranges for k in range(n_ranges + 1)]
    ranges = list(pairwise(edges))
    return any((engine or Serial()).map(partial(_twice_in, list(parts)), ranges))


def _twice_in(parts: Sequence[Callable[[], Hashes]], within: tuple[int, int]) -> bool:
    first, end = within
    some = []
    for part in parts:
        hashes = part()
        last = len(hashes) if end > np.iinfo(np.uint64).max else int(np.searchsorted(hashes, np.uint64(end)))
        some.append(np.asarray(hashes[int(np.searchsorted(hashes, np.uint64(first))) : last]))
    together = np.sort(np.concatenate(some)) if some else np.empty(0, np.uint64)
    return bool((together[1:] == together[:-1]).any())
