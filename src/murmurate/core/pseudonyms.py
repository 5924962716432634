"""Writes released trips under random names, in an order that tells nothing.

Every trip (and, when trips are linked, every person or person-day) gets a random 64-bit name. The file is ordered by
these names, so the order of the trips is a uniform shuffle whatever order they came in, and trips that came from one
person stand apart unless `link` says otherwise. Trips go through bucket files by the first bits of their name, so that
memory does not grow with the release.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.core.parameters import one_of
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.errors import InputError

Link = Literal["none", "day", "user"]
Words = NDArray[np.uint64]

LINKS: tuple[Link, ...] = ("none", "day", "user")

POINTS_PER_BUCKET = 2_000_000

_TYPES: dict[str, tuple[Any, pa.DataType]] = {
    "datetime": (np.int64, pa.timestamp("us", "UTC")),
    "weekday": (np.int64, pa.int64()),
    "hour": (np.int64, pa.int64()),
    "lat": (np.float64, pa.float64()),
    "lng": (np.float64, pa.float64()),
    "cell": (np.int64, pa.int64()),
    "link": (np.int64, pa.int64()),
}


@dataclass(frozen=True)
class Named:
    """Which released trip came from which original: private, kept beside the ledger or not at all."""

    uid: pl.Series
    tid: pl.Series
    original_uid: pl.Series
    original_tid: pl.Series


def write_trips(
    parts: Iterable[Trips],
    path: Path,
    *,
    emits: Iterable[str],
    rng: Rng,
    link: Link = "none",
    keep_ids: bool = False,
    n_points: int | None = None,
    on_part: Any = None,
) -> None:
    """Write the trips to one Parquet file under pseudonyms; `on_part(Named)` hears of each part's names."""
    buckets = (
        1
        if n_points is not None and n_points <= POINTS_PER_BUCKET
        else 2 ** max(1, int(np.ceil(np.log2((n_points or 64 * POINTS_PER_BUCKET) / POINTS_PER_BUCKET))))
    )
    columns: list[str] | None = None
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".shuffle-") as folder:
        files = _Buckets(Path(folder), buckets)
        for part in parts:
            mine = [name for name in emits if name in part.columns]
            if columns is not None and mine != columns:
                raise InputError(f"parts of one release differ in their columns: {columns} and {mine}.")
            columns = mine
            names = _keep(part) if keep_ids else _draw(part, link, rng)
            if on_part is not None and not keep_ids:
                on_part(_named(part, *names))
            files.add(part, columns, *names)
        files.close()
        _write(files, path, columns or [name for name in emits if name in ("lat", "lng")])


def link_word(text: str) -> Link:
    """A word a user typed, checked."""
    one_of("link", text, LINKS)
    return next(word for word in LINKS if word == text)


def name_words(words: Words, letter: str) -> pa.StringArray:
    """Random words as the fixed-width names that stand in a release; their order is that of the words."""
    digits = np.frombuffer(words.astype(">u8").tobytes().hex().encode("ascii"), np.uint8).reshape(-1, 16)
    text = np.empty((len(words), 17), np.uint8)
    text[:, 0] = ord(letter)
    text[:, 1:] = digits
    ends = np.arange(len(words) + 1, dtype=np.int32) * 17
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(ends), pa.py_buffer(text))


def _draw(part: Trips, link: Link, rng: Rng) -> tuple[Words, Words]:
    if link == "none":
        people: Words = rng.words(part.n_trips)
    else:
        group = part.trip_user
        if link == "day":
            group = group * 1_000_000 + part.local_day[part.offsets[:-1]]
        _, group = np.unique(group, return_inverse=True)
        people = rng.words(int(group.max()) + 1 if len(group) else 0)[group]
    return people, rng.words(part.n_trips)


def _keep(part: Trips) -> tuple[pl.Series, pl.Series]:
    uids = part.table["uid"].gather(part.offsets[:-1])
    return uids.cast(pl.String), part.trip_ids.cast(pl.String)


def _named(part: Trips, uids: Words, tids: Words) -> Named:
    names = [pl.Series(name_words(words, letter)) for words, letter in ((uids, "u"), (tids, "t"))]
    return Named(*names, part.table["uid"].gather(part.offsets[:-1]), part.trip_ids)


class _Buckets:
    """Appends columns of raw numbers to a file per bucket; reads one bucket back whole."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count
        self.files: dict[str, IO[bytes]] = {}
        self.kept_ids: list[tuple[pl.Series, pl.Series]] = []

    def add(self, part: Trips, columns: list[str], uids: Words | pl.Series, tids: Words | pl.Series) -> None:
        if isinstance(uids, pl.Series) or isinstance(tids, pl.Series):
            # names kept as they are stay in the order they came in; studies only, and the manifest says so
            first = sum(len(pair[0]) for pair in self.kept_ids)
            self.kept_ids.append((pl.Series(uids), pl.Series(tids)))
            uids = tids = np.arange(first, first + part.n_trips, dtype=np.uint64)
        sizes = np.diff(part.offsets)
        bucket = (
            np.zeros(part.n_trips, np.int64)
            if self.count == 1
            else (uids >> np.uint64(65 - self.count.bit_length())).astype(np.int64)
        )
        if self.kept_ids:
            bucket[:] = 0
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(self.count + 1))
        points = np.r_[0, np.cumsum(sizes[order])][ends]
        arrays: dict[str, NDArray[Any]] = {"uid": uids[order], "tid": tids[order], "size": sizes[order]}
        for name, array in arrays.items():
            self._append(name, array, ends)
        for name in columns:
            values = part.time_us if name == "datetime" else part.table[name].to_numpy()
            self._append(
                name, _gather(np.ascontiguousarray(values, _TYPES[name][0]), part.offsets, order, int(sizes.sum())), points
            )

    def _append(self, name: str, array: NDArray[Any], ends: Integers) -> None:
        for k in range(self.count):
            if ends[k] < ends[k + 1]:
                key = f"{name}-{k}"
                if key not in self.files:
                    self.files[key] = (self.folder / key).open("wb")
                self.files[key].write(array[ends[k] : ends[k + 1]].data.cast("B"))

    def read(self, name: str, k: int, dtype: Any) -> NDArray[Any]:
        path = self.folder / f"{name}-{k}"
        return np.fromfile(path, dtype=dtype) if path.exists() else np.empty(0, dtype)

    def close(self) -> None:
        for file in self.files.values():
            file.close()


def _write(files: _Buckets, path: Path, columns: list[str]) -> None:
    text = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("uid", text), ("tid", text), *((name, _TYPES[name][1]) for name in columns)])
    with pq.ParquetWriter(
        path,
        schema,
        # decimal degrees fill every bit of a float, so compressing them costs time and saves nothing
        compression="NONE",
        use_dictionary=["uid", "tid"],
        column_encoding={"datetime": "DELTA_BINARY_PACKED"} if "datetime" in columns else {},
        write_statistics=False,
        store_schema=False,
    ) as writer:
        for k in range(files.count):
            uids, tids = files.read("uid", k, np.uint64), files.read("tid", k, np.uint64)
            sizes = files.read("size", k, np.int64)
            order = np.lexsort((tids, uids))
            offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
            sizes = sizes[order]
            if files.kept_ids:
                names = [
                    pl.concat([pair[side] for pair in files.kept_ids]).gather(order).to_arrow().cast(pa.string())
                    for side in (0, 1)
                ]
                arrays = [_per_point(column.dictionary_encode(), sizes) for column in names]
            else:
                arrays = [_per_point(_encoded(words[order], letter), sizes) for words, letter in ((uids, "u"), (tids, "t"))]
            for name in columns:
                values = _gather(files.read(name, k, _TYPES[name][0]), offsets, order, int(offsets[-1]))
                arrays.append(pa.array(values).cast(_TYPES[name][1]) if name == "datetime" else pa.array(values))
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=1_000_000)


def _encoded(words: Words, letter: str) -> pa.DictionaryArray:
    """Names as a dictionary column; equal words stand together, so linked trips share an entry."""
    fresh = np.r_[True, words[1:] != words[:-1]] if len(words) else np.zeros(0, bool)
    codes = np.cumsum(fresh, dtype=np.int32) - np.int32(1)
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), name_words(words[fresh], letter))


def _per_point(names: pa.DictionaryArray, sizes: Integers) -> pa.DictionaryArray:
    codes = np.repeat(names.indices.to_numpy(), sizes).astype(np.int32, copy=False)
    return pa.DictionaryArray.from_arrays(pa.array(codes), names.dictionary)


@njit(cache=True, nogil=True)
def _gather(values: NDArray[Any], offsets: Integers, order: Integers, n: int) -> NDArray[Any]:  # pragma: no cover
    """The points of the trips, one trip after another in `order`."""
    out = np.empty(n, values.dtype)
    at = 0
    for trip in order:
        for row in range(offsets[trip], offsets[trip + 1]):
            out[at] = values[row]
            at += 1
    return out
