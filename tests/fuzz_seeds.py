# ruff: noqa: E501 - tables of what is tried stay whole
"""One small good example of everything that a stranger may hand over, how it is damaged, and what is done with it."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import mutations as damage
from mutations import the_input


@dataclass(frozen=True)
class Case:
    """A folder with a good example, how a copy of it is damaged, and what is done with that copy."""

    name: str
    seed: Path
    mutate: Callable[[Path, np.random.Generator], None]
    act: Callable[[Path, Path], object]


# -- what is done with them ---------------------------------------------------------------------------------------------------


def sample_model(folder: Path, work: Path) -> None:
    import murmurate as mm

    mm.sample(folder, n_out=20, out=work / "out")


def read_input(folder: Path, _work: Path, **options: Any) -> None:
    import murmurate as mm

    mm.read(the_input(folder), **options)


def scan_input(folder: Path, _work: Path) -> None:
    """Read in parts, as large files are."""
    from murmurate.ingest.stream import scan

    with scan(the_input(folder)) as parts:
        for trips in parts:
            trips.n_points  # noqa: B018 - it was read


def inspect_input(folder: Path, _work: Path) -> None:
    from murmurate.ingest.inspect import inspect

    inspect(the_input(folder))


def read_road(folder: Path, _work: Path) -> None:
    from murmurate.spaces.road.read import read_roads

    read_roads(the_input(folder))


def read_zones(folder: Path, _work: Path) -> None:
    from murmurate.spaces.zones import Zones

    zones = Zones.read(the_input(folder))
    zones.locate([60.02, float("nan")], [24.05, 24.0])
    zones.spec()


def read_stops(folder: Path, _work: Path) -> None:
    from murmurate.spaces.stops import Stops

    stops = Stops.read(the_input(folder))
    stops.locate([60.02, float("nan")], [24.05, 24.0])
    stops.spec()


def read_a_mask(folder: Path, _work: Path) -> None:
    from murmurate.mechanisms.flock.mask import Mask, read_mask
    from small_town import GRID

    Mask.over(read_mask(str(the_input(folder))), GRID)


def read_a_base_map(folder: Path, _work: Path) -> None:
    from murmurate.report.base_file import read_base

    read_base(the_input(folder))


def read_prior(folder: Path, _work: Path) -> None:
    from murmurate.ingest.matrices import read_omx

    read_omx(the_input(folder), 6)


def load_pool(folder: Path, _work: Path) -> None:
    from murmurate.mechanisms.plausible.dummies import Pool

    Pool.load(the_input(folder))


def read_a_foreign_release(folder: Path, _work: Path) -> None:
    from murmurate.judging.foreign import read_foreign

    read_foreign(the_input(folder))


def read_foreign_counts(folder: Path, _work: Path) -> None:
    from murmurate.judging.foreign import read_foreign
    from small_town import GRID

    read_foreign(the_input(folder), space=GRID)


def read_a_recipe(folder: Path, _work: Path) -> None:
    from murmurate.custody.recipes import build_mechanism, read_recipe

    build_mechanism(read_recipe(the_input(folder)))


def read_a_study(folder: Path, _work: Path) -> None:
    from murmurate.judging.study.spec import read_spec

    read_spec(the_input(folder))


def open_a_release(folder: Path, _work: Path) -> None:
    from murmurate.judging.checking import verify
    from murmurate.releases.folder import open_release

    release = open_release(folder, read_space=True)
    verify(folder)
    if release.manifest.kind != "model":
        len(release)


# -- seeds --------------------------------------------------------------------------------------------------------------------


def seeds(home: Path) -> dict[str, Case]:
    """Write all examples below a folder."""
    from murmurate.demo import city
    from small_town import town

    trips = town(400)
    small = city(people=40, days=2, seed=3)
    made = Seeds(home, trips.table.head(60))
    made.models_and_releases(trips, small)
    made.traces()
    made.layouts()
    made.places(small.network.take_links(np.arange(small.network.n_links) < 40))
    made.texts()
    return made.cases


ZONES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": f"zone {k}", "district": str(k // 3)},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[24 + w, 60.0], [24.015 + w, 60.0], [24.015 + w, 60.045], [24 + w, 60.045], [24 + w, 60.0]]],
            },
        }
        for k, w in enumerate(np.arange(6) * 0.015)
    ],
}
STUDY = """name = "small"
about = "x"
metrics = ["length", "hausdorff"]
attacks = ["reidentify"]
repeats = 2
seed = 3
[datasets.city]
people = 10
days = 2
centre = [60.0, 24.0]
grid = "grid:60.0,24.0,60.045,24.09:500"
[datasets.mine]
file = "trips.csv"
read = { time_zone = "UTC", columns = { uid = "u" } }
clean = { min_points = 2 }
[[mechanisms]]
label = "simple"
name = "geoind"
set = { max_points = 14 }
sweep = { epsilon = [0.5, 1.0], radius_m = [25, 100] }
[[mechanisms]]
name = "k_anonymity"
set = { k = 3 }
[regression]
over = "radius_m"
baseline = "simple"
"""
RECIPE = """mechanism = "flock"
in = "a.csv"
out = "b"
limit = "dp:trip:4"
link = "none"
keep_ids = false
[set]
epsilon = 1.0
delta = 1e-6
space = "grid:60.0,24.0,60.045,24.09:250"
[read]
time_zone = "Europe/Helsinki"
columns = { uid = "u" }
"""


class Seeds:
    """Writes examples and keeps what is done with each."""

    def __init__(self, home: Path, table: pl.DataFrame) -> None:
        self.home, self.table = home, table
        self.text = table.with_columns(pl.col("datetime").dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
        self.cases: dict[str, Case] = {}

    def add(self, name: str, file: str, content: bytes | str | Callable[[Path], object], own: damage.Mutator, act: Any) -> None:
        """Add a case of one file; `content` may write it."""
        folder = self.home / name.replace(" ", "-")
        folder.mkdir()
        path = folder / f"input{file}"
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.cases[name] = Case(name, folder, partial(damage.in_input, damage.mixed(own)), act)

    def folder(self, name: str, folder: Path, mutate: Any, act: Any) -> None:
        """Add a case of a whole folder."""
        self.cases[name] = Case(name, folder, mutate, act)

    def models_and_releases(self, trips: Any, small: Any) -> None:
        import murmurate as mm
        from murmurate.mechanisms import build
        from murmurate.noise import seeded
        from murmurate.spaces.road.storage import save
        from small_town import GRID

        save(small.network, self.home / "network.npz")
        (self.home / "zones.geojson").write_text(json.dumps(ZONES))
        grid, zones, roads = GRID.spec(), f"zones:{self.home}/zones.geojson", f"road:{self.home}/network.npz"
        dp = {"epsilon": 5.0, "delta": 1e-5}
        models = {
            "flock": ("flock", {"space": grid, **dp}, trips),
            "flock_on_roads": ("flock", {"space": roads, **dp}, small.trips),
            "dp_loc": ("dp_loc", {"space": grid, **dp}, trips),
            "ngram": ("ngram", {"space": grid, "epsilon": 20.0}, trips),
            "ngram_on_zones": ("ngram", {"space": zones, "epsilon": 20.0}, trips),
            "plausible": (
                "plausible",
                {"space": "grid:44.96,-30.05,45.04,-29.94:500", "epsilon": 5.0, "n_out": 50},
                small.trips,
            ),
        }
        releases = {
            "trips": ("geoind", {"epsilon": 1.0, "radius_m": 200.0, "max_points": 50}, trips),
            "flows": ("od_counts", {"space": zones, "epsilon": 5.0}, trips),
            "links": ("road_counts", {"space": roads, **dp}, small.trips),
        }
        with mm.Ledger.in_memory() as ledger:
            for name, (mechanism, parameters, private) in (models | releases).items():
                out = self.home / f"made-{name}"
                make = mm.fit if name in models else mm.release
                charged = {"ledger": ledger, "population": "everybody", "override_overlap": True}
                make(build(mechanism, parameters), private, out=out, rng=seeded(1), **charged)
        for name in models:
            self.folder(f"model {name}", self.home / f"made-{name}", damage.in_model, sample_model)
        for name in releases:
            self.folder(f"release {name}", self.home / f"made-{name}", damage.in_release, open_a_release)
        for name, made in (("release", "trips"), ("flows", "flows"), ("model", "ngram")):
            self.folder(f"manifest {name}", self.home / f"made-{made}", damage.in_manifest, open_a_release)

    def traces(self) -> None:
        """Add the formats of traces that are recognised by themselves."""
        text, csv = self.text, self.text.write_csv()
        parquet = _parquet(self.table)
        points = _with_geometry(self.table)
        features = json.dumps({"type": "FeatureCollection", "features": [_feature(row) for row in text.head(30).to_dicts()]})
        lines = json.dumps({"type": "FeatureCollection", "features": list(_lines(text))})
        records = text.head(30).to_dicts()
        for name, ending, content, own in (
            ("csv", ".csv", csv, damage.in_table),
            ("again tsv", ".tsv", text.write_csv(separator="\t"), damage.in_table),
            ("again txt", ".txt", text.write_csv(separator=";"), damage.in_table),
            ("csv.gz", ".csv.gz", gzip.compress(csv.encode()), damage.within_gzip(damage.in_table)),
            ("again csv.zst", ".csv.zst", _zstd(csv.encode()), damage.within_zstd(damage.in_table)),
            ("again trip ends csv", ".csv", _ends(text), damage.in_table),
            ("parquet", ".parquet", parquet, damage.in_parquet),
            ("geoparquet", ".parquet", points, damage.in_parquet),
            ("input geojson", ".geojson", features, damage.in_json),
            ("again geojson lines", ".geojson", lines, damage.in_json),
            ("again geojson.gz", ".geojson.gz", gzip.compress(features.encode()), damage.within_gzip(damage.in_json)),
            ("gpx", ".gpx", _gpx(text), damage.in_xml),
            ("json", ".json", json.dumps({"data": records}), damage.in_json),
            ("jsonl", ".jsonl", "\n".join(json.dumps(record) for record in records), damage.in_json_lines),
        ):
            self.add(name if " " in name else f"input {name}", ending, content, own, read_input)
        for name, content, own in (("csv", csv, damage.in_table), ("parquet", parquet, damage.in_parquet)):
            self.add(f"scan {name}", f".{name}", content, own, scan_input)
            self.add(f"inspect {name}", f".{name}", content, own, inspect_input)
        self.add("foreign csv", ".csv", csv, damage.in_table, read_a_foreign_release)
        self.add("foreign parquet", ".parquet", parquet, damage.in_parquet, read_a_foreign_release)
        numbers = np.arange(40)
        counts = pl.DataFrame({"origin": numbers, "destination": numbers[::-1], "hour": numbers % 24, "count": numbers * 1.5})
        self.add("foreign counts csv", ".csv", counts.write_csv(), damage.in_table, read_foreign_counts)
        self.add("foreign counts parquet", ".parquet", _parquet(counts), damage.in_parquet, read_foreign_counts)

    def layouts(self) -> None:
        """Add the layouts that publishers use."""
        place = {"lat": 34.05, "lng": -118.25}
        times = {"start_time": 1_700_000_000_000, "end_time": 1_700_000_600_000}
        mds = [
            {"device_id": f"d{k}", "trip_id": f"t{k}", "start_location": place, "end_location": place, **times}
            for k in range(9)
        ]
        moving = {
            "type": "MovingPoint",
            "datetimes": ["2011-07-14T22:01:01Z", "2011-07-14T22:01:02Z"],
            "coordinates": [[139.75, 35.62], [139.76, 35.63]],
        }
        features = [
            {"type": "Feature", "id": f"f{k}", "temporalGeometry": moving, "properties": {"name": "c"}} for k in range(5)
        ]
        rows = range(12)
        porto = "".join(f'"{k}","A",,,"2","{1372636858 + k}","A","False","[[-8.61,41.14],[-8.62,41.15]]"\n' for k in rows)
        names = (
            '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP","DAY_TYPE","MISSING_DATA","POLYLINE"\n'
        )
        ends = "2024-01-02 08:0{0}:00,41.9,-87.6,2024-01-02 08:2{0}:00,41.8,-87.7\n"
        for layout, ending, content, own in (
            ("cabspotting", ".txt", "".join(f"37.75 -122.39 {k % 2} {1213084687 - k}\n" for k in rows), damage.in_table),
            ("porto", ".csv", names + porto, damage.in_table),
            (
                "geolife",
                ".plt",
                "x\n" * 6 + "".join(f"39.9,116.3,0,49,39744.1,2008-10-23,02:53:{k + 10}\n" for k in rows),
                damage.in_table,
            ),
            ("tdrive", ".txt", "".join(f"1,2008-02-02 15:36:{k + 10},116.51,39.92\n" for k in rows), damage.in_table),
            (
                "gowalla",
                ".txt",
                "".join(f"{k}\t2010-10-19T23:55:{k + 10}Z\t30.23\t-97.79\t22847\n" for k in rows),
                damage.in_table,
            ),
            ("mds", ".json", json.dumps({"version": "2.0.0", "data": {"trips": mds}}), damage.in_json),
            ("mf-json", ".json", json.dumps({"type": "FeatureCollection", "features": features}), damage.in_json),
            (
                "divvy",
                ".csv",
                "ride_id,started_at,start_lat,start_lng,ended_at,end_lat,end_lng\n"
                + "".join(f"r{k}," + ends.format(k % 9) for k in rows),
                damage.in_table,
            ),
            (
                "chicago",
                ".csv",
                "trip_id,taxi_id,trip_start_timestamp,pickup_centroid_latitude,pickup_centroid_longitude,trip_end_timestamp,"
                "dropoff_centroid_latitude,dropoff_centroid_longitude\n"
                + "".join(f"r{k},t," + ends.format(k % 9) for k in rows),
                damage.in_table,
            ),
            (
                "tlc",
                ".csv",
                "tpep_pickup_datetime,pickup_latitude,pickup_longitude,tpep_dropoff_datetime,dropoff_latitude,dropoff_longitude\n"
                + "".join(ends.format(k % 9) for k in rows),
                damage.in_table,
            ),
        ):
            self.add(f"layout {layout}", ending, content, own, partial(read_input, layout=layout))
        ride = "rider_id,boarding_stop_id,alighting_stop_id,service_date,boarding_time,alighting_time\n"
        ride += "".join(f"r{k},s1,s2,20240102,08:0{k % 9}:00,08:20:00\n" for k in rows)
        taps = "event_timestamp,fare_media_id,fare_action,stop_id\n"
        taps += "".join(f"2024-01-02T08:{10 + k}:00Z,card,{'Exit' if k % 2 else 'Enter'},s{1 + k % 2}\n" for k in rows)
        for layout, ending, content in (("gtfs-ride", ".txt", ride), ("tides", ".csv", taps)):
            self.add(f"layout {layout}", ending, content, damage.in_table, partial(read_input, layout=layout))
            (self.home / f"layout-{layout}" / "stops.txt").write_text(_stops())
        self.add("layout stops beside taps", "", taps, damage.in_table, read_input)
        folder = self.home / "layout-stops-beside-taps"
        the_input(folder).rename(folder / "fare_transactions.csv")
        (folder / "stops.txt").write_text(_stops())
        self.cases["layout stops beside taps"] = Case("layout stops beside taps", folder, _damage_stops, _read_taps)

    def places(self, network: Any) -> None:
        """Add roads, zones, stops, masks, base maps, matrices and pools."""
        from murmurate.spaces.road.storage import save
        from murmurate.spaces.road.write import write_roads

        osm = _osm(network)
        for ending, own in {
            ".npz": damage.in_npz,
            ".graphml": damage.in_xml,
            ".graphml.gz": damage.within_gzip(damage.in_xml),
            ".geojson": damage.in_json,
            ".gpkg": damage.in_sqlite,
            ".parquet": damage.in_parquet,
            ".osm": damage.in_xml,
            ".osm.gz": damage.within_gzip(damage.in_xml),
            ".osm.pbf": damage.in_pbf,
            ".shp.zip": damage.within_zip({}),
        }.items():

            def write(path: Path, ending: str = ending) -> None:
                plain = path.with_name(path.name.removesuffix(".gz"))
                if ending.startswith(".osm"):
                    _pbf(osm, path) if ending == ".osm.pbf" else plain.write_text(osm)
                elif ending == ".shp.zip":
                    _shapefile(network, path)
                else:
                    save(network, plain) if ending == ".npz" else write_roads(network, plain)
                if ending.endswith(".gz"):
                    path.write_bytes(gzip.compress(plain.read_bytes()))
                    plain.unlink()

            again = "again " if ending in (".osm.gz", ".graphml") else ""
            self.add(f"{again}road {ending[1:]}", ending, write, own, read_road)
        zones, points = json.dumps(ZONES), json.dumps({"type": "FeatureCollection", "features": _stop_features()})
        self.add("zones geojson", ".geojson", zones, damage.in_json, read_zones)
        self.add("mask geojson", ".geojson", zones, damage.in_json, read_a_mask)
        self.add("base geojson", ".geojson", zones, damage.in_json, read_a_base_map)
        self.add("base osm.pbf", ".osm.pbf", lambda path: _pbf(osm, path), damage.in_pbf, read_a_base_map)
        self.add("again stops geojson", ".geojson", points, damage.in_json, read_stops)
        self.add("stops txt", ".txt", _stops(), damage.in_table, read_stops)
        self.add("stops gtfs.zip", ".zip", _feed(), damage.within_zip({"stops.txt": damage.in_table}), read_stops)
        for ending, own in {
            ".gpkg": damage.in_sqlite,
            ".parquet": damage.in_parquet,
            ".shp.zip": damage.within_zip({}),
        }.items():
            self.add(f"again zones {ending[1:]}", ending, partial(_write_zones, ending), own, read_zones)
        self.add("prior omx", ".omx", _omx, damage.in_hdf5, read_prior)
        self.add("pool", ".mur", _pool, damage.in_bytes, load_pool)

    def texts(self) -> None:
        """Add recipes and studies."""
        self.add("recipe", ".toml", RECIPE, damage.in_toml, read_a_recipe)
        self.add("study", ".toml", STUDY, damage.in_toml, read_a_study)


# -- files --------------------------------------------------------------------------------------------------------------------


def _damage_stops(folder: Path, rng: np.random.Generator) -> None:
    path = folder / "stops.txt"
    path.write_bytes(damage.mixed(damage.in_table)(path.read_bytes(), rng))


def _read_taps(folder: Path, _work: Path) -> None:
    import murmurate as mm

    mm.read(folder / "fare_transactions.csv", layout="tides")


def _parquet(table: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    table.write_parquet(out)
    return out.getvalue()


def _with_geometry(table: pl.DataFrame) -> bytes:
    """GeoParquet in metres, so that coordinates are transformed."""
    import pyarrow.parquet as pq
    import pyproj
    import shapely

    to = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True)
    shapes = shapely.to_wkb(shapely.points(*to.transform(table["lng"].to_numpy(), table["lat"].to_numpy())))
    arrow = table.drop("lat", "lng").with_columns(geometry=pl.Series(shapes.tolist(), dtype=pl.Binary)).to_arrow()
    crs = pyproj.CRS("EPSG:3857").to_json_dict()
    about = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "crs": crs}}}
    out = io.BytesIO()
    pq.write_table(arrow.replace_schema_metadata({b"geo": json.dumps(about).encode()}), out)
    return out.getvalue()


def _zstd(data: bytes) -> bytes:
    import pyarrow as pa

    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def _ends(text: pl.DataFrame) -> str:
    first = (
        text.group_by("tid", maintain_order=True)
        .first()
        .rename({"datetime": "start_time", "lat": "start_lat", "lng": "start_lng"})
    )
    last = text.group_by("tid", maintain_order=True).last().select("tid", end_time="datetime", end_lat="lat", end_lng="lng")
    return first.join(last, on="tid").write_csv()


def _feature(row: dict[str, Any]) -> dict[str, Any]:
    about = {"uid": row["uid"], "tid": row["tid"], "datetime": row["datetime"]}
    return {"type": "Feature", "properties": about, "geometry": {"type": "Point", "coordinates": [row["lng"], row["lat"]]}}


def _lines(text: pl.DataFrame) -> Any:
    for (uid, tid), rows in text.group_by("uid", "tid", maintain_order=True):
        about = {"uid": uid, "tid": tid, "times": rows["datetime"].to_list()}
        shape = {"type": "LineString", "coordinates": rows.select("lng", "lat").rows()}
        yield {"type": "Feature", "properties": about, "geometry": shape}


def _gpx(text: pl.DataFrame) -> str:
    points = "".join(
        f'<trkpt lat="{row["lat"]}" lon="{row["lng"]}"><time>{row["datetime"]}</time></trkpt>\n'
        for row in text.head(30).to_dicts()
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n{points}</trkseg></trk></gpx>'


def _stops() -> str:
    return "stop_id,stop_name,stop_lat,stop_lon,location_type\n" + "".join(
        f"s{k},stop {k},{60 + k / 1000},{24 + k / 700},0\n" for k in range(12)
    )


def _stop_features() -> list[dict[str, Any]]:
    return [
        {
            "type": "Feature",
            "properties": {"name": f"s{k}"},
            "geometry": {"type": "Point", "coordinates": [24 + k / 700, 60 + k / 1000]},
        }
        for k in range(12)
    ]


def _feed() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as feed:
        feed.writestr("stops.txt", _stops())
        feed.writestr("agency.txt", "agency_id\n1\n")
    return out.getvalue()


def _osm(network: Any) -> str:
    """OpenStreetMap XML of a network, with some water and a place."""
    nodes = "".join(
        f'<node id="{k + 1}" lat="{lat:.7f}" lon="{lng:.7f}" version="1"/>\n'
        for k, (lat, lng) in enumerate(zip(network.node_lat, network.node_lng, strict=True))
    )
    ways = "".join(
        f'<way id="{k + 1}" version="1"><nd ref="{a + 1}"/><nd ref="{b + 1}"/><tag k="highway" v="residential"/><tag k="maxspeed" v="50"/></way>\n'
        for k, (a, b) in enumerate(zip(network.link_from[:80], network.link_to[:80], strict=True))
    )
    lake = (
        '<way id="9001" version="1">'
        + "".join(f'<nd ref="{k}"/>' for k in (1, 2, 3, 4, 1))
        + '<tag k="natural" v="water"/></way>\n'
    )
    town = '<node id="90001" lat="45.0" lon="-30.0" version="1"><tag k="place" v="town"/><tag k="name" v="T"/></node>\n'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<osm version="0.6">\n{nodes}{town}{ways}{lake}</osm>\n'


def _pbf(text: str, path: Path) -> None:
    import osmium

    plain = path.with_name("plain.osm")
    plain.write_text(text)
    with osmium.SimpleWriter(str(path)) as writer:
        for entry in osmium.FileProcessor(str(plain)):
            writer.add(entry)
    plain.unlink()


def _shapefile(network: Any, path: Path) -> None:
    from murmurate.spaces.road.write import link_lines

    _write_shapes(
        path, link_lines(network), {"highway": np.array(["residential"] * network.n_links, dtype=object)}, "LineString"
    )


def _write_shapes(path: Path, shapes: Any, fields: dict[str, Any], kind: str) -> None:
    import shapely
    from pyogrio import raw

    inner = path.parent / "shapes"
    inner.mkdir()
    raw.write(inner / "a.shp", shapely.to_wkb(shapes), list(fields.values()), list(fields), geometry_type=kind, crs="EPSG:4326")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(inner.iterdir()):
            archive.write(file, file.name)
            file.unlink()
    inner.rmdir()


def _write_zones(ending: str, path: Path) -> None:
    import pyarrow.parquet as pq
    import shapely.geometry

    from murmurate.spaces.road.write_gpkg import write_layers

    shapes = np.array([shapely.geometry.shape(feature["geometry"]) for feature in ZONES["features"]], dtype=object)
    names = [feature["properties"]["name"] for feature in ZONES["features"]]
    if ending == ".gpkg":
        write_layers(path, [("zones", pl.DataFrame({"name": names}), shapes, "POLYGON")])
    elif ending == ".shp.zip":
        _write_shapes(path, shapes, {"name": np.array(names, dtype=object)}, "Polygon")
    else:
        table = pl.DataFrame(
            {"name": names, "geometry": pl.Series(shapely.to_wkb(shapes).tolist(), dtype=pl.Binary)}
        ).to_arrow()
        about = {"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}
        pq.write_table(table.replace_schema_metadata({b"geo": json.dumps(about).encode()}), path)


def _omx(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("data/day", data=np.arange(36.0).reshape(6, 6))


def _pool(path: Path) -> None:
    from murmurate.mechanisms.plausible.dummies import Pool
    from small_town import GRID

    places = np.random.default_rng(0).integers(0, GRID.n_cells, (40, 48))
    Pool(places, GRID, "UTC").save(path)
