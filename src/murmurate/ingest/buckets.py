"""Group runs by person with bounded memory: buckets by a hash of the name, spilled to private files."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from murmurate.core.space import Integers
from murmurate.core.work import WorkFolder, state_folder
from murmurate.core.work_files import WorkFiles
from murmurate.errors import OutputError
from murmurate.ingest.packed import Blocks, Packed
from murmurate.ingest.people import Hashes, hash_names, hash_trips
from murmurate.ingest.runs import Runs, starts_of


class PartsFolder:
    """A private work folder that holds runs under names."""

    def __init__(self, parent: str | Path | None) -> None:
        with disk_errors(parent):
            self._work = WorkFolder(parent)
        self.files = self._work.files

    def close(self) -> None:
        """Delete it and everything in it."""
        self._work.close()

    def write(self, name: str, packed: Packed) -> None:
        """Keep runs under a name."""
        write_runs(self.files, name, packed)

    def forget(self, name: str) -> None:
        """Delete what was kept under a name."""
        forget_runs(self.files, [name])


def forget_runs(files: WorkFiles, names: Iterable[str]) -> None:
    """Delete runs that were written, and where each of their buckets begins."""
    files.remove(f"{name}.{kind}" for name in names for kind in ("points", "runs", "npy"))


def write_runs(files: WorkFiles, name: str, packed: Packed) -> None:
    """Write runs where `read_runs` finds them; in any process."""
    with disk_errors(files.where):
        for kind, frame in zip(("runs", "points"), packed.frames(), strict=True):
            with files.writing(f"{name}.{kind}") as target:
                frame.write_ipc(target, compression="uncompressed")


def read_runs(files: WorkFiles, name: str) -> Runs:
    """Read the runs that a `PartsFolder` keeps under a name; in any process."""
    with disk_errors(files.where):
        names, points = (pl.read_ipc(files.source(f"{name}.{kind}")) for kind in ("runs", "points"))
    return Packed.from_frames(names, points).runs()


def write_buckets(files: WorkFiles, name: str, runs: Runs | None, ends: Integers) -> None:
    """Write runs that stand bucket by bucket; `ends` are the first run of each bucket and, in a second row, its first point.

    In a folder they lie one after another. In a store each bucket is encrypted by itself, so that it can be read alone.
    """
    at = ends
    with disk_errors(files.where):
        if runs is not None and files.key is None:
            write_runs(files, name, Packed.of(runs, Blocks()))
        elif runs is not None:
            buckets = (runs.slice(int(first), int(end)) for first, end in pairwise(ends[0]))
            at = np.array([files.put_segments(f"{name}.points", [_as_bytes(bucket) for bucket in buckets])])
        with files.writing(f"{name}.npy") as target:
            if isinstance(target, Path):
                with target.open("wb") as file:
                    np.save(file, at)
            else:
                np.save(target, at)


def read_bucket(files: WorkFiles, name: str, k: int) -> Runs | None:
    """Read one bucket that was written, and touch no other bytes of its file; None where nobody is in it."""
    with disk_errors(files.where):
        first, end = _ends_of(files, name)[:, k : k + 2].T.tolist()
        if first[0] == end[0]:
            return None
        if files.folder is None:
            frames = pickle.loads(files.get_segment(f"{name}.points", k, first[0], end[0]))  # noqa: S301  of this very run
        else:
            between = zip(("runs", "points"), first, end, strict=True)
            frames = [_rows(files.folder / f"{name}.{kind}", low, high) for kind, low, high in between]
    return Packed.from_frames(*frames).runs()


def _as_bytes(bucket: Runs) -> bytes:
    return pickle.dumps(Packed.of(bucket, Blocks()).frames(), pickle.HIGHEST_PROTOCOL) if len(bucket.lengths) else b""


def _ends_of(files: WorkFiles, name: str) -> Integers:
    """Return where buckets begin: from a folder what is looked at alone, from a store once a process."""
    if files.folder is not None:
        ends: Integers = np.load(files.folder / f"{name}.npy", mmap_mode="r")
        return ends
    return _fetched_ends(files, name)


@lru_cache(maxsize=1024)
def _fetched_ends(files: WorkFiles, name: str) -> Integers:
    ends: Integers = np.load(BytesIO(files.get(f"{name}.npy")))
    return ends


def _rows(path: Path, first: int, end: int) -> pl.DataFrame:
    with pa.memory_map(str(path)) as mapped:
        return pl.DataFrame(pl.from_arrow(pa.ipc.open_file(mapped).read_all().slice(first, end - first)))


def read_people(files: WorkFiles, name: str) -> pl.Series:
    """Read the names of the people of settled runs that were written, each once."""
    with disk_errors(files.where):
        return people_of(pl.read_ipc(files.source(f"{name}.runs"), columns=["uid"])["uid"])


def people_of(uid: pl.Series) -> pl.Series:
    """Return the people of settled runs, each once, from the name of each run."""
    return uid.filter(pl.Series(starts_of(uid)))


def write_hashes(files: WorkFiles, name: str, uid: pl.Series, tid: pl.Series | None = None) -> int:
    """Write a hash of each person (and of each trip) of settled runs, for `read_hashes`; return how many people there are."""
    hashes = hash_names(people_of(uid))
    with disk_errors(files.where):
        files.put(f"{name}.people", hashes.tobytes())
        if tid is not None:
            files.put(f"{name}.trips", hash_trips(uid, tid).tobytes())
    return len(hashes)


def read_hashes(files: WorkFiles, name: str, of: str = "people") -> Hashes:
    """Return the hashes of people, or of trips; from a folder without reading those that nobody looks at."""
    with disk_errors(files.where):
        if files.folder is None:
            return np.frombuffer(files.get(f"{name}.{of}"), np.uint64)
        path = files.folder / f"{name}.{of}"
        return np.memmap(path, np.uint64, "r") if path.stat().st_size else np.empty(0, np.uint64)


class Buckets:
    """Takes runs in any order and returns, bucket by bucket, all runs of some people."""

    def __init__(self, count: int, hold_points: int, work_dir: str | Path | None) -> None:
        self.count = count
        self.hold_points = hold_points
        self.work_dir = work_dir
        self.folder: PartsFolder | None = None
        self._held: list[list[Runs]] = [[] for _ in range(count)]
        self._held_points = 0
        self._spills: list[list[str]] = [[] for _ in range(count)]

    def add(self, runs: Runs) -> None:
        """Put each run into the bucket of its person."""
        bucket = (runs.uid.cast(pl.String).hash(seed=0) % self.count).cast(pl.Int64).to_numpy()
        order = np.argsort(bucket, kind="stable")
        moved = runs.reordered(order)
        ends = np.searchsorted(bucket[order], np.arange(self.count + 1))
        for k in range(self.count):
            if ends[k] < ends[k + 1]:
                self._held[k].append(moved.slice(int(ends[k]), int(ends[k + 1])))
        self._held_points += runs.n_points
        if self._held_points > self.hold_points:
            self._spill()

    def __iter__(self) -> Iterator[Runs]:
        """Yield the buckets that hold anything, once; each is deleted when the next is taken."""
        for k in range(self.count):
            spilled = [read_runs(self.folder.files, name) for name in self._spills[k]] if self.folder else []
            parts = [*spilled, *self._held[k]]
            self._held[k] = []
            if parts:
                yield Runs.together(parts)
            for name in self._spills[k]:
                if self.folder:
                    self.folder.forget(name)

    def _spill(self) -> None:
        self.folder = self.folder or PartsFolder(self.work_dir)
        for k, parts in enumerate(self._held):
            if parts:
                name = f"bucket-{k}-{len(self._spills[k])}"
                self.folder.write(name, Packed.of(Runs.together(parts), Blocks()))
                self._spills[k].append(name)
            self._held[k] = []
        self._held_points = 0


@contextmanager
def disk_errors(where: str | Path | None) -> Iterator[None]:
    """Say what to do where the work folder cannot be used."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"the work folder {where or state_folder()} cannot be used: {error.strerror or error}. "
            "Name another with --work (work_dir in Python), on a disk with room for the data."
        ) from error
