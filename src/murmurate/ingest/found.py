"""Collect the parts of a source as they are found: in memory, in private files, or to be read again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from murmurate.core.trips import ORDER
from murmurate.core.work_files import WorkFiles
from murmurate.engine import Engine
from murmurate.errors import InputError
from murmurate.ingest.buckets import PartsFolder, people_of, read_hashes, read_people, write_hashes
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.packed import Blocks, Packed
from murmurate.ingest.people import Hashes, PeopleInParts, anyone_twice, count_people, hash_names, hash_trips
from murmurate.ingest.pieces import Whole, Written
from murmurate.ingest.rereading import NamesAgain, Selection
from murmurate.ingest.runs import Runs


class Found:
    """Collects the result of the first pass."""

    def __init__(self, hold_points: int, work_dir: str | Path | None, whole: Whole = "people") -> None:
        self.n_people = 0
        self.columns: list[str] = []
        self.held: list[Packed] | None = []
        self.folder: PartsFolder | None = None
        self.names: list[str] = []
        self.again: list[Selection] | None = None
        """Parts that are read from the source each time."""
        self._blocks = Blocks()
        self._hold_points, self._work_dir, self._whole = hold_points, work_dir, whole
        self._points = 0

    def take(self, parts: Sequence[Runs]) -> None:
        """Keep parts in memory, or in files once there are too many points."""
        for part in parts:
            self._points += part.n_points
            packed = Packed.of(part, self._blocks)
            if self.held is not None and self._points <= self._hold_points:
                self.held.append(packed)
                continue
            for waiting in [*(self.held or []), packed]:
                self.folder = self.folder or PartsFolder(self._work_dir)
                self.names.append(f"part-{len(self.names)}")
                self.folder.write(self.names[-1], waiting)
                write_hashes(self.folder.files, self.names[-1], waiting.uid, waiting.tid if self._whole == "trips" else None)
            self.held, self._blocks = None, Blocks()  # what is in files needs no memory

    def meet(self, part: Written) -> None:
        """Note the number of people and the columns of a part, and its name where it was written."""
        self.n_people += part.n_people
        have = {"uid", "tid", *part.columns}
        self.columns = [name for name in ORDER if name in have]
        self.columns += [name for name in part.columns if name not in ORDER and not name.startswith("\0")]
        if part.name:
            self.held = None
            self.names.append(part.name)

    def people(self, engine: Engine | None = None) -> PeopleInParts:
        """Return the names of the people, which stay where their parts are; workers of an `engine` can read those in files."""
        if self.again is not None:
            return PeopleInParts(NamesAgain(self.again[0].files, self.again[0].options), self.n_people)
        if self.held is not None:
            return PeopleInParts([partial(people_of, packed.uid) for packed in self.held], self.n_people)
        return PeopleInParts([partial(read_people, self._files, name) for name in self.names], self.n_people, engine=engine)

    def is_whole(self, report: ReadReport, engine: Engine | None = None) -> bool:
        """Return whether no person (or no trip) is in two parts; of whole trips the people are counted, each once."""
        if self._whole == "people":
            return not anyone_twice(self._hashes("people"), self.n_people, engine)
        if anyone_twice(self._hashes("trips"), report.trips, engine):
            return False
        self.n_people = report.people = count_people(self._hashes("people"), self.n_people, engine)
        return True

    def _hashes(self, of: Whole) -> list[Callable[[], Hashes]]:
        if self.held is None:
            return [partial(read_hashes, self._files, name, of) for name in self.names]
        if of == "trips":
            return [partial(hash_trips, packed.uid, packed.tid) for packed in self.held]
        return [partial(_hashes_of, packed.uid) for packed in self.held]

    @property
    def _files(self) -> WorkFiles:
        if self.folder is None:
            raise InputError("these partitions were closed.")
        return self.folder.files


def _hashes_of(uid: pl.Series) -> Hashes:
    return hash_names(people_of(uid))
