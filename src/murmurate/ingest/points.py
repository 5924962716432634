"""Turn the columns of a file into canonical points, checked value by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.names import one_spelling_of
from murmurate.core.trips import ORDER
from murmurate.ingest.columns import FILE_NAME, ROW_NUMBER, option, plain, recognise
from murmurate.ingest.faults import Faults, Place
from murmurate.ingest.files import bare_name
from murmurate.ingest.formats.geometry import coordinates
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.times import Clock

ROW, FILE_NUMBER = "\0row", "\0file"
"""Columns with the row and file of a point, in strict mode; no file can have columns of these names."""

ROWS_PER_FILE = 10**12
"""More rows than a file has: what keeps row numbers of several files apart."""
_DECIMAL_COMMA = r"^[-+]?[0-9]+,[0-9]+$"
"""A number with a decimal comma."""
_WHOLE = {"weekday": (0, 6), "hour": (0, 23), "cell": (0, 2**62), "link": (0, 2**62)}
"""Smallest and largest value of columns of whole numbers."""


@dataclass(frozen=True)
class Batch:
    """Some rows of a file, columns as the file has them."""

    frame: pl.DataFrame
    place: Place
    crs: object = None
    """The reference system of a geometry column; None for WGS84."""


@dataclass
class PointChecker:
    """Takes the batches of one file; gives canonical points or adds to the faults."""

    options: ReadOptions
    faults: Faults
    file: str | None
    file_number: int = 0
    found: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    text_names: dict[str, bool] = field(default_factory=dict)
    """Whether uid and tid are text (or whole numbers)."""
    clock: Clock | None = None
    _known: bool = False
    _hopeless: bool = False

    def take(self, batch: Batch) -> pl.DataFrame | None:
        """Return canonical points of these rows: uid, tid, datetime, ..., carried columns; None where something is wrong."""
        if not self._known:
            self._recognise(batch.frame.columns)
        if self._hopeless:
            return None
        before = len(self.faults)
        batch = replace(batch, frame=self._with_named(batch.frame, batch.place))
        frame, place = batch.frame, batch.place
        columns: list[pl.Series | None] = [self._identifier("uid", frame, place)]
        if "tid" in self.found:
            columns.append(self._identifier("tid", frame, place))
        else:
            columns.append(pl.Series("tid", np.zeros(frame.height, np.int64)))
        if "datetime" in self.found:
            column, options = self.found["datetime"], self.options
            self.clock = self.clock or Clock(options.time_zone, options.time_unit, self.faults, column, options.time_format)
            times = self.clock.instants(frame[column], place)
            columns.append(None if times is None else times.alias("datetime"))
        columns += [self._whole(name, frame, place) for name in _WHOLE if name in self.found]
        columns += self._coordinates(batch)
        if len(self.faults) > before or any(column is None for column in columns):
            return None
        self.text_names = {column.name: not column.dtype.is_integer() for column in columns[:2] if column is not None}
        columns += self._carried(frame)
        if self.options.strict:
            rows = np.arange(place.first_row, place.first_row + frame.height)
            columns += [pl.Series(ROW, rows), pl.Series(FILE_NUMBER, np.full(frame.height, self.file_number, np.int64))]
        return pl.DataFrame([column for column in columns if column is not None])

    def _recognise(self, names: Sequence[str]) -> None:
        self._known = True
        self.found, problems = recognise(names, self.options.columns)
        for problem in problems:
            places = [name for name in ("lat", "lng") if name not in self.found]
            named = option(**dict.fromkeys(places, "NAME")) if places else ""
            remedy = f"Name the columns as the file does, such as {named}." if named and "missing: " in problem else None
            self.faults.add(problem, file=self.file, remedy=remedy)
        self._hopeless = bool(problems)

    def _with_named(self, frame: pl.DataFrame, place: Place) -> pl.DataFrame:
        """Add the columns that overrides name but files do not have: the file, the row, and a date joined to its clock."""
        added: list[pl.Series] = []
        for word in (FILE_NAME, ROW_NUMBER):
            if word in self.found.values() and word not in frame.columns:
                rows = np.arange(place.first_row, place.first_row + frame.height) + self.file_number * ROWS_PER_FILE
                stem = bare_name(self.file or "data")
                added.append(
                    pl.Series(word, rows) if word == ROW_NUMBER else pl.repeat(stem, frame.height, eager=True).alias(word)
                )
        time, date = self.found.get("datetime", ""), next((name for name in frame.columns if plain(name) == "date"), None)
        if date and date != time and plain(time) in ("time", "clock") and frame[time].dtype == frame[date].dtype == pl.String:
            added.append((frame[date].str.strip_chars() + " " + frame[time].str.strip_chars()).alias(time))
        return frame.with_columns(added) if added else frame

    def _identifier(self, name: str, frame: pl.DataFrame, place: Place) -> pl.Series | None:
        """Return a column of names: text stays text, whole numbers become 64-bit ones."""
        column = self.found[name]
        series = frame[column]
        if series.null_count():
            self.faults.add_rows("empty", series.is_null(), place, column=column)
            return None
        kind = series.dtype
        if kind.is_float():
            whole = series.cast(pl.Int64, strict=False)
            bad = ~(whole.cast(pl.Float64) == series).fill_null(False)
            if bad.any():
                self.faults.add_rows(
                    f"wrong type: {name} is not a whole number or text", bad, place, column=column, values=series
                )
                return None
            return whole.alias(name)
        if kind == pl.String:
            blank = series == ""
            if blank.any():
                self.faults.add_rows("empty", blank, place, column=column)
                return None
            if name == "uid":
                series = one_spelling_of(series)
                if (blank := series == "").any():
                    self.faults.add_rows("a name of invisible characters", blank, place, column=column)
                    return None
            return series.alias(name)
        if isinstance(kind, (pl.Categorical, pl.Enum)):
            spelled = series.unique().cast(pl.String)
            odd = name == "uid" and not spelled.equals(one_spelling_of(spelled))
            return (one_spelling_of(series.cast(pl.String)) if odd else series).alias(name)
        if kind in (pl.UInt64, pl.Int128):
            return series.cast(pl.String).alias(name)
        if kind.is_integer():
            return (series if kind == pl.Int64 else series.cast(pl.Int64)).alias(name)
        self.faults.add(f"wrong type: {name} should be text or whole numbers, not {kind}", file=place.file, column=column)
        return None

    def _whole(self, name: str, frame: pl.DataFrame, place: Place) -> pl.Series | None:
        column = self.found[name]
        numbers = self._numbers(column, frame[column], place)
        if numbers is None:
            return None
        low, high = _WHOLE[name]
        missing = np.isnan(numbers)
        self.faults.add_rows("not a number (NaN)", missing, place, column=column)
        bad = ~missing & ~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)))
        if bad.any() or missing.any():
            text = f"{name} should be a whole number"
            if high < 100:
                text += f" from {low} to {high}" + " (0 is Monday)" * (name == "weekday")
            self.faults.add_rows(text, bad, place, column=column, values=frame[column])
            return None
        return pl.Series(name, numbers.astype(np.int64))

    def _coordinates(self, batch: Batch) -> list[pl.Series | None]:
        frame, place = batch.frame, batch.place
        if "geometry" in self.found:
            column = self.found["geometry"]
            points = coordinates(frame[column], batch.crs, self.faults, place)
            if points is None:
                return [None]
            lat: NDArray[np.float64] | None
            lng: NDArray[np.float64] | None
            lat, lng = points
            names = (column, column)
        elif "lat" in self.found:
            names = (self.found["lat"], self.found["lng"])
            lat, lng = (self._numbers(name, frame[name], place) for name in names)
        else:
            return []
        if lat is None or lng is None:
            return [None]
        if count_outside(lat, 90.0) or count_outside(lng, 180.0):
            _refuse_places(self.faults, place, names, lat, lng)
            return [None]
        return [_as_read("lat", lat, frame, names[0]), _as_read("lng", lng, frame, names[1])]

    def _numbers(self, column: str, series: pl.Series, place: Place) -> NDArray[np.float64] | None:
        """Return a column as floats; text that is no number, empty values and NaN are faults."""
        faults_before = len(self.faults)
        if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
            series = series.cast(pl.String)
        numbers = series
        if series.dtype == pl.String:
            numbers = series.cast(pl.Float64, strict=False)
            if numbers.null_count() > series.null_count():
                stripped = series.str.strip_chars()
                commas = stripped.str.contains(_DECIMAL_COMMA)
                stripped = stripped.str.replace(",", ".", literal=True) if commas.any() else stripped
                numbers = stripped.cast(pl.Float64, strict=False)
                blank = (stripped == "").fill_null(False)
                self.faults.add_rows("empty", blank, place, column=column)
                odd = numbers.is_null() & series.is_not_null() & ~blank
                self.faults.add_rows("wrong type: not a number", odd, place, column=column, values=series)
        elif not (series.dtype.is_numeric() or series.dtype == pl.Null):
            self.faults.add(f"wrong type: numbers were expected, not {series.dtype}", file=place.file, column=column)
            return None
        if series.null_count():
            self.faults.add_rows("empty", series.is_null(), place, column=column)
        if len(self.faults) > faults_before:
            return None
        return (numbers if numbers.dtype == pl.Float64 else numbers.cast(pl.Float64)).to_numpy()

    def _carried(self, frame: pl.DataFrame) -> list[pl.Series]:
        used = set(self.found.values())
        kept = []
        for series in frame:
            if series.name in used:
                continue
            wanted = self.options.carry is None or series.name in self.options.carry
            plain = not (series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object, pl.Null, pl.Unknown))
            if not wanted:
                continue
            if plain and series.name not in ORDER:
                kept.append(series)
            elif series.name not in self.left_out:
                self.left_out.append(series.name)
        return kept


def _as_read(name: str, values: NDArray[np.float64], frame: pl.DataFrame, column: str) -> pl.Series:
    """Return the column itself where it needed no change, so that nothing is copied."""
    series = frame[column]
    return series.alias(name) if series.dtype == pl.Float64 else pl.Series(name, values)


def _refuse_places(
    faults: Faults, place: Place, names: tuple[str, str], lat: NDArray[np.float64], lng: NDArray[np.float64]
) -> None:
    for name, values in zip(names, (lat, lng), strict=True):
        faults.add_rows("not a number (NaN)", np.isnan(values), place, column=name)
    lat, lng = np.nan_to_num(lat, nan=0.0), np.nan_to_num(lng, nan=0.0)
    bad_lat, bad_lng = ~(np.abs(lat) <= 90), ~(np.abs(lng) <= 180)
    note, remedy = "", None
    if np.abs(lat).max() > 360 or np.abs(lng).max() > 360:
        note, remedy = "; these look like metres of a projection", "Convert the places to degrees (WGS84) first."
    elif bad_lat.mean() > 0.5 and np.abs(lng).max() <= 90:
        note = "; latitude and longitude look swapped"
        remedy = f"If they are swapped, say {option(lat=names[1], lng=names[0])}."
        faults.suggested |= {"lat": names[1], "lng": names[0]}
    faults.add_rows(f"latitude beyond 90 degrees{note}", bad_lat, place, column=names[0], values=pl.Series(lat), remedy=remedy)
    if not note and lng.min() >= 0:
        note = "; these look like longitudes from 0 to 360, subtract 360 from those above 180"
    faults.add_rows(
        f"longitude beyond 180 degrees{note}", bad_lng, place, column=names[1], values=pl.Series(lng), remedy=remedy
    )


@njit(cache=True, nogil=True)
def count_outside(values: NDArray[np.float64], bound: float) -> int:
    """Count the values that are not within -bound..bound; NaN never is."""
    count = 0
    for value in values:
        if not -bound <= value <= bound:
            count += 1
    return count
