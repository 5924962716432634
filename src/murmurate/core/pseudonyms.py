"""Write released trips under random names, in an order that reveals nothing.

Every trip (and, when trips are linked, every person or person-day) gets a random 64-bit name. The file is ordered by
these names, so the order of the trips is a uniform shuffle whatever order they came in, and trips that came from one
person stand apart unless `link` says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.core.parameters import one_of
from murmurate.core.shuffle import Group, Shuffle, Words
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import InputError

Link = Literal["none", "day", "user"]

LINKS: tuple[Link, ...] = ("none", "day", "user")
"""Which released trips of one person share a `uid`: none, those of one day, or all."""

ARROW: dict[str, pa.DataType] = {
    "datetime": pa.timestamp("us", "UTC"),
    "weekday": pa.int64(),
    "hour": pa.int64(),
    "lat": pa.float64(),
    "lng": pa.float64(),
    "cell": pa.int64(),
    "link": pa.int64(),
}
"""Column types of released trips in Parquet."""

GEO = {
    "version": "1.1.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Point"]}},
}
"""Metadata that make the file GeoParquet, so that maps open it at once; without a system it is in degrees (OGC:CRS84)."""


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
    """Write the trips to one Parquet file under pseudonyms; `on_part(Named)` is called with each part's names.

    They are sorted in memory. `n_points` is an upper bound on their points, if known.
    """
    columns: list[str] | None = None
    shuffle = Shuffle(n_points)
    for part in parts:
        columns = same_columns(columns, [name for name in emits if name in part.columns])
        uids, tids = draw_names(part, link, rng)
        if keep_ids:
            shuffle.keep(part)
        elif on_part is not None:
            on_part(named(part, uids, tids))
        shuffle.add(part, columns, uids, tids)
    columns = columns or [name for name in emits if name in ("lat", "lng")]
    write_groups(shuffle.groups(columns), path, columns, shuffle.kept)


def same_columns(known: list[str] | None, found: list[str]) -> list[str]:
    """Return the columns of a part; refuse a part whose columns differ from those of the others."""
    if known is not None and found != known:
        raise InputError(f"parts of one release differ in their columns: {known} and {found}.")
    return found


def write_drawn(parts: Iterable[tuple[Trips, Rng]], path: Path, *, emits: Sequence[str], keep_ids: bool = False) -> None:
    """Write synthetic trips to one Parquet file, one row group for each part, under names drawn from the part's stream.

    They are written in the order in which the model drew them, which reveals nothing.
    """
    with ExitStack() as open_files:
        writer: pq.ParquetWriter | None = None
        columns: list[str] = []
        for part, rng in parts:
            if writer is None:
                columns = [name for name in emits if name in part.columns]
                writer = open_files.enter_context(_writer(path, columns))
            if keep_ids:
                first = part.offsets[:-1]
                encoded = [_encoded_text(part.table[side].gather(first).cast(pl.String)) for side in ("uid", "tid")]
            else:
                encoded = [_encoded(rng.words(part.n_trips), letter) for letter in "ut"]
            values = [part.time_us if name == "datetime" else part.table[name].to_numpy() for name in columns]
            _write_group(writer, encoded, np.diff(part.offsets), values, columns)
        if writer is None:
            open_files.enter_context(_writer(path, [name for name in emits if name in ("lat", "lng")]))


def link_word(text: str) -> Link:
    """Check a word of `LINKS` that a user typed."""
    one_of("link", text, LINKS)
    return cast(Link, text)


def name_words(words: Words, letter: str) -> pa.StringArray:
    """Return random words as the fixed-width names of a release; their order is that of the words."""
    digits = np.frombuffer(words.astype(">u8").tobytes().hex().encode("ascii"), np.uint8).reshape(-1, 16)
    text = np.empty((len(words), 17), np.uint8)
    text[:, 0] = ord(letter)
    text[:, 1:] = digits
    ends = np.arange(len(words) + 1, dtype=np.int32) * 17
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(ends), pa.py_buffer(text))


def draw_names(part: Trips, link: Link, rng: Rng) -> tuple[Words, Words]:
    """Draw a random uid and tid for each trip; trips that `link` keeps together share a uid."""
    if link == "none":
        people: Words = rng.words(part.n_trips)
    else:
        group = part.trip_user
        if link == "day":
            group = group * 1_000_000 + part.local_day[part.offsets[:-1]]
        _, group = np.unique(group, return_inverse=True)
        people = rng.words(int(group.max()) + 1 if len(group) else 0)[group]
    return people, rng.words(part.n_trips)


def named(part: Trips, uids: Words, tids: Words) -> Named:
    """Return which name each trip of a part was given."""
    return Named(
        pl.Series(name_words(uids, "u")),
        pl.Series(name_words(tids, "t")),
        part.table["uid"].gather(part.offsets[:-1]),
        part.trip_ids,
    )


def write_groups(groups: Iterable[Group], path: Path, columns: list[str], kept: pl.DataFrame | None = None) -> None:
    """Write trips that are ordered by name to one Parquet file, a row group each; `kept` are their own names, for studies."""
    with _writer(path, columns) as writer:
        for uids, tids, sizes, values in groups:
            if kept is not None:
                encoded = [_encoded_text(kept[side].gather(uids)) for side in ("uid", "tid")]
            else:
                encoded = [_encoded(uids, "u"), _encoded(tids, "t")]
            _write_group(writer, encoded, sizes, [values[name] for name in columns], columns)


def _writer(path: Path, columns: list[str]) -> pq.ParquetWriter:
    writer = pq.ParquetWriter(
        path,
        _schema(columns),
        # decimal degrees fill every bit of a float, so compressing them costs time and saves nothing
        compression="NONE",
        use_dictionary=["uid", "tid"],
        write_statistics=False,
        store_schema=False,
    )
    if _has_points(columns):
        writer.add_key_value_metadata({"geo": json.dumps(GEO)})
    return writer


def _schema(columns: list[str]) -> pa.Schema:
    text = pa.dictionary(pa.int32(), pa.string())
    fields = [("uid", text), ("tid", text), *((name, ARROW[name]) for name in columns)]
    fields += [("geometry", pa.binary())] if _has_points(columns) else []
    # nothing is missing, and not marking what is saves time
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])


def _has_points(columns: list[str]) -> bool:
    return "lat" in columns and "lng" in columns


def _write_group(
    writer: pq.ParquetWriter,
    encoded: list[tuple[NDArray[np.int32], pa.StringArray]],
    sizes: Integers,
    values: list[NDArray[Any]],
    columns: list[str],
) -> None:
    """Write one row group: names of trips as codes, and the columns of their points."""
    arrays = [pa.DictionaryArray.from_arrays(_numbers(np.repeat(codes, sizes), pa.int32()), names) for codes, names in encoded]
    arrays += [_numbers(column, ARROW[name]) for name, column in zip(columns, values, strict=True)]
    if _has_points(columns):
        arrays.append(_points(values[columns.index("lat")], values[columns.index("lng")]))
    writer.write_table(pa.Table.from_arrays(arrays, schema=_schema(columns)))


def _encoded(words: Words, letter: str) -> tuple[NDArray[np.int32], pa.StringArray]:
    """Return codes and names of a dictionary column; equal words stand together, so linked trips share an entry."""
    fresh = np.r_[True, words[1:] != words[:-1]] if len(words) else np.zeros(0, bool)
    return np.cumsum(fresh, dtype=np.int32) - np.int32(1), name_words(words[fresh], letter)


def _encoded_text(names: pl.Series) -> tuple[NDArray[np.int32], pa.StringArray]:
    """Return the same for names kept as they are."""
    distinct, codes = np.unique(names.to_numpy(), return_inverse=True)
    return codes.astype(np.int32), pa.array(distinct.tolist(), pa.string())


def _points(lat: Floats, lng: Floats) -> pa.Array:
    """Return points as well-known binary: byte order, kind 1, longitude, latitude."""
    wkb = np.empty(len(lat), dtype=[("order", "u1"), ("kind", "<u4"), ("lng", "<f8"), ("lat", "<f8")])
    wkb["order"], wkb["kind"], wkb["lng"], wkb["lat"] = 1, 1, lng, lat
    ends = np.arange(len(lat) + 1, dtype=np.int32) * np.int32(wkb.itemsize)
    return pa.Array.from_buffers(pa.binary(), len(lat), [None, pa.py_buffer(ends), pa.py_buffer(wkb)])


def _numbers(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return a numpy column without a copy; `pa.array` would import pandas first to check for its types."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
