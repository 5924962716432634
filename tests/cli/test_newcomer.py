"""The mistakes of a newcomer: each ends in one message that says what to type next, and none spends budget."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from murmurate.cli import main
from murmurate.core.ledger import Ledger
from murmurate.custody.looking import WEAK_WORDS
from murmurate.ingest.read import read
from murmurate.spaces.road import RoadNetwork, write_roads

BOX = "60.1,24.8,60.3,25.1"


def trips(swap: bool = False, n_people: int = 150) -> str:
    """Ordinary trips in Helsinki: four a person, six points each, on one day."""
    rng = np.random.default_rng(5)
    rows = ["user_id,trip_id,timestamp,lat,lon"]
    for person in range(n_people):
        for trip in range(4):
            lat, lng = rng.uniform(60.15, 60.25), rng.uniform(24.9, 25.0)
            for step in range(6):
                place = (lat + 0.002 * step, lng + 0.003 * step)
                first, second = place[::-1] if swap else place
                rows.append(f"{person},{trip},2024-05-01 {8 + 3 * trip:02}:{5 * step:02}:00,{first:.5f},{second:.5f}")
    return "\n".join(rows) + "\n"


def stream() -> str:
    """The same without trips: everything a person did in one row after another."""
    table = pl.read_csv(trips().encode()).drop("trip_id")
    return table.sort("user_id", "timestamp").write_csv()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("newcomer")
    (place / "trips.csv").write_text(trips())
    (place / "swapped.csv").write_text(trips(swap=True))
    (place / "stream.csv").write_text(stream())
    town = RoadNetwork.from_arrays(
        node_lat=[41.1, 41.1], node_lng=[-8.6, -8.599], link_from=[0, 1], link_to=[1, 0], road_class=[5, 5]
    )
    write_roads(town, place / "porto.geojson")
    (place / "there").mkdir()
    with Ledger(place / "spent.sqlite") as ledger:
        name = ledger.population_of(read(place / "trips.csv", time_zone="UTC").identity, population="riders", create=True)
        ledger.limit(name, kind="dp", unit="trip", epsilon=0.5)
    return place


@dataclass
class Done:
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch, capsys, folder):
    """The command line in this process, in the folder of the data and without a terminal."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MURMURATE_STATE", str(folder / "state"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["murmurate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(ended.value.code, *capsys.readouterr())

    return call


def release(*more, source="trips.csv", zone="UTC", mechanism="flock", out="out", space=f"grid:{BOX}:500", epsilon="1"):
    zoned = ["--time-zone", zone] if zone else []
    given = ["--in", source, "--out", out, *zoned, "--space", space, "--set", f"epsilon={epsilon}"]
    return ["release", mechanism, *given, *(more or ("--limit", "1"))]


MISTAKES = {
    "no time zone": (release(zone=None), 2, "--time-zone Europe/Helsinki"),
    "wrong column": (release("--column", "uid=usr_id", "--limit", "1"), 2, "Did you mean 'user_id'"),
    "swapped coordinates": (release(source="swapped.csv"), 2, "--column lat="),
    "wrong box": (release(space="grid:41.1,-8.7,41.2,-8.5:500"), 2, "public box around the data"),
    "foreign roads": (
        release("--limit", "1:1e-6", mechanism="road_counts", space="road:porto.geojson"),
        2,
        "--space road:FILE",
    ),
    "no limit": (release("--link", "none"), 2, "--limit dp:trip:1"),
    "spent budget": (release("--ledger", "spent.sqlite"), 3, "About epsilon 0.5 per trip would fit"),
    "existing folder": (release(out="there"), 2, "Name a new folder with --out"),
    "unknown mechanism": (release(mechanism="flok"), 2, "Did you mean 'flock'"),
    "epsilon as text": (release(epsilon="one"), 2, "--set epsilon="),
    "no trips in the box": (release(space="grid:60.28,24.8,60.3,24.85:500"), 2, "murmurate start FILE"),
    "raw stream": (release(source="stream.csv"), 2, "--split-gap 5min"),
}
"""The twelve: what is typed, the exit code, and what the message says to type next."""
ALSO = {
    "few trips": (release("--set", "unit=user", "--set", "delta=1e-6", "--limit", "1", epsilon="0.1"), 2, "unit=trip"),
    "weak promise": (release("--limit", "99", epsilon="20"), 2, WEAK_WORDS),
    "format that holds no such data": (release("--format", "shp", "--limit", "1"), 2, "geojson"),
    "base map that is no map": (["evaluate", "there", "--against", "trips.csv", "--base", "trips.csv"], 2, "trips.csv"),
}
"""Other mistakes, likewise."""


def test_there_are_twelve():
    assert len(MISTAKES) == 12


@pytest.mark.parametrize("name", MISTAKES | ALSO)
def test_one_message_says_what_to_type(name, run, folder):
    arguments, code, hint = (MISTAKES | ALSO)[name]
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert hint in done.stderr
    titles = ("The input cannot be used", "That cannot be done", "Refused.", "Usage:")
    assert sum(done.stderr.count(title) for title in titles) == 1, "one message"
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()
    for ledger in ("spent.sqlite", None):  # whichever was meant, neither was charged
        spent = run("ledger", "show", "--json", *(("--ledger", ledger) if ledger else ()))
        assert not [entry for entry in json.loads(spent.stdout)["history"] if entry["what"] == "debit"]


def test_start_splits_a_raw_stream(run, folder):
    started = run("start", "stream.csv", "--time-zone", "UTC", "--yes", "--recipe", "stream.toml", "--protect", "trip")
    assert started.returncode == 0, started.stderr
    assert "murmurate release stream.toml" in started.stdout
    assert "split_gap_s = 1800.0" in (folder / "stream.toml").read_text()
    assert run("start", "stream.csv", "--yes", "--recipe", "stream.toml").returncode == 2


def test_a_confirmed_weakness_is_recorded_and_published_nowhere(run, folder):
    weak = release(
        "--limit", "99", "--set", "n_out=5", "--ledger", "weak.sqlite", "--confirm", WEAK_WORDS, epsilon="20", out="weak"
    )
    done = run(*weak)
    assert done.returncode == 0, done.stderr
    history = json.loads(run("ledger", "show", "--ledger", "weak.sqlite", "--json").stdout)["history"]
    debit = next(entry for entry in history if entry["what"] == "debit")
    assert "e^20" in debit["details"]["parameters"]["confirmed"]
    assert "confirmed" not in (folder / "weak" / "manifest.json").read_text()


def test_inspect_says_what_would_make_a_file_readable(run, folder):
    (folder / "bare.csv").write_text("7,2024-05-01T08:00:00Z,60.17,24.94\n7,2024-05-01T08:01:00Z,60.18,24.95\n")
    done = run("inspect", "bare.csv")
    assert done.returncode == 2
    assert "--column uid=1 --column datetime=2 --column lat=3 --column lng=4" in done.stderr
    hinted = ("--column", "uid=1", "--column", "datetime=2", "--column", "lat=3", "--column", "lng=4")
    opened = run("inspect", "bare.csv", *hinted, "--html", "bare.html")
    assert opened.returncode == 0, opened.stderr
    assert '<h2 id="where">Where</h2>' in (folder / "bare.html").read_text()


def test_a_recipe_reports_all_its_faults_at_once(run, folder):
    (folder / "bad.toml").write_text('mechanim = "flock"\nin = 3\n[read]\ntimezone = "UTC"\n[clean]\nsplit_gap = 3\n')
    done = run("release", "bad.toml", "--out", "never")
    assert done.returncode == 2
    for hint in ("Did you mean 'mechanism'", "Did you mean 'time_zone'", "Did you mean 'split_gap_s'", "in must be text"):
        assert hint in done.stderr


# -- promises to people that cannot be kept ------------------------------------------------------------------------------

PEOPLE_GRID = f"grid:{BOX}:500"


def polygon(south, west, north, east, system=None):
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    feature = {"type": "Feature", "properties": {"id": 1}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    named = {"crs": {"type": "name", "properties": {"name": system}}} if system else {}
    return json.dumps({"type": "FeatureCollection", "features": [feature], **named})


@pytest.fixture(scope="module")
def people_folder(folder):
    table = pl.read_csv(trips().encode()).with_columns(trip_id=pl.col("user_id") * 10 + pl.col("trip_id"))
    table.with_columns(user_id=pl.lit(1)).write_csv(folder / "one.csv")
    table.drop("user_id").write_csv(folder / "noids.csv")
    table.with_columns(user_id=pl.when(pl.col("user_id") < 140).then(pl.col("user_id"))).write_csv(folder / "someids.csv")
    (folder / "far.geojson").write_text(polygon(41.0, -8.7, 41.2, -8.5))
    (folder / "tiny.geojson").write_text(polygon(60.15, 24.9, 60.15001, 24.90001))
    (folder / "metres.geojson").write_text(polygon(6_670_000, 380_000, 6_690_000, 400_000))
    (folder / "foreign.geojson").write_text(polygon(5_000_000, -970_000, 5_020_000, -950_000, "urn:ogc:def:crs:EPSG::3857"))
    lat, lng = [60.15, 60.15, 60.25, 60.25], [24.9, 25.0, 24.9, 25.0]
    around = [(0, 1), (1, 3), (3, 2), (2, 0)]
    town = RoadNetwork.from_arrays(
        node_lat=lat, node_lng=lng, link_from=[a for a, _ in around], link_to=[b for _, b in around], road_class=[3] * 4
    )
    write_roads(town, folder / "town.geojson")
    return folder


def promise(mechanism, *settings, source="trips.csv", space=PEOPLE_GRID, more=()):
    given = [part for setting in settings for part in ("--set", setting)]
    return ["release", mechanism, "--in", source, "--out", "out", "--time-zone", "UTC", "--space", space, *given, *more,
            "--limit", "9:0.5"]  # fmt: skip


PERSON = ("unit=user", "epsilon=1", "delta=1e-6")
BROAD = ("unit=user", "epsilon=2", "delta=0.01")
PEOPLE = {
    "one unit, flock": (promise("flock", *PERSON, source="one.csv"), "one identifier"),
    "one unit, dp_loc": (promise("dp_loc", *PERSON, source="one.csv"), "one identifier"),
    "one unit, od_counts": (promise("od_counts", *PERSON, source="one.csv"), "one identifier"),
    "one unit, ngram": (promise("ngram", "unit=user", "epsilon=1", "max_trips=999", source="one.csv"), "one identifier"),
    "one unit, road_counts": (promise("road_counts", *PERSON, source="one.csv", space="road:town.geojson"), "one identifier"),
    "no ids": (promise("flock", *PERSON, source="noids.csv"), "who moved"),
    "trips as ids": (promise("flock", *PERSON, source="noids.csv", more=("--column", "uid=trip_id")), "name no people"),
    "some without ids": (promise("flock", *PERSON, source="someids.csv"), "column user_id: empty"),
    "mask elsewhere": (promise("flock", "epsilon=2", more=("--mask", "far.geojson")), "covers nothing"),
    "mask of nothing": (promise("flock", "epsilon=2", more=("--mask", "tiny.geojson")), "covers nothing"),
    "mask in metres": (promise("flock", "epsilon=2", more=("--mask", "metres.geojson")), "are no degrees"),
    "mask of another projection": (promise("flock", "epsilon=2", more=("--mask", "foreign.geojson")), "covers nothing"),
    **{
        f"clip {clip}, {name}": (promise(name, *PERSON, f"clip={clip}", space=space), "clip must be a finite number above 0")
        for clip in ("0", "-1", "inf", "nan")
        for name, space in (("flock", PEOPLE_GRID), ("od_counts", PEOPLE_GRID), ("road_counts", "road:town.geojson"))
    },
    **{
        f"wide delta, {name}": (promise(name, *BROAD, space=space), "1 over the number of people")
        for name, space in (
            ("flock", PEOPLE_GRID),
            ("dp_loc", PEOPLE_GRID),
            ("od_counts", PEOPLE_GRID),
            ("road_counts", "road:town.geojson"),
        )
    },
    "wide delta for declared people": (promise("flock", *BROAD, "people=150"), "delta=7e-04 or less"),
    "delta of one": (promise("flock", "unit=user", "epsilon=2", "delta=1"), "delta must"),
}
"""What is typed, and what the message says."""


@pytest.mark.parametrize("name", PEOPLE)
def test_a_promise_to_people_that_cannot_be_kept_spends_nothing(name, run, people_folder, tmp_path):
    arguments, hint = PEOPLE[name]
    ledger = tmp_path / "ledger.sqlite"
    done = run(*arguments, "--ledger", ledger)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert hint in done.stderr
    titles = ("The input cannot be used", "That cannot be done", "Refused.", "Usage:")
    assert sum(done.stderr.count(title) for title in titles) == 1, "one message"
    assert "Traceback" not in done.stderr and "nothing was spent" in done.stderr
    assert not (people_folder / "out").exists()
    spent = run("ledger", "show", "--json", "--ledger", ledger)
    assert not [entry for entry in json.loads(spent.stdout)["history"] if entry["what"] == "debit"]
