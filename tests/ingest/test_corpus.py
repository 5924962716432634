"""Files as people have them: every header, dialect and layout opens at once, or with the one hint that the reader prints."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from datetime import UTC, datetime, timedelta

import pytest

from murmurate.errors import InputError
from murmurate.ingest.read import read

START = datetime(2014, 2, 13, 9, 30, tzinfo=UTC)
ROWS = [
    (7 + person, trip, START + timedelta(minutes=60 * trip + step), 41.9 + 0.01 * trip + 0.001 * step, 12.49 + 0.002 * person)
    for person in range(2)
    for trip in range(2)
    for step in range(3)
]
"""Two people, two trips each, three points a trip, in Rome."""


def table(header: str, *, sep: str = ",", time: str = "%Y-%m-%dT%H:%M:%SZ", comma: bool = False, order: str = "utdyx") -> str:
    """Write the rows; `order` says which column comes where: u person, t trip, d time, y latitude, x longitude, r number."""
    lines = [header] if header else []
    for number, (person, trip, moment, lat, lng) in enumerate(ROWS):
        values = {"u": person, "t": trip, "d": moment.strftime(time), "y": f"{lat:.5f}", "x": f"{lng:.5f}", "r": number}
        cells = [str(values[key]) for key in order]
        lines.append(
            sep.join(cell.replace(".", ",") if comma and key in "yx" else cell for cell, key in zip(cells, order, strict=True))
        )
    return "\n".join(lines) + "\n"


PEOPLE = (
    "uid", "UID", "user_id", "User ID", "userId", "USERID", "user", "TaxiID", "taxi_id", "Taxi ID", "taxiId", "driver",
    "Driver-ID",
    "vehicle_id", "VehicleId", "veh_id", "cab", "device_id", "Device ID", "person_id", "bike id", "medallion", "Participant ID",
)  # fmt: skip
TRIPS = (
    "tid",
    "Trip ID",
    "tripID",
    "TRIP_ID",
    "traj_id",
    "Trajectory ID",
    "journey_id",
    "ride_id",
    "trip",
    "Trip No",
    "track-id",
)
TIMES = ("datetime", "TimeStamp", "Time Stamp", "tracked_at", "Date Time", "gps_time", "GPS Time", "recorded_at", "time", "t")
PLACES = (
    ("lat", "lng"), ("Latitude", "Longitude"), ("LAT", "LON"), ("Lat.", "Long."), ("gps_lat", "gps_lon"),
    ("GPS Latitude", "GPS Longitude"),
    ("y", "x"), ("latitude (deg)", "longitude (deg)"), ("point_y", "point_x"),
)  # fmt: skip
HEADERS = [
    *(f"{name},tid,datetime,lat,lng" for name in PEOPLE),
    *(f"uid,{name},datetime,lat,lng" for name in TRIPS),
    *(f"uid,tid,{name},lat,lng" for name in TIMES),
    *(f"uid,tid,datetime,{lat},{lng}" for lat, lng in PLACES),
]
"""53 spellings of a header."""

DIALECTS = {
    "semicolon": (table("uid;tid;datetime;lat;lng", sep=";"), {}),
    "tab": (table("uid\ttid\tdatetime\tlat\tlng", sep="\t"), {}),
    "bar": (table("uid|tid|datetime|lat|lng", sep="|"), {}),
    "decimal commas": (table("uid;tid;datetime;lat;lng", sep=";", comma=True), {}),
    "decimal commas, tab": (table("uid\ttid\tdatetime\tlat\tlng", sep="\t", comma=True), {}),
    "excel separator line": ("sep=;\n" + table("uid;tid;datetime;lat;lng", sep=";"), {}),
    "byte order mark": ("\ufeff" + table("uid,tid,datetime,lat,lng"), {}),
    "carriage returns": (table("uid,tid,datetime,lat,lng").replace("\n", "\r\n"), {}),
    "quoted header, row numbers": (table('"","TaxiID","Trip","TimeStamp","Latitude","Longitude"', order="rutdyx"), {}),
    "hash before the header": (table("#uid,tid,datetime,lat,lng"), {}),
    "blank first lines": ("\n\n" + table("uid,tid,datetime,lat,lng"), {}),
    "offset of hours": (table("uid,tid,datetime,lat,lng", time="%Y-%m-%d %H:%M:%S.%f+00"), {}),
    "no zone": (table("uid,tid,datetime,lat,lng", time="%Y-%m-%d %H:%M:%S"), {"time_zone": "UTC"}),
    "day first": (table("uid,tid,datetime,lat,lng", time="%d/%m/%Y %H:%M"), {"time_zone": "UTC"}),
    "month first": (table("uid,tid,datetime,lat,lng", time="%m/%d/%Y %H:%M"), {"time_zone": "UTC"}),
    "halves of the day": (table("uid,tid,datetime,lat,lng", time="%m/%d/%Y %I:%M:%S %p"), {"time_zone": "UTC"}),
    "dots": (table("uid,tid,datetime,lat,lng", time="%d.%m.%Y %H:%M"), {"time_zone": "UTC"}),
    "year with dots": (table("uid,tid,datetime,lat,lng", time="%Y.%m.%d %H:%M"), {"time_zone": "UTC"}),
    "date and time apart": (table("uid,tid,date,time,lat,lng", time="%Y-%m-%d,%H:%M:%S"), {"time_zone": "UTC"}),
    "seconds": (table("uid,tid,datetime,lat,lng", time="%s"), {}),
    "a format": (table("uid,tid,datetime,lat,lng", time="%Y%m%d%H%M"), {"time_zone": "UTC", "time_format": "%Y%m%d%H%M"}),
    "places first": (table("lng,lat,datetime,uid,tid", order="xydut"), {}),
}
"""Ways to write the same rows, with the options that a person has to give at most."""


def expect_rome(trips) -> None:
    assert (trips.n_users, trips.n_trips, trips.n_points) == (2, 4, 12)
    assert 41.8 < trips.lat.min() <= trips.lat.max() < 42
    assert 12.4 < trips.lng.min() <= trips.lng.max() < 12.6
    assert trips.table["datetime"].min() == START


@pytest.mark.parametrize("header", HEADERS)
def test_every_spelling_of_a_header_opens(header, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(table(header))
    expect_rome(read(path))


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_opens(name, tmp_path):
    text, options = DIALECTS[name]
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    expect_rome(read(path, **options))


def hinted(path, **options):
    """Open a file with the options that its own error message suggests."""
    with pytest.raises(InputError) as caught:
        read(path, **options)
    words = shlex.split(re.sub(r"\(in Python.*?\)", "", str(caught.value)))
    columns, found = {}, dict(options)
    for word, value in itertools.pairwise(words):
        if word == "--column":
            name, _, column = value.rstrip(".;,)").partition("=")
            columns.setdefault(name, column)
        elif word == "--time-format":
            found.setdefault("time_format", value)
    return read(path, **found, **({"columns": columns} if columns else {}))


HEADERLESS = {
    "comma": table("", time="%Y-%m-%d %H:%M:%SZ", order="udxy"),
    "tab": table("", sep="\t", order="udyxr"),
    "semicolon and decimal commas": table("", sep=";", comma=True, order="udyx"),
}


@pytest.mark.parametrize("name", HEADERLESS)
def test_a_file_without_a_header_opens_with_the_hint_it_prints(name, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(HEADERLESS[name])
    trips = hinted(path)
    assert (trips.n_users, trips.n_points) == (2, 12)
    assert 41.8 < trips.lat.min() <= trips.lat.max() < 42


@pytest.mark.parametrize("people", [("0", "0", "0", "0"), ("0", "0", "1", "1")])
def test_check_ins_without_a_header_are_grouped_by_person_not_by_venue(people, tmp_path):
    rows = "".join(f"{u}\t2010-10-1{k}T23:55:27Z\t30.23{k}\t-97.79{k}\t{22847 + 7 * k}\n" for k, u in enumerate(people))
    (tmp_path / "gowalla.txt").write_text(rows)
    assert hinted(tmp_path / "gowalla.txt").n_users == len(set(people))


def test_row_numbers_before_the_person_name_nobody(tmp_path):
    (tmp_path / "rows.csv").write_text(table("", order="rudyx"))
    assert hinted(tmp_path / "rows.csv").n_users == 2


def test_a_raw_stream_a_file_opens_with_the_hint_it_prints(tmp_path):
    (tmp_path / "new_abc.txt").write_text(
        "37.75 -122.39 0 1211031785\n37.76 -122.40 1 1211031846\n37.77 -122.41 1 1211031906\n"
    )
    trips = hinted(tmp_path / "new_abc.txt")
    assert trips.user_ids.to_list() == ["new_abc"]
    assert trips.lng.max() < -122


def test_day_or_month_is_asked_for_in_the_format_of_the_file(tmp_path):
    text = "uid,datetime,lat,lng\n1,01/02/2014 10:00,41.9,12.5\n1,02/02/2014 10:00,41.9,12.51\n"
    (tmp_path / "data.csv").write_text(text)
    trips = hinted(tmp_path / "data.csv", time_zone="UTC")
    assert trips.table["datetime"].min() == datetime(2014, 2, 1, 10, tzinfo=UTC)


def test_days_of_spreadsheets(tmp_path):
    days = [(moment - datetime(1899, 12, 30, tzinfo=UTC)) / timedelta(days=1) for _, _, moment, _, _ in ROWS]
    rows = "".join(f"{u},{t},{day:.10f},{lat},{lng}\n" for (u, t, _, lat, lng), day in zip(ROWS, days, strict=True))
    (tmp_path / "data.csv").write_text("uid,tid,datetime,lat,lng\n" + rows)
    expect_rome(read(tmp_path / "data.csv", time_zone="UTC"))
    (tmp_path / "commas.csv").write_text("uid;tid;datetime;lat;lng\n" + rows.replace(",", ";").replace(".", ","))
    expect_rome(read(tmp_path / "commas.csv", time_zone="UTC"))


RECORDS = [{"userId": u, "tripID": t, "time": d.isoformat(), "position": {"lat": y, "lon": x}} for u, t, d, y, x in ROWS]
FLAT = [{"userId": u, "tripID": t, "time": d.isoformat(), "lat": y, "lon": x, "tags": []} for u, t, d, y, x in ROWS]
JSON = {
    "a list": json.dumps(FLAT),
    "one a line": "\n".join(map(json.dumps, FLAT)),
    "one a line, commas": ",\n".join(map(json.dumps, FLAT)) + ",\n",
    "one a line, semicolons": ";\n".join(map(json.dumps, FLAT)) + ";\n",
    "under data": json.dumps({"version": "2", "data": {"points": FLAT}}),
}


@pytest.mark.parametrize("name", JSON)
def test_json_records(name, tmp_path):
    path = tmp_path / "data.json"
    path.write_text(JSON[name])
    expect_rome(read(path))


def test_inner_objects_have_joined_names(tmp_path):
    path = tmp_path / "data.ndjson"
    path.write_text("\n".join(map(json.dumps, RECORDS)))
    expect_rome(read(path, columns={"lat": "position_lat", "lng": "position_lon"}))


ENDS = {
    "chicago": (
        "Trip ID,Taxi ID,Trip Start Timestamp,Trip End Timestamp,Trip Seconds,Fare,Pickup Centroid Latitude,"
        "Pickup Centroid Longitude,Dropoff Centroid Latitude,Dropoff Centroid Longitude",
        "{t},{u},{s:%m/%d/%Y %I:%M:%S %p},{e:%m/%d/%Y %I:%M:%S %p},600,9.25,{a},{b},{c},{d}",
    ),
    "nyc": (
        "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,pickup_longitude,pickup_latitude,"
        "dropoff_longitude,dropoff_latitude,medallion",
        "1,{s:%Y-%m-%d %H:%M:%S},{e:%Y-%m-%d %H:%M:%S},1,2.5,{b},{a},{d},{c},{u}",
    ),
    "bikes": (
        "ride_id,bike_id,started_at,ended_at,start_station_name,start_lat,start_lng,end_lat,end_lng",
        "{t},{u},{s:%Y-%m-%d %H:%M:%S},{e:%Y-%m-%d %H:%M:%S},A,{a},{b},{c},{d}",
    ),
    "spaces": (
        "Device ID,Start Time,End Time,Start Lat,Start Lng,End Lat,End Lng",
        "{u},{s:%Y-%m-%d %H:%M:%S},{e:%Y-%m-%d %H:%M:%S},{a},{b},{c},{d}",
    ),
    "short": ("user,o_lat,o_lon,d_lat,d_lon,start_time,end_time", "{u},{a},{b},{c},{d},{s:%Y-%m-%d %H:%M},{e:%Y-%m-%d %H:%M}"),
    "origin": (
        "person_id,origin_x,origin_y,destination_x,destination_y,departure_time,arrival_time",
        "{u},{b},{a},{d},{c},{s:%Y-%m-%d %H:%M},{e:%Y-%m-%d %H:%M}",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_origin_destination_rows_are_trips_of_two_points(name, tmp_path):
    header, row = ENDS[name]
    later = timedelta(minutes=10)
    rows = [
        row.format(t=n, u=n % 2, s=START + n * later, e=START + (n + 1) * later, a=41.9, b=12.4, c=41.8, d=12.5)
        for n in range(4)
    ]
    gone = row.format(t=9, u=1, s=START, e=START + later, a="", b="", c=41.8, d=12.5)
    (tmp_path / "data.csv").write_text("\n".join([header, *rows, gone]) + "\n")
    trips = read(tmp_path / "data.csv", time_zone="UTC")
    assert (trips.n_users, trips.n_trips, trips.n_points) == (2, 4, 8)
    assert trips.lat.tolist() == [41.9, 41.8] * 4
    assert trips.lng.tolist() == [12.4, 12.5] * 4
    assert trips.time_us[1] - trips.time_us[0] == 600e6


def test_rows_without_a_person_open_with_the_hint(tmp_path):
    header, row = ENDS["spaces"]
    rows = [row.format(u=n, s=START, e=START + timedelta(minutes=9), a=41.9, b=12.4, c=41.8, d=12.5) for n in range(3)]
    (tmp_path / "data.csv").write_text("\n".join([header.replace("Device ID", "Vendor"), *rows]) + "\n")
    by_row = read(tmp_path / "data.csv", time_zone="UTC", columns={"uid": "ROW"})
    for trips in (by_row, hinted(tmp_path / "data.csv", time_zone="UTC")):
        assert (trips.n_users, trips.n_trips, trips.n_points) == (3, 3, 6)


def test_porto_as_published_opens_by_itself(tmp_path):
    header = '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP","DAY_TYPE","MISSING_DATA","POLYLINE"'
    row = '"1372636858620000589","C","","","20000589","1372636858","A","False","[[-8.618643,41.141412],[-8.618499,41.141376]]"'
    (tmp_path / "train.csv").write_text(f"{header}\n{row}\n")
    trips = read(tmp_path / "train.csv")
    assert (trips.n_points, trips.user_ids.to_list()) == (2, ["20000589"])
    assert trips.time_us[1] - trips.time_us[0] == 15e6


def test_spellings_of_one_person_are_one_person(tmp_path):
    names = ["7", " 7", "007", "7.0", "7\u200b", "7\u00a0"]
    rows = "".join(f"{name},2014-02-13T09:{k:02}:00Z,41.9,12.4\n" for k, name in enumerate(names))
    (tmp_path / "data.csv").write_text("uid,datetime,lat,lng\n" + rows, encoding="utf-8")
    trips = read(tmp_path / "data.csv")
    assert (trips.n_users, trips.n_points) == (1, 6)


REAL = {
    "rome_taxi_sample.csv": ({}, 51),
    "geolife_60s.parquet": ({}, 182),
    "sf_taxi_dploc200_trips.parquet": ({}, 200),
    "foursquare_nyc_weekly.parquet": ({}, 193),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_open_at_once(name, data_dir):
    options, people = REAL[name]
    assert read(data_dir / name, **options).n_users == people


def test_real_raw_streams_open_with_the_hint_they_print(data_dir):
    trips = hinted(data_dir / "sf_raw_cabs")
    assert trips.n_users == 6
    assert trips.lat.mean() == pytest.approx(37.77, abs=0.05)


def test_there_are_enough_variants():
    assert len(HEADERS) + len(DIALECTS) + len(HEADERLESS) + len(JSON) + len(ENDS) >= 60
