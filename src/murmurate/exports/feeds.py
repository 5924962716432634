"""Feeds: GTFS-ride ridership of places, and open-data trips as cities publish those of MDS."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import polars as pl

from murmurate.errors import InputError
from murmurate.exports.tables import places_table, safe_csv
from murmurate.releases.folder import Release
from murmurate.spaces.sphere import great_circle_m
from murmurate.spaces.zone_flows import HOURS, ZoneFlows

ROUND_MINUTES = 15
"""Times of open-data trips are rounded down to this many minutes, as cities do."""

ROUND_DECIMALS = 3
"""Decimals of degrees in open-data trips: about 100 m."""


def write_gtfs_ride(release: Release, out: Path, promise: list[str]) -> None:
    """Write a zip with stops.txt, ridership.txt (boardings and alightings by place and hour) and ride_feed_info.txt.

    A figure that is not published is empty. Dates are not part of a release of flows and are left empty.
    """
    flows: ZoneFlows = release.data
    boardings, alightings = (flows.totals(direction) for direction in ("departures", "arrivals"))
    place, hour = np.divmod(np.arange(boardings.size), HOURS)
    known = np.isfinite(boardings.ravel()) | np.isfinite(alightings.ravel())
    ridership = pl.DataFrame(
        {
            "total_boardings": boardings.ravel(),
            "total_alightings": alightings.ravel(),
            "ridership_start_time": [f"{h:02d}:00:00" for h in hour.tolist()],
            "ridership_end_time": [f"{h + 1:02d}:00:00" for h in hour.tolist()],
            "stop_id": place,
        }
    ).filter(pl.Series(known))
    whole = [pl.col(name).fill_nan(None).cast(pl.Int64) for name in ("total_boardings", "total_alightings")]
    empty = [pl.lit("").alias(name) for name in ("ridership_start_date", "ridership_end_date")]
    places = places_table(flows)
    tables = {
        "stops.txt": places.select(stop_id="place", stop_name="name", stop_lat="lat", stop_lon="lng", zone_id="district"),
        "ridership.txt": ridership.with_columns(*whole, *empty),
        "ride_feed_info.txt": pl.DataFrame({"ride_files": [0], "ride_feed_version": [release.manifest.release_id]}),
        "promise.txt": pl.DataFrame({"promise": promise}),
    }
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as feed:
        for name, table in tables.items():
            feed.writestr(zipfile.ZipInfo(name, date_time=(2000, 1, 1, 0, 0, 0)), safe_csv(table))


def write_mds(release: Release, out: Path, promise: list[str]) -> None:
    """Write a row for each trip with times rounded to quarters of an hour and ends to about 100 m."""
    trips = release.data
    if not (trips.has_time and trips.has_coordinates):
        raise InputError("open-data trips need times and coordinates; this release lacks one of them.")
    first, last = trips.offsets[:-1], trips.offsets[1:] - 1
    step = np.zeros(trips.n_points)
    step[1:] = great_circle_m(trips.lat[:-1], trips.lng[:-1], trips.lat[1:], trips.lng[1:])
    step[first] = 0.0
    along = np.add.reduceat(step, first) if trips.n_trips else np.zeros(0)
    local = trips.table["datetime"].dt.convert_time_zone(trips.time_zone).dt.truncate(f"{ROUND_MINUTES}m")
    stamps = local.dt.strftime("%Y-%m-%dT%H:%M:%S%:z")
    rounded = {name: np.round(values, ROUND_DECIMALS) for name, values in (("lat", trips.lat), ("lng", trips.lng))}
    table = pl.DataFrame(
        {
            "trip_id": trips.trip_ids.cast(pl.String),
            "start_time": stamps.gather(first),
            "end_time": stamps.gather(last),
            "trip_duration": (trips.time_us[last] - trips.time_us[first]) // (60_000_000) * 60,
            "trip_distance": np.round(along, -2).astype(np.int64),
            "start_latitude": rounded["lat"][first],
            "start_longitude": rounded["lng"][first],
            "end_latitude": rounded["lat"][last],
            "end_longitude": rounded["lng"][last],
        }
    )
    out.write_text(safe_csv(table), encoding="utf-8")
