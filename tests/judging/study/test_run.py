"""A study goes on where it stopped, whatever stopped it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from murmurate.core import progress
from murmurate.core.ledger import Ledger
from murmurate.errors import InputError, OutputError
from murmurate.judging.study import read_results, run, study

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def counted(monkeypatch):
    """Which cells are really run."""
    ran = []
    original = run.run_cell
    monkeypatch.setattr(run, "run_cell", lambda cell: (ran.append(cell), original(cell))[1])
    return ran


def test_the_table_is_tidy_and_marked_internal(small, tmp_path):
    import pyarrow.parquet as pq

    result = study(small, out=tmp_path / "out")
    table = read_results(tmp_path / "out")
    assert table.equals(result.table)
    assert table.columns[:6] == ["study", "dataset", "mechanism", "mechanism_name", "setting", "max_points"]
    assert {"epsilon", "radius_m", "repeat", "kind", "metric", "value", "low", "high", "chance", "better", "unit"} <= set(
        table.columns
    )
    # 3 metrics of 5 statistics; 4 settings of 2 repeats, and the originals
    assert table.height == 15 * (4 * 2 + 1)
    keys = ["dataset", "mechanism", "setting", "repeat", "metric"]
    assert table.select(keys).is_duplicated().sum() == 0
    assert b"Internal" in pq.read_schema(tmp_path / "out" / "results.parquet").metadata[b"murmurate"]
    about = json.loads((tmp_path / "out" / "about.json").read_text())
    assert about["internal"] is True
    assert about["regression"]["c"]


def test_finished_cells_are_not_run_again(small, tmp_path, counted):
    first = study(small, out=tmp_path / "out")
    assert (len(counted), first.reused) == (5, 0)
    again = study(small, out=tmp_path / "out")
    assert (len(counted), again.reused) == (5, 5)
    assert again.table.equals(first.table)


def test_a_larger_grid_reuses_what_is_there(small, tmp_path, counted):
    study(small, out=tmp_path / "out")
    small["mechanisms"][0]["sweep"]["radius_m"].append(200)
    larger = study(small, out=tmp_path / "out")
    assert (len(counted), larger.reused) == (7, 5)
    small["mechanisms"][0]["sweep"]["radius_m"] = [50]
    smaller = study(small, out=tmp_path / "out")
    assert smaller.table["radius_m"].drop_nulls().unique().to_list() == [50.0]


def test_damaged_cells_are_noticed_and_run_again(small, tmp_path, counted):
    whole = study(small, out=tmp_path / "out").table
    files = sorted((tmp_path / "out" / "cells").glob("*.parquet"))
    files[0].write_bytes(files[0].read_bytes()[:100])  # half-written
    changed = bytearray(files[1].read_bytes())
    changed[60] ^= 0xFF  # a flipped byte in a page
    files[1].write_bytes(changed)
    files[2].write_bytes(b"")
    files[3].write_bytes(files[4].read_bytes())  # a sound file under another cell's name
    counted.clear()
    mended = study(small, out=tmp_path / "out")
    assert len(counted) == 4
    assert mended.table.equals(whole)


def test_a_half_written_table_is_refused_and_made_anew(small, tmp_path):
    whole = study(small, out=tmp_path / "out").table
    path = tmp_path / "out" / "results.parquet"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r"(?s)damaged or only half.*run the study again"):
        read_results(tmp_path / "out")
    study(small, out=tmp_path / "out")
    assert read_results(tmp_path / "out").equals(whole)
    path.unlink()
    with pytest.raises(InputError, match="does not exist"):
        read_results(tmp_path / "out")


def test_what_a_killed_run_left_half_written_is_removed(small, tmp_path):
    study(small, out=tmp_path / "out")
    left = tmp_path / "out" / "cells" / ".x.parquet-abc.part"
    left.write_bytes(b"PAR1")
    study(small, out=tmp_path / "out")
    assert not left.exists()


def test_a_killed_study_goes_on(small, tmp_path, counted):
    """kill -9 in the middle, with two workers: what was finished is there, whole, and is not run again."""
    small["repeats"] = 1500  # some seconds of work
    (tmp_path / "study.json").write_text(json.dumps(small))
    code = (
        "import json, sys\nfrom murmurate.judging.study import study\n"
        "if __name__ == '__main__':\n    study(json.load(open(sys.argv[1])), out=sys.argv[2], workers=2)\n"
    )
    (tmp_path / "go.py").write_text(code)
    cells = tmp_path / "out" / "cells"
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(tmp_path / "go.py"), str(tmp_path / "study.json"), str(tmp_path / "out")],
        env={**os.environ, "POLARS_MAX_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )
    while not list(cells.glob("*.parquet")):
        assert child.poll() is None, "the study ended before it could be killed"
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    # a worker may still be writing the cell it was at; it ends with its parent
    time.sleep(0.5)
    finished = {path.stem for path in cells.glob("*.parquet")}
    assert finished
    assert not (tmp_path / "out" / "results.parquet").exists()
    result = study(small, out=tmp_path / "out")
    assert result.reused == len(finished)
    assert not finished & {cell.key for cell in counted}
    expected = study(small, out=tmp_path / "other")
    assert result.table.equals(expected.table)


def test_workers_do_not_change_anything(small, tmp_path):
    alone = study(small, out=tmp_path / "one", workers=1)
    together = study(small, out=tmp_path / "two", workers=2)
    assert together.table.equals(alone.table)


def test_another_folder_is_not_overwritten(small, tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(OutputError, match="not a study"):
        study(small, out=tmp_path)
    with pytest.raises(OutputError, match="not a study"):
        study(small, out=tmp_path / "precious.txt")


def test_an_absent_dataset_is_skipped_with_its_reason(small, tmp_path):
    small["datasets"]["porto"] = {"file": str(tmp_path / "porto.csv")}
    result = study(small, out=tmp_path / "out")
    assert "porto.csv" in result.skipped["dataset porto"]
    assert result.table["dataset"].unique().to_list() == ["tony900"]
    del small["datasets"]["tony900"]
    alone = study(small, out=tmp_path / "alone")
    assert alone.table.is_empty()
    assert alone.skipped


def test_progress_counts_cells(small, tmp_path):
    seen = []
    with progress.shown_by(lambda what, done, total: seen.append((what, done, total))):
        study(small, out=tmp_path / "out")
    assert [step for step in seen if step[0] == "study"] == [("study", done, 5) for done in range(6)]


def test_nothing_is_charged_and_the_ledger_knows_that_somebody_looked(small, tmp_path):
    from murmurate.demo import tony900

    trips = tony900(skaters=20)
    trips.table.write_parquet(tmp_path / "skaters.parquet")
    small["datasets"] = {"skaters": {"file": str(tmp_path / "skaters.parquet")}}
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    study(small, out=tmp_path / "out", ledger=ledger)
    kinds = [entry.what for entry in ledger.history()]
    assert "rehearsal" in kinds
    assert "charge" not in kinds
    before = len(kinds)
    study(small, out=tmp_path / "out", ledger=ledger)
    assert len(ledger.history()) == before, "a study that runs nothing looks at nothing"


def test_a_cell_that_fails_is_told_and_tried_again(small, tmp_path, monkeypatch):
    def broken(cell):
        outcome = original(cell)
        return outcome if cell.setting != 2 else run.Outcome(cell, outcome.rows.clear(), {}, "no")

    original = run.run_cell
    monkeypatch.setattr(run, "run_cell", broken)
    result = study(small, out=tmp_path / "out")
    assert list(result.failed.values()) == ["no"]
    assert 2 not in result.table["setting"]
    monkeypatch.setattr(run, "run_cell", original)
    again = study(small, out=tmp_path / "out")
    assert (again.reused, again.failed) == (4, {})
    assert isinstance(again.table, pl.DataFrame)
    assert 2 in again.table["setting"]
