"""Every format and every frame gives the same trips."""

from __future__ import annotations

import json
import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import shapely

from murmurate.errors import InputError
from murmurate.ingest.read import read

CANONICAL = pl.DataFrame(
    {
        "uid": ["a", "a", "b"],
        "tid": [1, 1, 1],
        "datetime": pl.Series([1_600_000_000, 1_600_000_060, 1_600_000_000]).cast(pl.Int64) * 1_000_000,
        "lat": [60.1, 60.2, -33.5],
        "lng": [24.9, 24.8, 151.2],
    }
).with_columns(pl.col("datetime").cast(pl.Datetime("us")).dt.replace_time_zone("UTC"))


def same(trips, *, ids=True):
    table = trips.table.with_columns(pl.col("uid").cast(pl.String))
    columns = CANONICAL.columns if ids else ["datetime", "lat", "lng"]
    assert table.select(columns).cast({"tid": pl.Int64} if ids else {}).equals(CANONICAL.select(columns))


def test_frames():
    pandas = pytest.importorskip("pandas")
    same(read(CANONICAL))
    same(read(CANONICAL.lazy()))
    same(read(CANONICAL.to_arrow()))
    same(read(CANONICAL.to_arrow().to_batches()[0]))
    frame = pandas.DataFrame(CANONICAL.with_columns(pl.col("datetime").dt.replace_time_zone(None)).to_dict(as_series=False))
    frame["datetime"] = pandas.to_datetime(frame["datetime"], utc=True)
    same(read(frame))
    same(read(frame.set_index("datetime")))
    same(read(frame.set_index("datetime").rename_axis(None)))
    with pytest.raises(InputError, match="row 1, column lat: wrong type: not a number, written like 'aaaaa'"):
        read(frame.assign(lat=["north", 1.0, 2.0]))


def geo_frame():
    geopandas = pytest.importorskip("geopandas")
    pandas = pytest.importorskip("pandas")
    points = geopandas.points_from_xy(CANONICAL["lng"].to_list(), CANONICAL["lat"].to_list())
    times = pandas.to_datetime(CANONICAL["datetime"].dt.epoch("s").to_list(), unit="s", utc=True)
    columns = {"user_id": CANONICAL["uid"].to_list(), "trip_id": CANONICAL["tid"].to_list(), "tracked_at": times}
    return geopandas.GeoDataFrame(columns, geometry=points, crs="EPSG:4326")


def test_geopandas_and_trackintel_frames():
    frame = geo_frame()
    same(read(frame))
    same(read(frame.rename_geometry("geom")))
    projected = read(frame.to_crs("EPSG:3857"))
    assert np.allclose(projected.lat, CANONICAL["lat"].to_numpy(), atol=1e-9)


def test_geoparquet(tmp_path):
    frame = geo_frame()
    frame.to_parquet(tmp_path / "points.parquet")
    same(read(tmp_path / "points.parquet"))
    frame.to_crs("EPSG:3857").to_parquet(tmp_path / "metres.parquet")
    assert np.allclose(read(tmp_path / "metres.parquet").lng, CANONICAL["lng"].to_numpy(), atol=1e-9)
    frame.set_geometry(shapely.buffer(frame.geometry.to_numpy(), 0.1), crs="EPSG:4326").to_parquet(tmp_path / "areas.parquet")
    with pytest.raises(InputError, match="not a point"):
        read(tmp_path / "areas.parquet")


def test_geometry_as_text_or_three_dimensional():
    texts = pl.DataFrame({"uid": ["a"], "geom": ["POINT (24.9 60.1)"]})
    assert read(texts).lat.tolist() == [60.1]
    tall = pl.DataFrame({"uid": ["a"], "geom": [shapely.to_wkb(shapely.Point(24.9, 60.1, 7.0), output_dimension=3)]})
    assert read(tall).lng.tolist() == [24.9]
    with pytest.raises(InputError, match="not a geometry"):
        read(pl.DataFrame({"uid": ["a"], "geom": [b"\x01\x02"]}))


def test_movingpandas():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        movingpandas = pytest.importorskip("movingpandas")
    frame = geo_frame()
    frame = frame.assign(tracked_at=frame["tracked_at"].dt.tz_localize(None), trip=[f"{u}-1" for u in frame["user_id"]])
    more = frame.iloc[2:].assign(tracked_at=frame["tracked_at"].iloc[1])
    pandas = pytest.importorskip("pandas")
    collection = movingpandas.TrajectoryCollection(
        pandas.concat([frame, more]).drop(columns="trip_id"), traj_id_col="trip", obj_id_col="user_id", t="tracked_at"
    )
    trips = read(collection, time_zone="UTC")
    assert (trips.n_points, trips.n_users, trips.n_trips) == (4, 2, 2)
    assert set(trips.user_ids) == {"a", "b"}
    assert read(collection.trajectories[0], columns={"tid": "trip"}, time_zone="UTC").n_points == 2


def test_csv_parquet_and_compressions(tmp_path):
    CANONICAL.write_parquet(tmp_path / "x.parquet")
    same(read(tmp_path / "x.parquet"))
    text = CANONICAL.with_columns(pl.col("datetime").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).write_csv().encode()
    (tmp_path / "x.csv").write_bytes(text)
    same(read(tmp_path / "x.csv"))
    for suffix, codec in ((".gz", "gzip"), (".zst", "zstd")):
        with pa.CompressedOutputStream(str(tmp_path / f"x.csv{suffix}"), codec) as sink:
            sink.write(text)
        same(read(tmp_path / f"x.csv{suffix}"))


GPX = """<?xml version="1.0"?>
<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1"><metadata><time>1999-01-01T00:00:00Z</time></metadata>
<trk><trkseg><trkpt lat="60.1" lon="24.9"><ele>3</ele><time>2020-09-13T12:26:40Z</time></trkpt>
<trkpt lat="60.2" lon="24.8"><time>2020-09-13T12:27:40Z</time></trkpt></trkseg>
<trkseg><trkpt lat="-33.5" lon="151.2"><time>2020-09-13T12:26:40Z</time></trkpt></trkseg></trk></gpx>"""


def test_gpx(tmp_path):
    (tmp_path / "anna.gpx").write_text(GPX)
    trips = read(tmp_path / "anna.gpx")
    same(trips, ids=False)
    assert trips.table["uid"].unique().to_list() == ["anna"]
    assert trips.n_trips == 2
    (tmp_path / "anna.gpx").write_text(GPX[:-60])
    with pytest.raises(InputError, match=r"anna\.gpx"):
        read(tmp_path / "anna.gpx")
    (tmp_path / "anna.gpx").write_text(GPX.replace("<time>2020-09-13T12:27:40Z</time>", ""))
    with pytest.raises(InputError, match="row 2, column datetime: empty"):
        read(tmp_path / "anna.gpx")
    (tmp_path / "anna.gpx").write_text('<!DOCTYPE x [<!ENTITY a "aa">]><gpx></gpx>')
    with pytest.raises(InputError, match="document type"):
        read(tmp_path / "anna.gpx")
    (tmp_path / "anna.gpx").write_text("<html></html>")
    with pytest.raises(InputError, match="not a GPX"):
        read(tmp_path / "anna.gpx")


def feature(kind, coordinates, **properties):
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": coordinates}, "properties": properties}


def write_features(path, *features):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_geojson_points_and_lines(tmp_path):
    rows = CANONICAL.with_columns(pl.col("datetime").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).rows(named=True)
    points = [feature("Point", [r["lng"], r["lat"]], user=r["uid"], tid=r["tid"], time=r["datetime"]) for r in rows]
    same(read(write_features(tmp_path / "p.geojson", *points)))
    lines = [
        feature("LineString", [[24.9, 60.1], [24.8, 60.2, 5]], uid="a", tid=1, times=[1_600_000_000, 1_600_000_060]),
        feature("LineString", [[151.2, -33.5]], uid="b", tid=1, times=[1_600_000_000]),
    ]
    same(read(write_features(tmp_path / "l.geojson", *lines)))
    bare = read(
        write_features(
            tmp_path / "s.geojson", feature("LineString", [[1, 2], [3, 4]], uid=7), feature("LineString", [[1, 2]], uid=7)
        )
    )
    assert (bare.has_time, bare.n_trips) == (False, 2)


def test_geojson_faults(tmp_path):
    path = write_features(
        tmp_path / "x.geojson",
        feature("Polygon", [[[0, 0], [1, 1], [0, 0]]], uid="a"),
        feature("LineString", [[1, 2], [3, 4]], uid="a", times=[1]),
        {"type": "Feature", "geometry": None, "properties": {}},
        feature("Point", ["x", 1], uid="a"),
    )
    with pytest.raises(InputError) as caught:
        read(path)
    assert [fault.row for fault in caught.value.faults][:4] == [1, 2, 3, 4]
    path.write_text("[1, 2")
    with pytest.raises(InputError, match="truncated"):
        read(path)
    path.write_text("[" * 100_000)
    with pytest.raises(InputError):
        read(path)
