from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import fsspec
import pytest

from engine_parts import always_killed, killed_once, shared_sum
from murmurate import engine
from murmurate.core.work import WorkFolder, sweep
from murmurate.core.work_files import WorkFiles
from murmurate.engine import Serial
from murmurate.engine.written_files import NewFile, new_files, write_files
from murmurate.errors import EngineError


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers):
    assert list(engine.map(abs, range(-5, 5), workers=workers)) == [5, 4, 3, 2, 1, 0, 1, 2, 3, 4]


def test_a_killed_worker_costs_a_part_and_no_result(tmp_path):
    with engine.engine(2) as running:
        assert list(running.map(partial(killed_once, tmp_path), range(12))) == [k * k for k in range(12)]


def test_a_part_that_always_kills_its_worker_ends_the_work():
    with engine.engine(2) as running, pytest.raises(EngineError, match="3 times"):
        list(running.map(always_killed, range(3)))


INTERRUPTED = """
import sys, time
from murmurate.engine import engine

def wait(item):
    print("here", flush=True)
    time.sleep(60 if item == 1 else 0)  # the other worker waits for work

if __name__ == "__main__":
    try:
        with engine(sys.argv[1]) as running:
            list(running.map(wait, [1, 2]))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups of this kind")
@pytest.mark.parametrize("word", ["processes:2", "dask-local:2"])
def test_ctrl_c_ends_workers_without_a_word(tmp_path, word):
    (tmp_path / "run.py").write_text(INTERRUPTED)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    environment = {**os.environ, "MURMURATE_STATE": str(tmp_path / "state")}
    process = subprocess.Popen([sys.executable, tmp_path / "run.py", word], env=environment, text=True, **pipes)
    assert [process.stdout.readline() for _ in range(2)] == ["here\n"] * 2
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and not errors


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_have_the_environment_of_now(workers, monkeypatch):
    """Not that of the process they are forked from, which may have started with the first release."""
    list(engine.map(abs, range(2), workers=workers))
    monkeypatch.setenv("MURMURATE_TEST_CREDENTIAL", "later")
    assert list(engine.map(os.getenv, ["MURMURATE_TEST_CREDENTIAL"] * 2, workers=workers)) == ["later", "later"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_shared_value_reaches_every_worker(workers, tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path))
    with engine.engine(workers) as running:
        handle = running.share([1, 2, 3])
        assert list(running.map(partial(shared_sum, handle), range(4))) == [6, 7, 8, 9]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_a_worker_still_writes_does_not_keep_its_folder(tmp_path, monkeypatch):
    folder, remove = WorkFolder(tmp_path / "work"), os.rmdir

    def late(*given, **more):
        with suppress(OSError):
            folder.files.put("part", b"private")
        remove(*given, **more)

    monkeypatch.setattr(os, "rmdir", late)
    folder.close()
    monkeypatch.undo()
    assert not (tmp_path / "work").exists()


def test_work_folders_are_private_and_swept_after_a_kill(tmp_path):
    folder = WorkFolder(tmp_path)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    left = tmp_path / "work-999999999-abc"
    left.mkdir(mode=0o700)
    assert sweep(tmp_path) == [left]
    assert folder.path.exists()
    folder.close()
    assert not folder.path.exists()


@dataclass(frozen=True)
class Made:
    """A file to write, and its content."""

    file: NewFile
    content: bytes


def write_made(one):
    return one.file.write(lambda path: path.write_bytes(one.content))


class OtherDisk(Serial):
    """Runs items as workers on another machine do, who share a store with this one and no folder."""

    def files(self):
        return WorkFiles("memory://other-disk", b"k" * 32)

    def map(self, function, items):
        for one in items:
            yield function(replace(one, file=replace(one.file, path=Path("/nowhere/data.parquet", one.file.path.name))))


def test_workers_without_the_folder_of_a_release_write_its_files_through_the_store(tmp_path):
    running, folder = OtherDisk(), tmp_path / "data.parquet"
    items = [Made(file, b"%d" % k) for k, file in enumerate(new_files(running, folder, 3))]
    hashes = write_files(running, write_made, items, folder, "writing")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {f"part-0000{k}.parquet": b"%d" % k for k in range(3)}
    assert hashes == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in hashes} and len(hashes) == 3
    assert not fsspec.filesystem("memory").find("/other-disk")
