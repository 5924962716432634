"""The command line as a user meets it: real processes for exit codes and signals, in-process calls for the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

ROWS = """user,trip,timestamp,latitude,longitude
ann,1,2024-05-01T08:00:00Z,60.1700,24.9400
ann,1,2024-05-01T08:01:00Z,60.1710,24.9410
ann,2,2024-05-01T17:00:00Z,60.1710,24.9410
ann,2,2024-05-01T17:02:00Z,60.1700,24.9400
bo,1,2024-05-01T09:00:00Z,60.1800,24.9500
bo,1,2024-05-01T09:01:00Z,60.1810,24.9510
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "trips.csv").write_text(ROWS)
    return tmp_path


def run(folder, *arguments, **options):
    if arguments[0] in ("release", "fit"):
        arguments = (*arguments, *CONFIRMED)
    environment = {**os.environ, "MURMURATE_STATE": str(folder / "state"), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "murmurate", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
        **options,
    )


SETTINGS = ("--set", "epsilon=1", "--set", "radius_m=200", "--set", "max_points=10")
CONFIRMED = ("--confirm", "publish with weak protection")
"""Moved points keep their times; what is asked about that is tested in test_newcomer.py."""


def test_times_are_read_as_the_format_says(folder):
    days = ROWS.replace("2024-05-01T", "01/05/2024 ").replace(":00Z", "")
    (folder / "days.csv").write_text(days)
    told = ("--time-format", "%d/%m/%Y %H:%M", "--time-zone", "UTC")
    assert "day or month first" in run(folder, "inspect", "days.csv").stderr
    assert "2024-05-01T08:00" in run(folder, "inspect", "days.csv", *told).stdout
    recipe = (
        'mechanism = "geoind"\nin = "days.csv"\nout = "out"\nlimit = "9"\n[set]\nepsilon = 1\nradius_m = 200\nmax_points = 10\n'
    )
    (folder / "recipe.toml").write_text(recipe + '[read]\ntime_zone = "UTC"\ntime_format = "%d/%m/%Y %H:%M"\n')
    done = run(folder, "release", "recipe.toml")
    assert done.returncode == 0, done.stderr
    assert run(folder, "evaluate", "out", "--against", "days.csv", *told).returncode == 0


def test_a_stranger_with_a_csv_gets_a_release(folder):
    done = run(folder, "release", "geoind", "--in", "trips.csv", "--out", "out", *SETTINGS, "--limit", "0.2")
    assert done.returncode == 0, done.stderr
    frame = pl.read_parquet(folder / "out" / "data.parquet")
    assert frame.columns == ["uid", "tid", "datetime", "lat", "lng", "geometry"] and frame.height == 6
    assert {path.name for path in (folder / "out").iterdir()} == {"data.parquet", "manifest.json", "statement.md"}
    assert "e^" in done.stdout and "state" in done.stdout
    assert run(folder, "verify", "out", "--ledger", folder / "state" / "ledger.sqlite").returncode == 0
    shown = run(folder, "ledger", "show", "--json")
    accounts = next(iter(json.loads(shown.stdout)["populations"].values()))
    assert accounts[0]["spent"]["epsilon"] == pytest.approx(0.05)


def test_the_budget_ends(folder):
    for k in range(3):
        done = run(
            folder,
            "release",
            "geoind",
            "--in",
            "trips.csv",
            "--out",
            f"out{k}",
            *SETTINGS,
            *CONFIRMED,
            *(["--limit", "0.1"] if k == 0 else []),
        )
    assert done.returncode == 3 and "remain" in done.stderr
    assert not (folder / "out2").exists()


def test_a_first_release_needs_a_limit(folder):
    done = run(folder, "release", "geoind", "--in", "trips.csv", "--out", "out", *SETTINGS, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "--limit" in done.stderr and not (folder / "out").exists()


def test_a_named_ledger_gives_a_notice(folder):
    done = run(folder, "release", "geoind", "--in", "trips.csv", "--out", "out", *SETTINGS, "--ledger", "my.sqlite")
    assert done.returncode == 0 and "no limit" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["release", "geoid", "--in", "trips.csv", "--out", "o"], 2, "geoind"),
        (["release", "geoind", "--in", "trips.csv", "--out", "o", "--set", "epsilon=0", "--set", "radius_m=1"], 2, "epsilon"),
        (["release", "geoind", "--in", "trips.csv", "--out", "o", "--set", "epsilon=nan", "--set", "radius_m=1"], 2, "epsilon"),
        (
            ["release", "geoind", "--in", "trips.csv", "--out", "o", "--set", "epsilon=-inf", "--set", "radius_m=1"],
            2,
            "epsilon",
        ),
        (["release", "geoind", "--in", "trips.csv", "--out", "o", "--set", "epsilno=1"], 2, "epsilon"),
        (["release", "geoind", "--in", "nowhere.csv", "--out", "o", *SETTINGS], 2, "nowhere.csv"),
        (["release", "geoind", "--in", "trips.csv", "--out", ".", *SETTINGS], 2, "exists already"),
        (["release", "geoind", "--in", "trips.csv", *SETTINGS], 2, "--out"),
        (
            ["release", "geoind", "--in", "trips.csv", "--out", "o", *SETTINGS, "--link", "user", "--ledger", "l.sqlite"],
            2,
            "unit='user'",
        ),
        (
            ["release", "geoind", "--in", "trips.csv", "--out", "o", *SETTINGS, "--set", "seed=1", "--ledger", "l.sqlite"],
            3,
            "seed",
        ),
        (["release", "geoind", "--in", "trips.csv", "--out", "o", *SETTINGS, "--engine", "two"], 2, "processes:N"),
        (["sample", "m", "--out", "o", "--engine", "serial", "--workers", "2"], 2, "give one of them"),
        (["release", "geoind", "--in", "trips.csv", "--out", "o", *SETTINGS, "--engine", "dask://tcp://10.1.1.1:1"], 2, "TLS"),
        (["release", "missing.toml"], 2, "missing.toml"),
        (["verify", "."], 4, "manifest.json"),
        (["list", "mechanism"], 2, "mechanisms"),
        (["ledger", "show", "nobody"], 3, "nobody"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_bad_input_ends_in_a_sentence_and_a_code(folder, arguments, code, said):
    done = run(folder, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "o").exists()


def test_a_damaged_ledger_spends_nothing(folder):
    (folder / "l.sqlite").write_bytes(b"this is not a ledger" * 100)
    done = run(folder, "release", "geoind", "--in", "trips.csv", "--out", "out", *SETTINGS, "--ledger", "l.sqlite")
    assert done.returncode == 3 and "Traceback" not in done.stderr and not (folder / "out").exists()


def test_explain_shows_every_default_and_spends_nothing(folder):
    done = run(folder, "release", "geoind", "--in", "trips.csv", "--out", "out", *SETTINGS, "--explain")
    assert (
        done.returncode == 0
        and "max_points = 10" in done.stdout
        and "unit" in done.stdout
        and "Nothing was spent" in done.stdout
    )
    assert not (folder / "state").exists()
    (folder / "again.toml").write_text(done.stdout)
    again = run(folder, "release", "again.toml", "--ledger", "l.sqlite")
    assert again.returncode == 0, again.stderr


def test_a_recipe_with_an_unknown_key_names_the_nearest(folder):
    (folder / "r.toml").write_text('mechanism = "geoind"\nlegder = "x"\n')
    done = run(folder, "release", "r.toml")
    assert done.returncode == 2 and "ledger" in done.stderr


def test_plan_prices_without_spending(folder):
    done = run(folder, "ledger", "plan", "geoind", *SETTINGS, "--ledger", "l.sqlite", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requested"]["epsilon"] == pytest.approx(0.05)
    history = json.loads(run(folder, "ledger", "show", "--ledger", "l.sqlite", "--json").stdout)["history"]
    assert [entry["what"] for entry in history] == ["created"]


def test_json_is_json(folder):
    done = run(folder, "release", "geoind", "--in", "trips.csv", "--out", "out", *SETTINGS, "--ledger", "l.sqlite", "--json")
    assert json.loads(done.stdout)["manifest"]["guarantee"]["kind"] == "geoind"
    assert json.loads(run(folder, "inspect", "trips.csv", "--json").stdout)
    assert json.loads(run(folder, "list", "mechanisms", "--json").stdout)[0]["name"]


def test_forget_deletes_the_pairing(folder):
    run(folder, "release", "geoind", "--in", "trips.csv", "--out", "out", *SETTINGS, "--ledger", "l.sqlite")
    kept = list((folder / "l.sqlite.internal").rglob("pairing.parquet"))
    assert len(kept) == 1
    assert run(folder, "ledger", "forget", "out", "--ledger", "l.sqlite").returncode == 0
    assert not kept[0].exists()


def test_ctrl_c_leaves_no_half_release(folder):
    """Interrupted while the release is being written: the temporary folder goes, the debit stays."""
    script = (
        "import os, sys, time\n"
        "from murmurate.mechanisms.geoind import GeoIndistinguishability as G\n"
        "real = G.apply\n"
        "def slow(self, private, rng):\n"
        "    print('reading', flush=True); time.sleep(60); return real(self, private, rng)\n"
        "G.apply = slow\n"
        "sys.argv = ['murmurate', 'release', 'geoind', '--in', 'trips.csv', '--out', 'out', '--set', 'epsilon=1',"
        " '--set', 'radius_m=200',"
        " '--set', 'max_points=10', '--ledger', 'l.sqlite', '--confirm', 'publish with weak protection']\n"
        "from murmurate.cli import main\nmain()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline().strip() == "reading"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors
    assert "The ledger had been charged" in errors and "stands" in errors
    assert sorted(path.name for path in folder.iterdir() if "out" in path.name) == []
    history = json.loads(run(folder, "ledger", "show", "--ledger", "l.sqlite", "--json").stdout)["history"]
    assert [entry["what"] for entry in history][-1] == "debit"
