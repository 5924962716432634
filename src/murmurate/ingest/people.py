"""Process the people of parts without holding all of them: iterate over names, find people in two parts, assign buckets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.engine import Engine, Serial
from murmurate.engine.shared import forget, opened

Result = TypeVar("Result")
Hashes = NDArray[np.uint64]

CHECKED_AT_ONCE = 1 << 20
"""Approximate number of people compared at once (8 MB). More are compared range by range of their hashes."""
MAX_RANGES = 1 << 10
"""Maximum number of ranges of hashes. Each range reads the file of every part, so without a maximum, time would grow with the
square of the parts. People of a thousand million points need fewer. Set by hand."""
SPREAD_PEOPLE = 1 << 17
"""Maximum of names that one process hashes by itself, in about a second. Set by hand."""


@dataclass(frozen=True, eq=False)
class PeopleInParts(Collection[str]):
    """Names of people, read part by part during iteration; none of them stay in memory."""

    parts: Iterable[Callable[[], pl.Series]]
    """Returns the name of each person of a part, once."""
    count: int
    namespace: str = ""
    """Prefix of each name, for files that number different people alike."""
    engine: Engine | None = field(default=None, repr=False)
    """Engine whose workers can open the parts."""

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        for names in self.parts:
            yield from _named(self.namespace, names)

    def __contains__(self, name: object) -> bool:
        return any(name == one for one in self)

    def within(self, namespace: str) -> PeopleInParts:
        """Return the same people under a namespace."""
        return replace(self, namespace=namespace)

    def fold(self, function: Callable[[Iterable[str]], Result], add: Callable[[Sequence[Result]], Result]) -> Result:
        """Apply a function to the names of all people here, or to those of each part on the workers, and add up the results.

        The function, and what it contains, such as a key, reaches the workers in a private file that is deleted at the end.
        """
        if self.engine is None or self.count <= SPREAD_PEOPLE or self.engine.workers == 1:
            return function(self)
        with self.engine as engine:
            shared = engine.share((function, self.namespace))
            try:
                found = engine.fold(partial(_apply_to_names, shared), list(self.parts), add)
            finally:
                forget(shared)
        return function(()) if found is None else found


def _apply_to_names(shared: Any, names: Callable[[], pl.Series]) -> Any:
    """Apply the function of `PeopleInParts.fold` to the names of one part, in the process of a worker."""
    function, namespace = opened(shared)
    return function(_named(namespace, names))


def _named(namespace: str, names: Callable[[], pl.Series]) -> Iterator[str]:
    return (namespace + name for name in names().cast(pl.String))


def hash_names(names: pl.Series) -> Hashes:
    """Return a sorted hash of each person. Hashes are compared within one run only, so they may depend on polars' version."""
    return np.sort(names.cast(pl.String).hash(seed=0).to_numpy())


def hash_trips(uid: pl.Series, tid: pl.Series) -> Hashes:
    """Return a hash of each trip, sorted, as `hash_names` does of people."""
    return np.sort(
        pl.DataFrame([uid.cast(pl.String).alias("uid"), tid.cast(pl.String).alias("tid")]).hash_rows(seed=0).to_numpy()
    )


def anyone_twice(parts: Sequence[Callable[[], Hashes]], n_people: int, engine: Engine | None = None) -> bool:
    """Return whether a person is in two parts. Two people with the same hash count as one; the caller then sorts by person.

    `parts` return the sorted hashes of their people. Takes memory for
    `CHECKED_AT_ONCE` people, or for one range if there are `MAX_RANGES`.
    """
    running = engine or Serial()
    return any(running.map(partial(_twice_in, running.share(list(parts))), _ranges(n_people)))


def count_people(parts: Sequence[Callable[[], Hashes]], n_at_most: int, engine: Engine | None = None) -> int:
    """Count the people of parts where one may be in several; `n_at_most` is the sum over the parts."""
    running = engine or Serial()
    return sum(running.map(partial(_distinct_in, running.share(list(parts))), _ranges(n_at_most)))


def _ranges(n_people: int) -> list[tuple[int, int]]:
    """Return ranges of hashes with about `CHECKED_AT_ONCE` people each, or with more if there are `MAX_RANGES`."""
    n_ranges = min(MAX_RANGES, max(1, -(-n_people // CHECKED_AT_ONCE)))
    return list(pairwise([(k << 64) // n_ranges for k in range(n_ranges + 1)]))


def _distinct_in(parts: Any, within: tuple[int, int]) -> int:
    return len(np.unique(_hashes_in(parts, within)))


def _twice_in(parts: Any, within: tuple[int, int]) -> bool:
    together = _hashes_in(parts, within)
    together.sort()  # in place: it may be large
    return bool((together[1:] == together[:-1]).any())


def _hashes_in(parts: Any, within: tuple[int, int]) -> Hashes:
    """Return the hashes of a range; `parts` is what `share` made of a list of functions."""
    first, end = within
    some = []
    for part in opened(parts):
        hashes = part()
        last = len(hashes) if end > np.iinfo(np.uint64).max else int(np.searchsorted(hashes, np.uint64(end)))
        # copied, so that no file stays mapped and counts as memory of this process
        some.append(np.array(hashes[int(np.searchsorted(hashes, np.uint64(first))) : last]))
    return np.concatenate(some) if some else np.empty(0, np.uint64)


def buckets_of(uid: pl.Series, n_parts: int) -> NDArray[np.int64]:
    """Return the bucket of each name, by a hash that does not depend on the version of any package."""
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
