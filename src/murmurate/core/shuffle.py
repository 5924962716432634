"""Sort trips by their random names, in memory or through bucket files where they are many."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.core.trips import Trips

Words = NDArray[np.uint64]
Group = tuple[Words, Words, Integers, dict[str, NDArray[Any]]]
"""uid and tid words and sizes of some trips, and the columns of their points."""

HELD_POINTS = 24_000_000
"""Most points that wait in memory (about 0.6 GB); more wait in files by the first bits of the names. Set by hand."""
POINTS_PER_BUCKET = 8_000_000
"""Points per bucket file, which are sorted in memory (about 0.2 GB). Set by hand."""
POINTS_PER_GROUP = 1_000_000
"""Points per row group of the Parquet file. Set by hand."""


class Shuffle:
    """Takes trips part by part and returns them ordered by name; a context that removes its files."""

    def __init__(self, folder: Path, n_points: int | None) -> None:
        held = n_points is not None and n_points <= HELD_POINTS
        expected = n_points if n_points is not None else 64 * POINTS_PER_BUCKET
        self.bits = 0 if held else max(1, int(np.ceil(np.log2(expected / POINTS_PER_BUCKET))))
        self.kept: pl.DataFrame | None = None
        """Original names, in the order the trips came in: studies only, and the manifest says so."""
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._files: dict[str, IO[bytes]] = {}
        self._held: dict[str, list[NDArray[Any]]] = {}
        self._room = n_points if held else 0
        self._filled = 0

    def __enter__(self) -> Self:
        if self.bits:
            self._temporary = tempfile.TemporaryDirectory(dir=self._folder, prefix=".shuffle-")
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def keep(self, part: Trips) -> None:
        """Remember the original names of the next part."""
        first = part.offsets[:-1]
        names = pl.DataFrame({name: part.table[name].gather(first).cast(pl.String) for name in ("uid", "tid")})
        self.kept = names if self.kept is None else pl.concat([self.kept, names])

    def add(self, part: Trips, columns: list[str], uids: Words, tids: Words) -> None:
        """Take the trips of a part under these names."""
        if self.kept is not None:  # kept names stay in the order they came in
            uids = tids = np.arange(self.kept.height - part.n_trips, self.kept.height, dtype=np.uint64)
        sizes = np.diff(part.offsets)
        arrays: dict[str, NDArray[Any]] = {"uid": uids, "tid": tids, "size": sizes}
        points = {name: part.time_us if name == "datetime" else part.table[name].to_numpy() for name in columns}
        if not self.bits:
            for name, array in arrays.items():
                self._held.setdefault(name, []).append(array)
            for name, array in points.items():  # copied, so that a part's own memory is free for the next one
                if name not in self._held:
                    self._held[name] = [np.empty(self._room or 0, _dtype(name))]
                self._held[name][0][self._filled : self._filled + part.n_points] = array
            self._filled += part.n_points
            return
        bucket = (uids >> np.uint64(64 - self.bits)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(2**self.bits + 1))
        for name, array in arrays.items():
            self._append(name, array[order], ends)
        point_ends = np.r_[0, np.cumsum(sizes[order])][ends]
        for name, array in points.items():
            self._append(name, _gather(np.ascontiguousarray(array), part.offsets, order, part.n_points), point_ends)

    def groups(self, columns: list[str]) -> Iterator[Group]:
        """Yield the trips in the order of their names, about `POINTS_PER_GROUP` points at a time.

        Where one group ends follows from the trips given back alone: buckets, whose number follows from how much was read,
        leave no trace in it.
        """
        rest: Group | None = None
        for k in range(2**self.bits):
            bucket = self._bucket(k, columns)
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

    def _bucket(self, k: int, columns: list[str]) -> _Bucket:
        uids, tids, sizes = self._take("uid", k), self._take("tid", k), self._take("size", k)
        order = np.lexsort((tids, uids))
        return _Bucket(uids, tids, sizes, order, {name: self._take(name, k) for name in columns})

    def _append(self, name: str, array: NDArray[Any], ends: Integers) -> None:
        if self._temporary is None:
            raise RuntimeError("a shuffle is used outside its context")
        for k in range(2**self.bits):
            if ends[k] < ends[k + 1]:
                key = f"{name}-{k}"
                if key not in self._files:
                    self._files[key] = Path(self._temporary.name, key).open("wb")  # noqa: SIM115  closed by __exit__
                self._files[key].write(array[ends[k] : ends[k + 1]].data.cast("B"))

    def _take(self, name: str, k: int) -> NDArray[Any]:
        """Return one column of one bucket and forget it."""
        if not self.bits:
            parts = self._held.pop(name, [])
            if name not in ("uid", "tid", "size"):
                return parts[0][: self._filled] if parts else np.empty(0, _dtype(name))
            return np.concatenate(parts) if parts else np.empty(0, _dtype(name))
        file = self._files.pop(f"{name}-{k}", None)
        if file is None:
            return np.empty(0, _dtype(name))
        file.close()
        values = np.fromfile(file.name, _dtype(name))
        Path(file.name).unlink()
        return values


def _joined(one: Group, other: Group) -> Group:
    values = {name: np.concatenate([array, other[3][name]]) for name, array in one[3].items()}
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]), np.concatenate([one[2], other[2]]), values


class _Bucket:
    """Some trips as they came and the order of their names; points are put in order only when they are cut out."""

    def __init__(self, uids: Words, tids: Words, sizes: Integers, order: Integers, values: dict[str, NDArray[Any]]) -> None:
        self.uids, self.tids, self.sizes, self.order, self.values = uids, tids, sizes, order, values
        self.offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
        self.ends = np.r_[0, np.cumsum(sizes[order])].astype(np.int64)

    def points(self, first: int, last: int) -> int:
        return int(self.ends[last] - self.ends[first])

    def reach(self, first: int, points: int) -> int:
        """Return the end of the trips from `first` on that hold at most so many points."""
        return int(np.searchsorted(self.ends, self.ends[first] + points, side="right")) - 1

    def cut(self, first: int, last: int) -> Group:
        some = self.order[first:last]
        n = self.points(first, last)
        values = {name: _gather(array, self.offsets, some, n) for name, array in self.values.items()}
        return self.uids[some], self.tids[some], self.sizes[some], values


def _dtype(name: str) -> Any:
    return np.uint64 if name in ("uid", "tid") else np.float64 if name in ("lat", "lng") else np.int64


@njit(cache=True, nogil=True)
def _gather(values: NDArray[Any], offsets: Integers, order: Integers, n: int) -> NDArray[Any]:  # pragma: no cover
    """Return the points of the trips, one trip after another in `order`."""
    out = np.empty(n, values.dtype)
    at = 0
    for trip in order:
        start, size = offsets[trip], offsets[trip + 1] - offsets[trip]
        for k in range(size):  # a plain copy, which the compiler vectorises
            out[at + k] = values[start + k]
        at += size
    return out
