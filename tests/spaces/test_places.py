"""Grids, hexagons, zones and stops keep one protocol, and bad files are refused in one message."""

from __future__ import annotations

import json
import pickle
import zipfile
from itertools import pairwise

import numpy as np
import pytest
import shapely

from murmurate import noise
from murmurate.asking.rounds import fitted
from murmurate.core.space import Places
from murmurate.demo import city as demo_city
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.od_counts import ODCounts
from murmurate.spaces import Grid, parse
from murmurate.spaces.hexes import Hexes
from murmurate.spaces.places import write_places
from murmurate.spaces.stops import Stops
from murmurate.spaces.zones import Zones

GRID = Grid(37.70, -122.52, 37.82, -122.35, 2000)


def polygons(path, shapes, **properties):
    rows = [
        {
            "type": "Feature",
            "properties": {name: values[k] for name, values in properties.items()},
            "geometry": shape and json.loads(shapely.to_geojson(shape)),
        }
        for k, shape in enumerate(shapes)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": rows}))
    return path


def stops_file(folder):
    lat, lng = GRID.centre(np.arange(GRID.n_cells))
    rows = [f"s{k},Stop {k},{a},{b}" for k, (a, b) in enumerate(zip(lat, lng, strict=True))]
    path = folder / "feed.zip"
    with zipfile.ZipFile(path, "w") as feed:
        feed.writestr("stops.txt", "\n".join(["stop_id,stop_name,stop_lat,stop_lon", *rows]))
    return path


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    write_places(GRID, folder / "zones.geojson")
    return {
        "grid": GRID,
        "hex": parse("hex:7@37.70,-122.52,37.82,-122.35"),
        "zones": parse(f"zones:{folder / 'zones.geojson'}"),
        "stops": parse(f"stops:{stops_file(folder)}"),
    }


@pytest.mark.parametrize("name", ["grid", "hex", "zones", "stops"])
def test_places_keep_the_protocol(every, name):
    places = every[name]
    assert isinstance(places, Places)
    everywhere = np.arange(places.n_cells)
    lat, lng = places.centre(everywhere)
    assert np.array_equal(places.locate(lat, lng), everywhere)
    shapes = places.boundary(everywhere)
    assert shapely.is_valid(shapes).all() and shapely.intersects(shapes, shapely.points(lng, lat)).all()
    inside = np.random.default_rng(1).uniform([37.70, -122.52], [37.82, -122.35], (2000, 2)).T
    found = places.locate(*inside)
    assert shapely.distance(shapes[found[found >= 0]], shapely.points(inside[1], inside[0])[found >= 0]).max() < 1e-4
    assert places.locate(0.0, 0.0) == -1 and places.locate(np.nan, 0.0) == -1 and places.locate([], []).shape == (0,)
    assert places.area_m2([0])[0] == pytest.approx(
        {"grid": 4e6, "hex": 5.4e6, "zones": 4e6, "stops": np.pi * 500**2}[name], rel=0.15
    )
    around = places.neighbours(0)
    assert 0 in around and (np.diff(around) > 0).all() and (name == "stops" or len(around) > 2)
    assert places.distance(0, 0) == 0 and len(set(places.names())) == places.n_cells
    district = places.districts()
    assert set(district.tolist()) == set(range(district.max() + 1)) and 1 < district.max() + 1 < places.n_cells
    south, west, north, east = places.box
    assert south < north and west < east and places.describe()
    copy = pickle.loads(pickle.dumps(places))
    assert np.array_equal(copy.locate(*inside), found) and copy.spec() == places.spec()


def test_zones_written_from_a_grid_are_the_same_places(every, tmp_path):
    points = np.random.default_rng(2).uniform([37.70, -122.52], [37.82, -122.35], (3000, 2)).T
    assert np.array_equal(every["zones"].locate(*points), GRID.locate(*points))
    assert np.array_equal(every["zones"].districts(), GRID.districts()) and every["zones"].names() == GRID.names()
    with pytest.raises(ParameterError, match="other zones than those meant"):
        write_places(Grid(37.70, -122.52, 37.82, -122.35, 4000), tmp_path / "zones.geojson")
        parse(f"zones:{tmp_path / 'zones.geojson'}#" + every["zones"].fingerprint[:16])


@pytest.mark.parametrize("name", ["gpkg", "parquet", "shp.zip"])
def test_zones_in_another_projection_and_format_are_transformed(every, name, tmp_path):
    geopandas = pytest.importorskip("geopandas")
    frame = geopandas.read_file(tmp_path_file(every, tmp_path)).to_crs("EPSG:32610")
    path = tmp_path / f"zones.{name}"
    if name == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_file(path, driver="GPKG" if name == "gpkg" else "ESRI Shapefile")
    found = Zones.read(path)
    lat, lng = GRID.centre(np.arange(GRID.n_cells))
    assert np.array_equal(found.locate(lat, lng), np.arange(GRID.n_cells)) and found.names() == GRID.names()


def tmp_path_file(every, folder):
    write_places(GRID, folder / "z.geojson")
    return folder / "z.geojson"


BOX = shapely.box(0, 0, 1, 1)
BOW = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([BOX, shapely.box(0.5, 0, 1.5, 1)], "zones overlap.*0 and 1"),
        ([BOX, shapely.box(0.2, 0.2, 0.3, 0.3)], "overlap"),
        ([BOX, BOW], "1 invalid polygons .Self-intersection"),
        ([BOX, shapely.Point(3, 3)], "1 features that are no polygons: 1"),
        ([BOX, None, BOW], "without a geometry: 1(.|\n)*invalid"),
        ([shapely.box(550_000, 4_170_000, 551_000, 4_171_000)], "are no degrees; the file names no coordinate system"),
        ([], "holds no features"),
    ],
)
def test_bad_zones_are_refused_in_one_message(tmp_path, shapes, words):
    with pytest.raises(InputError, match=words):
        Zones.read(polygons(tmp_path / "bad.geojson", shapes))


def test_many_copies_of_a_zone_or_stop_are_not_compared_pair_by_pair(tmp_path, monkeypatch):
    """A file of 1,000 copies took ten seconds and more, one of 100,000 the whole memory."""
    compared = []
    intersection = shapely.intersection
    monkeypatch.setattr(shapely, "intersection", lambda one, other: compared.append(len(one)) or intersection(one, other))
    with pytest.raises(InputError, match="zones overlap"):
        Zones.read(polygons(tmp_path / "same.geojson", [BOX] * 1_000))
    turns = np.linspace(0, 2 * np.pi, 501)
    slices = [
        shapely.Polygon([(5, 5), (5 + np.cos(a), 5 + np.sin(a)), (5 + np.cos(b), 5 + np.sin(b))]) for a, b in pairwise(turns)
    ]
    with pytest.raises(InputError, match="these are no areas"):
        Zones.read(polygons(tmp_path / "slices.geojson", slices))
    assert sum(compared) < 60 * 1_000, "all pairs would be half a million"
    stops = Stops.read(polygons(tmp_path / "stops.geojson", [shapely.Point(1, 1)] * 1_000 + [shapely.Point(1, 1.001)]))
    assert stops.n_cells == 2


def test_touching_zones_do_not_overlap(tmp_path):
    assert Zones.read(polygons(tmp_path / "z.geojson", [BOX, shapely.box(1, 0, 2, 1)], zone=["a", "b"])).names() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stop_id,stop_lat,stop_lon\na,60,25\nb,,\nc,x,25\n", "2 stops without coordinates in degrees: rows 2, 3"),
        ("stop_id,name\na,b\n", "need columns stop_lat and stop_lon"),
        ("stop_id,stop_lat,stop_lon\n", "need columns"),
    ],
)
def test_bad_stops_are_refused_in_one_message(tmp_path, text, words):
    (tmp_path / "stops.txt").write_text(text)
    with pytest.raises(InputError, match=words):
        Stops.read(tmp_path / "stops.txt")


def test_stops_at_one_point_are_one_place_and_entrances_none(tmp_path):
    (tmp_path / "stops.txt").write_text(
        "stop_id,stop_lat,stop_lon,location_type\na,60,25,0\nb,60,25,0\nc,60.1,25,\nd,,,3\n", encoding="utf-8-sig"
    )
    assert Stops.read(tmp_path / "stops.txt").n_cells == 2


@pytest.mark.parametrize(
    "words",
    ["hex:7", "hex:16@1,2,3,4", "hex:x@1,2,3,4", "hex:7@1,2,3", "hex:12@0,0,50,50", "zones:nowhere.geojson", "stops:no.zip"],
)
def test_words_that_name_no_places_are_refused(words):
    with pytest.raises((ParameterError, InputError)):
        parse(words)


def test_flows_on_every_kind_of_place(tmp_path):
    town = demo_city(people=120, days=3, seed=2, interval_s=120)
    grid = town.grid(1500.0)
    write_places(grid, tmp_path / "zones.geojson")
    lat, lng = grid.centre(np.arange(grid.n_cells))
    lines = [f"{a},{b}" for a, b in zip(lat, lng, strict=True)]
    (tmp_path / "stops.csv").write_text("\n".join(["lat,lng", *lines]))
    found = {}
    for places in (grid, Hexes(7, *town.box), Zones.read(tmp_path / "zones.geojson"), Stops.read(tmp_path / "stops.csv")):
        flows = fitted(ODCounts(epsilon=2.0, space=places, max_error=0), town.trips, noise.seeded(1))
        assert flows.disagreements() == []
        found[type(places).__name__] = flows
    assert found["Grid"].zones.equals(found["Zones"].zones)  # the same places, the same noise
    assert found["Stops"].about["trips"] < found["Grid"].about["trips"]
