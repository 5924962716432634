"""Lines without node names meet where they share a vertex."""

import json

import pytest

from murmurate.errors import InputError, MissingPart
from murmurate.spaces.road import read_roads


def geojson(tmp_path, *lines, **more):
    features = [
        {
            "type": "Feature",
            "properties": tags,
            "geometry": None if line is None else {"type": "LineString", "coordinates": line},
        }
        for line, tags in lines
    ]
    file = tmp_path / "lines.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features, **more}))
    return file


EAST = [[24.0, 60.0], [24.001, 60.0], [24.002, 60.0]]
NORTH = [[24.001, 59.999], [24.001, 60.0], [24.001, 60.001]]


def test_crossing_lines_become_a_junction(tmp_path):
    network = read_roads(geojson(tmp_path, (EAST, {"MTFCC": "S1200"}), (NORTH, {"highway": "residential", "oneway": "yes"})))
    assert network.n_nodes == 5
    assert network.n_links == 4 + 2
    assert sorted(network.road_class.tolist()) == [2, 2, 2, 2, 5, 5]


def test_a_bridge_without_a_shared_vertex_is_no_junction(tmp_path):
    straight = [[24.0, 60.0], [24.002, 60.0]]
    network = read_roads(geojson(tmp_path, (straight, {"highway": "primary"}), (NORTH, {"highway": "residential"})))
    assert (network.n_nodes, network.n_links) == (4, 4)


def test_nan_null_and_foreign_lines(tmp_path):
    tags = {"highway": "primary"}
    network = read_roads(geojson(tmp_path, (EAST, tags), (None, tags), ([[24.0, 60.0], [float("nan"), 60.0]], tags)))
    assert network.n_links == 2
    assert network.dropped == {"streets with NaN coordinates": 1}


def test_metres_are_noticed_and_named_systems_transformed(tmp_path):
    lines = ([[385_000.0, 6_672_000.0], [385_100.0, 6_672_000.0]], {"highway": "primary"})
    with pytest.raises(InputError, match="projected system"):
        read_roads(geojson(tmp_path, lines))
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3067"}}
    assert read_roads(geojson(tmp_path, lines, crs=crs)).length_m[0] == pytest.approx(100, rel=0.01)
    assert read_roads(geojson(tmp_path, lines), crs="EPSG:3067").length_m[0] == pytest.approx(100, rel=0.01)


def test_without_class(tmp_path):
    file = geojson(tmp_path, (EAST, {}))
    with pytest.raises(InputError, match="road class"):
        read_roads(file)
    assert read_roads(file, default_class=3).road_class.tolist() == [3, 3]


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"type": "FeatureCollection", "features": []}', '{"type": "Point"}'])
def test_what_is_no_collection_is_refused(tmp_path, text):
    file = tmp_path / "x.geojson"
    file.write_text(text)
    with pytest.raises(InputError, match=r"x\.geojson"):
        read_roads(file)


def test_shapefiles_name_the_extra_they_need(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyogrio", None)
    (tmp_path / "r.shp").write_bytes(b"anything")
    with pytest.raises(MissingPart, match=r"murmurate\[geo\]"):
        read_roads(tmp_path / "r.shp")
