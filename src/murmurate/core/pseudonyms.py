"""Writes released trips under random names, in an order that tells nothing.

Every trip (and, when trips are linked, every person or person-day) gets a random 64-bit name. The file is ordered by
these names, so the order of the trips is a uniform shuffle whatever order they came in, and trips that came from one
person stand apart unless `link` says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.core.parameters import one_of
from murmurate.core.shuffle import Shuffle, Words
from murmurate.core.trips import Trips
from murmurate.errors import InputError

Link = Literal["none", "day", "user"]

LINKS: tuple[Link, ...] = ("none", "day", "user")

ARROW: dict[str, pa.DataType] = {
    "datetime": pa.timestamp("us", "UTC"),
    "weekday": pa.int64(),
    "hour": pa.int64(),
    "lat": pa.float64(),
    "lng": pa.float64(),
    "cell": pa.int64(),
    "link": pa.int64(),
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
    columns: list[str] | None = None
    with Shuffle(path.parent, n_points) as shuffle:
        for part in parts:
            mine = [name for name in emits if name in part.columns]
            if columns is not None and mine != columns:
                raise InputError(f"parts of one release differ in their columns: {columns} and {mine}.")
            columns = mine
            uids, tids = _draw(part, link, rng)
            if keep_ids:
                shuffle.keep(part)
            elif on_part is not None:
                on_part(_named(part, uids, tids))
            shuffle.add(part, columns, uids, tids)
        _write(shuffle, path, columns or [name for name in emits if name in ("lat", "lng")])


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


def _named(part: Trips, uids: Words, tids: Words) -> Named:
    return Named(
        pl.Series(name_words(uids, "u")),
        pl.Series(name_words(tids, "t")),
        part.table["uid"].gather(part.offsets[:-1]),
        part.trip_ids,
    )


def _write(shuffle: Shuffle, path: Path, columns: list[str]) -> None:
    text = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("uid", text), ("tid", text), *((name, ARROW[name]) for name in columns)])
    with pq.ParquetWriter(
        path,
        schema,
        # decimal degrees fill every bit of a float, so compressing them costs time and saves nothing
        compression="NONE",
        use_dictionary=["uid", "tid"],
        write_statistics=False,
        store_schema=False,
    ) as writer:
        for uids, tids, sizes, values in shuffle.groups(columns):
            if shuffle.kept is not None:
                encoded = [_encoded_text(shuffle.kept[side].gather(uids)) for side in ("uid", "tid")]
            else:
                encoded = [_encoded(uids, "u"), _encoded(tids, "t")]
            arrays = [
                pa.DictionaryArray.from_arrays(_numbers(np.repeat(codes, sizes), pa.int32()), names) for codes, names in encoded
            ]
            arrays += [_numbers(values[name], ARROW[name]) for name in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _encoded(words: Words, letter: str) -> tuple[NDArray[np.int32], pa.StringArray]:
    """Codes and names of a dictionary column; equal words stand together, so linked trips share an entry."""
    fresh = np.r_[True, words[1:] != words[:-1]] if len(words) else np.zeros(0, bool)
    return np.cumsum(fresh, dtype=np.int32) - np.int32(1), name_words(words[fresh], letter)


def _encoded_text(names: pl.Series) -> tuple[NDArray[np.int32], pa.StringArray]:
    """The same for names kept as they are."""
    distinct, codes = np.unique(names.to_numpy(), return_inverse=True)
    return codes.astype(np.int32), pa.array(distinct.tolist(), pa.string())


def _numbers(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """A numpy column as it lies in memory; `pa.array` would import pandas first to ask whether this is one of its own."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
