"""Read known data sets in the layout of their publishers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from murmurate.errors import Fault, InputError
from murmurate.ingest import exchange
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.faults import Faults, Place
from murmurate.ingest.files import SourceFile
from murmurate.ingest.formats import polyline, text
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch

PORTO = ("TRIP_ID", "TAXI_ID", "TIMESTAMP", "POLYLINE")
"""Columns of Porto's taxis that are needed, as published."""

Reader = Callable[[SourceFile, ReadOptions, Faults, ReadReport], Iterator[Batch]]


@dataclass(frozen=True)
class Layout:
    """How the files of a data set are named and read."""

    read: Reader
    suffixes: tuple[str, ...]
    """How the names of its files end, in a folder."""
    time_zone: str = "UTC"
    """The zone its publishers wrote times in."""


def _cabspotting(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read `new_<cab>.txt`, newest first: latitude, longitude, occupied, seconds since 1970."""
    names = ("lat", "lng", "occupied", "datetime")
    cab = file.stem.removeprefix("new_")
    for batch in text.rows(file, options, faults, names=names, separator=" "):
        occupied = batch.frame["occupied"].str.strip_chars()
        odd = ~occupied.is_in(["0", "1"]).fill_null(False)
        faults.add_rows("occupied should be 0 or 1", odd, batch.place, column="occupied", values=occupied)
        frame = batch.frame.with_columns((occupied == "1").alias("occupied"), pl.lit(cab).alias("uid"))
        yield Batch(frame, batch.place)


def _geolife(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read `<person>/Trajectory/<trip>.plt`: six lines about the format, then lat, lng, 0, feet, days, date, time (GMT)."""
    names = ("lat", "lng", "zero", "altitude_ft", "days", "date", "clock")
    folder = file.path.parent
    person = folder.parent.name if folder.name.lower() == "trajectory" else folder.name
    for batch in text.rows(file, options, faults, names=names, separator=",", skip_lines=6):
        frame = batch.frame.select(
            pl.lit(person).alias("uid"),
            pl.lit(file.stem).alias("tid"),
            pl.concat_str("date", pl.col("clock").str.strip_chars(), separator=" ", ignore_nulls=True).alias("datetime"),
            "lat",
            "lng",
        )
        yield Batch(frame, batch.place)


def _tdrive(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read `<taxi>.txt`: taxi, Beijing time, longitude, latitude."""
    yield from text.rows(file, options, faults, names=("uid", "datetime", "lng", "lat"), separator=",")


def _checkins(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read tab-separated rows: person, time in UTC, latitude, longitude, venue. Check-ins without a place are left out."""
    names = ("uid", "datetime", "lat", "lng", "venue")
    for batch in text.rows(file, options, faults, names=names, separator="\t"):
        blank = pl.col("lat").fill_null("").str.strip_chars() == ""
        nowhere = (pl.col("lat").cast(pl.Float64, strict=False) == 0) & (pl.col("lng").cast(pl.Float64, strict=False) == 0)
        empty = batch.frame.select((blank | nowhere.fill_null(False)).alias("e"))["e"]
        report.leave_out("check-ins without a place", int(empty.sum()))
        yield Batch(batch.frame.filter(~empty), batch.place if not empty.any() else Place(file.name, batch.place.first_row))


def _porto(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read `train.csv`: a trip a row, a point every 15 seconds in POLYLINE. Trips with missing points are left out."""
    for batch in text.rows(file, options, faults):
        missing = [name for name in PORTO if name not in batch.frame.columns]
        if missing:
            raise InputError([Fault(f"missing: {', '.join(missing)}, which the layout porto has", file=file.name)])
        found = porto_points(batch, faults, report)
        if found is not None:
            yield found


def is_porto(names: Sequence[str]) -> bool:
    """Return whether these are the columns of Porto's taxis as published."""
    return set(PORTO) <= set(names)


def porto_points(batch: Batch, faults: Faults, report: ReadReport) -> Batch | None:
    """Return the points of rows that hold a trip each; None where there is a fault."""
    frame, place = batch.frame, batch.place
    begins = frame["TIMESTAMP"].cast(pl.String).str.strip_chars().cast(pl.Int64, strict=False)
    faults.add_rows("not seconds since 1970", begins.is_null(), place, column="TIMESTAMP", values=frame["TIMESTAMP"])
    whole = pl.repeat(True, frame.height, eager=True)
    if "MISSING_DATA" in frame.columns:
        whole = (frame["MISSING_DATA"].cast(pl.String).str.to_lowercase() != "true").fill_null(False)
        report.leave_out("trips with missing points, whose times cannot be known", int((~whole).sum()))
    lines = polyline.parse(frame["POLYLINE"], place, faults)
    if lines is None or begins.null_count():
        return None
    return Batch(_porto_points(frame, begins, whole, lines, report), Place(place.file, place.first_row))


def _porto_points(
    frame: pl.DataFrame, begins: pl.Series, whole: pl.Series, lines: polyline.Lines, report: ReadReport
) -> pl.DataFrame:
    report.leave_out("trips without a point", int(((lines.sizes == 0) & whole.to_numpy()).sum()))
    trip, position = lines.trip_and_position()
    points = pl.DataFrame(
        {
            "uid": frame["TAXI_ID"].gather(trip),
            "tid": frame["TRIP_ID"].gather(trip),
            "datetime": begins.to_numpy()[trip] + 15 * position,
            "lat": lines.lat,
            "lng": lines.lng,
        }
    )
    return points if whole.all() else points.filter(whole.gather(trip))


_TABLES = (".csv", ".csv.gz", ".csv.zst", ".parquet")
"""How the names of tables end."""

LAYOUTS: dict[str, Layout] = {
    "cabspotting": Layout(_cabspotting, (".txt",)),
    "porto": Layout(_porto, (".csv", ".csv.gz", ".csv.zst")),
    "geolife": Layout(_geolife, (".plt",)),
    "tdrive": Layout(_tdrive, (".txt",), "Asia/Shanghai"),
    "gowalla": Layout(_checkins, (".txt", ".txt.gz")),
    "brightkite": Layout(_checkins, (".txt", ".txt.gz")),
    "mds": Layout(exchange.read_mds, (".json", ".json.gz")),
    "mf-json": Layout(exchange.read_mf_json, (".json", ".geojson", ".mfjson")),
    "divvy": Layout(exchange.read_bikes, _TABLES, "America/Chicago"),
    "citibike": Layout(exchange.read_bikes, _TABLES, "America/New_York"),
    "chicago": Layout(exchange.read_chicago, _TABLES, "America/Chicago"),
    "tlc": Layout(exchange.read_tlc, _TABLES, "America/New_York"),
    "gtfs-ride": Layout(exchange.read_gtfs_ride, ("rider_trip.txt",)),
    "tides": Layout(exchange.read_tides, ("fare_transactions.csv", ".csv.gz")),
}
"""Known data sets by the name a user types."""
