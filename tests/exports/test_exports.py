"""Every export is opened by the library of those who use it, says what it promises, and is checked by verify."""

from __future__ import annotations

import csv
import json
import sqlite3
import xml.etree.ElementTree as ET
import zipfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import murmurate as mm
from murmurate import mechanisms, noise
from murmurate.cli import app
from murmurate.core.trips import Trips
from murmurate.errors import InputError, MurmurateError, OutputError, ParameterError, VerifyError
from murmurate.exports import FORMATS, sidecar_of, verify_export
from murmurate.exports.tables import safe_csv
from murmurate.mechanisms.od_counts import ODCounts
from murmurate.releases.folder import Release, open_release
from murmurate.spaces.hexes import Hexes
from murmurate.spaces.places import write_places
from murmurate.spaces.zone_trips import ZoneTrips
from murmurate.spaces.zones import Zones


@pytest.fixture(scope="module")
def town():
    return mm.demo.city(people=60, days=3, seed=2, interval_s=120)


@pytest.fixture(scope="module")
def released(town, tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    write_places(town.grid(2000.0), folder / "zones.geojson")
    ledger = mm.Ledger.in_memory()
    made = {
        "flows": ODCounts(epsilon=20.0, space=town.grid(2000.0), max_error=0.5),
        "hexes": ODCounts(epsilon=20.0, space=Hexes(7, *town.box), max_error=0.5),
        "zones": ODCounts(epsilon=20.0, space=Zones.read(folder / "zones.geojson"), max_error=0.5),
        "trips": mechanisms.example("geoind", town.spaces()),
    }
    return {
        name: mm.release(mechanism, town.trips, ledger=ledger, out=folder / name, rng=noise.seeded(1))
        for name, mechanism in made.items()
    }


CASES = [("flows", name) for name, found in FORMATS.items() if "flows" in found.reads] + [
    ("trips", name) for name, found in FORMATS.items() if "trips" in found.reads
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_export_is_accompanied_and_verified(released, kind, name, tmp_path):
    out = released[kind].export(format=name, out=tmp_path / "export")
    about = json.loads(sidecar_of(out).read_text())
    assert (
        about["release_id"] == released[kind].manifest.release_id
        and released[kind].manifest.guarantee.words() in about["promise"]
    )
    assert mm.verify(out)["mechanism"] == released[kind].manifest.mechanism and verify_export(
        sidecar_of(out), release=released[kind]
    )
    with pytest.raises(VerifyError, match="another release"):
        verify_export(out, release=released["hexes"])
    again = released[kind].export(format=name, out=tmp_path / "again" / "export")
    if name not in ("omx", "aequilibrae"):  # HDF5 states when it was written
        assert json.loads(sidecar_of(again).read_text())["files"] == about["files"]
    file = next(path for path in sorted([out, *out.rglob("*")]) if path.is_file())
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(VerifyError, match="was changed"):
        mm.verify(out)
    with pytest.raises(OutputError, match="exists"):
        released[kind].export(format=name, out=out)


def test_a_full_disk_is_one_message_and_leaves_nothing(released, tmp_path, monkeypatch):
    from murmurate.spaces.road import write_gpkg

    def full(*_given, **_more):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(write_gpkg, "_features", full)
        with pytest.raises(OutputError, match="could not be written"):
            released["trips"].export(format="gpkg", out=tmp_path / "out.gpkg")
    write_text = Path.write_text

    def no_room(path, text, **options):
        if path.name.endswith(".guarantee.json"):
            raise OSError(28, "No space left on device")
        return write_text(path, text, **options)

    monkeypatch.setattr(Path, "write_text", no_room)
    with pytest.raises(OutputError, match="No space left"):
        released["trips"].export(format="csv", out=tmp_path / "out.csv")
    assert not list(tmp_path.iterdir()), "an export without its guarantee"


def test_what_cannot_be_exported_is_refused(released, tmp_path):
    with pytest.raises(ParameterError, match="a release of trips has no format omx; it has csv"):
        released["trips"].export(format="omx", out=tmp_path / "x")
    with pytest.raises(ParameterError, match="Did you mean 'geojson'"):
        released["trips"].export(format="geojsn", out=tmp_path / "x")
    with pytest.raises(VerifyError, match="not a release"):
        mm.verify(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "mapping"), [("omx", "zone"), ("aequilibrae", "taz")])
def test_openmatrix_opens_matrices(released, name, mapping, tmp_path):
    openmatrix = pytest.importorskip("openmatrix")
    flows = released["flows"].data
    out = released["flows"].export(format=name, out=tmp_path / "city.omx")
    file = openmatrix.open_file(str(out))
    try:
        n = flows.places.n_cells
        assert file.version() == b"0.2" and tuple(file.shape()) == (n, n)
        assert {"day", "day_listed", "morning", "hour_08"} <= set(file.list_matrices()) and file.list_mappings() == [mapping]
        assert file.mapping(mapping)[1] == 0
        assert (
            np.allclose(np.array(file["day"]), flows.matrix())
            and np.array(file["day_listed"]).sum() == flows.pairs()["trips"].sum()
        )
    finally:
        file.close()


@pytest.mark.parametrize("kind", ["flows", "hexes", "zones"])
def test_geopandas_opens_zones_and_flows(released, kind, tmp_path):
    geopandas = pytest.importorskip("geopandas")
    flows = released[kind].data
    package = released[kind].export(format="gpkg", out=tmp_path / "city.gpkg")
    folder = released[kind].export(format="geoparquet", out=tmp_path / "parquet")
    text = released[kind].export(format="geojson", out=tmp_path / "geojson")
    for frames in (
        [geopandas.read_file(package, layer=layer) for layer in ("zones", "flows")],
        [geopandas.read_parquet(folder / f"{layer}.parquet") for layer in ("zones", "flows")],
        [geopandas.read_file(text / f"{layer}.geojson") for layer in ("zones", "flows")],
    ):
        zones, pairs = frames
        assert (
            zones.crs.is_geographic
            and "WGS 84" in zones.crs.name
            and len(zones) == flows.places.n_cells
            and zones.geometry.is_valid.all()
        )
        assert len(pairs) == flows.pairs().height and int(pairs["trips"].sum()) == flows.pairs()["trips"].sum()
    database = sqlite3.connect(package)
    assert database.execute("SELECT count(*) FROM promise").fetchone()[0] > 3
    database.close()


def test_h3_knows_the_hexagons(released):
    h3 = pytest.importorskip("h3")
    names = released["hexes"].data.places.names()
    assert all(h3.is_valid_cell(name) and h3.get_resolution(name) == 7 for name in names)


def test_a_release_on_zones_needs_no_file_and_verifies(released):
    again = mm.verify(released["zones"].folder)
    assert again["guarantee"].startswith("follows from the parameters")
    assert "zones.geojson" in released["zones"].manifest.parameters["space"]
    assert open_release(released["zones"].folder).data.disagreements() == []


def test_sumolib_opens_trips(released, tmp_path):
    sumolib = pytest.importorskip("sumolib")
    out = released["trips"].export(format="sumo", out=tmp_path / "city.trips.xml")
    found = list(sumolib.xml.parse(str(out), "trip"))
    trips = released["trips"].data
    departs = [float(trip.depart) for trip in found]
    assert len(found) == trips.n_trips and departs == sorted(departs) and departs[0] >= 0
    lng, lat = (float(value) for value in found[0].fromLonLat.split(","))
    assert -90 < lat < 90 and -180 < lng < 180


def test_matsim_plans_follow_the_schema_of_documented_elements(released, tmp_path):
    xmlschema = pytest.importorskip("xmlschema")
    schema = xmlschema.XMLSchema(Path(__file__).with_name("matsim_population.xsd"))
    out = released["trips"].export(format="matsim", out=tmp_path / "plans.xml")
    schema.validate(out)
    text = out.read_text()
    for wrong in (text.replace(' end_time="', ' ends="', 1), text.replace('<leg mode="car"/>', "", 1)):
        assert not schema.is_valid(wrong.replace("<!DOCTYPE", "<!--").replace('.dtd">', ".dtd -->"))
    root = ET.parse(out).getroot()
    assert len(root.findall("person")) == released["trips"].data.n_trips
    assert root.find("attributes/attribute").text.startswith("EPSG:32")


@pytest.fixture(scope="module")
def driven(town, released):
    """A release of trips on links, with its roads."""
    network = town.network
    offsets, after = network.out_links
    route = [0]
    while len(route) < 6:
        route.append(int(after[offsets[network.link_to[route[-1]]]]))
    when = pl.Series([datetime(2024, 1, 8, 8, k, tzinfo=UTC) for k in range(6)] * 2).cast(pl.Datetime("us", "UTC"))
    table = pl.DataFrame({"uid": [0] * 6 + [1] * 6, "tid": [0] * 6 + [1] * 6, "datetime": when, "link": route * 2})
    made = Release(released["trips"].folder, released["trips"].manifest, network)
    made.__dict__["trips"] = Trips(table, network, "Europe/Helsinki")
    return made, route


def test_sumolib_opens_routes_whose_edges_follow_each_other(driven, tmp_path):
    sumolib = pytest.importorskip("sumolib")
    release, route = driven
    folder = release.export(format="sumo", out=tmp_path / "sumo")
    ends = {edge.id: (edge.attr_from, edge.to) for edge in sumolib.xml.parse(str(folder / "edges.edg.xml"), "edge")}
    nodes = {node.id for node in sumolib.xml.parse(str(folder / "nodes.nod.xml"), "node")}
    vehicles = list(sumolib.xml.parse(str(folder / "routes.rou.xml"), "vehicle"))
    edges = vehicles[0].route[0].edges.split()
    assert len(vehicles) == 2 and edges == [f"l{link}" for link in route] and float(vehicles[0].depart) == 10 * 3600
    assert (
        all(ends[one][1] == ends[other][0] for one, other in pairwise(edges))
        and {end for pair in ends.values() for end in pair} <= nodes
    )


def test_flowmap_and_kepler_name_the_same_places(released, tmp_path):
    folder = released["flows"].export(format="flowmap", out=tmp_path / "flowmap")
    places = list(csv.DictReader((folder / "locations.csv").read_text().splitlines()))
    pairs = list(csv.DictReader((folder / "flows.csv").read_text().splitlines()))
    assert set(places[0]) == {"id", "name", "lat", "lon"} and {row["origin"] for row in pairs} <= {row["id"] for row in places}
    content = json.loads(released["flows"].export(format="kepler", out=tmp_path / "map.json").read_text())
    data = content["datasets"][0]["data"]
    assert len(data["allData"]) == len(pairs) and all(len(row) == len(data["fields"]) for row in data["allData"])
    columns = content["config"]["config"]["visState"]["layers"][0]["config"]["columns"]
    assert set(columns.values()) <= {field["name"] for field in data["fields"]} and content["info"]["description"]


def test_ridership_has_the_documented_columns(released, tmp_path):
    flows = released["flows"].data
    with zipfile.ZipFile(released["flows"].export(format="gtfs-ride", out=tmp_path / "ride.zip")) as feed:
        tables = {name: pl.read_csv(feed.read(name), infer_schema_length=None) for name in feed.namelist()}
    rides = tables["ridership.txt"]
    assert {"total_boardings", "total_alightings", "ridership_start_time", "stop_id"} <= set(rides.columns)
    assert rides["total_boardings"].sum() == np.nansum(flows.totals("departures"))
    assert set(rides["stop_id"]) <= set(tables["stops.txt"]["stop_id"]) and {"stop_lat", "stop_lon"} <= set(
        tables["stops.txt"].columns
    )


@pytest.mark.parametrize("kind", ["flows", "hexes", "zones"])
def test_gtfs_kit_opens_the_stops_of_ridership(released, kind, tmp_path):
    gtfs_kit = pytest.importorskip("gtfs_kit")
    feed = gtfs_kit.read_feed(released[kind].export(format="gtfs-ride", out=tmp_path / "ride.zip"), dist_units="km")
    places = released[kind].data.places
    assert len(feed.stops) == places.n_cells and feed.stops["stop_name"].tolist() == places.names()
    assert np.allclose(feed.stops["stop_lat"], places.centre(np.arange(places.n_cells))[0])


def test_a_public_matrix_says_how_unlisted_pairs_compare(released, town, tmp_path):
    h5py = pytest.importorskip("h5py")
    flows = released["flows"].data
    trips, n = ZoneTrips.of(town.trips, flows.places), flows.places.n_cells
    true = np.zeros((n, n))
    np.add.at(true, (trips.origin, trips.destination), 1)
    with h5py.File(tmp_path / "base.omx", "w") as file:
        for name, matrix in (("cars", true), ("few", true[:4, :4]), ("negative", true - 1), ("empty", 0 * true)):
            file.create_dataset(f"data/{name}", data=matrix)
    base = str(tmp_path / "base.omx")
    out = released["flows"].export(format="omx", out=tmp_path / "city.omx", prior=f"{base}#cars")
    with h5py.File(out) as file:
        day = file["data/day"][:]
    plain, listed = flows.matrix(), flows.matrix(complete=False)
    assert np.abs(day - true).sum() < 0.85 * np.abs(plain - true).sum() and np.array_equal(day[listed > 0], listed[listed > 0])
    assert (
        np.allclose(day.sum(axis=1), plain.sum(axis=1)) and json.loads(sidecar_of(out).read_text())["prior"] == "base.omx#cars"
    )
    for name, words in (
        ("#few", f"the matrix few is 4 x 4; these places need {n} x {n}"),
        ("#negative", "values are negative"),
        ("#empty", "all values are 0"),
        ("", "which matrix is meant. It holds: cars"),
    ):
        with pytest.raises(InputError, match=words):
            released["flows"].export(format="omx", out=tmp_path / "x", prior=base + name)
    (tmp_path / "text.omx").write_text("no matrix")
    with pytest.raises(InputError, match="cannot be read as OMX"):
        released["flows"].export(format="omx", out=tmp_path / "x", prior=tmp_path / "text.omx")
    with pytest.raises(InputError, match="no such file"):
        released["flows"].export(format="omx", out=tmp_path / "x", prior="nowhere.omx")
    with pytest.raises(ParameterError, match="prior= goes with omx, aequilibrae"):
        released["flows"].export(format="csv", out=tmp_path / "x", prior=base)


def test_open_data_trips_are_rounded(released, tmp_path):
    rows = list(csv.DictReader(released["trips"].export(format="mds", out=tmp_path / "trips.csv").read_text().splitlines()))
    assert len(rows) == released["trips"].data.n_trips
    assert all(
        row["start_time"][14:16] in ("00", "15", "30", "45") and len(row["start_latitude"].split(".")[1]) <= 3 for row in rows
    )
    assert all(int(row["trip_duration"]) % 60 == 0 and int(row["trip_distance"]) % 100 == 0 for row in rows)


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@x", "\t=1", "\r=1", "\n=1", "  =1", "\uff1d1"])
def test_no_cell_of_a_csv_is_a_formula(text):
    row = next(csv.reader(safe_csv(pl.DataFrame({"name": [text], "trips": [-5]})).splitlines(keepends=True)[1:]))
    assert row[0].startswith("'") and row[1] == "-5"


def test_the_command_line_exports_and_verifies(released, tmp_path):
    runner = CliRunner()
    done = runner.invoke(app, ["export", str(released["flows"].folder), "--format", "csv", "--out", str(tmp_path / "csv")])
    assert done.exit_code == 0, done.output
    assert "Promise:" in done.output and (tmp_path / "csv" / "od.csv").is_file()
    checked = runner.invoke(app, ["verify", str(tmp_path / "csv")])
    assert checked.exit_code == 0 and "mechanism: od_counts" in checked.output
    (tmp_path / "csv" / "od.csv").write_text("x")
    assert isinstance(runner.invoke(app, ["verify", str(tmp_path / "csv")]).exception, MurmurateError)


@pytest.mark.parametrize(
    ("kind", "format", "files"),
    [
        ("trips", ["csv", "gpkg"], ["data.csv", "data.gpkg", "data.parquet"]),
        ("trips", "geojson", ["data.geojson", "data.parquet"]),
        ("flows", ["csv", "geojson"], ["csv/od.csv", "geojson/flows.geojson", "geojson/zones.geojson"]),
        ("network", "csv", ["data.csv", "links.parquet"]),
    ],
)
def test_a_release_holds_other_formats_beside_its_own(town, kind, format, files, tmp_path):
    made = {
        "trips": mechanisms.example("geoind", town.spaces()),
        "flows": ODCounts(epsilon=20.0, space=town.grid(2000.0), max_error=0.5),
        "network": mechanisms.example("road_counts", town.spaces()),
    }[kind]
    release = mm.release(
        made, town.trips, ledger=mm.Ledger.in_memory(), out=tmp_path / "out", rng=noise.seeded(1), format=format
    )
    assert set(files) <= set(release.manifest.files)
    assert mm.verify(tmp_path / "out")["files"]
    if "data.csv" in files:
        assert pl.read_csv(tmp_path / "out" / "data.csv").height == release.to_polars().height
    (tmp_path / "out" / files[0]).write_text("x")
    with pytest.raises(VerifyError, match="changed"):
        mm.verify(tmp_path / "out")


@pytest.mark.parametrize("name", mechanisms.NAMES)
def test_what_a_mechanism_makes_is_known_before_it_runs(town, name, tmp_path):
    kinds = {"dp_ani": "network", "od_successive": "network", "road_counts": "network", "od_counts": "flows"}
    assert getattr(mechanisms.mechanism_class(name), "makes", "trips") == kinds.get(name, "trips")


@pytest.mark.parametrize("format", ["gpkg", "geojson", "omx", "xls"])
def test_a_format_that_cannot_hold_the_data_is_refused_before_the_charge(town, format, tmp_path):
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(ParameterError, match="csv"):
            mm.release(
                mechanisms.example("road_counts", town.spaces()), town.trips, ledger=ledger, out=tmp_path / "a", format=format
            )
        assert not ledger.populations()


def test_recipes_and_the_command_line_name_formats(town, tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    town.trips.table.write_csv(tmp_path / "trips.csv", datetime_format="%Y-%m-%dT%H:%M:%SZ")
    box = ",".join(str(value) for value in town.box)
    text = f"""mechanism = "od_counts"\nin = "{tmp_path}/trips.csv"\nlimit = "9"\nformat = "csv"
[set]\nepsilon = 5\nspace = "grid:{box}:2000"\n"""
    (tmp_path / "recipe.toml").write_text(text)
    runner = CliRunner()
    done = runner.invoke(app, ["release", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "csv" / "od.csv").is_file()
    more = ["--format", "geojson", "--format", "sumo", "--out", str(tmp_path / "other")]
    refused = runner.invoke(app, ["release", str(tmp_path / "recipe.toml"), *more])
    assert isinstance(refused.exception, ParameterError) and refused.exception.exit_code == 2
    (tmp_path / "recipe.toml").write_text(text.replace('"csv"', "3"))
    assert "format must be a format" in str(runner.invoke(app, ["release", str(tmp_path / "recipe.toml")]).exception)
