"""`murmurate dummies`: a pool from a release, and what a phone would send."""

from __future__ import annotations

import json
import stat

import pytest
from typer.testing import CliRunner

import murmurate as mm
from murmurate import noise
from murmurate.cli import app
from murmurate.errors import InputError, OutputError, ParameterError
from murmurate.mechanisms.plausible import Plausible
from plausible_days import GRID, made_days, trips_of


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    mechanism = Plausible(space=GRID, n_out=40)
    out = tmp_path_factory.mktemp("dummies") / "days"
    return mm.release(mechanism, trips_of(made_days(20, 2)), ledger=mm.Ledger.in_memory(), out=out, rng=noise.seeded(1)).folder


def run(*arguments):
    done = CliRunner().invoke(app, ["dummies", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_from_a_release_to_what_is_sent(released, tmp_path):
    packed, secret = tmp_path / "pool.mur", tmp_path / "secret"
    assert "40 days" in run("pool", released, "--out", packed)
    ask = ("at", packed, "--lat", 60.02, "--lng", 24.05, "--device", secret, "--k", 5, "--time", "2026-03-02T12:00:00Z")
    once, again = run(*ask), run(*ask)
    assert once == again
    assert len(once.splitlines()) == 6
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    places = json.loads(run(*ask, "--json"))["places"]
    lat, lng = GRID.centre(GRID.locate(60.02, 24.05))
    assert {"lat": float(lat), "lng": float(lng)} in places


def test_what_cannot_be_is_refused(released, tmp_path):
    packed = tmp_path / "pool.mur"
    run("pool", released, "--out", packed)
    with pytest.raises(OutputError, match="exists"):
        run("pool", released, "--out", packed)
    where = ("--lat", 60.02, "--lng", 24.05, "--device", tmp_path / "secret")
    with pytest.raises(ParameterError, match="time"):
        run("at", packed, *where, "--time", "noon")
    with pytest.raises(ParameterError, match="by"):
        run("at", packed, *where, "--by", "luck")
    with pytest.raises(InputError, match="outside"):
        run("at", packed, "--lat", 0, "--lng", 0, "--device", tmp_path / "secret")
    with pytest.raises(OutputError, match="secret"):
        run("at", packed, "--lat", 60.02, "--lng", 24.05, "--device", tmp_path / "no" / "folder")
    with pytest.raises(InputError, match="not a pool"):
        run("at", released / "manifest.json", *where)
