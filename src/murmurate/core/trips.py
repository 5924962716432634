"""Hold traces in one table, validated, sorted and frozen, with offsets for kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers, Space
from murmurate.core.views import view
from murmurate.errors import Fault, InputError, ParameterError

ORDER = ("uid", "tid", "datetime", "weekday", "hour", "lat", "lng", "cell", "link")
"""The fixed column names, in the order they are written; carried columns follow."""

RANGES = {"lat": (-90, 90), "lng": (-180, 180), "weekday": (0, 6), "hour": (0, 23)}
"""Smallest and largest value of these columns; weekday 0 is Monday."""

TIME = pl.Datetime("us", "UTC")
"""Type of `datetime` in every table: microseconds since 1970 in UTC."""

CONTENTS = {"time": "datetime", "coordinates": "lat", "cell": "cell", "link": "link", "hour": "hour"}
"""Kinds of content that mechanisms may need, and the column that shows each."""


@dataclass(frozen=True)
class Identity:
    """Identifies a file: a fingerprint of its content, and the people in it (for the overlap check)."""

    fingerprint: str
    uids: Collection[str]
    """Each once; those of a large file are read again from its parts by whoever goes over them."""
    made_with: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Options it was read with (`read`) and settings it was cleaned with (`clean`), so that judging reads it the same way."""


@dataclass(frozen=True, eq=False)
class Trips:
    """A table of points, `uid, tid, datetime, lat, lng` and what else it carries, sorted by person, trip and time.

    Time may be absent (sequences keep their order) or be `weekday` (0 = Monday) and `hour` only; coordinates may be
    absent where there is a `cell` or a `link` of `space`. A trip is a (uid, tid) pair.

    >>> import polars as pl
    >>> trips = Trips(pl.DataFrame({"uid": ["a", "a"], "tid": [1, 1], "lat": [60.1, 60.2], "lng": [24.9, 24.9]}))
    >>> trips.n_trips, trips.n_points, trips.has_time
    (1, 2, False)
    """

    table: pl.DataFrame
    space: Space | None = None
    time_zone: str = "UTC"
    """Where the people live: hours and days are local to it; `datetime` itself is always UTC."""
    source: Identity | None = field(default=None, repr=False)
    """Set by readers, so that a file is identified by its bytes; otherwise the content is hashed when needed."""

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ParameterError(f"time_zone must be an IANA name such as 'Europe/Helsinki'; got {self.time_zone!r}.") from None
        object.__setattr__(self, "table", _canonical(self.table))

    @classmethod
    def _trusted(
        cls,
        table: pl.DataFrame,
        *,
        space: Space | None = None,
        time_zone: str = "UTC",
        source: Identity | None = None,
        offsets: Integers | None = None,
        user_offsets: Integers | None = None,
    ) -> Trips:
        """Make trips of a table that the caller has just checked, typed and sorted; nothing is checked again."""
        trips = object.__new__(cls)
        for name, value in (("table", table), ("space", space), ("time_zone", time_zone), ("source", source)):
            object.__setattr__(trips, name, value)
        known = {"offsets": offsets, "user_offsets": user_offsets}
        trips.__dict__.update({name: value for name, value in known.items() if value is not None})
        return trips

    # -- contents ---------------------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        return self.table.columns

    @property
    def has_time(self) -> bool:
        return "datetime" in self.table.columns

    @property
    def has_coordinates(self) -> bool:
        return "lat" in self.table.columns

    def carries(self) -> frozenset[str]:
        """Return the kinds of content that are there: time, coordinates, cell, link, hour."""
        return contents(self.columns)

    @property
    def n_points(self) -> int:
        return self.table.height

    @property
    def n_trips(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_users(self) -> int:
        return len(self.user_offsets) - 1

    @cached_property
    def identity(self) -> Identity:
        """Fingerprint and people; computed on the custodian's side, before any release."""
        return self.source or Identity(_fingerprint(self.table), tuple(self.user_ids.cast(pl.String).to_list()))

    # -- for people and other tools ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many trips there are."""
        return self.n_trips

    def __bool__(self) -> bool:
        return True  # trips without a row are trips all the same, and not nothing

    def head(self, n: int = 5) -> pl.DataFrame:
        """Return the first rows."""
        return self.table.head(n)

    def to_polars(self) -> pl.DataFrame:
        """Return the table: one row a point."""
        return self.table

    def to_pandas(self) -> Any:
        """Return a pandas frame, one row a point (needs the extra `geo`)."""
        return view("trips.to_pandas", self)

    def to_geopandas(self) -> Any:
        """Return a geopandas frame of points in EPSG:4326 (needs the extra `geo`)."""
        return view("trips.to_geopandas", self)

    def plot(self, **options: Any) -> Any:
        """Draw the trips on a map; `base` is a base map (`murmurate.report.base_file.read_base`)."""
        return view("trips.plot", self, **options)

    def _repr_html_(self) -> str:
        return str(view("trips.html", self))

    # -- arrays for kernels ----------------------------------------------------------------------------------------

    @cached_property
    def offsets(self) -> Integers:
        """Trip k is points offsets[k]:offsets[k + 1]."""
        return _starts(self.table, ("uid", "tid"))

    @cached_property
    def user_offsets(self) -> Integers:
        """Person u has trips user_offsets[u]:user_offsets[u + 1]."""
        points = _starts(self.table, ("uid",))
        return np.searchsorted(self.offsets, points).astype(np.int64)

    @cached_property
    def trip_user(self) -> Integers:
        """The person (0, 1, ...) of each trip."""
        return np.repeat(np.arange(self.n_users, dtype=np.int64), np.diff(self.user_offsets))

    @cached_property
    def point_trip(self) -> Integers:
        """The trip (0, 1, ...) of each point."""
        return np.repeat(np.arange(self.n_trips, dtype=np.int64), np.diff(self.offsets))

    @property
    def user_ids(self) -> pl.Series:
        """`uid` of each person."""
        return self.table["uid"].gather(self.offsets[self.user_offsets[:-1]])

    @property
    def trip_ids(self) -> pl.Series:
        """`tid` of each trip."""
        return self.table["tid"].gather(self.offsets[:-1])

    @property
    def lat(self) -> Floats:
        return self._need("lat").to_numpy()

    @property
    def lng(self) -> Floats:
        return self._need("lng").to_numpy()

    @property
    def cell(self) -> Integers:
        return self._need("cell").to_numpy()

    @property
    def link(self) -> Integers:
        return self._need("link").to_numpy()

    @cached_property
    def time_us(self) -> Integers:
        """Microseconds since 1970, UTC."""
        return self._need("datetime").to_physical().to_numpy()

    @cached_property
    def local_hour(self) -> Integers:
        """Hour of day of each point in `time_zone` (or the `hour` column where there is no more)."""
        if not self.has_time:
            return self._need("hour").to_numpy()
        return self._local().dt.hour().cast(pl.Int64).to_numpy()

    @cached_property
    def local_day(self) -> Integers:
        """Days since 1970 of each point in `time_zone`."""
        return self._local().dt.date().to_physical().cast(pl.Int64).to_numpy()

    @cached_property
    def first_local_day(self) -> Integers:
        """Days since 1970 of the first point of each trip in `time_zone`."""
        return self._local().gather(self.offsets[:-1]).dt.date().to_physical().cast(pl.Int64).to_numpy()

    # -- new trips from old ----------------------------------------------------------------------------------------

    def take_trips(self, chosen: Sequence[int] | NDArray[Any]) -> Trips:
        """Return the trips at the positions `chosen` (or where this mask holds), in their order here."""
        positions = np.asarray(chosen)
        keep = np.zeros(self.n_trips, dtype=bool)
        keep[positions if positions.size else []] = True
        return self.take_points(np.repeat(keep, np.diff(self.offsets)))

    def take_points(self, mask: NDArray[np.bool_]) -> Trips:
        """Return the points where the mask holds; trips without any point vanish."""
        return self._with_table(self.table.filter(pl.Series(mask)))

    def with_columns(self, columns: Mapping[str, Any], *, space: Space | None = None) -> Trips:
        """Return the same points with columns added or replaced, in the order of the points; `space` gives cells a meaning."""
        series = [pl.Series(name, values) for name, values in columns.items()]
        return Trips(self.table.with_columns(series), space or self.space, self.time_zone)

    def with_source(self, source: Identity) -> Trips:
        """Return the same trips as those of this file."""
        return Trips._trusted(
            self.table,
            space=self.space,
            time_zone=self.time_zone,
            source=source,
            offsets=self.offsets,
            user_offsets=self.user_offsets,
        )

    def partitions(self, points: int) -> Iterator[Trips]:
        """Yield parts of whole people, about `points` points each."""
        ends = self.offsets[self.user_offsets]
        first = 0
        while first < self.n_users:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + points, side="right")) - 1)
            yield self._with_table(self.table.slice(int(ends[first]), int(ends[last] - ends[first])))
            first = last

    def _with_table(self, table: pl.DataFrame) -> Trips:
        return Trips(table, self.space, self.time_zone)

    def _local(self) -> pl.Series:
        return self._need("datetime").dt.convert_time_zone(self.time_zone)

    def _need(self, name: str) -> pl.Series:
        if name not in self.table.columns:
            raise InputError(f"these trips have no {name!r} column; they have {', '.join(self.table.columns)}.")
        return self.table[name]


def contents(columns: Collection[str]) -> frozenset[str]:
    """Return the kinds of content that a table with these columns has, by the names of `CONTENTS`."""
    return frozenset(kind for kind, column in CONTENTS.items() if column in columns)


def _canonical(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with fixed types and order, or raise every reason why not."""
    missing = [name for name in ("uid", "tid") if name not in table.columns]
    places = {"lat", "lng"} <= set(table.columns) or bool({"cell", "link"} & set(table.columns))
    if missing or not places:
        wanted = [*missing, *([] if places else ["lat and lng (or cell, or link)"])]
        raise InputError(f"missing: {', '.join(wanted)}; found the columns {', '.join(table.columns) or 'none'}.")
    casts = []
    for name in ORDER[2:]:
        wanted_type = TIME if name == "datetime" else pl.Float64() if name in ("lat", "lng") else pl.Int64()
        if name in table.columns and table.schema[name] != wanted_type:
            if name == "datetime" and getattr(table.schema[name], "time_zone", None) is None:
                raise InputError("datetime must be a timestamp with a time zone; say which zone the times are in.")
            casts.append(pl.col(name).cast(wanted_type))
    try:
        table = table.with_columns(casts) if casts else table
    except pl.exceptions.PolarsError as error:
        raise InputError(f"a column is not of its type: {str(error).splitlines()[0]}") from None
    _refuse_bad_values(table)
    known = [name for name in ORDER if name in table.columns]
    table = table.select(*known, *[name for name in table.columns if name not in known])
    keys = ["uid", "tid", *(["datetime"] if "datetime" in table.columns else [])]
    return table if _is_sorted(table, keys) else table.sort(keys, maintain_order=True)


def _refuse_bad_values(table: pl.DataFrame) -> None:
    faults: list[Fault] = []
    for name in ORDER:
        if name in table.columns and table[name].null_count():
            row = int(table[name].is_null().arg_max() or 0)
            faults.append(Fault(f"{table[name].null_count():,} empty values", row=row, column=name))
    for name, (least, most) in RANGES.items():
        if name in table.columns:
            bad = ~table[name].is_between(least, most)  # NaN is not between, so it is caught too
            if bad.any():
                row = int(bad.arg_max() or 0)
                faults.append(Fault(f"{int(bad.sum()):,} values outside {least:g} to {most:g}", row=row, column=name))
    if faults:
        raise InputError(faults)


def _is_sorted(table: pl.DataFrame, keys: Sequence[str]) -> bool:
    """Return whether rows stand in the lexicographic order of the keys."""
    tied: pl.Series | None = None
    for name in keys:
        column = table[name]
        if column.dtype in (pl.Categorical, pl.Enum):
            column = column.cast(pl.String)
        before, after = column[:-1], column[1:]
        wrong = before > after if tied is None else (before > after) & tied
        if wrong.any():
            return False
        equal = before == after
        tied = equal if tied is None else tied & equal
    return True


def _starts(table: pl.DataFrame, keys: Sequence[str]) -> Integers:
    """Return the row numbers at which a new group of the (sorted) keys begins, and the end."""
    change = np.zeros(table.height, dtype=bool)
    change[:1] = True
    for name in keys:
        column = table[name]
        column = column.to_physical() if column.dtype in (pl.Categorical, pl.Enum) else column
        change[1:] |= (column[1:] != column[:-1]).to_numpy()
    return np.append(np.flatnonzero(change), table.height).astype(np.int64)


def _fingerprint(table: pl.DataFrame) -> str:
    digest = hashlib.sha256()
    for name in table.columns:
        digest.update(f"{name}:{table.schema[name]}".encode())
        column = table[name]
        if column.dtype.is_numeric() or column.dtype.is_temporal():
            digest.update(np.ascontiguousarray(column.to_physical().to_numpy()).tobytes())
        else:
            digest.update("\x1f".join(column.cast(pl.String).fill_null("\x00").to_list()).encode())
    return digest.hexdigest()
