"""Whatever bytes come in, nothing but a MurmurateError comes out."""

from __future__ import annotations

import contextlib
import gzip
import json
import random

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from murmurate.errors import MurmurateError
from murmurate.ingest.read import read
from murmurate.ingest.stream import scan

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def survives(path, **options):
    """Whether it could be read; any other error than ours fails the test."""
    for reader in (read, scan):
        try:
            reader(path, **options)
        except MurmurateError:
            return False
    return True


def small_frame():
    return pl.DataFrame(
        {
            "uid": ["anna", "anna", "bert"] * 20,
            "tid": list(range(60)),
            "datetime": pl.Series([1_600_000_000_000_000 + 60_000_000 * k for k in range(60)])
            .cast(pl.Datetime("us"))
            .dt.replace_time_zone("UTC"),
            "lat": [60.0 + k / 1000 for k in range(60)],
            "lng": [24.0 + k / 700 for k in range(60)],
        }
    )


def contents(suffix, folder):
    frame = small_frame()
    text = frame.with_columns(pl.col("datetime").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).write_csv().encode()
    if suffix == "parquet":
        frame.write_parquet(folder / "seed.parquet")
        return (folder / "seed.parquet").read_bytes()
    if suffix == "geojson":
        features = [
            {
                "type": "Feature",
                "geometry": {"type": "Point", "coordinates": [r["lng"], r["lat"]]},
                "properties": {"uid": r["uid"], "t": r["datetime"].isoformat()},
            }
            for r in frame.rows(named=True)
        ]
        return json.dumps({"type": "FeatureCollection", "features": features}).encode()
    if suffix == "gpx":
        points = "".join(
            f'<trkpt lat="{r["lat"]}" lon="{r["lng"]}"><time>{r["datetime"].isoformat()}</time></trkpt>'
            for r in frame.rows(named=True)
        )
        return f"<gpx><trk><trkseg>{points}</trkseg></trk></gpx>".encode()
    return gzip.compress(text) if suffix == "csv.gz" else text


def damaged(content, chance):
    """A few bytes flipped, a stretch cut out, doubled or zeroed, or the end cut off."""
    bytes_ = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(bytes_))
        end = min(len(bytes_), at + chance.randint(1, 40))
        match chance.randrange(6):
            case 0 | 1 | 2:
                bytes_[at] ^= 1 << chance.randrange(8)
            case 3:
                del bytes_[at:end]
            case 4:
                bytes_[at:at] = bytes_[at:end]
            case _:
                bytes_[at:end] = bytes(end - at) if chance.random() < 0.5 else chance.randbytes(end - at)
        if len(bytes_) < 2:
            break
    return bytes(bytes_[: chance.randrange(len(bytes_))]) if chance.random() < 0.2 and bytes_ else bytes(bytes_)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "geojson", "gpx"])
def test_damaged_files(tmp_path, capfd, suffix):
    content = contents(suffix, tmp_path)
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(content)
    assert survives(path)
    refused = 0
    for seed in range(150):
        path.write_bytes(damaged(content, random.Random(seed)))
        refused += not survives(path)
    assert refused > 20, "the damage should be noticed often"
    assert capfd.readouterr().err == "", "native code printed a traceback of its own"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "csv.zst", "parquet", "geojson", "gpx"])
@FEW
@given(content=st.binary(min_size=1, max_size=200))
def test_any_bytes(tmp_path, suffix, content):
    path = tmp_path / f"x.{suffix}"
    for start in (b"", {"parquet": b"PAR1", "geojson": b'{"features": [', "gpx": b"<gpx>"}.get(suffix, b"uid,lat,lng\n")):
        path.write_bytes(start + content)
        survives(path)


@FEW
@given(text=st.text(alphabet="uid,latng\n\r\"';0123456789.-+eEaTZ: \t\0é", max_size=300))
def test_any_text_under_a_header(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text("uid,tid,datetime,lat,lng\n" + text, newline="")
    survives(path, time_zone="Europe/Helsinki")


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
)


@FEW
@given(
    features=st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "geometry": st.one_of(
                    VALUES,
                    st.fixed_dictionaries(
                        {
                            "type": st.sampled_from(["Point", "LineString", "Circle", 3]),
                            "coordinates": st.recursive(VALUES, lambda x: st.lists(x, max_size=3)),
                        }
                    ),
                ),
                "properties": st.one_of(
                    VALUES,
                    st.dictionaries(
                        st.sampled_from(["uid", "tid", "time", "times", "lat", "x", "geometry"]), VALUES, max_size=4
                    ),
                ),
            },
        ),
        max_size=4,
    )
)
def test_any_geojson(tmp_path, features):
    path = tmp_path / "x.geojson"
    path.write_text(json.dumps({"features": features}))
    survives(path)


@FEW
@given(
    columns=st.dictionaries(
        st.sampled_from(["uid", "tid", "datetime", "time", "lat", "lng", "geometry", "weekday", "hour", "cell", "extra", ""]),
        st.sampled_from(
            [
                pl.Int64,
                pl.UInt64,
                pl.Float32,
                pl.String,
                pl.Boolean,
                pl.Date,
                pl.Time,
                pl.Duration,
                pl.Binary,
                pl.Datetime("ns"),
                pl.Decimal(10, 2),
                pl.List(pl.Int8),
                pl.Null,
                pl.Categorical,
            ]
        ),
        max_size=8,
    ),
    nulls=st.booleans(),
)
def test_any_types(columns, nulls):
    values = {
        pl.String: ["a", "2"],
        pl.Categorical: ["a", "b"],
        pl.Binary: [b"a", b"b"],
        pl.List(pl.Int8): [[1], []],
        pl.Null: [None, None],
    }
    series = []
    for name, kind in columns.items():
        column = (
            pl.Series(name, values[kind], dtype=kind) if kind in values else pl.Series(name, [1, 2]).cast(kind, strict=False)
        )
        series.append(column if not nulls else column.clear(2))
    with contextlib.suppress(MurmurateError):
        read(pl.DataFrame(series), time_zone="UTC")


@pytest.mark.data
def test_slices_of_real_files(tmp_path, capfd, data_dir):
    for name in ("geolife_60s", "foursquare_nyc_weekly"):
        piece = pl.read_parquet(data_dir / f"{name}.parquet").head(3_000)
        piece.write_parquet(tmp_path / "seed.parquet", row_group_size=500)
        content = (tmp_path / "seed.parquet").read_bytes()
        for seed in range(100):
            (tmp_path / "x.parquet").write_bytes(damaged(content, random.Random(seed)))
            survives(tmp_path / "x.parquet")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("layout", ["cabspotting", "porto", "geolife", "tdrive", "gowalla"])
@FEW
@given(text=st.text(alphabet='0123456789.-,[]" \t\n:TZ', max_size=200))
def test_layouts_with_any_text(tmp_path, layout, text):
    path = tmp_path / "x.txt"
    header = "TRIP_ID,TAXI_ID,TIMESTAMP,POLYLINE,MISSING_DATA\n" if layout == "porto" else ""
    path.write_text(header + text + "\n")
    survives(path, layout=layout)
