"""OpenStreetMap files: hand-made ones for the rules, real ones for the world."""

import numpy as np
import pytest

from murmurate.errors import InputError
from murmurate.spaces import parse
from murmurate.spaces.road import read_roads

NODES = {1: (60.0, 24.0), 2: (60.0, 24.001), 3: (60.0, 24.002), 4: (60.001, 24.001), 5: (60.002, 24.001), 6: (60.001, 24.002)}


def osm(tmp_path, *ways, nodes=NODES):
    parts = [f'<node id="{k}" version="1" lat="{lat}" lon="{lng}"/>' for k, (lat, lng) in nodes.items()]
    for number, (refs, tags) in enumerate(ways, start=100):
        inside = "".join(f'<nd ref="{ref}"/>' for ref in refs)
        inside += "".join(f'<tag k="{key}" v="{value}"/>' for key, value in tags.items())
        parts.append(f'<way id="{number}" version="1">{inside}</way>')
    file = tmp_path / "town.osm"
    file.write_text(f'<?xml version="1.0"?><osm version="0.6">{"".join(parts)}</osm>')
    return file


def arrows(network):
    """(from, to) of every link, as latitude and longitude in thousandths of a degree."""
    lat, lng = np.round((network.node_lat - 60) * 1000).astype(int), np.round((network.node_lng - 24) * 1000).astype(int)
    spots = list(zip(lat.tolist(), lng.tolist(), strict=True))
    return {(spots[a], spots[b]) for a, b in zip(network.link_from, network.link_to, strict=True)}


def test_ways_are_cut_where_they_meet(tmp_path):
    network = read_roads(osm(tmp_path, ([1, 2, 3], {"highway": "primary"}), ([2, 4, 5], {"highway": "residential"})))
    assert network.n_nodes == 4  # node 4 is only a bend
    assert arrows(network) == {
        ((0, 0), (0, 1)), ((0, 1), (0, 0)), ((0, 1), (0, 2)), ((0, 2), (0, 1)), ((0, 1), (2, 1)), ((2, 1), (0, 1)),
    }  # fmt: skip
    assert sorted(network.road_class.tolist()) == [2, 2, 2, 2, 5, 5]
    assert set(network.way_id.tolist()) == {100, 101}
    bend = int(np.diff(network.shape_offsets).argmax())
    assert len(network.shape(bend)[0]) == 3


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"oneway": "yes"}, {((0, 0), (0, 1))}),
        ({"oneway": "-1"}, {((0, 1), (0, 0))}),
        ({"junction": "roundabout"}, {((0, 0), (0, 1))}),
        ({"highway": "motorway"}, {((0, 0), (0, 1))}),
        ({"highway": "motorway", "oneway": "no"}, {((0, 0), (0, 1)), ((0, 1), (0, 0))}),
        ({"oneway": "no"}, {((0, 0), (0, 1)), ((0, 1), (0, 0))}),
    ],
)
def test_one_ways(tmp_path, tags, expected):
    assert arrows(read_roads(osm(tmp_path, ([1, 2], {"highway": "tertiary"} | tags)))) == expected


def test_speed_lanes_and_name(tmp_path):
    tags = {"highway": "secondary", "maxspeed": "25 mph", "lanes": "3", "name": "Bay &amp; Sea"}
    network = read_roads(osm(tmp_path, ([1, 2], tags)))
    assert network.speed_kmh[0] == pytest.approx(40.2336)
    assert (network.lanes[0], network.name[0]) == (3, "Bay & Sea")


def test_what_is_left_out_is_counted(tmp_path):
    network = read_roads(
        osm(
            tmp_path,
            ([1, 2], {"highway": "residential"}),
            ([2, 3], {"highway": "footway"}),
            ([2, 4], {"highway": "residential", "access": "private"}),
            ([4, 5], {"highway": "residential", "access": "no", "motor_vehicle": "yes"}),
            ([1, 1], {"highway": "residential"}),
            ([2, 99], {"highway": "residential"}),
        )
    )
    assert network.n_links == 4
    assert network.dropped == {"ways no car uses": 1, "ways closed to cars": 1, "way nodes outside the extract": 1}


def test_rings_are_cut_and_usable(tmp_path):
    network = read_roads(osm(tmp_path, ([1, 2], {"highway": "residential"}), ([2, 4, 6, 3, 2], {"highway": "residential"})))
    assert network.dropped["rings cut in two"] == 1
    assert (network.link_from != network.link_to).all()
    assert network.n_links == 6


def test_files_without_roads_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no road for cars was found .1 ways no car uses"):
        read_roads(osm(tmp_path, ([1, 2], {"highway": "steps"})))
    with pytest.raises(InputError, match="holds no highway at all"):
        read_roads(osm(tmp_path, ([1, 2], {"building": "yes"})))


def test_other_highways_can_be_asked_for(tmp_path):
    file = osm(tmp_path, ([1, 2], {"highway": "service"}), ([2, 3], {"highway": "residential"}))
    assert read_roads(file).n_links == 2
    assert read_roads(file, highways=frozenset({"service"})).n_links == 2
    assert read_roads(file, highways=frozenset({"service", "residential"})).n_links == 4


def test_no_file_an_empty_file_and_an_unknown_one(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_roads(tmp_path / "missing.osm.pbf")
    (tmp_path / "empty.osm.pbf").touch()
    with pytest.raises(InputError, match="is empty"):
        read_roads(tmp_path / "empty.osm.pbf")
    (tmp_path / "roads.dwg").write_text("x")
    with pytest.raises(InputError, match=r"\.graphml"):
        read_roads(tmp_path / "roads.dwg")


@pytest.mark.data
@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_a_truncated_pbf_is_refused(tmp_path, data_dir, share):
    whole = (data_dir / "helsinki_centre.osm.pbf").read_bytes()
    (tmp_path / "cut.osm.pbf").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match="cut off"):
        read_roads(tmp_path / "cut.osm.pbf")


def test_what_is_no_pbf_is_refused(tmp_path):
    (tmp_path / "photo.osm.pbf").write_bytes(b"\x89PNG" * 100)
    with pytest.raises(InputError, match="cannot be read as OpenStreetMap"):
        read_roads(tmp_path / "photo.osm.pbf")


@pytest.mark.data
def test_helsinki_and_monaco(data_dir):
    helsinki = read_roads(data_dir / "helsinki_centre.osm.pbf")
    assert helsinki.n_links == 1149
    assert 24.9 < helsinki.node_lng.mean() < 25.0
    assert helsinki.dropped["ways no car uses"] == 1893
    monaco = parse(f"road:{data_dir / 'monaco.osm.pbf'}")
    assert monaco.n_links > 3000
    assert monaco.spec() == f"road:monaco.osm.pbf#{monaco.fingerprint[:16]}"
    assert set(monaco.road_class.tolist()) == {1, 2, 3, 4, 5}
    oneway = (monaco.twin < 0).mean()
    assert 0.2 < oneway < 0.45
