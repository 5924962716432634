"""`evaluate`, `attack` and `demo` as a user meets them: files, pages, faults and exit codes."""

from __future__ import annotations

import json
import shutil
import sys

import polars as pl
import pytest

from murmurate.cli import main
from murmurate.demo import city

SETTINGS = (
    "--set",
    "epsilon=1",
    "--set",
    "radius_m=100",
    "--set",
    "max_points=100",
    "--confirm",
    "publish with weak protection",
)
FEW = ("--metric", "visits", "--metric", "length", "--metric", "point_displacement")


@pytest.fixture
def run(monkeypatch, capsys):
    """The command line in this process: exit code, standard output, standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["murmurate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return call


@pytest.fixture
def released(run, tmp_path):
    """trips.parquet, its release and the ledger that was charged."""
    trips = city(people=8, days=2, seed=5, interval_s=60, across_km=4.0).trips
    trips.table.write_parquet(tmp_path / "trips.parquet")
    source, out = tmp_path / "trips.parquet", tmp_path / "out"
    code, _, err = run("release", "geoind", "--in", source, "--out", out, *SETTINGS, "--ledger", tmp_path / "l.sqlite")
    assert code == 0, err
    return tmp_path


def judge(folder, command="evaluate", *more):
    return (command, folder / "out", "--against", folder / "trips.parquet", "--ledger", folder / "l.sqlite", *more)


def test_scores_and_report_go_beside_the_ledger_and_never_into_the_release(run, released):
    before = sorted(path.name for path in (released / "out").iterdir())
    code, out, err = run(*judge(released, "evaluate", *FEW))
    assert code == 0, err
    assert "visits.jsd" in out and "point_displacement.average.mean" in out and "internal" in out
    (inside,) = (released / "l.sqlite.internal").iterdir()
    scores = json.loads((inside / "evaluation.json").read_text())
    assert {"name", "value", "low", "high", "better", "chance"} <= set(scores["scores"][0])
    assert 'class="banner internal"' in (inside / "report.html").read_text()
    assert sorted(path.name for path in (released / "out").iterdir()) == before
    assert run("verify", released / "out", "--ledger", released / "l.sqlite")[0] == 0


def test_files_go_where_they_are_asked_to(run, released):
    code, out, _ = run(
        *judge(released, "evaluate", "--metric", "visits", "--json", released / "a.json", "--html", released / "a.html")
    )
    assert code == 0 and str(released / "a.html") in out
    assert json.loads((released / "a.json").read_text())["scores"] and (released / "a.html").is_file()


def test_places_that_cannot_be_are_one_message(run, tmp_path):
    """A name of 300 letters is no fault of this package, and the message names no folder."""
    long = tmp_path / ("n" * 300)
    source = tmp_path / "trips.parquet"
    city(people=8, days=2, seed=5, interval_s=60, across_km=4.0).trips.table.write_parquet(source)
    for words in (
        ("verify", long),
        ("sample", long, "--set", "n_out=3", "--out", tmp_path / "out"),
        ("attack", "--release", long, "--against", source),
        ("demo-data", "city", "--people", "2", "--days", "1", "--out", long),
        ("release", "geoind", "--in", source, "--out", tmp_path / "out", *SETTINGS, "--ledger", long),
        ("release", "geoind", "--in", source, "--out", tmp_path / "out", *SETTINGS, "--ledger", tmp_path / "l\0"),
    ):
        code, _, err = run(*words)
        assert code in {2, 3}, (words[0], err)
        assert "too long" in err or "null byte" in err
        assert "report it" not in err
        assert "\0" in str(words[-1]) or str(tmp_path) not in err
    assert not (tmp_path / "out").exists()


def test_a_recipe_that_does_not_fit_on_the_disk_is_not_left_in_part(run, tmp_path, monkeypatch):
    source, recipe = tmp_path / "trips.parquet", tmp_path / "recipe.toml"
    city(people=8, days=2, seed=5, interval_s=60, across_km=4.0).trips.table.write_parquet(source)

    def no_room(path, text, **_options):
        path.write_bytes(text[:10].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("murmurate.cli.start.Path.write_text", no_room)
    code, _, err = run("start", source, "--yes", "--recipe", recipe)
    assert code == 2
    assert "could not be written: No space left on device" in err
    assert not recipe.exists()


@pytest.mark.filterwarnings("always")
def test_warnings_are_sentences_and_attacks_do_not_repeat_them(run, tmp_path):
    source = tmp_path / "trips.parquet"
    city(people=45, days=1, seed=5, interval_s=120, across_km=4.0).trips.table.write_parquet(source)
    few = ("--set", "epsilon=0.01", "--space", "grid:44.98,-30.03,45.02,-29.97:500", "--ledger", tmp_path / "l.sqlite", "--yes")
    code, _, err = run("release", "dp_loc", "--in", source, "--out", tmp_path / "out", *few)
    assert code == 0, err
    assert "Warning: the noisy number of trips" in err
    assert ".py:" not in err
    code, _, err = run("attack", tmp_path / "out", "--against", source, "--attack", "membership", *few[-3:-1])
    assert code == 0, err
    assert "Warning" not in err


def test_a_base_map_is_drawn_or_refused_before_anything_is_measured(run, released):
    lat, lng = (pl.read_parquet(released / "trips.parquet")[name].mean() for name in ("lat", "lng"))
    line = {"type": "LineString", "coordinates": [[lng - 1, lat], [lng + 1, lat]]}
    (released / "base.geojson").write_text(json.dumps({"features": [{"properties": {}, "geometry": line}]}))
    code, _, err = run(*judge(released, "evaluate", "--metric", "visits", "--base", released / "base.geojson"))
    (inside,) = (released / "l.sqlite.internal").iterdir()
    assert code == 0 and 'class="coast"' in (inside / "report.html").read_text(), err
    (released / "base.txt").write_text("no map")
    code, out, err = run(*judge(released, "evaluate", "--base", released / "base.txt"))
    assert code == 2 and not out and err.count("is not a base map") == 1


def test_the_verdict_comes_first_and_stands_in_the_json(run, released):
    code, out, err = run(*judge(released, "evaluate", *FEW))
    assert code == 0, err
    assert out.startswith(("Good for", "No use")) and out.index("of attempts") < out.index("Every score") < out.index(
        "visits.jsd"
    )
    (inside,) = (released / "l.sqlite.internal").iterdir()
    judged = json.loads((inside / "evaluation.json").read_text())["verdict"]
    assert judged["attacked"] and judged["broken"] and judged["paragraph"] in (inside / "report.html").read_text()
    rows = [line for line in out.splitlines() if "a second sample" in line and "  " in line]
    assert len({line.index("a second sample") for line in rows}) == 1, "columns stand under each other"
    code, out, _ = run(*judge(released, "evaluate", "--metric", "visits", "--no-attacks"))
    assert code == 0 and "No attack was run" in " ".join(out.split())


def test_the_public_edition_is_apart(run, released):
    code, out, _ = run(*judge(released, "evaluate", "--metric", "visits", "--public"))
    (inside,) = (released / "l.sqlite.internal").iterdir()
    page = (inside / "report-public.html").read_text()
    assert code == 0 and "public edition" in out
    assert "made from the release alone" in page and 'class="banner internal"' not in page and "visits.jsd" not in page


def test_attacks_are_run_and_shown(run, released):
    code, out, err = run(*judge(released, "attack", "--attack", "reidentify"))
    assert code == 0, err
    assert "reidentify.places.top1_k1" in out
    (inside,) = (released / "l.sqlite.internal").iterdir()
    assert json.loads((inside / "attacks.json").read_text())["scores"]
    assert "The adversary knows" in (inside / "attacks.html").read_text()


def test_another_file_is_refused_until_forced(run, released):
    table = pl.read_parquet(released / "trips.parquet")
    table.head(table.height - 1).write_parquet(released / "trips.parquet")
    code, _, err = run(*judge(released, "evaluate", *FEW))
    assert code == 2 and "fingerprint" in err and "--force" in err
    assert run(*judge(released, "evaluate", *FEW, "--force"))[0] == 0


def test_faults_have_their_codes(run, released):
    assert run(*judge(released, "evaluate", "--metric", "visit"))[0] == 2
    code, _, err = run(*judge(released, "attack", "--attack", "reidentif"))
    assert code == 2 and "reidentify" in err
    shutil.move(released / "out" / "manifest.json", released / "manifest.json")
    code, _, err = run(*judge(released))
    assert code == 4 and "manifest.json" in err
    manifest = json.loads((released / "manifest.json").read_text())
    (released / "out" / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    code, _, err = run(*judge(released, "attack"))
    assert code == 4 and "99" in err


def test_the_demo_prints_a_table_and_where_to_look(run, tmp_path):
    small = ("--people", 10, "--days", 2, "--only", "geoind")
    code, out, err = run("demo", "--out", tmp_path / "demo", *small)
    assert code == 0, err
    assert "geo-indistinguishability per trip" in out and "Difference of the maps of visits" in out
    assert str(tmp_path / "demo" / "report.html") in out and "done: geoind" in err
    code, _, err = run("demo", "--out", tmp_path / "demo", *small)
    assert code == 2 and "exists already" in err


@pytest.mark.data
def test_real_taxi_trips_are_judged(run, data_dir, tmp_path):
    source = data_dir / "sf_taxi_dploc200_trips.parquet"
    if not source.is_file():
        pytest.skip("the taxi trips are not among the real data")
    some = pl.read_parquet(source)
    first = some.columns[0]
    some.filter(pl.col(first).is_in(some[first].unique().sort().head(20).implode())).write_parquet(tmp_path / "trips.parquet")
    code, _, err = run(
        "release",
        "geoind",
        "--in",
        tmp_path / "trips.parquet",
        "--out",
        tmp_path / "out",
        *SETTINGS,
        "--ledger",
        tmp_path / "l.sqlite",
    )
    assert code == 0, err
    code, out, err = run(*judge(tmp_path, "evaluate", *FEW, "--html", tmp_path / "report.html"))
    assert code == 0, err
    assert "visits.jsd" in out and (tmp_path / "report.html").read_text().count('class="map"') == 7
