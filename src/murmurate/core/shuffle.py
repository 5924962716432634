"""Sort trips by their random names, in memory. `core/spills.py` does so through private files for larger releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.core.trips import Trips

Words = NDArray[np.uint64]
Group = tuple[Words, Words, Integers, dict[str, NDArray[Any]]]
"""uid and tid words and sizes of some trips, and the columns of their points."""

POINTS_PER_GROUP = 1_000_000
"""Points per row group of the Parquet file. Set by hand."""


class Shuffle:
    """Takes trips part by part and returns them ordered by name."""

    def __init__(self, n_points: int | None) -> None:
        self.kept: pl.DataFrame | None = None
        """Original names, in the order in which trips were added. For studies only, and the manifest says so."""
        self._held: dict[str, list[NDArray[Any]]] = {}
        self._room = n_points
        self._filled = 0

    def keep(self, part: Trips) -> None:
        """Remember the original names of the next part."""
        first = part.offsets[:-1]
        names = pl.DataFrame({name: part.table[name].gather(first).cast(pl.String) for name in ("uid", "tid")})
        self.kept = names if self.kept is None else pl.concat([self.kept, names])

    def add(self, part: Trips, columns: list[str], uids: Words, tids: Words) -> None:
        """Take the trips of a part under these names."""
        if self.kept is not None:  # trips that keep their names keep their order
            uids = tids = np.arange(self.kept.height - part.n_trips, self.kept.height, dtype=np.uint64)
        for name, array in {"uid": uids, "tid": tids, "size": np.diff(part.offsets)}.items():
            self._held.setdefault(name, []).append(array)
        for name, array in points_of(part, columns).items():  # copied, so that the memory of the part can be freed
            if self._room is None:
                self._held.setdefault(name, []).append(array.copy())
                continue
            if name not in self._held:
                self._held[name] = [np.empty(self._room, dtype_of(name))]
            self._held[name][0][self._filled : self._filled + part.n_points] = array
        self._filled += part.n_points

    def groups(self, columns: list[str]) -> Iterator[Group]:
        """Yield the trips in the order of their names, once, about `POINTS_PER_GROUP` points at a time."""
        names = self._taken("uid"), self._taken("tid"), self._taken("size")
        values = {name: self._taken(name)[: self._filled] for name in columns}
        return grouped([Bucket(*names, values)])

    def _taken(self, name: str) -> NDArray[Any]:
        """Return a column and drop it from memory."""
        parts = self._held.pop(name, [])
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty(0, dtype_of(name))


class Bucket:
    """Some unsorted trips, and the order of their names; `cut` sorts the points that it returns."""

    def __init__(self, uids: Words, tids: Words, sizes: Integers, values: dict[str, NDArray[Any]]) -> None:
        self.uids, self.tids, self.sizes, self.values = uids, tids, sizes, values
        self.order = np.lexsort((tids, uids))
        self.offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
        self.ends = np.r_[0, np.cumsum(sizes[self.order])].astype(np.int64)

    def points(self, first: int, last: int) -> int:
        """Return the number of points of the trips from `first` up to `last`, in the order of their names."""
        return int(self.ends[last] - self.ends[first])

    def reach(self, first: int, points: int) -> int:
        """Return the end of the longest run of trips from `first` on with at most so many points."""
        return int(np.searchsorted(self.ends, self.ends[first] + points, side="right")) - 1

    def cut(self, first: int, last: int) -> Group:
        """Return the trips from `first` up to `last` in the order of their names."""
        some = self.order[first:last]
        n = self.points(first, last)
        values = {name: gathered(array, self.offsets, some, n) for name, array in self.values.items()}
        return self.uids[some], self.tids[some], self.sizes[some], values


def grouped(buckets: Iterable[Bucket]) -> Iterator[Group]:
    """Yield the trips of buckets whose names ascend from one to the next, about `POINTS_PER_GROUP` points at a time.

    The ends of groups depend on the sorted trips alone, not on the buckets. The number of buckets may depend on how much was
    read, so it must not show in the file.
    """
    rest: Group | None = None
    for bucket in buckets:
        first, last = 0, len(bucket.order)
        if rest is not None:
            first = bucket.reach(0, POINTS_PER_GROUP - int(rest[2].sum()))
            rest = _joined(rest, bucket.cut(0, first))
            if first == last:
                continue
            yield rest
        while bucket.points(first, last) > POINTS_PER_GROUP:
            end = max(first + 1, bucket.reach(first, POINTS_PER_GROUP))
            yield bucket.cut(first, end)
            first = end
        rest = bucket.cut(first, last)
    if rest is not None and len(rest[2]):
        yield rest


def _joined(one: Group, other: Group) -> Group:
    values = {name: np.concatenate([array, other[3][name]]) for name, array in one[3].items()}
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]), np.concatenate([one[2], other[2]]), values


def points_of(part: Trips, columns: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of the points of a part, times as microseconds since 1970."""
    return {name: part.time_us if name == "datetime" else part.table[name].to_numpy() for name in columns}


def dtype_of(name: str) -> Any:
    """Return the type of a column; each takes eight bytes."""
    return np.uint64 if name in ("uid", "tid") else np.float64 if name in ("lat", "lng") else np.int64


@njit(cache=True, nogil=True)
def gathered(values: NDArray[Any], offsets: Integers, order: Integers, n: int) -> NDArray[Any]:  # pragma: no cover
    """Return the points of the trips, one trip after another in `order`."""
    out = np.empty(n, values.dtype)
    at = np.uint64(0)
    for trip in order:
        start = np.uint64(offsets[trip])
        size = np.uint64(offsets[trip + 1]) - start
        for k in range(size):  # unsigned indices cannot be negative, so the compiler makes this a plain copy
            out[at + k] = values[start + k]
        at += size
    return out
