"""Private work files of a killed release lie beside its ledger, closed to others, and are gone after the next start."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import murmurate as mm
from murmurate.core.work import WorkFolder
from small_town import town

KILLED = """
import os, signal, sys
import murmurate as mm
from murmurate.ingest.stream import scan
os.umask(0)
with mm.Ledger(sys.argv[1]) as ledger:
    parts = scan(sys.argv[2], points_per_partition=500, hold_points=0, work_dir=sys.argv[3] or ledger.work_folder)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def spilled(tmp_path, monkeypatch):
    """Spill, be killed, and return the folder with what was left; by default beside the ledger."""
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    (temporary := tmp_path / "tmp").mkdir()
    town(300).table.write_parquet(tmp_path / "trips.parquet")

    def run(work: str = "") -> Path:
        words = (str(tmp_path / "l.sqlite"), str(tmp_path / "trips.parquet"), work)
        environment = {**os.environ, "TMPDIR": str(temporary)}
        done = subprocess.run([sys.executable, "-c", KILLED, *words], env=environment, capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        left = Path(work) if work else tmp_path / "l.sqlite.work"
        assert files(left), "the process was killed before anything was spilled"
        assert files(temporary) == []
        return left

    return run


def test_spills_of_a_killed_process_are_private_and_swept_when_its_ledger_is_opened(spilled, tmp_path):
    left = spilled()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in left.iterdir())
    mm.Ledger(tmp_path / "l.sqlite").close()
    assert files(left) == []


def test_spills_beside_a_ledger_are_swept_by_another_machine_that_opens_it(spilled, tmp_path, monkeypatch):
    left = spilled()
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state of another"))
    mm.Ledger(tmp_path / "l.sqlite").close()
    assert files(left) == []


def test_spills_are_swept_when_somebody_else_works_there(spilled, tmp_path, monkeypatch):
    left = spilled()
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state of another"))
    WorkFolder(left).close()
    assert files(left) == []


@pytest.mark.parametrize("start", ["ledger", "work"])
def test_spills_in_a_folder_that_was_named_once_are_swept_by_any_start(spilled, tmp_path, start):
    """Whoever names a folder with --work one day need not name it again for its rows to go."""
    left = spilled(str(tmp_path / "scratch"))
    assert stat.S_IMODE(next(left.iterdir()).stat().st_mode) == 0o700
    if start == "ledger":
        mm.Ledger(tmp_path / "another.sqlite").close()
    else:
        WorkFolder(tmp_path / "elsewhere").close()
    assert files(left) == []


def test_work_that_goes_on_elsewhere_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    mine = WorkFolder(tmp_path / "scratch")
    (mine.path / "rows").write_text("x")
    for _ in range(2):
        mm.Ledger(tmp_path / "l.sqlite").close()
    assert files(mine.path)
    mine.close()
    assert files(tmp_path / "state" / "work-places") == [], "a folder without work folders is forgotten"
