"""Private work files of a killed release lie beside its ledger, closed to others, and are gone after the next start."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import murmurate as mm
from small_town import town

KILLED = """
import os, signal, sys
import murmurate as mm
from murmurate.ingest.stream import scan
os.umask(0)
with mm.Ledger(sys.argv[1]) as ledger:
    parts = scan(sys.argv[2], points_per_partition=500, hold_points=0, work_dir=ledger.work_folder)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_spills_of_a_killed_process_are_private_and_swept(tmp_path, monkeypatch):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    private, ledger = tmp_path / "trips.parquet", tmp_path / "l.sqlite"
    town(300).table.write_parquet(private)
    environment = {**os.environ, "TMPDIR": str(temporary), "MURMURATE_STATE": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(ledger), str(private)], env=environment, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = tmp_path / "l.sqlite.work"
    assert files(left), "the process was killed before anything was spilled"
    assert files(temporary) == []
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in left.iterdir())
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    mm.Ledger(ledger).close()
    assert files(left) == []
