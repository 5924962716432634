"""Group runs by person with bounded memory: buckets by a hash of the name, spilled to private files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from murmurate.core.work import WorkFolder, state_folder
from murmurate.errors import OutputError
from murmurate.ingest.packed import Blocks, Packed
from murmurate.ingest.people import Hashes, hash_names
from murmurate.ingest.runs import Runs, starts_of


class PartsFolder:
    """A private work folder that holds runs under names."""

    def __init__(self, parent: str | Path | None) -> None:
        with disk_errors(parent):
            self._work = WorkFolder(parent)
        self.path = self._work.path

    def close(self) -> None:
        """Delete it and everything in it."""
        self._work.close()

    def write(self, name: str, packed: Packed) -> None:
        """Keep runs under a name."""
        write_runs(self.path, name, packed)

    def forget(self, name: str) -> None:
        """Delete what was kept under a name."""
        forget_runs(self.path, [name])


def forget_runs(folder: Path, names: Iterable[str]) -> None:
    """Delete runs that were written, and where each of their buckets begins."""
    for name in names:
        for kind in ("points", "runs", "npy"):
            (folder / f"{name}.{kind}").unlink(missing_ok=True)


def write_runs(folder: Path, name: str, packed: Packed) -> None:
    """Write runs where `read_runs` finds them; in any process."""
    with disk_errors(folder):
        names, points = packed.frames()
        points.write_ipc(folder / f"{name}.points", compression="uncompressed")
        names.write_ipc(folder / f"{name}.runs", compression="uncompressed")


def read_runs(folder: Path, name: str) -> Runs:
    """Read the runs that a `PartsFolder` keeps under a name; in any process."""
    with disk_errors(folder):
        points = pl.read_ipc(folder / f"{name}.points")
        names = pl.read_ipc(folder / f"{name}.runs")
    return Packed.from_frames(names, points).runs()


def read_runs_between(folder: Path, name: str, *, runs: Sequence[int], points: Sequence[int]) -> Runs:
    """Read some runs that were written, from the first to before the last, and touch no other bytes of their files."""
    with disk_errors(folder):
        names, some = _rows(folder / f"{name}.runs", *runs), _rows(folder / f"{name}.points", *points)
    return Packed.from_frames(names, some).runs()


def _rows(path: Path, first: int, end: int) -> pl.DataFrame:
    with pa.memory_map(str(path)) as mapped:
        return pl.DataFrame(pl.from_arrow(pa.ipc.open_file(mapped).read_all().slice(first, end - first)))


def read_people(folder: Path, name: str) -> pl.Series:
    """Read the names of the people of settled runs that were written, each once."""
    with disk_errors(folder):
        return people_of(pl.read_ipc(folder / f"{name}.runs", columns=["uid"])["uid"])


def people_of(uid: pl.Series) -> pl.Series:
    """Return the people of settled runs, each once, from the name of each run."""
    return uid.filter(pl.Series(starts_of(uid)))


def write_hashes(folder: Path, name: str, uid: pl.Series) -> int:
    """Write a hash of each person of settled runs, where `read_hashes` finds them; return how many people there are."""
    hashes = hash_names(people_of(uid))
    with disk_errors(folder):
        hashes.tofile(folder / f"{name}.people")
    return len(hashes)


def read_hashes(folder: Path, name: str) -> Hashes:
    """Return the hashes in a file without reading those that nobody looks at."""
    path = folder / f"{name}.people"
    with disk_errors(folder):
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
            spilled = [read_runs(self.folder.path, name) for name in self._spills[k]] if self.folder else []
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
            "Name another with work_dir, on a disk with room for the data."
        ) from error
