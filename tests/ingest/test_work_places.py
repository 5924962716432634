"""Private parts in a folder, in an object store, or nowhere: the same tables and releases, nothing readable left behind."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from contextlib import chdir
from itertools import chain
from pathlib import Path

import fsspec
import numpy as np
import polars as pl
import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate import noise
from murmurate.core import work, work_files
from murmurate.core.work_files import WorkFiles, on_network
from murmurate.engine import Serial, engine
from murmurate.errors import GuaranteeRefused, InputError, MissingPart, OutputError, ParameterError
from murmurate.ingest import shuffle
from murmurate.ingest.read import read
from murmurate.ingest.stream import scan
from murmurate.mechanisms.flock import Flock

STORE = "memory://work-places"
FLOCK = Flock(epsilon=20.0, space=GRID, n_out=60)


class Two(Serial):
    """Runs pieces here as an engine of two workers would."""

    workers = 2


class Elsewhere(Two):
    """Runs pieces in another current folder, as workers do that somebody else started."""

    def map(self, function, items):
        for item in items:
            with chdir("/"):
                found = function(item)
            yield found


@pytest.fixture(scope="module")
def trips():
    return city(240, users=40).table


@pytest.fixture(scope="module")
def files(tmp_path_factory, trips):
    """The same rows person by person, trip by trip, and in any order; in small row groups, and as text."""
    folder = tmp_path_factory.mktemp("files")
    by_trip = trips.with_columns(order=pl.col("tid").cast(pl.String).hash(3)).sort("order", "uid", "tid", maintain_order=True)
    orders = {"people": trips, "trips": by_trip.drop("order"), "mixed": trips.sample(fraction=1, shuffle=True, seed=1)}
    for name, table in orders.items():
        table.write_parquet(folder / f"{name}.parquet", row_group_size=100)
    orders["mixed"].write_csv(folder / "mixed.csv")
    return folder


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def in_parts(path, **options):
    return scan(path, points_per_partition=300, hold_points=0, **options)


def stored():
    return [path for path in fsspec.filesystem("memory").find("/work-places") if path]


def same_rows(parts, path):
    table = pl.concat([part.table for part in parts]).sort("uid", "tid", "datetime")
    assert table.equals(read(path).table.sort("uid", "tid", "datetime"))


@pytest.mark.parametrize("engine", [Serial(), Two()])
@pytest.mark.parametrize("name", ["people.parquet", "mixed.parquet", "mixed.csv"])
@pytest.mark.parametrize("place", ["folder", STORE, "none"])
def test_parts_are_the_same_wherever_they_lie(files, tmp_path, place, name, engine):
    with in_parts(files / name, engine=engine, work_dir=tmp_path / "work" if place == "folder" else place) as parts:
        loaded = list(parts)
        assert len(loaded) > 1
        people = [part.user_ids.cast(pl.String).to_list() for part in loaded]
        assert sorted(chain.from_iterable(people)) == sorted(set(parts.identity.uids))
        assert (parts.report.people, parts.report.trips) == (40, 240)
        same_rows(parts, files / name)
        assert bool(stored()) == (place == STORE)
        for path in stored():
            assert b"ARROW" not in fsspec.filesystem("memory").cat_file(path)
    assert not stored()
    assert not list((tmp_path / "work").glob("*")) and not list((tmp_path / "state" / "work").glob("*"))


@pytest.mark.parametrize("name", ["people.parquet", "mixed.parquet"])
@pytest.mark.parametrize("place", ["work", "none"])
def test_workers_may_have_another_current_folder(files, tmp_path, monkeypatch, name, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes((files / name).read_bytes())
    with in_parts(name, engine=Elsewhere(), work_dir=place) as parts:
        monkeypatch.chdir("/")
        same_rows(parts, files / name)
    assert not (tmp_path / "work").exists()


def test_a_file_that_workers_cannot_open_is_read_here(files, monkeypatch):
    def absent(*_):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr("murmurate.ingest.pieces._batches", absent)
    with in_parts(files / "mixed.parquet", engine=Two(), work_dir=STORE) as parts:
        same_rows(parts, files / "mixed.parquet")


def test_two_levels_of_buckets_in_a_store(files, monkeypatch):
    monkeypatch.setattr(shuffle, "FAN", 2)
    with in_parts(files / "mixed.parquet", engine=Two(), work_dir=STORE) as parts:
        same_rows(parts, files / "mixed.parquet")


def test_releases_are_the_same_wherever_work_files_lie(files, tmp_path):
    made = []
    for k, place in enumerate((tmp_path / "work", STORE, "none")):
        with mm.Ledger.in_memory() as ledger, in_parts(files / "mixed.parquet", engine=Two(), work_dir=place) as parts:
            found = mm.release(
                FLOCK, parts, ledger=ledger, out=tmp_path / f"{k}", rng=noise.seeded(5), engine=Two(), work=place
            )
        made.append((found.folder / "data.parquet").read_bytes())
    assert made[0] == made[1] == made[2]
    assert not stored()


def test_without_a_copy_nothing_is_written(files, tmp_path, state, monkeypatch):
    monkeypatch.setattr(work, "WorkFolder", None)
    with mm.Ledger.in_memory() as ledger, in_parts(files / "mixed.csv", work_dir="none") as parts:
        mm.release(FLOCK, parts, ledger=ledger, out=tmp_path / "out", work="none")
    assert not (state / "work").exists()


def test_without_a_copy_a_changed_file_is_refused(files, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes((files / "mixed.csv").read_bytes())
    with in_parts(path, work_dir="none") as parts:
        os.utime(path, ns=(1, 1))
        with pytest.raises(InputError, match="changed while it was read"):
            list(parts)


def test_without_a_copy_strict_is_refused_and_faults_are_told(files, tmp_path):
    with pytest.raises(ParameterError, match="leave out one of them"):
        in_parts(files / "mixed.csv", work_dir="none", strict=True)
    (tmp_path / "x.csv").write_text("uid,tid,datetime,lat,lng\n1,1,2024-01-01T00:00:00Z,95,24\n")
    with pytest.raises(InputError, match="lat"):
        in_parts(tmp_path / "x.csv", work_dir="none")


@pytest.mark.parametrize("engine", [Serial(), Two()])
def test_whole_trips_need_no_sorting_by_person(files, tmp_path, monkeypatch, engine):
    for sorting in ("shuffled_pieces", "Buckets"):
        monkeypatch.setattr(f"murmurate.ingest.stream.{sorting}", None)
    with in_parts(files / "trips.parquet", engine=engine, work_dir=tmp_path / "work", whole_trips=True) as parts:
        people = list(chain.from_iterable(part.user_ids.cast(pl.String).to_list() for part in parts))
        assert len(people) > len(set(people)) == 40 == parts.report.people == len(parts.identity.uids)
        same_rows(parts, files / "trips.parquet")
        with mm.Ledger.in_memory() as ledger:
            made = mm.release(FLOCK, parts, ledger=ledger, out=tmp_path / "a", rng=noise.seeded(5))
            by_user = Flock(epsilon=20.0, delta=1e-6, space=GRID, unit="user", max_trips=3, n_out=9)
            with pytest.raises(GuaranteeRefused, match="two parts"):
                mm.release(by_user, parts, ledger=ledger, out=tmp_path / "b")
    whole = read(files / "trips.parquet")
    with mm.Ledger.in_memory() as ledger:
        same = mm.release(FLOCK, whole, ledger=ledger, out=tmp_path / "c", rng=noise.seeded(5))
    assert (made.folder / "data.parquet").read_bytes() == (same.folder / "data.parquet").read_bytes()


@pytest.mark.parametrize("engine", [Serial(), Two()])
def test_a_trip_in_two_places_is_sorted(files, tmp_path, engine):
    with in_parts(files / "mixed.parquet", engine=engine, work_dir=tmp_path / "work", whole_trips=True) as parts:
        same_rows(parts, files / "mixed.parquet")


def test_stores_hold_nothing_readable_and_notice_changes():
    files = WorkFiles(f"{STORE}/x", bytes(32))
    files.put("a", b"Ada Lovelace" * 9)
    fs = fsspec.filesystem("memory")
    assert b"Lovelace" not in fs.cat_file("/work-places/x/a")
    assert files.get("a") == b"Ada Lovelace" * 9 and files.has("a") and not files.has("b")
    fs.mv("/work-places/x/a", "/work-places/x/b")
    with pytest.raises(OSError, match="was changed by somebody"):
        files.get("b")
    ends = files.put_segments("s", [b"one", b"", b"three"])
    assert [files.get_segment("s", k, *ends[k : k + 2]) for k in range(3)] == [b"one", b"", b"three"]
    work_files.remove_store(files.where)
    assert not stored()


def test_large_files_are_encrypted_in_chunks(monkeypatch):
    monkeypatch.setattr(work_files, "CHUNK_BYTES", 5)
    files = WorkFiles(f"{STORE}/x", bytes(32))
    files.put("a", b"0123456789ab")
    assert files.get("a") == b"0123456789ab"
    half = fsspec.filesystem("memory").cat_file("/work-places/x/a")[: 5 + 28]
    fsspec.filesystem("memory").pipe_file("/work-places/x/a", half)
    with pytest.raises(OSError, match="was changed"):
        files.get("a")
    work_files.remove_store(files.where)


def test_what_a_killed_process_left_in_a_store_is_swept(state):
    folder = work.WorkFolder(STORE)
    folder.files.put("a", b"x")
    remains = folder._remove.detach()  # as a process that was killed: nothing is removed, its lock is gone
    os.close(remains[2][1])
    assert stored()
    work.WorkFolder().close()
    assert not stored() and not list((state / "work").glob("*"))


def test_a_store_that_cannot_be_reached_keeps_its_note(state, monkeypatch):
    folder = work.WorkFolder(STORE)
    folder.files.put("a", b"x")
    os.close(folder._remove.detach()[2][1])
    with monkeypatch.context() as patch:
        patch.setattr(work, "remove_store", lambda where: (_ for _ in ()).throw(OSError("away")))
        work.sweep(state / "work")
    assert (folder.path / work.ELSEWHERE).is_file()
    work.sweep(state / "work")
    assert not stored() and not folder.path.exists()


@pytest.mark.parametrize("foreign", [False, True])
def test_a_note_in_a_shared_folder_deletes_nothing_else(tmp_path, monkeypatch, foreign):
    """Anybody may make a folder of this name in a shared one, with a note that names any folder of the next account."""
    home, shared = tmp_path / f"home/work-{'0' * 16}" if foreign else tmp_path / "home", tmp_path / "shared"
    left = shared / "work-1-abc"
    for folder in (home, left):
        folder.mkdir(mode=0o700, parents=True)
    (home / "thesis").touch()
    (left / work.ELSEWHERE).write_text(f"file://{home}")
    if foreign:
        monkeypatch.setattr(work.os, "geteuid", lambda: os.getuid() + 1)
    assert work.sweep(shared) == ([] if foreign else [left])
    assert (home / "thesis").exists() and left.exists() == foreign


def test_files_in_a_folder_that_others_may_change_are_encrypted(tmp_path):
    """Who may rename a work folder can put another in its place, whose files a worker would run."""
    encrypted = {}
    for mode in (0o700, 0o755, 0o1777, 0o3770, 0o777, 0o770, 0o2775):
        tmp_path.chmod(mode)
        folder = work.WorkFolder(tmp_path)
        encrypted[mode] = folder.files.key is not None
        folder.close()
    assert [mode for mode, is_encrypted in encrypted.items() if is_encrypted] == [0o777, 0o770, 0o2775]


def test_bad_addresses_are_told_before_anything_is_read(files, monkeypatch):
    with pytest.raises(ParameterError, match="work files cannot lie at nowhere://"):
        in_parts(files / "mixed.csv", work_dir="nowhere://x")
    monkeypatch.setattr(fsspec.implementations.memory.MemoryFileSystem, "pipe_file", lambda *_: 1 / 0)
    with pytest.raises(OutputError, match=r"cannot be used: ZeroDivisionError.*Name another"):
        in_parts(files / "mixed.csv", work_dir=STORE)
    work_files._store.cache_clear()
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingPart, match=r"murmurate\[cloud\]"):
        in_parts(files / "mixed.csv", work_dir="s3://bucket/x")
    work_files._store.cache_clear()


def test_files_on_network_drives_are_encrypted(files, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "on_network", lambda folder: folder == tmp_path / "mounted")
    with in_parts(files / "mixed.parquet", engine=Two(), work_dir=tmp_path / "mounted") as parts:
        written = [path.read_bytes() for path in (tmp_path / "mounted").rglob("*") if path.is_file()]
        assert written and not any(b"ARROW" in content for content in written)
        same_rows(parts, files / "mixed.parquet")
    assert not list(tmp_path.joinpath("mounted").glob("*"))


def test_network_drives_are_told_by_their_type(monkeypatch):
    mounts = "disk / ext4 rw 0 0\nserver:/x /srv nfs4 rw 0 0\ndisk2 /srv/local xfs rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: mounts)
    found = [on_network(Path(folder)) for folder in ("/srv/work", "/srv", "/srv/local/x", "/srvx", "/home")]
    assert found == [True, True, False, False, False]


@pytest.fixture(scope="module")
def s3():
    """A real server of the protocol in a process of its own, which workers reach through their environment alone."""
    s3fs = pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "ACCESS_KEY_ID": "x",
        "SECRET_ACCESS_KEY": "x",
        "DEFAULT_REGION": "us-east-1",
    }
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with pytest.MonkeyPatch.context() as patch, subprocess.Popen(command, **quiet) as server:
        for name, value in settings.items():
            patch.setenv(f"AWS_{name}", value)
        try:
            while server.poll() is None and not answers(port):
                time.sleep(0.05)
            fs = s3fs.S3FileSystem(use_listings_cache=False)
            fs.mkdir("bucket")
            yield fs
        finally:
            work_files._store.cache_clear()
            s3fs.S3FileSystem.clear_instance_cache()
            server.terminate()


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_parts_in_an_s3_store(files, s3):
    with in_parts(files / "mixed.parquet", engine=Two(), work_dir="s3://bucket/work") as parts:
        held = s3.find("bucket/work")
        assert held and not any(b"ARROW" in s3.cat_file(path) for path in held)
        same_rows(parts, files / "mixed.parquet")
    assert not s3.find("bucket/work")
    with pytest.raises(OutputError, match="the work folder s3://no-such-bucket/x cannot be used"):
        in_parts(files / "mixed.csv", work_dir="s3://no-such-bucket/x")


def test_workers_in_other_processes_share_an_s3_store(files, s3, tmp_path):
    made = []
    for word, place in (("serial", tmp_path / "work"), ("processes:2", "s3://bucket/a"), ("dask-local:2", "s3://bucket/b")):
        with engine(word) as running, mm.Ledger.in_memory() as ledger:
            running.start(work_in=place)
            with in_parts(files / "mixed.parquet", engine=running, work_dir=place) as parts:
                assert bool(s3.find("bucket")) == (word != "serial")
                out = tmp_path / f"{len(made)}"
                found = mm.release(FLOCK, parts, ledger=ledger, out=out, rng=noise.seeded(5), engine=running, work=place)
        made.append((found.folder / "data.parquet").read_bytes())
        assert not s3.find("bucket")
    assert made[0] == made[1] == made[2]


def test_hashes_of_people_and_trips_tell_who_is_there(trips):
    from murmurate.ingest.people import count_people, hash_names, hash_trips

    names = [trips["uid"][:50], trips["uid"][25:90]]
    parts = [lambda one=one: hash_names(one.unique()) for one in names]
    assert count_people(parts, 200) == trips["uid"][:90].n_unique()
    assert len(np.unique(hash_trips(pl.Series(["a", "a", "b"]), pl.Series([1, 2, 1])))) == 3
