"""GraphML of two kinds, and everything that can be wrong with it."""

import gzip

import numpy as np
import pytest

from murmurate.errors import InputError
from murmurate.spaces.road import read_roads


def graphml(tmp_path, edges, *, nodes=((0, 24.0, 60.0), (1, 24.001, 60.0), (2, 24.001, 60.001)), directed=True, crs=None):
    """Edges are (source, target, {attribute: value})."""
    names = sorted({key for _, _, tags in edges for key in tags})
    keys = '<key id="x" for="node" attr.name="x" attr.type="double"/><key id="y" for="node" attr.name="y" attr.type="double"/>'
    keys += "".join(f'<key id="e{k}" for="edge" attr.name="{name}" attr.type="string"/>' for k, name in enumerate(names))
    keys += '<key id="crs" for="graph" attr.name="crs" attr.type="string"/>'
    body = "" if crs is None else f'<data key="crs">{crs}</data>'
    body += "".join(f'<node id="{k}"><data key="x">{x}</data><data key="y">{y}</data></node>' for k, x, y in nodes)
    for source, target, tags in edges:
        inside = "".join(f'<data key="e{names.index(key)}">{value}</data>' for key, value in tags.items())
        body += f'<edge source="{source}" target="{target}">{inside}</edge>'
    file = tmp_path / "town.graphml"
    kind = "directed" if directed else "undirected"
    space = 'xmlns="http://graphml.graphdrawing.org/xmlns"'
    file.write_text(f'<?xml version="1.0"?><graphml {space}>{keys}<graph edgedefault="{kind}">{body}</graph></graphml>')
    return file


def test_both_ways_of_telling_geometry(tmp_path):
    via = {"road_class": "S1400", "length": "60", "via": "24.0004,60.0001 24.0006,60.0001"}
    wkt = {"highway": "primary", "geometry": "LINESTRING (24.001 60, 24.0012 60.0005, 24.001 60.001)", "maxspeed": "60"}
    network = read_roads(graphml(tmp_path, [(0, 1, via), (1, 2, wkt)]))
    assert network.road_class.tolist() == [5, 2]
    assert np.diff(network.shape_offsets).tolist() == [4, 3]
    assert network.length_m[0] == 60.0
    assert network.speed_kmh.tolist() == [32.0, 60.0]
    assert network.dropped == {}


def test_undirected_edges_are_two_way(tmp_path):
    network = read_roads(graphml(tmp_path, [(0, 1, {"highway": "primary"})], directed=False))
    assert network.twin.tolist() == [1, 0]


def test_a_stated_length_that_cannot_be_is_replaced(tmp_path):
    network = read_roads(
        graphml(tmp_path, [(0, 1, {"highway": "primary", "length": "5"}), (1, 2, {"highway": "primary", "length": "nan"})])
    )
    assert network.length_m[0] == pytest.approx(55.6, abs=0.1)
    assert network.dropped == {"stated lengths far from the drawn ones, replaced": 1}


def test_one_street_under_two_names_is_read_once(tmp_path):
    edges = [(0, 1, {"road_class": "S1400"}), (0, 1, {"road_class": "S1100"}), (1, 0, {"road_class": "S1400"})]
    network = read_roads(graphml(tmp_path, edges))
    assert network.n_links == 2
    assert network.road_class.tolist() == [1, 5]
    assert network.dropped == {"links listed twice (one street under two names)": 1}


def test_no_class_anywhere_is_an_error_with_a_way_out(tmp_path):
    file = graphml(tmp_path, [(0, 1, {"length": "55"}), (1, 2, {"length": "111"})])
    with pytest.raises(InputError, match="none of its 2 streets has a road class") as caught:
        read_roads(file)
    assert "default_class" in caught.value.remedy
    network = read_roads(file, default_class=4)
    assert network.road_class.tolist() == [4, 4]
    assert network.dropped == {"streets without a class, taken as class 4": 2}


def test_some_without_class_are_dropped_and_counted(tmp_path):
    network = read_roads(graphml(tmp_path, [(0, 1, {"highway": "primary"}), (1, 2, {}), (2, 1, {"highway": "path"})]))
    assert network.n_links == 1
    assert network.dropped == {"streets without a class": 1, "streets of a class no car uses (path)": 1}


def test_nan_and_loops_are_dropped_and_counted(tmp_path):
    nodes = ((0, 24.0, 60.0), (1, 24.001, 60.0), (2, "nan", 60.0))
    tags = {"highway": "primary"}
    network = read_roads(graphml(tmp_path, [(0, 1, tags), (1, 2, tags), (1, 1, tags)], nodes=nodes))
    assert network.n_links == 1
    assert network.dropped == {"streets with NaN coordinates": 1, "streets without length": 1}


def test_projected_coordinates_are_noticed_or_transformed(tmp_path):
    nodes = ((0, 385_000.0, 6_672_000.0), (1, 385_100.0, 6_672_000.0), (2, 385_100.0, 6_672_100.0))
    edges = [(0, 1, {"highway": "primary"}), (1, 2, {"highway": "primary"})]
    with pytest.raises(InputError, match="projected system"):
        read_roads(graphml(tmp_path, edges, nodes=nodes))
    told = read_roads(graphml(tmp_path, edges, nodes=nodes), crs="EPSG:3067")
    assert (told.node_lng[0], told.node_lat[0]) == pytest.approx((24.93, 60.17), abs=0.02)
    known = read_roads(graphml(tmp_path, edges, nodes=nodes, crs="epsg:3067"))
    assert known.fingerprint == told.fingerprint
    with pytest.raises(InputError, match="not known"):
        read_roads(graphml(tmp_path, edges, nodes=nodes), crs="EPSG:99999999")


@pytest.mark.parametrize(
    ("edges", "nodes", "says"),
    [
        ([], ((0, 24.0, 60.0),), "1 nodes and no edges"),
        ([(0, 9, {"highway": "primary"})], ((0, 24.0, 60.0),), "ends at node '9'"),
        ([(0, 1, {"highway": "primary"})], ((0, "east", 60.0), (1, 24.0, 60.0)), "no numbers"),
        ([(0, 1, {"highway": "primary", "via": "24.0;60.0"})], ((0, 24.0, 60.0), (1, 24.1, 60.0)), "geometry of edge 0"),
    ],
)
def test_broken_graphs_are_refused(tmp_path, edges, nodes, says):
    with pytest.raises(InputError, match=says):
        read_roads(graphml(tmp_path, edges, nodes=nodes))


def test_nodes_without_coordinates_are_refused(tmp_path):
    file = tmp_path / "plain.graphml"
    file.write_text('<graphml><graph edgedefault="directed"><node id="a"/></graph></graphml>')
    with pytest.raises(InputError, match="node a has no x"):
        read_roads(file)


def test_truncated_text_and_gzip_are_refused(tmp_path):
    whole = graphml(tmp_path, [(0, 1, {"highway": "primary"})] * 50).read_bytes()
    (tmp_path / "cut.graphml").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.graphml.gz").write_bytes(gzip.compress(whole)[:-20])
    (tmp_path / "torn.graphml.gz").write_bytes(gzip.compress(whole)[:40] + b"\x00" * 40)
    (tmp_path / "text.graphml").write_text("not xml at all")
    for name in ("cut.graphml", "cut.graphml.gz", "torn.graphml.gz", "text.graphml"):
        with pytest.raises(InputError, match=r"cannot be read as (GraphML|a compressed file)"):
            read_roads(tmp_path / name)


@pytest.mark.data
def test_real_networks(data_dir, sf):
    assert (sf.n_nodes, sf.n_links) == (4247, 9192)
    assert sf.dropped == {"rings cut in two": 2}
    connected = read_roads(data_dir / "sf_osm2026_central_drive.graphml.gz", connected=True)
    assert connected.n_links == 9067
    assert connected.dropped["links outside the largest connected part"] == 125
