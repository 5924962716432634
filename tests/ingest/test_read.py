"""Reading: columns, rules for what real files are full of, the fingerprint."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pytest

from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.read import read

HEADER = "uid,tid,datetime,lat,lng\n"


def write(folder, text, name="traces.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_a_plain_csv_becomes_sorted_trips(tmp_path):
    path = write(tmp_path, HEADER + "b,1,2020-01-01T00:00:00Z,60.1,24.9\na,1,2020-01-01T00:01:00Z,60.2,24.8\n")
    trips = read(path)
    assert trips.table["uid"].to_list() == ["a", "b"]
    assert trips.table["lat"].to_list() == [60.2, 60.1]
    assert trips.columns == ["uid", "tid", "datetime", "lat", "lng"]
    assert trips.table.schema["datetime"] == pl.Datetime("us", "UTC")


def test_what_reading_gives_is_what_trips_would_have_checked(tmp_path):
    rng = np.random.default_rng(3)
    n = 2_000
    frame = pl.DataFrame(
        {
            "uid": rng.integers(0, 20, n).astype(str),
            "tid": rng.integers(0, 4, n),
            "datetime": pl.Series(rng.integers(1_500_000_000, 1_500_001_000, n)),
            "lat": rng.integers(-90, 91, n).astype(float),
            "lng": rng.integers(-180, 181, n).astype(float),
            "speed": rng.random(n),
        }
    )
    trips = read(frame)
    again = Trips(trips.table)
    assert again.table.equals(trips.table)
    assert np.array_equal(again.offsets, trips.offsets)
    assert np.array_equal(again.user_offsets, trips.user_offsets)
    assert trips.table.select("uid", "tid", "datetime").is_unique().all()


def test_a_missing_tid_means_one_trip_a_person():
    trips = read(pl.DataFrame({"user": ["b", "a", "b"], "lat": [1.0, 2.0, 3.0], "lon": [0.0, 0.0, 0.0]}))
    assert trips.n_trips == 2
    assert trips.table["lat"].to_list() == [2.0, 1.0, 3.0]


def test_weekday_and_hour_alone_are_accepted():
    frame = pl.DataFrame({"uid": ["a"] * 2, "Day_Of_Week": [0, 6], "hour": [23, 0], "lat": [1.0, 2.0], "lng": [0.0, 0.0]})
    trips = read(frame)
    assert not trips.has_time
    assert trips.table["weekday"].to_list() == [0, 6]
    assert trips.local_hour.tolist() == [23, 0]


def test_cells_and_links_need_no_coordinates():
    trips = read(pl.DataFrame({"uid": ["a", "a"], "cell": [3, 3]}))
    assert trips.carries() == {"cell"}
    assert trips.n_points == 2, "a sequence without times keeps its repetitions"
    assert read(pl.DataFrame({"uid": ["a"], "link_id": [7]})).link.tolist() == [7]


def test_columns_can_be_named_and_left_out():
    frame = pl.DataFrame({"cab": ["a"], "breite": [60.0], "laenge": [25.0], "tid": [4]})
    trips = read(frame, columns={"uid": "cab", "lat": "breite", "lng": "laenge", "tid": None})
    assert trips.table["tid"].to_list() == [0]
    with pytest.raises(ParameterError, match="Did you mean 'lat'"):
        read(frame, columns={"latt": "breite"})
    with pytest.raises(InputError, match="given for uid"):
        read(frame, columns={"uid": "cabb"})


def test_plain_columns_are_carried_and_others_counted():
    report = ReadReport()
    frame = pl.DataFrame({"uid": ["a"], "lat": [1.0], "lng": [1.0], "occupied": [True], "tags": [["x"]]})
    trips = read(frame, report=report)
    assert trips.columns == ["uid", "tid", "lat", "lng", "occupied"]
    assert report.columns_left_out == ["tags"]
    assert read(frame, carry=()).columns == ["uid", "tid", "lat", "lng"]


def rows(*points):
    return pl.DataFrame(points, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row")


def test_rules_are_followed_and_counted():
    frame = rows(
        ("a", 1, 1_600_000_060, 1.0, 1.0),
        ("a", 1, 1_600_000_000, 2.0, 2.0),  # earlier: sorted
        ("a", 1, 1_600_000_060, 9.0, 9.0),  # elsewhere at the same time: left out
        ("a", 1, 1_600_000_060, 1.0, 1.0),  # a duplicate of the first: left out
        ("a", 2, 1_600_000_000, 3.0, 3.0),  # one point: kept
    )
    report = ReadReport()
    trips = read(frame, report=report)
    assert trips.table["lat"].to_list() == [2.0, 1.0, 3.0]
    assert (report.out_of_order, report.duplicates, report.two_places_at_once, report.one_point_trips) == (1, 1, 1, 1)
    assert (report.rows, report.points, report.trips, report.people) == (5, 3, 2, 1)


def test_strict_refuses_all_of_them_with_their_rows(tmp_path):
    body = "a,1,1600000060,1,1\na,1,1600000000,2,2\na,1,1600000060,9,9\na,1,1600000060,1,1\na,2,1600000000,3,3\n"
    path = write(tmp_path, HEADER + body)
    with pytest.raises(InputError) as caught:
        read(path, strict=True)
    found = {fault.reason.split(";")[0]: fault.row for fault in caught.value.faults}
    assert found == {
        "one-point trip": 5,
        "earlier than the row before it in its trip": 2,
        "two places at one time in one trip": 3,
        "the time and place of another row of its trip": 4,
    }
    assert all(fault.file == path.name for fault in caught.value.faults)


def test_strict_leaves_no_trace_on_good_input(tmp_path):
    path = write(tmp_path, HEADER + "a,1,1600000000,1,1\na,1,1600000060,2,2\n")
    assert read(path, strict=True).columns == ["uid", "tid", "datetime", "lat", "lng"]


def test_a_file_is_known_by_its_bytes(tmp_path):
    text = HEADER + "a,1,1600000000,1,1\nb,1,1600000000,1,1\n"
    one, other = write(tmp_path, text), write(tmp_path, text, "copy.csv")
    identity = read(one).identity
    assert identity.fingerprint == hashlib.sha256(text.encode()).hexdigest()
    assert identity.uids == ("a", "b")
    assert read(other).identity == identity
    assert read(write(tmp_path, text + "c,1,1600000000,1,1\n", "more.csv")).identity.fingerprint != identity.fingerprint


def test_a_folder_is_known_whatever_its_files_are_called(tmp_path):
    for names in (("one", "x.csv", "y.csv"), ("two", "y2.csv", "x2.csv")):
        folder = tmp_path / names[0]
        folder.mkdir()
        write(folder, HEADER + "a,1,1600000000,1,1\n", names[1])
        write(folder, HEADER + "b,1,1600000000,1,1\n", names[2])
    one, two = read(tmp_path / "one"), read(str(tmp_path / "two" / "*.csv"))
    assert one.identity == two.identity
    assert one.n_users == 2


def test_the_local_zone_tells_hours(tmp_path):
    path = write(tmp_path, HEADER + "a,1,2020-07-01 12:00:00,1,1\n")
    trips = read(path, time_zone="Europe/Helsinki")
    assert trips.time_zone == "Europe/Helsinki"
    assert trips.local_hour.tolist() == [12]
    assert trips.time_us.tolist() == [1593594000_000_000]
    assert read(path, time_zone="UTC", local_zone="Asia/Tokyo").local_hour.tolist() == [21]


def test_identifiers_of_any_type():
    place = {"lat": [1.0, 1.0], "lng": [1.0, 1.0]}
    assert read(pl.DataFrame({"uid": [2.0, 1.0], **place})).table["uid"].to_list() == [1, 2]
    assert read(pl.DataFrame({"uid": pl.Series([2, 1], dtype=pl.UInt8), **place})).table["uid"].to_list() == [1, 2]
    assert read(pl.DataFrame({"uid": pl.Series(["b", "a"], dtype=pl.Categorical), **place})).table["uid"].to_list() == [
        "a",
        "b",
    ]
    with pytest.raises(InputError, match="wrong type"):
        read(pl.DataFrame({"uid": [1.5, 2.0], **place}))


def test_a_space_in_words():
    trips = read(pl.DataFrame({"uid": ["a"], "lat": [60.1], "lng": [24.9]}), space="grid:60,24,61,25:500")
    assert trips.space is not None
    assert trips.space.spec().startswith("grid:60")


@pytest.mark.data
def test_real_files(data_dir):
    taxi = read(data_dir / "sf_taxi_dploc200_trips.parquet", local_zone="America/Los_Angeles")
    assert (taxi.n_points, taxi.n_trips, taxi.n_users) == (1_282_385, 123_757, 200)
    weekly = read(data_dir / "foursquare_nyc_weekly.parquet")
    assert (weekly.n_points, weekly.n_users) == (66_962, 193)
    assert {"weekday", "hour", "category"} <= set(weekly.columns)
