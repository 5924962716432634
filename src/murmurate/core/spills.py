"""Sort trips by their random names through private files: first within each part, then for ranges of names over all parts.

The worker of a part writes its trips, ordered by name, to one file. The worker of a file of the release reads one range of
names from the files of all parts, and no other byte.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.shuffle import Bucket, Words, dtype_of, gathered, points_of
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.core.work_files import WorkFiles

BUCKETS = 1 << 10
"""Number of ranges of names that can be read separately. The first ten bits of a name decide its range."""

Some = tuple[Words, Words, Integers, dict[str, NDArray[Any]]]
"""uid and tid words and numbers of points of some trips of a part, and the columns of their points."""


@dataclass(frozen=True)
class Spill:
    """A private file with the trips of a part, ordered by name."""

    files: WorkFiles
    name: str
    columns: tuple[str, ...]
    n_trips: int
    n_points: int
    ends: tuple[int, ...] | None
    """Offsets of the ranges of names in an encrypted file, and its end. None for a plain file, which begins with its table."""

    def read(self, first: int, end: int) -> Some:
        """Return the trips whose names are in the ranges from `first` up to `end`."""
        if self.ends is not None:
            segments = self.files.get_segments(self.name, first, self.ends[first : end + 1])
            return _together([pickle.loads(one) for one in segments if one], self.columns)  # noqa: S301  of this very run
        with Path(self.files.where, self.name).open("rb", buffering=0) as file:
            low, high = (int(_numbers(file, np.int64, k, 1)[0]) for k in (first, end))
            at, n = BUCKETS + 1, high - low
            uids = _numbers(file, np.uint64, at + low, n)
            tids = _numbers(file, np.uint64, at + self.n_trips + low, n)
            ends = _numbers(file, np.int64, at + 2 * self.n_trips + low, n + 1)
            at += 3 * self.n_trips + 1
            points = int(ends[-1] - ends[0])
            values = {
                name: _numbers(file, dtype_of(name), at + k * self.n_points + int(ends[0]), points)
                for k, name in enumerate(self.columns)
            }
        return uids, tids, np.diff(ends), values


def write_spill(files: WorkFiles, name: str, part: Trips, columns: Sequence[str], uids: Words, tids: Words) -> Spill:  # noqa: PLR0917
    """Write the trips of a part under these names, ordered by name. May run in any process."""
    order = np.lexsort((tids, uids))
    points = {
        column: gathered(np.ascontiguousarray(array), part.offsets, order, part.n_points)
        for column, array in points_of(part, columns).items()
    }
    uids, tids, sizes = uids[order], tids[order], np.diff(part.offsets)[order]
    point_ends = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    trip_ends = np.searchsorted(uids >> np.uint64(64 - BUCKETS.bit_length() + 1), np.arange(BUCKETS + 1)).astype(np.int64)
    ends = None
    if files.key is not None:
        ends = tuple(
            files.put_segments(
                name,
                [
                    _bytes(uids[low:high], tids[low:high], sizes[low:high], _cut(points, point_ends[low], point_ends[high]))
                    for low, high in pairwise(trip_ends.tolist())
                ],
            )
        )
    else:
        with files.writing(name) as target, Path(str(target)).open("wb") as file:
            for array in (trip_ends, uids, tids, point_ends, *points.values()):
                file.write(array)
    return Spill(files, name, tuple(columns), part.n_trips, part.n_points, ends)


def buckets(spills: Sequence[Spill], ranges: Sequence[range]) -> Iterator[Bucket]:
    """Yield, for each of these ascending groups of ranges, the trips of all parts whose names are in it."""
    for one in ranges:
        yield Bucket(*_together([spill.read(one.start, one.stop) for spill in spills], spills[0].columns if spills else ()))


def _together(parts: Sequence[Some], columns: Sequence[str]) -> Some:
    def joined(arrays: list[NDArray[Any]], name: str) -> NDArray[Any]:
        return np.concatenate(arrays) if arrays else np.empty(0, dtype_of(name))

    return (
        joined([part[0] for part in parts], "uid"),
        joined([part[1] for part in parts], "tid"),
        joined([part[2] for part in parts], "size"),
        {name: joined([part[3][name] for part in parts], name) for name in columns},
    )


def _cut(points: dict[str, NDArray[Any]], low: int, high: int) -> dict[str, NDArray[Any]]:
    return {name: values[low:high] for name, values in points.items()}


def _bytes(*some: Any) -> bytes:
    return pickle.dumps(some, pickle.HIGHEST_PROTOCOL) if len(some[0]) else b""


def _numbers(file: FileIO, dtype: Any, first: int, n: int) -> NDArray[Any]:
    """Return `n` eight-byte numbers of an open file, from number `first` on."""
    numbers = np.empty(n, dtype)
    file.seek(8 * first)
    if file.readinto(numbers.data) != numbers.nbytes:
        raise OSError("a private work file ends too early")
    return numbers
