"""Release trips part by part: workers run the mechanism, draw names and write files, in an order that reveals nothing.

First, workers process the parts. They let the mechanism read a part, draw random names for its trips and store them, ordered
by name, in private files. Then they write the files of the release, each from one range of names of all parts. So the files
together are ordered by random names, whatever order the trips were read in.

Each part has its own noise stream, keyed in the process that draws from it. A part that is processed again gets a new stream.
What a killed worker wrote is in a file that nobody reads, so exactly one draw for each part is released.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.asking.rounds import Held, compared
from murmurate.core import progress
from murmurate.core.pseudonyms import Link, draw_names, named, same_columns, write_groups, write_trips
from murmurate.core.shuffle import grouped
from murmurate.core.spills import BUCKETS, Spill, buckets, write_spill
from murmurate.core.trips import Trips
from murmurate.core.work import WorkFolder
from murmurate.core.work_files import NO_COPY, WorkFiles
from murmurate.custody.internal import PairingFile
from murmurate.engine import Engine, Serial
from murmurate.engine.shared import keep_freed_memory, opened
from murmurate.engine.written_files import NewFile, Written, new_files, write_files
from murmurate.errors import EngineError
from murmurate.ingest.people import hash_names
from murmurate.noise import Randomness

ONE_FILE_POINTS = 10_000_000
"""Released points up to which one process sorts them in memory (0.25 GB) and writes one file. More go to a folder of files,
each written by a worker. Set by hand."""
POINTS_PER_FILE = 1_000_000
"""Approximate maximum of points in a file of such a folder, and of points that a worker sorts at once. Set by hand."""

Work = Callable[[Trips, Randomness], Trips]
"""Turns the original trips of some people into the trips to release."""


@dataclass(frozen=True)
class TripsInParts:
    """Trips to release, computed when somebody iterates over them or writes them."""

    sources: Iterable[Any]
    """Source of each part: `load()` reads it, in the process that works on it."""
    work: Work
    rng: Randomness
    engine: Engine
    max_points: int | None
    """Maximum number of released points, if known."""
    work_in: str | Path | None = None
    """Folder or store for private work files; default: the state folder."""

    @classmethod
    def whole(cls, trips: Trips, rng: Randomness, work_in: str | Path | None, *, keep_ids: bool = False) -> TripsInParts:
        """Return trips in memory that are released unchanged; only this process has them."""
        one_file = keep_ids or trips.n_points <= ONE_FILE_POINTS
        parts = [trips] if one_file else trips.partitions(POINTS_PER_FILE)
        return cls((Held(part) for part in parts), _as_they_are, rng, Serial(), trips.n_points, work_in)

    def __iter__(self) -> Iterator[Trips]:
        """Yield the trips in parts of whole people."""
        people = _People()
        for released, here in progress.track(self._each(_worked), "releasing"):
            people.meet(here)
            yield released

    def write_to(
        self, path: Path, *, emits: Sequence[str], link: Link, keep_ids: bool, pairing: PairingFile | None
    ) -> dict[str, str]:
        """Write the trips: to one file or, above `ONE_FILE_POINTS`, to a folder of that name with files part-00000.parquet, ...

        Returns the SHA-256 of each file in the folder, by its name; empty if there is one file. Trips that keep their own
        names, for studies, keep their order and stay in one file. The number of files depends only on the number of released
        points.
        """
        if keep_ids or (self.max_points is not None and self.max_points <= ONE_FILE_POINTS):
            options: dict[str, Any] = {"link": link, "keep_ids": keep_ids, "n_points": self.max_points, "on_part": pairing}
            write_trips(self, path, emits=emits, rng=self.rng, **options)
            return {}
        # also where no copy of private rows may be kept: these files hold noisy trips under their released names
        folder = WorkFolder(None if self.work_in == NO_COPY else self.work_in)
        try:
            spills = self._spilled(folder.files, emits, link, pairing)
            return _written(self.engine, spills, path, emits)
        finally:
            folder.close()

    def _spilled(self, files: WorkFiles, emits: Sequence[str], link: Link, pairing: PairingFile | None) -> list[Spill]:
        spills: list[Spill] = []
        people, columns = _People(), None
        naming = _Naming(files, tuple(emits), link, pairing is not None, others=self.engine.files() is not None)
        for spill, here in progress.track(self._each(partial(_spill_part, naming)), "releasing"):
            people.meet(here)
            columns = same_columns(columns, list(spill.columns))
            if pairing is not None:
                pairing.add(pl.read_ipc(files.source(_pairs(spill.name))))
                files.remove([_pairs(spill.name)])
            spills.append(spill)
        if len({spill.name for spill in spills}) < len(spills):
            raise EngineError("a part of the work came back twice; nothing was released.", "Run it again.")
        return spills

    def _each(self, function: Callable[[tuple[Any, Any, Randomness]], Any]) -> Iterator[Any]:
        """Run a function over the parts, each with its own noise stream."""
        work = self.engine.share(self.work)
        return self.engine.map(function, ((work, source, self.rng.spawn(1)[0]) for source in self.sources))


class _People:
    """Refuses a person who is in two parts, because each part would be bounded separately.

    Compares up to `COMPARED_PEOPLE` people, those with the smallest hashes. All people of a file are compared when it is read.
    """

    def __init__(self) -> None:
        self._seen: NDArray[np.uint64] = np.empty(0, np.uint64)

    def meet(self, people: NDArray[np.uint64]) -> None:
        self._seen = compared([self._seen, people])


def _worked(item: tuple[Any, Any, Randomness]) -> tuple[Trips, NDArray[np.uint64]]:
    """Load a part and process it; return the trips to release, and the sorted hashes of its people."""
    work, source, rng = item
    trips = source.load()
    return opened(work)(trips, rng), hash_names(trips.user_ids)


@dataclass(frozen=True)
class _Naming:
    """How the trips of every part are named, and where they are stored."""

    files: WorkFiles
    emits: tuple[str, ...]
    link: Link
    paired: bool
    """Whether released names are also stored with those of the originals."""
    others: bool
    """Whether worker processes, which do nothing else, work on the parts."""


def _spill_part(naming: _Naming, item: tuple[Any, Any, Randomness]) -> tuple[Spill, NDArray[np.uint64]]:
    """Process a part, name its trips and store them in a private file."""
    if naming.others:
        keep_freed_memory()
    released, people = _worked(item)
    uids, tids = draw_names(released, naming.link, item[2])
    name = f"released-{secrets.token_hex(8)}"  # unique: another worker may process the same part
    if naming.paired:
        with naming.files.writing(_pairs(name)) as target:
            pl.DataFrame(vars(named(released, uids, tids))).write_ipc(target, compression="uncompressed")
    columns = [column for column in naming.emits if column in released.columns]
    return write_spill(naming.files, name, released, columns, uids, tids), people


def _pairs(name: str) -> str:
    return f"{name}.pairs"


@dataclass(frozen=True)
class _File:
    """A file of the release, for the worker that writes it."""

    spills: Any
    columns: list[str]
    ranges: Sequence[range]
    """Ranges of names; each is sorted at once."""
    file: NewFile


def _written(engine: Engine, spills: list[Spill], path: Path, emits: Sequence[str]) -> dict[str, str]:
    """Write the files of a release from the private files."""
    columns = list(spills[0].columns) if spills else [name for name in emits if name in ("lat", "lng")]
    n_points = sum(spill.n_points for spill in spills)
    n_ranges = _power_of_two(n_points / POINTS_PER_FILE)
    ranges = [range(k * BUCKETS // n_ranges, (k + 1) * BUCKETS // n_ranges) for k in range(n_ranges)]
    if n_points <= ONE_FILE_POINTS:
        write_groups(grouped(buckets(spills, ranges)), path, columns)
        return {}
    shared = engine.share(spills)
    items = [_File(shared, columns, [one], file) for one, file in zip(ranges, new_files(engine, path, n_ranges), strict=True)]
    return write_files(engine, _write_file, items, path, "writing")


def _write_file(one: _File) -> Written:
    """Sort and write one file."""
    if one.file.place is not None:  # in a worker process, which does nothing else
        keep_freed_memory()
    found = buckets(opened(one.spills), one.ranges)
    return one.file.write(lambda path: write_groups(grouped(found), path, one.columns))


def _power_of_two(number: float) -> int:
    """Return the smallest power of two that is at least this number, at most `BUCKETS`."""
    power = 1
    while power < number and power < BUCKETS:
        power *= 2
    return power


def _as_they_are(trips: Trips, _: Randomness) -> Trips:
    return trips
