# ruff: noqa: E501 - rows of files stay whole
"""Formats that cities exchange, in small files of their documented shape."""

from __future__ import annotations

import json

import polars as pl
import pytest

from murmurate.errors import InputError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.read import read

START_MS = 1_700_000_000_000


def mds_trip(number, **more):
    place = {"lat": 34.05, "lng": -118.25}
    return {
        "provider_id": "p", "device_id": f"d{number}", "trip_id": f"t{number}", "start_time": START_MS, "end_time": START_MS + 600_000,
        "start_location": place, "end_location": {"lat": 34.06, "lng": -118.24}, "duration": 600, "distance": 1500, **more,
    }  # fmt: skip


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_mds_trips(tmp_path):
    trips = read(
        written(tmp_path / "trips.json", {"version": "2.0.0", "data": {"trips": [mds_trip(1), mds_trip(2)]}}), layout="mds"
    )
    assert trips.n_trips == 2 and trips.lat.tolist()[:2] == [34.05, 34.06]
    assert trips.time_us.tolist()[:2] == [START_MS * 1000, (START_MS + 600_000) * 1000]
    assert trips.table["uid"].to_list()[0] == "d1"


def test_mds_telemetry_of_trips(tmp_path):
    point = {"device_id": "d", "timestamp": START_MS, "location": {"lat": 34.05, "lng": -118.25}}
    rows = [{**point, "trip_ids": ["a"]}, {**point, "timestamp": START_MS + 1000, "trip_ids": ["a", "b"]}, point]
    report = ReadReport()
    trips = read(written(tmp_path / "t.json", {"version": "2.0.1", "data": {"telemetry": rows}}), layout="mds", report=report)
    assert trips.n_points == 3 and trips.n_trips == 2 and sum(report.rows_left_out.values()) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            {"last_updated": 1, "ttl": 0, "version": "2.3", "data": {"bikes": []}},
            "a GBFS feed .bikes.: where vehicles stand now, and no trips",
        ),
        ({"version": "0.4.1", "data": {"trips": [{}]}}, "MDS version 0.4.1; versions 2.0 and later are read"),
        ({"version": "2.0.0", "data": {"events": []}}, "no trips and no telemetry .members: events"),
        ([1], "a JSON object was expected"),
        ("{", "cannot be read as JSON"),
    ],
)
def test_what_is_no_mds_is_refused_with_its_reason(tmp_path, content, words):
    with pytest.raises(InputError, match=words):
        read(written(tmp_path / "x.json", content), layout="mds")


def test_moving_features(tmp_path):
    path = {
        "type": "MovingPoint",
        "datetimes": ["2011-07-14T22:01:01Z", "2011-07-14T22:01:02Z"],
        "coordinates": [[139.75, 35.62], [139.76, 35.63]],
    }
    features = [
        {"type": "Feature", "id": "f1", "temporalGeometry": path, "properties": {"name": "car1"}},
        {"type": "Feature", "temporalGeometry": {"type": "MovingGeometryCollection", "prisms": [path]}},
    ]
    trips = read(written(tmp_path / "x.json", {"type": "FeatureCollection", "features": features}), layout="mf-json")
    assert trips.n_trips == 2 and sorted(set(trips.lat.tolist())) == [35.62, 35.63] and "car1" in trips.table["uid"].to_list()
    features[0]["temporalGeometry"] = {**path, "datetimes": ["2011-07-14T22:01:01Z"]}
    with pytest.raises(InputError, match="1 datetimes for 2 coordinates"):
        read(written(tmp_path / "x.json", {"type": "FeatureCollection", "features": features}), layout="mf-json")


BIKES = "ride_id,rideable_type,started_at,ended_at,start_station_name,start_lat,start_lng,end_lat,end_lng,member_casual\n"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_shared_bikes(tmp_path, kind):
    text = (
        BIKES
        + "A1,classic,2023-06-01 08:00:00,2023-06-01 08:10:00,x,41.88,-87.63,41.90,-87.62,member\nA2,classic,2023-06-01 09:00:00,2023-06-01 09:10:00,x,41.88,-87.63,,,casual\n"
    )
    path = written(tmp_path / "trips.csv", text)
    if kind == "parquet":
        pl.read_csv(path, try_parse_dates=True).write_parquet(tmp_path / "trips.parquet")
        path = tmp_path / "trips.parquet"
    report = ReadReport()
    trips = read(path, layout="divvy", local_zone="America/Chicago", report=report)
    assert trips.n_trips == 1 and trips.time_zone == "America/Chicago" and trips.local_hour.tolist() == [8, 8]
    assert sum(report.rows_left_out.values()) == 1


def test_older_citi_bike(tmp_path):
    text = "tripduration,starttime,stoptime,start station latitude,start station longitude,end station latitude,end station longitude,bikeid\n"
    trips = read(
        written(tmp_path / "c.csv", text + "600,2018-01-01 00:00:01,2018-01-01 00:10:01,40.7,-74.0,40.71,-74.01,5\n"),
        layout="citibike",
    )
    assert trips.n_trips == 1 and trips.lng.tolist() == [-74.0, -74.01]


def test_chicago_taxis(tmp_path):
    text = "Trip ID,Taxi ID,Trip Start Timestamp,Trip End Timestamp,Fare,Pickup Centroid Latitude,Pickup Centroid Longitude,Dropoff Centroid Latitude,Dropoff Centroid Longitude\n"
    rows = "a,cab,01/31/2023 08:15:00 PM,01/31/2023 08:30:00 PM,9,41.88,-87.63,41.9,-87.62\n"
    trips = read(written(tmp_path / "taxi.csv", text + rows), layout="chicago", local_zone="America/Chicago")
    assert trips.table["uid"].to_list() == ["cab", "cab"] and trips.local_hour.tolist() == [20, 20]


def test_tlc(tmp_path):
    text = "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude\n"
    trips = read(
        written(tmp_path / "y.csv", text + "1,2015-01-15 19:05:39,2015-01-15 19:23:42,-73.99,40.75,-73.97,40.76\n"),
        layout="tlc",
        local_zone="America/New_York",
    )
    assert trips.n_trips == 1 and trips.local_hour.tolist() == [19, 19] and trips.lat.tolist() == [40.75, 40.76]
    zones = "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID\n1,2023-01-01 00:00:00,2023-01-01 00:10:00,4,7\n"
    with pytest.raises(InputError, match=r"hold taxi zones .PULocationID"):
        read(written(tmp_path / "z.csv", zones), layout="tlc")


STOPS = "stop_id,stop_name,stop_lat,stop_lon\ns1,A,60.1,24.9\ns2,B,60.2,25.0\n"


def test_rides_of_gtfs_ride(tmp_path):
    text = "rider_id,agency_id,boarding_stop_id,alighting_stop_id,service_date,boarding_time,alighting_time\nr1,a,s1,s2,20240102,08:00:00,08:20:00\nr2,a,s1,s9,20240102,08:00:00,08:20:00\n"
    path = written(tmp_path / "rider_trip.txt", text)
    with pytest.raises(InputError, match=r"no stops.txt beside it"):
        read(path, layout="gtfs-ride")
    written(tmp_path / "stops.txt", STOPS)
    trips = read(path, layout="gtfs-ride", time_zone="Europe/Helsinki", local_zone="Europe/Helsinki")
    assert trips.n_points == 3 and trips.lat.tolist()[:2] == [60.1, 60.2] and trips.local_hour.tolist() == [8, 8, 8]


def test_taps_of_tides(tmp_path):
    text = "transaction_id,event_timestamp,fare_media_id,fare_action,stop_id\n1,2024-01-02T08:00:00Z,card,Enter,s1\n2,2024-01-02T08:20:00Z,card,Exit,s2\n3,2024-01-02T17:00:00Z,card,Enter,s2\n"
    written(tmp_path / "stops.txt", STOPS)
    trips = read(written(tmp_path / "fare_transactions.csv", text), layout="tides")
    assert trips.n_trips == 2 and trips.n_users == 1 and trips.lat.tolist() == [60.1, 60.2, 60.2]
    with pytest.raises(InputError, match="missing: stop_id"):
        read(written(tmp_path / "fare_transactions.csv", text.replace("stop_id", "stop")), layout="tides")
