"""The README tells the truth: its commands and its Python run as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from murmurate.core.score import Score
from murmurate.judging.scoring import Evaluation
from murmurate.judging.verdict import verdict

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def trips() -> pl.DataFrame:
    """Trips in Helsinki on three days: four a day and person, ten points a minute apart."""
    rng = np.random.default_rng(3)
    n = 400 * 3 * 4
    person, rest = np.divmod(np.arange(n), 12)
    day, trip = np.divmod(rest, 4)
    start = np.datetime64("2024-05-01T07:00:00") + day * np.timedelta64(1, "D") + trip * np.timedelta64(3, "h")
    start = start + rng.integers(0, 3600, n) * np.timedelta64(1, "s")
    centre = np.column_stack((rng.normal(60.2, 0.02, n), rng.normal(24.94, 0.03, n)))
    step = np.column_stack((rng.normal(0, 0.0015, n), rng.normal(0, 0.003, n)))
    minute = np.tile(np.arange(10), n)
    point = np.repeat(np.arange(n), 10)
    place = centre[point] + step[point] * minute[:, None]
    return pl.DataFrame(
        {
            "user_id": person[point],
            "trip_id": (4 * day + trip)[point],
            "timestamp": (start[point] + minute * np.timedelta64(60, "s")).astype("datetime64[us]"),
            "lat": place[:, 0],
            "lon": place[:, 1],
        }
    )


def blocks(language: str, after: str) -> str:
    """The first block of a language behind a heading."""
    section = README[README.index(after) :]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def folder(tmp_path):
    table = trips()
    table.write_csv(tmp_path / "trips.csv")
    stream = table.drop("trip_id").rename({"user_id": "TaxiID", "lat": "Latitude", "lon": "Longitude"})
    stream.sort("timestamp").write_csv(tmp_path / "stream.csv")  # all cabs interleaved, no trips
    return tmp_path


def test_from_a_raw_stream_to_a_verified_release_in_three_commands(folder):
    script = blocks("sh", "## Release a file")
    assert script.count("murmurate ") == 3
    done = shell(folder, script)
    assert done.returncode == 0, done.stderr
    assert "Verified:" in done.stdout
    assert (folder / "release" / "statement.md").is_file()
    assert "Good for" in (folder / "report.html").read_text() or "Not for" in (folder / "report.html").read_text()
    also = shell(folder, blocks("sh", "`statement.md`"))
    assert also.returncode == 0, also.stderr
    assert (folder / "private.html").is_file()
    quick = " ".join(f"--attack {name}" for name in ("copying", "singling_out", "linkability", "inference"))
    assert not broken(folder, f"murmurate attack release --against stream.csv {quick}")


def broken(folder, command):
    """The attacks that find more than twice what chance finds, as the verdict counts them."""
    done = shell(folder, f"{command} --json attacks.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "attacks.json").read_text())["scores"]
    known = {field.name for field in fields(Score)}
    scores = [Score(**{name: value for name, value in score.items() if name in known}) for score in found]
    assert any(score.chance is not None for score in scores)
    return verdict(Evaluation(()), attacked=Evaluation(tuple(scores))).broken


def shell(folder, script):
    environment = {**os.environ, "MURMURATE_STATE": str(folder / "state")}
    lines = script.replace("murmurate ", f"{sys.executable} -m murmurate ")
    return subprocess.run(["bash", "-euc", lines], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_python(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    exec(compile(blocks("python", "From Python"), "README.md", "exec"), {})
    assert capsys.readouterr().out.rstrip().endswith("True")
    read = "--against trips.csv --time-zone Europe/Helsinki --ledger ledger.sqlite"
    assert not broken(folder, f"murmurate attack release-from-python {read}")


def test_what_an_attack_breaks_is_found(folder):
    """The measure can fail: a release whose times stay exact is found, and README says so in its table."""
    weak = "--set epsilon=1 --set radius_m=200 --set max_points=20 --confirm 'publish with weak protection'"
    read = "--time-zone Europe/Helsinki --ledger weak.sqlite"
    done = shell(folder, f"murmurate release geoind --in trips.csv {read} --out weak {weak}")
    assert done.returncode == 0, done.stderr
    assert broken(folder, f"murmurate attack weak --against trips.csv {read}")
    assert "somebody who knows when a person travelled can often find the trip" in README


def test_every_page_it_names_is_there():
    root = Path(__file__).resolve().parent.parent
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (root / target).exists(), target
