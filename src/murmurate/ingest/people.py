"""Go over the people of parts without holding them: their names one by one, whether one comes twice, and in which bucket."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.engine import Engine, Serial

Hashes = NDArray[np.uint64]

CHECKED_AT_ONCE = 1 << 20
"""People that are compared with each other at once, about: 8 MB. More are compared range by range of their hashes."""


@dataclass(frozen=True, eq=False)
class PeopleInParts(Collection[str]):
    """Names of people, read part by part where somebody goes over them; no part of them stays in memory."""

    parts: Iterable[Callable[[], pl.Series]]
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


def hash_trips(uid: pl.Series, tid: pl.Series) -> Hashes:
    """Return a hash of each trip, sorted, as `hash_names` does of people."""
    return np.sort(
        pl.DataFrame([uid.cast(pl.String).alias("uid"), tid.cast(pl.String).alias("tid")]).hash_rows(seed=0).to_numpy()
    )


def anyone_twice(parts: Sequence[Callable[[], Hashes]], n_people: int, engine: Engine | None = None) -> bool:
    """Return whether a person is in two parts; two people of one hash count as one, and the caller then sorts by person.

    `parts` return the sorted hashes of their people. Memory is that of `CHECKED_AT_ONCE` people, whatever their number.
    """
    return any((engine or Serial()).map(partial(_twice_in, list(parts)), _ranges(n_people)))


def count_people(parts: Sequence[Callable[[], Hashes]], n_at_most: int, engine: Engine | None = None) -> int:
    """Count the people of parts where one may be in several; `n_at_most` is the sum over the parts."""
    return sum((engine or Serial()).map(partial(_distinct_in, list(parts)), _ranges(n_at_most)))


def _ranges(n_people: int) -> list[tuple[int, int]]:
    """Return ranges of hashes that hold about `CHECKED_AT_ONCE` people each."""
    n_ranges = max(1, -(-n_people // CHECKED_AT_ONCE))
    return list(pairwise([(k << 64) // n_ranges for k in range(n_ranges + 1)]))


def _distinct_in(parts: Sequence[Callable[[], Hashes]], within: tuple[int, int]) -> int:
    return len(np.unique(_hashes_in(parts, within)))


def _twice_in(parts: Sequence[Callable[[], Hashes]], within: tuple[int, int]) -> bool:
    together = np.sort(_hashes_in(parts, within))
    return bool((together[1:] == together[:-1]).any())


def _hashes_in(parts: Sequence[Callable[[], Hashes]], within: tuple[int, int]) -> Hashes:
    first, end = within
    some = []
    for part in parts:
        hashes = part()
        last = len(hashes) if end > np.iinfo(np.uint64).max else int(np.searchsorted(hashes, np.uint64(end)))
        some.append(np.asarray(hashes[int(np.searchsorted(hashes, np.uint64(first))) : last]))
    return np.concatenate(some) if some else np.empty(0, np.uint64)


def buckets_of(uid: pl.Series, n_parts: int) -> NDArray[np.int64]:
    """Return the bucket of each name, by a hash that no version of any package changes."""
    text = pl.Series(uid.cast(pl.String)).to_arrow()
    _, ends, letters = text.cast("large_string").buffers()
    if not len(uid):
        return np.empty(0, np.int64)
    at = np.frombuffer(ends, np.int64)[text.offset : text.offset + len(uid) + 1]
    return _hashed(at, np.frombuffer(letters, np.uint8) if letters is not None else np.empty(0, np.uint8), n_parts)


@njit(cache=True, nogil=True)
def _hashed(ends: NDArray[np.int64], letters: NDArray[np.uint8], n: int) -> NDArray[np.int64]:
    """Return FNV-1a of 64 bits, well mixed, modulo n."""
    out = np.empty(len(ends) - 1, np.int64)
    for k in range(len(out)):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(ends[k], ends[k + 1]):
            h = (h ^ np.uint64(letters[j])) * np.uint64(0x100000001B3)
        h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        out[k] = np.int64((h ^ (h >> np.uint64(33))) % np.uint64(n))
    return out
