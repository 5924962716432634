"""Every export is read back by us, and by the tools it is for."""

import geopandas
import networkx
import numpy as np
import osmnx
import polars as pl
import pytest

from murmurate.errors import InputError, OutputError
from murmurate.spaces.road import RoadNetwork, read_roads, route, to_networkx, write_roads
from road_town import grid_town


def bent():
    """A two-way street with a bend and a name, and a one-way."""
    return RoadNetwork.from_arrays(
        node_lat=[60.0, 60.001, 60.002],
        node_lng=[24.0, 24.001, 24.0],
        link_from=[0, 1, 1],
        link_to=[1, 0, 2],
        road_class=[2, 2, 5],
        speed_kmh=[50.0, 50.0, 30.0],
        lanes=[2, 2, 0],
        shape_offsets=[0, 3, 6, 8],
        shape_lat=[60.0, 60.0, 60.001, 60.001, 60.0, 60.0, 60.001, 60.002],
        shape_lng=[24.0, 24.001, 24.001, 24.001, 24.001, 24.0, 24.001, 24.0],
        name=["<Main> & Co", "<Main> & Co", ""],
        way_id=[11, 11, 12],
    )


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "graphml", "graphml.gz", "parquet", "npz"])
def test_we_read_what_we_wrote(tmp_path, ending):
    network = bent()
    again = read_roads(write_roads(network, tmp_path / f"roads.{ending}"))
    assert again.fingerprint == network.fingerprint
    assert again.name.to_list() == network.name.to_list()
    assert again.way_id.tolist() == network.way_id.tolist()
    assert again.twin.tolist() == [1, 0, -1]


def test_equal_networks_give_equal_files(tmp_path):
    for ending in ("geojson", "gpkg", "graphml", "parquet"):
        one, two = (write_roads(bent(), tmp_path / f"{k}.{ending}").read_bytes() for k in "ab")
        assert one == two


def test_geopandas_reads_lines_classes_and_extra_columns(tmp_path):
    counts = pl.DataFrame({"count": [5, 0, 7], "note": ["a", None, "c"]})
    for ending in ("geojson", "gpkg", "parquet"):
        file = write_roads(bent(), tmp_path / f"roads.{ending}", columns=counts)
        layer = {"layer": "links"} if ending == "gpkg" else {}
        table = geopandas.read_parquet(file) if ending == "parquet" else geopandas.read_file(file, **layer)
        assert table["count"].tolist() == [5, 0, 7]
        assert table["road_class"].tolist() == [2, 2, 5]
        assert set(table.geometry.geom_type) == {"LineString"}
        assert table.crs.is_geographic
    nodes = geopandas.read_file(tmp_path / "roads.gpkg", layer="nodes")
    assert nodes.geometry.x.tolist() == [24.0, 24.001, 24.0]


def test_columns_of_another_length_are_refused(tmp_path):
    with pytest.raises(OutputError, match="2 rows where the network has 3 links"):
        write_roads(bent(), tmp_path / "r.geojson", columns=pl.DataFrame({"count": [1, 2]}))


def test_a_failed_write_says_so(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        write_roads(bent(), tmp_path / "no" / "r.geojson")
    with pytest.raises(OutputError, match="give a name that ends so"):
        write_roads(bent(), tmp_path / "r.dxf")


def test_networkx_routes_as_we_do():
    town = grid_town(4, one_way_rows=(1,))
    graph = to_networkx(town)
    assert graph.number_of_edges() == town.n_links
    for start, end in ((0, 15), (7, 4), (12, 3)):
        length = networkx.shortest_path_length(graph, start, end, weight="length")
        assert route(town, start, end, by="distance").length_m == pytest.approx(length)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_osmnx_loads_our_graphml_and_we_load_its(tmp_path):
    graph = osmnx.load_graphml(write_roads(bent(), tmp_path / "ours.graphml"))
    assert graph.number_of_edges() == 3
    edges = osmnx.graph_to_gdfs(graph, nodes=False)
    assert sorted(edges["length"].round().tolist()) == sorted(bent().length_m.round().tolist())
    osmnx.save_graphml(graph, tmp_path / "theirs.graphml")
    again = read_roads(tmp_path / "theirs.graphml")
    assert again.fingerprint == bent().fingerprint
    osmnx.save_graphml(osmnx.project_graph(graph), tmp_path / "projected.graphml")
    back = read_roads(tmp_path / "projected.graphml")
    np.testing.assert_allclose(np.sort(back.shape_lat), np.sort(bent().shape_lat), atol=1e-7)
    osmnx.save_graphml(to_networkx(bent()), tmp_path / "made.graphml")
    assert read_roads(tmp_path / "made.graphml").n_links == 3


def test_shapefiles_are_read_through_pyogrio(tmp_path):
    table = geopandas.read_file(write_roads(bent(), tmp_path / "r.gpkg"), layer="links")[["road_class", "oneway", "geometry"]]
    table.to_file(tmp_path / "r.shp")
    shape = read_roads(tmp_path / "r.shp")
    assert shape.n_links == 3
    table.to_crs(3067).to_file(tmp_path / "metres.shp")
    np.testing.assert_allclose(read_roads(tmp_path / "metres.shp").length_m, shape.length_m, rtol=1e-4)


def test_a_gpkg_without_lines_or_whole_pages(tmp_path):
    file = write_roads(bent(), tmp_path / "r.gpkg")
    (tmp_path / "cut.gpkg").write_bytes(file.read_bytes()[:5000])
    (tmp_path / "text.gpkg").write_text("nothing of the kind")
    for name in ("cut.gpkg", "text.gpkg"):
        with pytest.raises(InputError, match="cannot be read as lines"):
            read_roads(tmp_path / name)
    points = geopandas.GeoDataFrame({"highway": ["primary"]}, geometry=geopandas.points_from_xy([24.0], [60.0]), crs=4326)
    points.to_file(tmp_path / "points.gpkg")
    with pytest.raises(InputError, match="none of its 1 features is a line"):
        read_roads(tmp_path / "points.gpkg")
