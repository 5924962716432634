"""Without jax: what needs a network is refused before anything is spent; everything else works."""

from __future__ import annotations

import subprocess
import sys

import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate.errors import MissingPart
from murmurate.mechanisms import build
from murmurate.mechanisms.dp_loc import DPLoc, moves_counts


@pytest.fixture(autouse=True)
def no_jax(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("jax", "jaxlib")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("jax", "jaxlib"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(moves_counts, "LEAST_SIMULATED", 50)
    monkeypatch.setattr(moves_counts, "DRAWN_ENDS", 2_000)


@pytest.mark.parametrize("options", [{"variant": "as_published"}, {"initialiser": "vae"}, {"next_cell": "net"}])
def test_networks_are_refused_when_the_mechanism_is_built(options):
    with pytest.raises(MissingPart, match=r"pip install 'murmurate\[papers\]'"):
        build("dp_loc", {"epsilon": 1.0, "space": GRID, **options})


def test_a_variant_without_networks_needs_no_jax(tmp_path):
    with mm.Ledger.in_memory() as ledger:
        made = mm.release(DPLoc(epsilon=20.0, space=GRID, n_out=20), city(200), ledger=ledger, out=tmp_path / "made")
    assert made.trips.n_trips == 20


def test_the_command_ends_in_2_and_spends_nothing(tmp_path):
    city(40).table.write_parquet(tmp_path / "trips.parquet")
    program = "import sys\nsys.modules['jax'] = None\nfrom murmurate.cli import main\nmain()\n"
    wanted = ["--in", "trips.parquet", "--out", "made", "--ledger", "sqlite:///ledger.db", "--space", GRID.spec()]
    settings = ["--set", "epsilon=1", "--set", "variant=as_published"]
    done = subprocess.run(
        [sys.executable, "-c", program, "release", "dp_loc", *wanted, *settings],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'murmurate[papers]'" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"trips.parquet"}
