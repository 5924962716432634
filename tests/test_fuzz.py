# ruff: noqa: E501 - files stay whole
"""A few mutations of everything a stranger may hand over; `scripts/fuzz` runs them by the ten thousand."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import json
import shutil
import warnings
import zipfile
import zlib

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from fuzz_seeds import Case, seeds
from fuzzing import MOST_BYTES, run
from murmurate.core import expansion
from murmurate.core.foreign import shown
from murmurate.errors import InputError, MurmurateError, VerifyError
from murmurate.ingest import matrices
from murmurate.releases.folder import open_release
from murmurate.spaces import stops
from murmurate.spaces.road import read_lines, read_osm
from murmurate.spaces.road.read import read_roads
from mutations import coded, in_model, reseal


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return seeds(tmp_path_factory.mktemp("seeds"))


@pytest.mark.parametrize(
    ("name", "n"),
    [("model flock_on_roads", 20), ("model ngram", 20), ("manifest release", 40), ("input parquet", 40), ("road gpkg", 20)],
)
def test_mutations_are_read_or_refused(cases, name, n):
    counts, failures = run(cases[name], n)
    assert not failures
    assert counts["refused"] > 0


def test_the_harness_sees_a_raw_exception_and_a_crash(cases):
    case = cases["recipe"]
    assert run(Case(case.name, case.seed, case.mutate, _fails), 2)[0]["raw exception"] == 2
    assert run(Case(case.name, case.seed, case.mutate, _crashes), 1)[0]["killed by signal 11"] == 1


def test_the_harness_sees_the_memory_of_a_case_and_not_that_of_its_parent(cases):
    case = cases["recipe"]
    held = np.ones(MOST_BYTES // 8 + 10**6)  # as a long run of tests does
    assert run(Case(case.name, case.seed, case.mutate, _rests), 1)[0] == {"accepted": 1}
    del held
    assert run(Case(case.name, case.seed, case.mutate, _grows), 1)[0] == {"memory": 1}


def _rests(_folder, _work):
    pass


def _grows(folder, _work):
    if folder.name == "in":
        np.ones(MOST_BYTES // 8 + 10**6)


def _fails(folder, _work):
    if folder.name == "in":  # a mutated copy
        raise IndexError("as a kernel would")


def _crashes(folder, _work):
    import os
    import signal

    if folder.name == "in":
        os.kill(os.getpid(), signal.SIGSEGV)


def test_every_array_of_every_model_out_of_range_is_refused_before_a_kernel_reads_it(cases, tmp_path):
    """Indices far out of range crashed the process; now each is a message that names the array."""
    for name in ("flock", "dp_loc", "ngram", "plausible"):
        folder = cases[f"model {name}"].seed
        file = next((folder / "model").glob("*.npz"))
        with np.load(file) as stored:
            arrays = dict(stored)
        for key, values in arrays.items():
            if values.dtype.kind not in "iu" or not values.size:
                continue
            copy = tmp_path / f"{name}-{key}"
            shutil.copytree(folder, copy)
            wrong = values.copy()
            wrong.flat[-1] = np.iinfo(values.dtype).max
            np.savez(copy / "model" / file.name, **{**arrays, key: wrong})
            reseal(copy)
            with pytest.raises(InputError, match=key):
                mm.sample(copy, n_out=5, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, ">f8"])
def test_arrays_of_another_precision_or_byte_order_reach_no_kernel(cases, tmp_path, dtype):
    """A kernel that is compiled for one type of number raised an error of its compiler."""
    copy = tmp_path / "copy"
    shutil.copytree(cases["model plausible"].seed, copy)
    file = next((copy / "model").glob("*.npz"))
    with np.load(file) as stored:
        arrays = dict(stored)
    np.savez(file, **{**arrays, "main": arrays["main"].astype(dtype)})
    reseal(copy)
    try:
        mm.sample(copy, n_out=5, out=tmp_path / "out")
    except InputError as error:
        assert "main" in str(error)  # noqa: PT017 - read or refused


def test_a_loop_of_suffixes_is_refused(cases, tmp_path):
    copy = tmp_path / "loop"
    shutil.copytree(cases["model ngram"].seed, copy)
    with np.load(copy / "model" / "arrays.npz") as stored:
        arrays = dict(stored)
    arrays["suffix"][1], arrays["suffix"][2] = 2, 1  # the walk would go round for ever
    np.savez(copy / "model" / "arrays.npz", **arrays)
    reseal(copy)
    with pytest.raises(InputError, match="no tree"):
        mm.sample(copy, n_out=5, out=tmp_path / "out")


def test_a_model_that_holds_what_it_should_is_not_refused(cases, tmp_path):
    for name in ("flock", "flock_on_roads", "dp_loc", "ngram", "plausible"):
        assert mm.sample(cases[f"model {name}"].seed, n_out=5, out=tmp_path / name).trips.n_trips == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["files"].update({"../secret": "0" * 64}), "outside its folder"),
        (lambda m: m["files"].update({"/etc/passwd": "0" * 64}), "outside its folder"),
        (lambda m: m["parameters"].update({"space": "road:/etc/passwd"}), "another folder"),
        (lambda m: m["parameters"].update({"library": "../private.csv"}), "another folder"),
        (lambda m: m.update({"release_id": "../../x"}), "letters and digits"),
        (lambda m: m.update({"time_zone": "x" * 300}), "schema"),
        (lambda m: m["guarantee"].update({"radius_m": "wide"}), "radius_m"),
        (lambda m: m["guarantee"].update({"assumptions": ["it rains", 7]}), "schema"),
    ],
)
def test_a_hostile_manifest_names_no_file_outside_its_folder(cases, tmp_path, change, words):
    copy = tmp_path / "copy"
    shutil.copytree(cases["manifest release"].seed, copy)
    values = json.loads((copy / "manifest.json").read_text())
    change(values)
    (copy / "manifest.json").write_text(json.dumps(values))
    with pytest.raises(VerifyError, match=words):
        open_release(copy, read_space=True)


def test_a_network_release_with_places_that_are_no_numbers_is_refused_without_a_warning(cases, tmp_path):
    import sqlite3

    copy = tmp_path / "copy"
    shutil.copytree(cases["release links"].seed, copy)
    file = next(copy.glob("*.gpkg"))
    with sqlite3.connect(file) as database:
        link, shape = database.execute("SELECT link, geom FROM links LIMIT 1").fetchone()
        signalling = bytes.fromhex("010000000000f07f")  # a number that is none, in its other form
        database.execute("UPDATE links SET geom = ? WHERE link = ?", (shape[:-8] + signalling, link))
    database.close()
    reseal(copy)
    with pytest.raises(MurmurateError), warnings.catch_warnings():
        warnings.simplefilter("error")
        open_release(copy, read_space=True)


def test_a_foreign_table_whose_compression_is_cut_is_refused(tmp_path):
    from murmurate.judging.foreign import read_foreign

    file = tmp_path / "a.csv"
    file.write_bytes(b"\x1f\x8b\x08\x04" + bytes(6) + b"\xff\xff cut off in its header")
    with pytest.raises(InputError, match="a compressed file"):
        read_foreign(file)


def test_a_release_with_a_link_to_another_file_does_not_verify(cases, tmp_path):
    copy, secret = tmp_path / "copy", tmp_path / "secret.parquet"
    shutil.copytree(cases["manifest release"].seed, copy)
    (copy / "data.parquet").rename(secret)
    (copy / "data.parquet").symlink_to(secret)
    with pytest.raises(VerifyError, match="is a link to somewhere else"):
        open_release(copy)


def test_a_few_of_every_kind_are_read_or_refused(cases, tmp_path):
    """In this process, because another costs more than the files; crashes are looked for by the thousand, apart."""
    for name, case in cases.items():
        if name.startswith(("model", "release links")):
            continue
        for number in range(4):
            copy = tmp_path / f"{name}-{number}"
            shutil.copytree(case.seed, copy)
            case.mutate(copy, np.random.default_rng([number, 78]))
            with contextlib.suppress(MurmurateError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case.act(copy, tmp_path)


@pytest.fixture
def low_limits(monkeypatch):
    """Limits as they are, but for files a hundred times smaller."""
    for module in (expansion, read_lines, read_osm, stops):
        monkeypatch.setattr(module, "TEXT_FLOOR_BYTES", 10**5)
    for name, value in (("MIN_ITEMS", 100), ("MIN_ROWS", 1_000), ("MIN_CELLS", 10**4), ("JSON_FLOOR_BYTES", 10**6)):
        monkeypatch.setattr(expansion, name, value)
    monkeypatch.setattr(matrices, "TABLE_FLOOR_BYTES", 10**5)


def gzipped(begin, unit, n, end):
    return gzip.compress(begin + unit * n + end, mtime=0)


NODE = b"<key id='x' attr.name='x'/><key id='y' attr.name='y'/><graph><node id='a'><data key='x'>1</data><data key='y'>1</data></node>"
OSM_NODE = b'<node id="1" lat="1" lon="1"/>'


@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("many.csv.gz", gzipped(b"uid,lat,lng\n", b"a,1,1\n", 20_000, b""), "read"),
        ("many.gpx.gz", gzipped(b"<gpx><trk><trkseg>", b'<trkpt lat="1" lon="1"/>', 5_000, b"</trkseg></trk></gpx>"), "read"),
        ("many.json.gz", gzipped(b'{"data":[', b"[],", 50_000, b"[]]}"), "read"),
        ("many.jsonl.gz", gzipped(b"", b'{"a":1}\n', 20_000, b""), "read"),
        ("keys.json", json.dumps([{f"k{k}": 1} for k in range(400)]).encode(), "read"),
        ("wide.csv", b",".join(b"c%d" % k for k in range(20_000)) + b"\n", "read"),
        ("many.geojson.gz", gzipped(b'{"features":[', b"{},", 30_000, b"{}]}"), "road"),
        ("features.geojson", b'{"features":[' + b"{}," * 200 + b"{}]}", "road"),
        ("keys.graphml.gz", gzipped(b"<graphml>", b"<key id='1'/>", 6_000, b"</graphml>"), "road"),
        (
            "edges.graphml.gz",
            gzipped(b"<graphml>" + NODE, b"<edge source='a' target='a'/>", 3_000, b"</graph></graphml>"),
            "road",
        ),
        ("nodes.osm.gz", gzipped(b'<osm version="0.6">', OSM_NODE, 20_000, b"</osm>"), "road"),
        ("nodes.osm.bz2", bz2.compress(b'<osm version="0.6">' + OSM_NODE * 20_000 + b"</osm>"), "road"),
        ("wide.txt", b",".join(b"c%d" % k for k in range(3_000)) + b",lat,lng\n1\n", "stops"),
        ("many.txt", b"lat,lng\n" + b"1,1\n" * 500, "stops"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # content in a name would differ from process to process
)
def test_files_that_hold_far_more_than_their_size_are_refused(tmp_path, low_limits, name, content, reader):
    """117 kB of GraphML took 2 GB, 260 kB of JSON 5 GB."""
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"decompression bomb|columns are read|at most 1,000 are read"):
        {"read": mm.read, "road": read_roads, "stops": stops.Stops.read}[reader](file)


def test_a_long_text_that_is_repeated_for_every_point_is_refused(tmp_path, low_limits):
    shape = {"type": "LineString", "coordinates": [[1, 1]] * 1_000}
    feature = {"type": "Feature", "properties": {"uid": "x" * 10_000}, "geometry": shape}
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises(InputError, match="a long text that is repeated"):
        mm.read(tmp_path / "a.geojson")


def test_a_name_of_many_brackets_is_compared_at_once():
    from murmurate.ingest.columns import plain

    name = "[" * 10**6  # took hours
    assert plain(name) == name


@pytest.mark.parametrize("header", [b"{'descr': '<f8', 'fortran_order': False, 'shape': (", b"(" * 40])
def test_an_array_whose_header_is_cut_is_refused(cases, tmp_path, header):
    """The reader of numpy raised an error of Python's own tokenizer."""
    copy = tmp_path / "copy"
    shutil.copytree(cases["model dp_loc"].seed, copy)
    file = next((copy / "model").glob("*.npz"))
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    first = next(iter(members))
    members[first] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    reseal(copy)
    with pytest.raises(InputError, match="cannot be read"):
        mm.sample(copy, n_out=5, out=tmp_path / "out")


def test_archives_that_expand_far_or_hold_something_else_are_refused(cases, tmp_path, low_limits):
    for name, reader in (("stops.txt", stops.Stops.read), ("a.shp", read_roads)):
        file = tmp_path / ("feed.zip" if name == "stops.txt" else "a.shp.zip")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, bytes(10**6))
        with pytest.raises(InputError, match="decompression bomb"):
            reader(file)
    secret = tmp_path / "secret.csv"
    secret.write_text('WKT,highway\n"LINESTRING (24 60, 24.1 60.1)",residential\n')
    other = (
        f"<OGRVRTDataSource><OGRVRTLayer name='secret'><SrcDataSource>{secret}</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>"
    )
    (tmp_path / "other.shp").write_text(other)  # GDAL would open what it names
    with pytest.raises(InputError, match="does not begin as a shapefile"):
        read_roads(tmp_path / "other.shp")
    whole = next(cases["road osm.pbf"].seed.iterdir()).read_bytes()
    packed = zlib.compress(bytes(2 * 10**6))
    blob = b"\x10" + coded(2 * 10**6) + b"\x1a" + coded(len(packed)) + packed
    header = b"\x0a\x07OSMData\x18" + coded(len(blob))
    (tmp_path / "a.osm.pbf").write_bytes(whole + len(header).to_bytes(4, "big") + header + blob)
    with pytest.raises(InputError, match="decompression bomb"):
        read_roads(tmp_path / "a.osm.pbf")


def test_a_matrix_that_lies_in_another_file_is_not_read(tmp_path, low_limits):
    import h5py

    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(range(36)))
    for name, kind in (("link", "no place"), ("storage", "no place"), ("bomb", "decompression bomb")):
        file = tmp_path / f"{name}.omx"
        with h5py.File(file, "w") as content:
            group = content.create_group("data")
            if name == "link":
                group["day"] = h5py.ExternalLink(str(secret), "/data/day")
            elif name == "storage":
                group.create_dataset("day", shape=(6, 6), dtype="u1", external=[(str(secret), 0, 36)])
            else:
                group.create_dataset("day", shape=(500, 500), dtype="f8", chunks=(100, 100))
        with pytest.raises(InputError, match="It holds: none" if name != "bomb" else kind):
            matrices.read_omx(file, 500 if name == "bomb" else 6)


@pytest.mark.parametrize(("column", "value"), [("place", 99), ("place", -1), ("period", 99), ("time", "x"), ("area", None)])
def test_flows_of_places_that_do_not_exist_are_refused(cases, tmp_path, column, value):
    copy = tmp_path / "copy"
    shutil.copytree(cases["release flows"].seed, copy)
    table = pl.read_parquet(copy / "zones.parquet")
    table.with_columns(pl.lit(value, dtype=table.schema[column]).alias(column)).write_parquet(copy / "zones.parquet")
    reseal(copy)
    with pytest.raises(InputError, match="name no place or period"):
        len(open_release(copy, read_space=True))


def test_errors_of_libraries_are_shown_without_the_values_they_quote():
    for error in (ValueError("could not convert string to float: 'kestrel4711'"), KeyError("kestrel4711")):
        assert "kestrel" not in shown(error)
    assert "60.17" not in shown(RuntimeError("point 60.17 24.94 outside"))
    for long in ("kestrel " * 40 + "'", "kestrel", f"{'k' * 200}/kestrel"):  # cut off before its end, or without one
        assert "kestrel" not in shown(ValueError(f"could not convert '{long}"))
    assert "/home" not in shown(OSError(36, "File name too long", f"/home/kestrel/{'n' * 300}"))
    assert "kestrel" not in shown(ValueError("can't parse 'kestrel', nor \"kestrel\" or `kestrel` or 'o'kestrel'"))
    assert shown(ValueError(f"doesn't open b'{'k' * 300}")) == "ValueError: doesn't open b..."
    assert "line 3" in shown(ValueError("mismatched tag: line 3, column 5"))


def test_small_files_that_expand_far_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(expansion, "TEXT_FLOOR_BYTES", 10**6)
    monkeypatch.setattr(expansion, "TABLE_FLOOR_BYTES", 10**6)
    road = tmp_path / "bomb.graphml.gz"
    road.write_bytes(gzip.compress(b"<graphml><graph>" + b"<key id='1'/>" * 10**6 + b"</graph></graphml>"))
    with pytest.raises(InputError, match="decompression bomb"):
        read_roads(road)
    lines = tmp_path / "bomb.geojson.gz"
    lines.write_bytes(gzip.compress(b'{"features": [' + b" " * 10**7 + b"]}"))
    with pytest.raises(InputError, match="decompression bomb"):
        read_roads(lines)
    many = tmp_path / "many.parquet"
    pl.DataFrame({"uid": np.zeros(10**6, np.int64), "lat": np.zeros(10**6), "lng": np.zeros(10**6)}).write_parquet(many)
    with pytest.raises(InputError, match="decompression bomb"):
        mm.read(many)
    long = tmp_path / "long.parquet"
    text = pl.Series(["x" * 5_000]).gather(np.zeros(20_000, np.int64)).cast(pl.Categorical).cast(pl.String)
    pl.DataFrame(
        {"uid": np.zeros(20_000, np.int64), "lat": np.zeros(20_000), "lng": np.zeros(20_000), "note": text}
    ).write_parquet(long)
    assert long.stat().st_size < 10**6
    with pytest.raises(InputError, match="decompression bomb"):
        mm.read(long)


def test_a_geopackage_that_hides_a_query_is_refused(cases, tmp_path):
    import sqlite3

    file = tmp_path / "hostile.gpkg"
    shutil.copy(next(cases["road gpkg"].seed.iterdir()), file)
    with sqlite3.connect(file) as database:
        database.execute("ALTER TABLE links RENAME TO hidden")
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT hidden.* FROM hidden, n"
        database.execute(f"CREATE VIEW links AS {endless}")
    database.close()
    with pytest.raises(InputError):
        read_roads(file)


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5_000, "a = " + "{b=" * 5_000, "a = " + "9" * 5_000, "mechanism = 3", 'mechanism = "flock"\nset = 3'],
)
def test_a_nested_or_mistyped_recipe_is_one_message(tmp_path, text):
    from murmurate.custody.recipes import build_mechanism, read_recipe
    from murmurate.judging.study.spec import read_spec

    file = tmp_path / "r.toml"
    file.write_text(text)
    with pytest.raises(MurmurateError):
        build_mechanism(read_recipe(file))
    with pytest.raises(MurmurateError):
        read_spec(file)


def test_mutations_change_something(cases, tmp_path):
    rng, changed = np.random.default_rng(0), 0
    for k in range(20):
        copy = tmp_path / str(k)
        shutil.copytree(cases["model ngram"].seed, copy)
        before = (copy / "manifest.json").read_text()
        in_model(copy, rng)
        changed += (copy / "manifest.json").read_text() != before
    assert changed > 10
