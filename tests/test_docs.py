"""The documentation: the site builds with strict links, its blocks and notebooks run, and help says what the code says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import murmurate as mm
from murmurate.cli import main
from murmurate.demo import city
from murmurate.judging.review import review
from murmurate.judging.scoring import Evaluation
from murmurate.judging.verdict import verdict
from murmurate.mechanisms import NAMES
from murmurate.mechanisms.parameters import parameters

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ELSEWHERE = {
    "docs/spaces.md": "doctests, which tests/ingest/test_pages.py runs",
    "docs/cleaning.md": "doctests, which tests/ingest/test_pages.py runs",
}
BY_HAND = ("openssl req",)
"""Beginnings of blocks that start servers and leave them running: tests/engine has the same cluster without a network."""
SMALLER = {
    "n_out=5000": "n_out=300",
    # so much that the noisy number of a few hundred trips is never too small
    "epsilon=0.25 --set unit=user --set max_trips=20": (
        "epsilon=20 --set unit=user --set max_trips=8 --confirm 'publish with weak protection'"
    ),
    "dp:user:3": "dp:user:50",
    "epsilon=1 --set unit=user_day": "epsilon=5 --set unit=user_day",
    "people=200, days=14": "people=20, days=2",
    "studies/tony900.toml": "tiny.toml",
    'read_roads("city.osm.pbf"': 'read_roads("roads.geojson"',
    "route(roads, 12, 840)": "route(roads, 0, 1)",
    "library=public_days.parquet": "library=city",
    "processes:4": "processes:2",
    "500 --set epsilon=1 --limit 1": "2000 --set epsilon=5 --limit 5",
    "postgresql://owner@db.example/murmurate": "budget.sqlite",
    "scale(64)": "scale(1)",
}
"""The same commands on less data and on this machine, so that they take seconds."""
TINY = """
about = "A study in the size of a test."
repeats = 1
seed = 1
metrics = ["hausdorff"]
[datasets.tony900]
skaters = 8
[[mechanisms]]
name = "geoind"
label = "simple"
sweep = { epsilon = [0.5, 1.0], radius_m = [50, 200] }
[regression]
baseline = "simple"
"""
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if BLOCK.search(path.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with the files that pages speak of: the built-in city, moved to the box that all pages use."""
    folder = tmp_path_factory.mktemp("world")
    town = city(people=40, days=4, seed=3, interval_s=60, across_km=4.0)
    south, west, north, east = town.box
    up, right = 60.2 - (south + north) / 2, 25.0 - (west + east) / 2
    table = town.trips.table.with_columns(lat=pl.col("lat") + up, lng=pl.col("lng") + right)
    for name, days in (("trips.csv", 0), ("next.csv", 30)):
        stamps = table["datetime"].dt.convert_time_zone("Europe/Helsinki").dt.replace_time_zone(None) + timedelta(days=days)
        table.with_columns(datetime=stamps.dt.strftime("%Y-%m-%d %H:%M:%S")).select(
            "uid", "tid", "datetime", "lat", "lng"
        ).write_csv(folder / name)
    from murmurate.spaces.road import write_roads

    write_roads(town.network, folder / "plain.geojson")
    roads = json.loads((folder / "plain.geojson").read_text())
    for feature in roads["features"]:
        if feature["geometry"]["type"] == "LineString":
            feature["geometry"]["coordinates"] = [[x + right, y + up] for x, y in feature["geometry"]["coordinates"]]
        else:
            x, y = feature["geometry"]["coordinates"]
            feature["geometry"]["coordinates"] = [x + right, y + up]
    (folder / "roads.geojson").write_text(json.dumps(roads))
    (folder / "tiny.toml").write_text(TINY)
    return folder


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    for name in ("trips.csv", "next.csv", "roads.geojson", "tiny.toml"):
        (tmp_path / name).symlink_to(world / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    return tmp_path


def run_commands(script, monkeypatch):
    """Run every command of a shell block in this process; what is not ours is refused."""
    lines = script.replace("\\\n", " ").splitlines()
    for line in filter(None, (line.split("  #")[0].strip() for line in lines)):
        words = shlex.split(line)
        assert words[0] == "murmurate", f"{line}: only commands of this package run here"
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended, warnings.catch_warnings():
            warnings.simplefilter("default")  # as a user meets them
            main()
        assert ended.value.code == 0, line


def prepare(page, here, monkeypatch):
    """Make what a page takes for granted: a release, its originals and their pairing."""
    if page.stem in ("open-it", "tell-the-public", "report", "attacks"):
        made = "murmurate release geoind --in trips.csv --time-zone Europe/Helsinki --out release --ledger ledger.sqlite"
        weak = "--set epsilon=1 --set radius_m=200 --set max_points=50 --confirm 'publish with weak protection'"
        run_commands(f"{made} {weak}", monkeypatch)
    if page.stem == "exports":
        made = "murmurate release od_counts --in trips.csv --time-zone Europe/Helsinki --out release-od-counts"
        run_commands(f"{made} --space grid:60.1,24.8,60.3,25.2:2000 --set epsilon=1 --ledger ledger.sqlite", monkeypatch)
    names = {"mm": mm}
    if page.stem == "attacks":
        with mm.Ledger("ledger.sqlite") as ledger:
            seen = review("release", mm.read("trips.csv", time_zone="Europe/Helsinki"), ledger=ledger)
        names |= {"released": seen.released, "original": seen.original, "pairing": seen.pairing}
    if page.stem == "reading":
        write_odd_files(here)
        names["frame"] = pl.DataFrame(
            {"driver": [7], "datetime": [datetime(2024, 5, 1, tzinfo=UTC)], "breite": 60.2, "laenge": 25}
        )
    if page.stem == "scale":
        pl.read_csv(here / "trips.csv").write_parquet(here / "trips.parquet")
        monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=this_machine))
    if page.stem == "roads":
        names["trips"] = mm.read("trips.csv", time_zone="Europe/Helsinki")
    return names


def write_odd_files(here):
    """A file with times of no zone, a folder of raw cabs and a file without a header."""
    (here / "traces.csv").write_text("user,t,lat,lon\n7,2024-05-01 08:00,60.17,24.94\n7,2024-05-01 08:01,60.18,24.95\n")
    (here / "cabs").mkdir()
    (here / "cabs" / "new_ab.txt").write_text("37.75 -122.39 0 1213084687\n37.74 -122.38 1 1213084659\n")
    (here / "bare.txt").write_text("7,2024-05-01T08:00:00Z,24.94,60.17\n7,2024-05-01T08:01:00Z,24.95,60.18\n")


def this_machine(**_asked):
    """A Dask cluster in place of one that a site operates."""
    from distributed import LocalCluster

    return LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp://")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_block_of_a_page_runs(page, here, monkeypatch, capsys):
    if page.relative_to(ROOT).as_posix() in ELSEWHERE:
        return  # named above, with where it runs
    names = prepare(page, here, monkeypatch)
    given = set(here.glob("release*/manifest.json"))
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if text.startswith(BY_HAND):
            continue
        for large, small in SMALLER.items():
            text = text.replace(large, small)
        if language == "sh":
            run_commands(text, monkeypatch)
        else:
            made = sorted(here.glob("release*/manifest.json"))
            if made and "release" not in names:
                names["release"] = mm.open(made[0].parent)
            exec(compile(text, str(page), "exec"), names)
    said = "What an attack finds" in page.read_text(encoding="utf-8")
    for made in set(here.glob("release*/manifest.json")) - given:
        assert said or not broken_by(made.parent, here), f"{page.name} publishes what an attack finds, and does not say so"


def broken_by(folder, here):
    """The attacks that a release of a page does not withstand, measured as the verdict does."""
    ledger = next(path for path in (here / "budget.sqlite", here / "ledger.sqlite") if path.exists())
    with mm.Ledger(ledger) as book:
        seen = review(folder, mm.read("trips.csv", time_zone="Europe/Helsinki"), ledger=book, force=True)
    quick = [name for name in ("reidentify", "reconstruct") if name in seen.release.kind.attacks]
    return verdict(Evaluation(()), attacked=seen.run_attacks(attacks=quick)).broken


def test_what_an_attack_finds_is_measured(here, monkeypatch):
    prepare(DOCS / "open-it.md", here, monkeypatch)
    assert "reidentify.timed.top1_k1" in broken_by(here / "release", here)


def test_pages_that_run_elsewhere_are_there():
    assert all((ROOT / page).is_file() for page in ELSEWHERE)


@pytest.mark.parametrize("notebook", sorted((DOCS / "tutorials").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, here):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        assert not cell.get("outputs"), "outputs are not kept in the repository"
        if cell["cell_type"] == "code":
            *body, last = "".join(cell["source"]).split("\n")
            exec(compile("\n".join([*body, last]), str(notebook), "exec"), names)
            shown = names.get(last)
            if shown is not None and hasattr(shown, "_repr_html_"):
                assert "<" in shown._repr_html_()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.xdist_group("site")
def test_the_site_builds_with_strict_links(site):
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {"index.html", "choose-epsilon.html", "reference/commands.html", "reference/python.html"} <= pages
    table = (site / "reference" / "parameters.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in table for name in NAMES)
    fetched = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//', (site / "index.html").read_text())
    assert not fetched, "a reader's browser asks nobody else"


@pytest.mark.xdist_group("site")
@pytest.mark.browser
def test_pages_of_the_site_are_accessible(site, browser):
    """One page of each kind: prose, tables, code, notebooks' index, and what is generated; by day and by night."""
    from axe_playwright_python.sync_playwright import Axe

    kinds = ("index", "choose-epsilon", "cleaning", "mechanisms/flock", "reference/python", "reference/parameters")
    for width, scheme in ((1280, "light"), (390, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        for kind in kinds:
            page.goto((site / f"{kind}.html").as_uri())
            found = Axe().run(page).response["violations"]
            assert not found, (kind, width, [(item["id"], item["nodes"][0]["html"][:120]) for item in found])
        context.close()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_every_column_of_a_table_has_a_name(page):
    for head in re.findall(r"^(\|.*\|)\n\|[-:| ]+\|$", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert all(cell.strip() for cell in head.strip("|").split("|")), head


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_meaning(name):
    assert all(parameter.meaning and parameter.default for parameter in parameters(name))


def test_help_lists_the_parameters_of_the_mechanism(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["murmurate", "release", "flock", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().out
    assert ended.value.code == 0 and "--time-zone" in told
    assert all(f"  {parameter.name}  [{parameter.default}]" in told for parameter in parameters("flock"))


def test_shells_complete_commands():
    asked = {"COMP_WORDS": "murmurate rel", "COMP_CWORD": "1", "_MURMURATE_COMPLETE": "complete_bash"}
    start = [sys.executable, "-c", "import sys; sys.argv[0] = 'murmurate'; from murmurate.cli import main; main()"]
    done = subprocess.run(start, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["release"], done.stderr
