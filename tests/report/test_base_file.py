"""Base maps: what files give, what is refused, and the coast lines that ship with the package."""

from __future__ import annotations

import json

import numpy as np
import pytest

from murmurate.errors import InputError
from murmurate.report.base_file import read_base, refuse_elsewhere
from murmurate.report.ground import MAX_LABELS, BaseMap, Place, ground
from murmurate.report.view import View
from murmurate.spaces.coasts import sea_rings

OSM = """<osm version="0.6">
<node id="1" lat="60.000" lon="24.000"/><node id="2" lat="60.001" lon="24.002"/><node id="3" lat="60.002" lon="24.000"/>
<node id="4" lat="60.003" lon="24.004"/>
<node id="5" lat="60.001" lon="24.001"><tag k="place" v="town"/><tag k="name" v="Starling &amp; Co"/>
<tag k="population" v="12 000"/></node>
<node id="6" lat="60.002" lon="24.003"><tag k="place" v="locality"/><tag k="name" v="Nowhere"/></node>
<way id="10"><nd ref="1"/><nd ref="2"/><nd ref="4"/><tag k="highway" v="residential"/></way>
<way id="11"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="1"/><tag k="natural" v="water"/></way>
<way id="12"><nd ref="1"/><nd ref="3"/><nd ref="4"/><nd ref="1"/><tag k="leisure" v="park"/></way>
<way id="13"><nd ref="3"/><nd ref="4"/><tag k="natural" v="coastline"/></way>
</osm>"""
BOX = View(59.999, 23.999, 60.004, 24.005)


def feature(kind, coordinates, **properties):
    return {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}


def written(path, *features, **more):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features, **more}))
    return path


def test_an_extract_gives_roads_water_parks_coast_and_names(tmp_path):
    (tmp_path / "town.osm").write_text(OSM)
    base = read_base(tmp_path / "town.osm")
    assert base.network is not None and base.network.n_links == 2
    assert {kind: len(rings) for kind, rings in base.outlines.items()} == {"water": 1, "park": 1} and len(base.lines) == 1
    assert base.places == [Place("Starling & Co", 60.001, 24.001, 1, 12000)] and "OpenStreetMap" in base.credit
    drawn = ground(BOX, base, None)
    assert [layer.kind.split()[0] for layer in drawn.layers] == ["water", "park", "coast", "road"]
    assert [label.text for label in drawn.labels] == ["Starling & Co"]


def test_features_give_lines_areas_and_names(tmp_path):
    ring = [[24.0, 60.0], [24.004, 60.0], [24.004, 60.003], [24.0, 60.0]]
    path = written(
        tmp_path / "map.geojson",
        feature("Polygon", [ring], natural="water"),
        feature("MultiPolygon", [[ring]], district="North"),
        feature("LineString", ring[:2]),
        feature("Point", [24.002, 60.001], name="Square"),
        feature("Point", [24.002, 60.001]),
    )
    base = read_base(path)
    assert [len(base.outlines[kind]) for kind in ("water", "park", "area")] == [1, 0, 1] and len(base.lines) == 1
    assert [place.name for place in base.places] == ["Square"]
    assert base.box == (60.0, 24.0, 60.003, 24.004) and not base.covers(10.0, 10.0, 11.0, 11.0)


def test_other_coordinate_systems_become_degrees(tmp_path):
    crs = {"type": "name", "properties": {"name": "EPSG:3857"}}
    path = written(tmp_path / "m.geojson", feature("LineString", [[2671667.8, 8399737.9], [2671800.0, 8399800.0]]), crs=crs)
    (lat, lng), *_ = read_base(path).lines
    assert abs(lat[0] - 60) < 1e-5 and abs(lng[0] - 24) < 1e-5
    with pytest.raises(InputError, match="not degrees"):
        read_base(written(tmp_path / "n.geojson", feature("LineString", [[2671667.8, 8399737.9], [2671800.0, 8399800.0]])))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", "hello"),
        ("broken.osm.pbf", "hello"),
        ("broken.geojson", "{"),
        ("list.json", "[1, 2]"),
        ("empty.geojson", '{"type": "FeatureCollection", "features": []}'),
        ("nameless.geojson", json.dumps({"features": [feature("Point", [24.0, 60.0])]})),
        ("fake.gpkg", "SQLite?"),
        ("empty.osm", '<osm version="0.6"></osm>'),
    ],
)
def test_what_is_no_map_is_refused_in_one_message(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match="is not a base map") as refused:
        read_base(tmp_path / name)
    assert "leave out --base" in str(refused.value) and str(refused.value).count(name) == 1
    with pytest.raises(InputError, match="no such file"):
        read_base(tmp_path / "missing.osm.pbf")


def test_a_map_of_elsewhere_is_refused(tmp_path, judged):
    far = read_base(written(tmp_path / "far.geojson", feature("LineString", [[-70.0, -33.0], [-70.1, -33.1]])))
    with pytest.raises(InputError, match="lies elsewhere"):
        refuse_elsewhere(far, judged.review.release, "far.geojson")
    refuse_elsewhere(judged.base, judged.review.release, "town")


def test_names_do_not_cover_each_other():
    places = [Place(f"Place {k}", 60.0 + 0.005 * (k % 9) / 9, 24.0 + 0.004 * k / 40, rank=k % 3) for k in range(40)]
    labels = ground(BOX, BaseMap(places=places), None).labels
    assert 3 < len(labels) <= MAX_LABELS
    for k, one in enumerate(labels):
        assert all(abs(one.y - other.y) > 34 or abs(one.x - other.x) > 80 for other in labels[:k])


@pytest.mark.parametrize(
    ("box", "sea", "land"),
    [
        ((37.6, -122.6, 37.9, -122.3), (37.7, -122.58), (37.75, -122.45)),  # San Francisco
        ((41.0, -8.9, 41.3, -8.4), (41.15, -8.85), (41.15, -8.5)),  # Porto
        ((60.0, 24.5, 60.4, 25.3), (60.05, 24.9), (60.3, 24.9)),  # Helsinki
    ],
)
def test_coasts_lie_where_they_are(box, sea, land):
    import shapely

    rings = [shapely.Polygon(np.column_stack([lng, lat])) for lat, lng in sea_rings(*box)]

    def wet(place):
        return any(ring.contains(shapely.Point(place[1], place[0])) for ring in rings)

    assert wet(sea) and not wet(land)


def test_no_coast_where_it_would_be_wrong_or_is_none():
    assert sea_rings(48.7, 2.1, 49.0, 2.5) == []  # Paris
    assert sea_rings(40.0, -40.0, 41.0, -39.0) == []  # the Atlantic
    assert sea_rings(37.78, -122.42, 37.82, -122.38) == []  # a quarter of a city
    drawn = ground(View(37.6, -122.6, 37.9, -122.3), None, None)
    assert [layer.kind for layer in drawn.layers] == ["water"] and "Natural Earth" in drawn.credit
