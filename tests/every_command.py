"""Run as a program: every command but `studio` once, on a small town, in one process.

    every_command.py FOLDER

Prints one JSON line per command: its words, exit code, and what it wrote to standard output and error. With `sitecustomize.py`
of this folder on the path, every socket that this process or a child of it opens is refused and written down.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path

import polars as pl

PERSON = "kestrel4711"
"""Begins the uid of everybody in the private file."""
BOX = "grid:60.0,24.0,60.045,24.09:500"
CONFIRMED = ("--confirm", "publish with weak protection")
STUDY = """name = "small"
metrics = ["length"]
repeats = 1
[datasets.tony900]
skaters = 10
[[mechanisms]]
name = "geoind"
[mechanisms.set]
epsilon = 1.0
radius_m = 100
max_points = 14
"""


def commands(home: Path) -> list[list[str]]:
    """Return the words of every command, in an order in which each finds what it needs."""
    private, days, ledger = home / "private" / "trips.parquet", home / "private" / "days.parquet", home / "l.sqlite"
    at = ("--ledger", str(ledger))
    flock = ("--space", BOX, "--set", "epsilon=5", "--set", "delta=1e-5")
    geoind = ("--set", "epsilon=1", "--set", "radius_m=200", "--set", "max_points=10", *CONFIRMED)
    plausible = ("--space", "grid:60.0,24.0,60.1,24.2:500", "--set", "epsilon=5", "--set", "n_out=40")
    lines = [
        ("inspect", private),
        ("start", private, "--yes", "--recipe", "r.toml", "--box", "60.0,24.0,60.045,24.09"),
        ("list", "mechanisms"),
        ("release", "geoind", "--in", private, "--out", "moved", *geoind, *at, "--population", "town"),
        ("fit", "flock", "--in", private, "--out", "model", *flock, *at, "--engine", "processes:2"),
        ("sample", "model", "--set", "n_out=60", "--out", "drawn"),
        ("verify", "drawn"),
        ("export", "drawn", "--format", "csv", "--out", "drawn.csv"),
        ("evaluate", "moved", "--against", private, *at, "--metric", "length", "--html", "page.html", "--json", "scores.json"),
        ("attack", "drawn", "--against", private, *at, "--html", "attacks.html", "--json", "attacks.json"),
        ("attack", "--release", "drawn/data.parquet", "--against", private, "--html", "foreign.html", "--json", "foreign.json"),
        ("study", "study.toml", "--out", "study", "--workers", "1"),
        ("audit", "geoind", "--runs", "2000", "--json", "audit.json", "--html", "audit.html"),
        ("dossier", "drawn", "--out", "pack", *at, "--against", private, "--approved-by", "Ann, officer"),
        ("ledger", "show", *at),
        ("ledger", "limit", "town", "--epsilon", "9", *at),
        ("ledger", "plan", "flock", *flock, "--population", "town", *at),
        ("ledger", "attach", "elsewhere", days, "--create", "--override-overlap", *at),
        ("ledger", "backup", "copy.sqlite", *at),
        ("ledger", "check", *at),
        ("ledger", "forget", "moved", *at),
        ("release", "plausible", "--in", days, "--out", "days", *plausible, *at, *CONFIRMED, "--yes"),
        ("dummies", "pool", "days", "--out", "pool.mur"),
        ("dummies", "at", "pool.mur", "--lat", "60.02", "--lng", "24.05", "--device", "secret", "--k", "5"),
        ("demo-data", "tony900", "--people", "10", "--out", "tony"),
        ("demo", "--out", "demo", "--people", "8", "--days", "2", "--only", "geoind"),
    ]
    return [[str(word) for word in line] for line in lines]


def faulty(home: Path) -> list[list[str]]:
    """Return commands that are refused: for what the file holds, where its trips lie, and a space of the wrong kind."""
    private, bad = str(home / "private" / "trips.parquet"), str(home / "private" / "bad.csv")
    far = ("--space", "grid:10,10,11,11:500", "--set", "epsilon=1", "--set", "delta=1e-6", "--limit", "9")
    return [
        ["release", "geoind", "--in", bad, "--out", "x", "--set", "epsilon=1", "--set", "radius_m=200", "--limit", "9"],
        ["release", "flock", "--in", private, "--out", "x", *far],
        ["release", "road_counts", "--in", private, "--out", "x", *far],
        ["evaluate", "moved", "--against", str(home / "private" / "days.parquet"), "--ledger", str(home / "l.sqlite")],
    ]


def write_private(folder: Path) -> None:
    from plausible_days import made_days, trips_of
    from small_town import town

    folder.mkdir()
    for name, trips in (("trips", town(150)), ("days", trips_of(made_days(20, 2)))):
        named = trips.table.with_columns(uid=pl.lit(PERSON) + pl.col("uid").cast(pl.String))
        named.write_parquet(folder / f"{name}.parquet")
    wrong = ("kestrel4711,1,sometime4711,60.174711,24.941234", "kestrel4711,1,2024-05-01T08:00:00Z,60.17x4711,")
    (folder / "bad.csv").write_text("\n".join(("uid,tid,datetime,lat,lng", *wrong, "")))


def run(words: list[str]) -> dict[str, object]:
    from murmurate.cli import main

    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["murmurate", *words]
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    return {"words": words, "code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    home = Path(sys.argv[1])
    os.umask(0)
    write_private(home / "private")
    os.chdir(home)
    Path("study.toml").write_text(STUDY)
    for words in (*commands(home), *faulty(home)):
        print(json.dumps(run(words)), file=sys.__stdout__, flush=True)
