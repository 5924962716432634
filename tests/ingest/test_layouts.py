"""Known data sets, in small files of the same shape."""

from __future__ import annotations

import polars as pl
import pytest

from murmurate.errors import InputError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.faults import Faults, Place
from murmurate.ingest.formats import polyline
from murmurate.ingest.read import read


def test_cabspotting(tmp_path):
    (tmp_path / "new_abc.txt").write_text("37.75134 -122.39488 0 1213084687\n37.75136 -122.39527 1 1213084659\n")
    (tmp_path / "new_xyz.txt").write_text("37.70000 -122.40000 1 1213084600\n")
    (tmp_path / "_cabs.txt").write_text("<cab id='abc'/>")
    trips = read(tmp_path, layout="cabspotting", local_zone="America/Los_Angeles")
    assert trips.table["uid"].to_list() == ["abc", "abc", "xyz"]
    assert trips.table["occupied"].to_list() == [True, False, True]
    assert trips.time_us.tolist()[:2] == [1213084659_000_000, 1213084687_000_000]
    (tmp_path / "new_xyz.txt").write_text("37.7 -122.4 2 1213084600\n")
    with pytest.raises(InputError, match="occupied should be 0 or 1"):
        read(tmp_path, layout="cabspotting")


PORTO = '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP","DAY_TYPE","MISSING_DATA","POLYLINE"\n'


def porto_row(trip, taxi, begin, missing, line):
    return f'"{trip}","C","","","{taxi}","{begin}","A","{missing}","{line}"\n'


def test_porto(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(
        PORTO
        + porto_row("13", 20000589, 1372636858, "False", "[[-8.618643,41.141412],[-8.618499,41.141376]]")
        + porto_row("14", 20000596, 1372637303, "False", "[]")
        + porto_row("15", 20000320, 1372636951, "True", "[[-8.6,41.1]]")
        + porto_row("16", 20000320, 1372636951, "False", "[[-8.612964,41.140359]]")
    )
    report = ReadReport()
    trips = read(path, layout="porto", local_zone="Europe/Lisbon", report=report)
    assert trips.table["tid"].to_list() == ["16", "13", "13"]
    assert trips.lat.tolist() == [41.140359, 41.141412, 41.141376]
    assert trips.lng.tolist() == [-8.612964, -8.618643, -8.618499]
    assert trips.time_us.tolist()[1:] == [1372636858_000_000, 1372636873_000_000]
    assert sum(report.rows_left_out.values()) == 2
    path.write_text(PORTO + porto_row("13", 1, 1372636858, "False", "[[-8.6,41.1],[") + porto_row("14", 1, "x", "False", "[]"))
    with pytest.raises(InputError) as caught:
        read(path, layout="porto")
    assert [(fault.row, fault.column) for fault in caught.value.faults] == [(2, "TIMESTAMP"), (1, "POLYLINE")]


@pytest.mark.parametrize(
    "text", ["", "[", "[[", "[[1]]", "[[1,2]", "[[1,2]]x", "[[a,2]]", "[[1,2][3,4]]", "[[1,2],]", "[[--1,2]]", "[[1e5,2]]"]
)
def test_lines_that_are_none(text):
    faults = Faults()
    assert polyline.parse(pl.Series(["[]", text]), Place(), faults) is None
    assert faults


def test_geolife(tmp_path):
    folder = tmp_path / "Data" / "000" / "Trajectory"
    folder.mkdir(parents=True)
    head = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
    (folder / "20081023025304.plt").write_text(head + "39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\r\n")
    (tmp_path / "Data" / "000" / "labels.txt").write_text("Start Time\tEnd Time\tMode\n")
    trips = read(tmp_path, layout="geolife", local_zone="Asia/Shanghai")
    assert trips.table.row(0)[:2] == ("0", "20081023025304")
    assert trips.time_us.tolist() == [1224730384_000_000]
    assert trips.local_hour.tolist() == [10]
    (folder / "20081023025305.plt").write_text(head + "400.1,116.318417,0,492,39744.12,2008-10-23,02:53:05\n")
    with pytest.raises(InputError, match="file line 7"):
        read(tmp_path, layout="geolife")


def test_tdrive(tmp_path):
    (tmp_path / "1.txt").write_text("1,2008-02-02 15:36:08,116.51172,39.92123\n1,2008-02-02 15:46:08,116.51135,39.93883\n")
    trips = read(tmp_path, layout="tdrive")
    assert trips.lat.tolist() == [39.92123, 39.93883]
    assert trips.time_us.tolist()[0] == 1201937768_000_000, "Beijing is eight hours ahead"


@pytest.mark.parametrize("layout", ["gowalla", "brightkite"])
def test_checkins(tmp_path, layout):
    path = tmp_path / f"{layout}_totalCheckins.txt"
    path.write_text(
        "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
        "0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315\n"
        "1\t2010-10-17T23:42:03Z\t0.0\t0.0\t00000000\n"
        "2\t\t\t\t\n"
    )
    report = ReadReport()
    trips = read(path, layout=layout, report=report)
    assert trips.table["venue"].to_list() == ["420315", "22847"]
    assert report.rows_left_out == {"check-ins without a place": 2}


def test_a_layout_that_is_not_there(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"no file ending in \.plt"):
        read(tmp_path, layout="geolife")
    with pytest.raises(InputError, match="missing: TRIP_ID"):
        read(tmp_path, layout="porto")
