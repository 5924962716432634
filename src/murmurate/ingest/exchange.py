"""Read the formats that cities and operators exchange: MDS, MF-JSON, shared bikes, taxis, taps of GTFS-ride and TIDES."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from murmurate.core.expansion import open_text, parse_json, refuse_repeats
from murmurate.core.foreign import FOREIGN, shown
from murmurate.core.parquet import check_parquet
from murmurate.errors import Fault, InputError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.ends import as_points
from murmurate.ingest.faults import Faults, Place
from murmurate.ingest.files import SourceFile
from murmurate.ingest.formats import parquet, text
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch

GBFS = ("bikes", "vehicles", "stations", "feeds", "vehicle_types", "plans", "regions")
"""Members of `data` that show a GBFS feed."""

Ends = Mapping[str, Mapping[str, str]]
"""Columns of lat, lng and datetime of the start and the end of a trip."""


def read_mds(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read trips or telemetry of MDS 2 (JSON): trips have two points, telemetry one for each record of a trip."""
    content = _json(file)
    inner = content.get("data")
    data: dict[str, Any] = inner if isinstance(inner, dict) else content
    found = [name for name in GBFS if name in data]
    if found and "trips" not in data and "telemetry" not in data:
        raise _refused(
            file,
            f"a GBFS feed ({', '.join(found)}): where vehicles stand now, and no trips",
            "give MDS trips or telemetry; a GBFS feed names nobody's trips, so there is nothing here to protect.",
        )
    version = str(content.get("version", ""))
    if version and not version.startswith("2."):
        raise _refused(file, f"MDS version {version[:20]}; versions 2.0 and later are read", "export the trips with MDS 2.")
    rows = data.get("trips") or data.get("telemetry")
    if not isinstance(rows, list) or not rows:
        raise _refused(file, f"no trips and no telemetry (members: {', '.join(data) or 'none'})", "give an MDS 2 response.")
    points = list(_mds_trips(rows) if "trips" in data else _mds_telemetry(rows, report))
    refuse_repeats((text for point in points for text in point[:2]), file.path)
    yield Batch(pl.DataFrame(points, schema=_POINT, orient="row", strict=False), Place(file.name, 0))


def _mds_trips(rows: list[Any]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        for side in ("start", "end"):
            place = row.get(f"{side}_location") or {}
            yield _mds_point(row, row.get("trip_id"), row.get(f"{side}_time"), place)


def _mds_telemetry(rows: list[Any], report: ReadReport) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        trips = row.get("trip_ids") or []
        if not trips:
            report.leave_out("telemetry outside trips", 1)
        for trip in trips:
            yield _mds_point(row, trip, row.get("timestamp"), row.get("location") or {})


def _mds_point(row: Mapping[str, Any], trip: Any, time: Any, place: Mapping[str, Any]) -> tuple[Any, ...]:
    return str(row.get("device_id") or ""), str(trip or ""), time, place.get("lat"), place.get("lng")


_POINT = {"uid": pl.String, "tid": pl.String, "datetime": pl.Int64, "lat": pl.Float64, "lng": pl.Float64}
"""Columns of points whose times are milliseconds since 1970."""


def read_mf_json(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read moving points of OGC Moving Features JSON, trajectories or prisms; a feature is a trip."""
    content = _json(file)
    features = content.get("features", [content])
    points: list[tuple[Any, ...]] = []
    refused = False
    for number, feature in enumerate(features if isinstance(features, list) else []):
        about = feature.get("properties") or {}
        trip = str(feature.get("id") or about.get("trip_id") or about.get("tid") or number)
        person = str(about.get("uid") or about.get("user_id") or about.get("mmsi") or about.get("name") or trip)
        for path in _moving_points(feature):
            times, places = path.get("datetimes") or [], path.get("coordinates") or []
            if len(times) != len(places):
                faults.add(f"feature {number}: {len(times)} datetimes for {len(places)} coordinates", file=file.name)
                refused = True
                continue
            points += [(person, trip, str(time), place[1], place[0]) for time, place in zip(times, places, strict=True)]
    if not points and not refused:
        raise _refused(file, "no moving points", "give MF-JSON with temporalGeometry of type MovingPoint.")
    refuse_repeats((text for point in points for text in point[:2]), file.path)
    yield Batch(pl.DataFrame(points, schema={**_POINT, "datetime": pl.String}, orient="row"), Place(file.name, 0))


def _moving_points(feature: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    whole = feature.get("temporalGeometry") or {}
    parts = whole.get("prisms") or feature.get("temporalGeometries") or [whole]
    return [part for part in parts if part.get("type") in ("MovingPoint", "MovingGeomPoint")]


def trip_rows(ends: Sequence[Ends], uid: str | None, tid: str | None, what: str, otherwise: str) -> Any:
    """Return a reader of CSV or Parquet files in which a row is a trip; `ends` are the known spellings of its columns."""

    def read(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
        rows = _parquet_rows if file.kind == "parquet" else text.rows
        for batch in rows(file, options, faults):
            frame = batch.frame.rename({name: name.strip().lower().replace(" ", "_") for name in batch.frame.columns})
            known = next((found for found in ends if _columns(found) <= set(frame.columns)), None)
            if known is None:
                missing = ", ".join(sorted(_columns(ends[0]) - set(frame.columns)))
                raise _refused(file, f"{what} without {missing}", otherwise)
            wanted = {"tid": tid, "uid": uid}
            named = [
                pl.col(name).cast(pl.String).alias(role) for role, name in wanted.items() if name and name in frame.columns
            ]
            kept = frame.select(*sorted(_columns(known)), *named)
            made = as_points(Batch(kept, batch.place), known, {}, report)
            yield made if "uid" in made.frame.columns else Batch(made.frame.with_columns(uid=pl.col("tid")), made.place)

    return read


def _parquet_rows(file: SourceFile, options: ReadOptions, faults: Faults) -> Iterator[Batch]:
    """Yield the rows of a Parquet file with all its columns."""
    import pyarrow as pa

    first_row = 1
    try:
        checked = check_parquet(file.path)
        checked.refuse_expansion(max_expansion=options.max_expansion)
        with checked.open() as table:
            for piece in table.iter_batches(batch_size=parquet.GROUP_ROWS // 4, use_threads=False):
                frame = parquet.as_polars(pa.Table.from_batches([piece]))
                yield Batch(frame, Place(file.name, first_row))
                first_row += frame.height
    except pa.ArrowException as error:
        raise _refused(file, f"cannot be read as Parquet ({shown(error)})", "write the file again.") from None


def _columns(ends: Ends) -> set[str]:
    return {name for side in ends.values() for name in side.values()}


def _sides(start: tuple[str, str, str], end: tuple[str, str, str]) -> Ends:
    return {side: dict(zip(("lat", "lng", "datetime"), names, strict=True)) for side, names in (("start", start), ("end", end))}


read_bikes = trip_rows(
    [
        _sides(("start_lat", "start_lng", "started_at"), ("end_lat", "end_lng", "ended_at")),
        _sides(
            ("start_station_latitude", "start_station_longitude", "starttime"),
            ("end_station_latitude", "end_station_longitude", "stoptime"),
        ),
    ],
    None,
    "ride_id",
    "shared-bike trips",
    "give the files of trips, whose columns are ride_id, started_at, ended_at, start_lat, start_lng, end_lat, end_lng.",
)
"""Divvy, Citi Bike and other systems of one operator; older Citi Bike files have stations. They name no rider."""

read_chicago = trip_rows(
    [
        _sides(
            ("pickup_centroid_latitude", "pickup_centroid_longitude", "trip_start_timestamp"),
            ("dropoff_centroid_latitude", "dropoff_centroid_longitude", "trip_end_timestamp"),
        )
    ],
    "taxi_id",
    "trip_id",
    "Chicago taxi trips",
    "download the data set with all columns.",
)
"""Taxi trips of Chicago's data portal; places are centroids of tracts or community areas."""

read_tlc = trip_rows(
    [
        _sides(
            ("pickup_latitude", "pickup_longitude", f"{prefix}pickup_datetime"),
            ("dropoff_latitude", "dropoff_longitude", f"{prefix}dropoff_datetime"),
        )
        for prefix in ("tpep_", "lpep_", "")
    ],
    "medallion",
    "trip_id",
    "TLC trips",
    "files since July 2016 hold taxi zones (PULocationID, DOLocationID) instead of places: join the centres of the public taxi "
    "zones as pickup_latitude, pickup_longitude, dropoff_latitude and dropoff_longitude, then read the file again.",
)
"""Yellow and green taxis of New York's Taxi and Limousine Commission, up to June 2016 or with centres of zones joined."""


def read_gtfs_ride(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read rider_trip.txt of GTFS-ride: boarding and alighting of each ride; stops.txt lies beside it."""
    for batch in text.rows(file, options, faults):
        frame = _need(
            batch.frame, ("rider_id", "boarding_stop_id", "alighting_stop_id", "boarding_time", "alighting_time"), file
        )
        day = pl.col("service_date").str.strptime(pl.Date, "%Y%m%d", strict=False) if "service_date" in frame.columns else None
        sides = []
        for order, side in enumerate(("boarding", "alighting")):
            time = pl.col(f"{side}_time")
            stamp = pl.concat_str(day.dt.strftime("%Y-%m-%d"), time, separator=" ") if day is not None else time
            stop = pl.col(f"{side}_stop_id").alias("stop_id")
            sides.append(
                frame.with_row_index("tid").select(
                    pl.col("tid").cast(pl.String), stop, uid="rider_id", datetime=stamp, order=pl.lit(order)
                )
            )
        yield _at_stops(pl.concat(sides).sort("tid", "order", maintain_order=True).drop("order"), file, report)


def read_tides(file: SourceFile, options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[Batch]:
    """Read fare_transactions.csv of TIDES: a trip of a medium goes from one entry to the next; stops.txt lies beside it."""
    parts = [
        _need(batch.frame, ("fare_media_id", "event_timestamp", "stop_id"), file) for batch in text.rows(file, options, faults)
    ]
    if not parts:
        return
    frame = pl.concat(parts, how="diagonal").sort("fare_media_id", "event_timestamp", maintain_order=True)
    action = pl.col("fare_action").str.to_lowercase() if "fare_action" in frame.columns else pl.lit("enter")
    entry = (action.is_in(["exit", "tap off", "check out"]).not_()).cast(pl.Int64).cum_sum().over("fare_media_id")
    taps = frame.select("stop_id", tid=entry.cast(pl.String), uid="fare_media_id", datetime="event_timestamp")
    yield _at_stops(taps, file, report)


def _at_stops(taps: pl.DataFrame, file: SourceFile, report: ReadReport) -> Batch:
    """Give taps the coordinates of their stops; taps at unknown stops are left out and counted."""
    beside = file.path.parent / "stops.txt"
    if not beside.is_file():
        raise _refused(
            file, "taps at stops, and no stops.txt beside it to say where these are", "put the GTFS stops.txt there."
        )
    stops = pl.read_csv(beside, infer_schema=False, encoding="utf8-lossy")
    stops = _need(stops.rename(str.strip), ("stop_id", "stop_lat", "stop_lon"), SourceFile(beside, "text"))
    places = stops.select("stop_id", lat="stop_lat", lng="stop_lon").unique("stop_id", keep="first")
    joined = taps.join(places, on="stop_id", how="left", maintain_order="left")
    unknown = joined["lat"].is_null() | (joined["lat"] == "")
    report.leave_out("taps at stops without a place", int(unknown.sum()))
    return Batch(joined.filter(~unknown).drop("stop_id"), Place(file.name, 0))


def _need(frame: pl.DataFrame, names: Sequence[str], file: SourceFile) -> pl.DataFrame:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise _refused(file, f"missing: {', '.join(missing)}", f"found {', '.join(frame.columns)}.")
    return frame


def _json(file: SourceFile) -> dict[str, Any]:
    try:
        with open_text(Path(file.path)) as stream:
            content = parse_json(stream.read(), file.path)
    except FOREIGN as error:
        raise _refused(file, f"cannot be read as JSON ({shown(error)})", "write the file again.") from None
    if not isinstance(content, dict):
        raise _refused(file, "a JSON object was expected", "give the whole response.")
    return content


def _refused(file: SourceFile, what: str, remedy: str) -> InputError:
    return InputError([Fault(what, file=file.name)], remedy)
