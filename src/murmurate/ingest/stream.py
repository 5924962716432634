"""`scan`: read files larger than memory as parts of whole people, validated and fingerprinted before the first is given.

The first pass reads everything once and finds every fault. Up to `hold_points` points stay in memory in their compact form.
Beyond that the parts lie in private files in `work_dir`, by default in the state folder, until the partitions are closed. A
file whose rows do not stand person by person is sorted through such files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.parameters import whole
from murmurate.core.parquet import check_parquet
from murmurate.core.space import Space
from murmurate.core.trips import Identity, Trips, contents
from murmurate.core.work_files import NO_COPY
from murmurate.engine import Engine, Serial
from murmurate.errors import InputError, MurmurateError
from murmurate.ingest.buckets import Buckets, PartsFolder, read_runs
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.faults import Faults, guarded
from murmurate.ingest.files import Seal, SourceFile, find, fingerprint, refuse_changed
from murmurate.ingest.formats import parquet
from murmurate.ingest.found import Found
from murmurate.ingest.layouts import LAYOUTS
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.people import hash_names, hash_trips
from murmurate.ingest.pieces import OutOfOrder, Whole, Written, add_counts, group_starts, pieces_of, settled_pieces
from murmurate.ingest.read import find_files, is_path, parse_space, points
from murmurate.ingest.rereading import (
    POINTS_PER_READING,
    check_rows,
    look,
    refuse_strict,
    selections,
)
from murmurate.ingest.runs import Runs, settle, starts_of
from murmurate.ingest.shuffle import shuffled_pieces

POINTS_PER_PARTITION = 1_000_000
"""Points of a part, about; a part holds whole people. Set by hand."""
HOLD_POINTS = 24_000_000
"""Points that wait in memory: about 0.3 GB, 0.6 GB where places are finer than microdegrees. Beyond that they lie in files."""
WATCHED_PEOPLE = 1 << 20
"""Hashes of people that are watched while a file is read, the smallest ones, so that rows in another order are found early. All
people are compared when it is read. Set by hand: 8 MB."""
MAX_BUCKETS = 512
"""Buckets of a file that one process sorts by person; larger ones are split afterwards. Set by hand."""
_BYTES_A_ROW = {"text": 40, "gpx": 100, "geojson": 150, "json": 100}
"""Typical bytes of a row by kind of file, for estimating the number of buckets. Set by hand."""
_STREAM_BYTES, _STREAM_ROWS = 64 * 2**20, 4_000_000
"""Files that are together above either size are scanned in parts and not read whole. Set by hand."""


class Partitions:
    """Parts of whole people, which can be read any number of times; no person is in two parts.

    Parts that were asked for whole trips may share people, but no trip.
    """

    def __init__(
        self,
        found: Found,
        *,
        fingerprint: str,
        space: Space | None,
        time_zone: str,
        report: ReadReport,
        engine: Engine | None = None,
    ) -> None:
        self.identity = Identity(fingerprint, found.people(engine))
        self.columns = found.columns
        self.space = space
        self.time_zone = time_zone
        self.n_points = report.points
        self.report = report
        """Private counts of what was read, sorted and left out."""
        self._held, self._folder, self._names, self._again = found.held, found.folder, found.names, found.again

    def carries(self) -> frozenset[str]:
        """Return the kinds of content that are there, as `Trips.carries` does."""
        return contents(self.columns)

    def __iter__(self) -> Iterator[Trips]:
        for source in self.sources():
            yield source.load()

    def sources(self) -> list[Part]:
        """Return where each part lies; a source can be sent to the process that reads it."""
        if self._held is not None:
            return [Part(packed.runs, self.space, self.time_zone) for packed in self._held]
        if self._folder is not None:
            loads = [partial(read_runs, self._folder.files, name) for name in self._names]
            return [Part(load, self.space, self.time_zone) for load in loads]
        if self._again is not None:
            return [Part(selection, self.space, self.time_zone) for selection in self._again]
        raise InputError("these partitions were closed.")

    def close(self) -> None:
        """Free the memory and delete the files in the work folder."""
        if self._folder is not None:
            self._folder.close()
        self._held = self._folder = self._again = None

    def __enter__(self) -> Partitions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Part:
    """A part that waits in memory or in a private file."""

    runs: Callable[[], Runs]
    space: Space | None
    time_zone: str

    def load(self) -> Trips:
        """Return the trips of the part."""
        return self.runs().trips(space=self.space, time_zone=self.time_zone, source=None)


def scan(
    source: str | os.PathLike[str],
    *,
    points_per_partition: int = POINTS_PER_PARTITION,
    hold_points: int = HOLD_POINTS,
    work_dir: str | Path | None = None,
    carry: tuple[str, ...] = (),
    space: Space | str | None = None,
    report: ReadReport | None = None,
    workers: int = 1,
    engine: Engine | None = None,
    whole_trips: bool = False,
    **read_options: Any,
) -> Partitions:
    """Read files as parts of about `points_per_partition` points; `read_options` and faults are those of `read`.

    More than `hold_points` points wait in private files in `work_dir`, a folder or the address of a store; with "none" nothing
    is kept and the source is read again for each part. `whole_trips` lets parts share people, but no trip, where that saves
    sorting: for promises whose unit is a trip. Only the columns named in `carry` are kept beside
    the canonical ones. With `workers` > 1 the file is hashed while it is read; the workers of an `engine` share the reading
    of a Parquet file that stands person by person.
    """
    whole("points_per_partition", points_per_partition)
    whole("hold_points", hold_points, at_least=0)
    options = ReadOptions(carry=tuple(carry), **read_options)
    place = parse_space(space)
    counts = report if report is not None else ReadReport()
    files = find_files(source, options, counts)
    faults = Faults()
    found: Found | None = None
    with guarded(faults, None):
        with ThreadPoolExecutor(1) as aside:  # hashing needs no lock of Python's
            sealing = aside.submit(fingerprint, files)
            if workers == 1:
                sealing.result()
            reading = _Reading(files, options, points_per_partition, workers, "trips" if whole_trips else "people")
            if work_dir == NO_COPY:
                found = reading.again(sealing.result(), engine or Serial(), faults, counts)
            elif engine is not None and engine.workers > 1:
                found = reading.in_pieces(engine, counts, work_dir)
            if found is None and work_dir != NO_COPY:
                found = reading.first_pass(faults, counts, hold_points, work_dir)
            seal = sealing.result()
        refuse_changed(files, seal)
    faults.raise_if_any()
    if found is None or not counts.points:
        raise InputError("there are no rows in it.")
    zone = options.hours_zone
    return Partitions(found, fingerprint=seal.fingerprint, space=place, time_zone=zone, report=counts, engine=engine)


def worth_streaming(source: Any, *, layout: str | None = None, **_options: Any) -> bool:
    """Return whether a source, its files together, is so large that it should be scanned in parts."""
    if not is_path(source):
        return False
    known = LAYOUTS.get(layout) if layout else None
    try:
        paths = [file.path for file in find(source, Faults(), suffixes=known.suffixes if known else None)[0]]
        return sum(path.stat().st_size for path in paths) > _STREAM_BYTES or sum(map(_rows_of_parquet, paths)) > _STREAM_ROWS
    except (OSError, MurmurateError):  # reading it will say what is wrong
        return False


def expected_rows(files: Sequence[SourceFile]) -> int:
    """Return the rows of files, by their footers or, of other formats, about, by their sizes; nothing is read."""
    return sum(
        parquet.n_rows(file) if file.kind == "parquet" else file.path.stat().st_size // _BYTES_A_ROW[file.kind]
        for file in files
    )


def _rows_of_parquet(path: Path) -> int:
    """Return the rows by the footer; 0 for any other file and for a broken one, which reading will refuse."""
    try:
        return check_parquet(path).n_rows if path.suffix in (".parquet", ".geoparquet") else 0
    except (InputError, OSError):
        return 0


class _NotGrouped(Exception):
    """A person's rows stand in more than one place of the file."""


class _Reading:
    """Reads the files of a source, in parts of whole people where the rows stand so."""

    def __init__(self, files: list[SourceFile], options: ReadOptions, target: int, workers: int, whole: Whole) -> None:
        self.files = files
        self.options = options
        self.workers = workers
        self.target = target
        self.whole: Whole = whole
        self.names = [file.name for file in files]

    def in_pieces(self, engine: Engine, report: ReadReport, work_dir: str | Path | None) -> Found | None:
        """Let the workers of an engine read; None where the source must be read in one process."""
        if not (pieces := pieces_of(self.files, self.options, self.target)):
            return None
        for shuffled in (False, True):
            whole: Whole = "people" if shuffled else self.whole
            found, counted = Found(0, work_dir, whole), ReadReport()
            folder = found.folder = PartsFolder(work_dir)
            if shuffled:
                n_parts = self._bucket_count()
                parts = shuffled_pieces(pieces, self.options, engine, folder.files, counted, n_parts)
            else:
                parts = settled_pieces(pieces, self.options, engine, folder.files, counted, whole)
            try:
                for part in parts:
                    found.meet(part)
                in_order = found.is_whole(counted, engine)
            except OutOfOrder:
                in_order = False
            except BaseException:
                folder.close()
                raise
            if in_order:
                add_counts(report, counted)
                return found
            folder.close()
        return None

    def first_pass(self, faults: Faults, report: ReadReport, hold_points: int, work_dir: str | Path | None) -> Found | None:
        fresh = replace(report)
        try:
            found = self._kept(self._groups(faults, report), faults, report, Found(hold_points, work_dir, self.whole))
            if found is not None and not found.is_whole(report):
                if found.folder is not None:
                    found.folder.close()
                raise _NotGrouped
            return found
        except _NotGrouped:
            report.__dict__.update(replace(fresh, rows_left_out={}, columns={}, columns_left_out=[]).__dict__)
            faults.clear()
            return self._bucketed(faults, report, hold_points, work_dir)

    def _points(self, faults: Faults, report: ReadReport) -> Iterator[pl.DataFrame]:
        """Yield canonical points, batch by batch; with several workers the next batch is read while this one is used."""
        batches = points(self.files, self.options, faults, report)
        if self.workers == 1:
            yield from batches
            return
        with ThreadPoolExecutor(1) as aside:
            following = aside.submit(next, batches, None)
            while (frame := following.result()) is not None:
                following = aside.submit(next, batches, None)
                yield frame

    def _kept(self, parts: Iterable[Runs], faults: Faults, report: ReadReport, found: Found) -> Found | None:
        for part in parts:
            settled = settle(part, report, faults, strict=self.options.strict, files=self.names)
            found.meet(Written("", int(starts_of(settled.uid).sum()), settled.points.columns))
            found.take(self._split(settled))
        return None if faults else found

    def _groups(self, faults: Faults, report: ReadReport) -> Iterator[Runs]:
        """Yield runs of whole people (or trips) of about the target size, in the order of the file."""
        pending: list[Runs] = []
        size = 0
        closed = np.empty(0, np.uint64)
        last: Any = None
        for frame in self._points(faults, report):
            if faults:
                pending = []
                continue
            runs = Runs.of(frame)
            at = group_starts(runs, self.whole)[:-1]
            if last is not None and self._name(runs, 0) == last:
                at = at[1:]
            uid = runs.uid.gather(at)
            hashes = hash_trips(uid, runs.tid.gather(at)) if self.whole == "trips" else hash_names(uid)
            closed = np.sort(np.concatenate([closed, hashes]), kind="stable")  # merges the two, which are sorted already
            if (closed[1:] == closed[:-1]).any():
                raise _NotGrouped
            closed = closed[:WATCHED_PEOPLE]
            last = self._name(runs, -1)
            boundary = int(at[-1]) if len(at) else 0
            size += runs.n_points
            if size >= self.target and boundary:
                yield Runs.together([*pending, runs.slice(0, boundary)])
                pending = [runs.slice(boundary, len(runs.lengths))]
                size = pending[0].n_points
            elif size >= self.target and len(at) and pending:  # a new person begins exactly where the batch does
                yield Runs.together(pending)
                pending, size = [runs], runs.n_points
            else:
                pending.append(runs)
        if pending and not faults:
            yield Runs.together(pending)

    def _name(self, runs: Runs, at: int) -> tuple[Any, ...]:
        return (runs.uid[at], runs.tid[at]) if self.whole == "trips" else (runs.uid[at],)

    def again(self, seal: Seal, engine: Engine, faults: Faults, report: ReadReport) -> Found | None:
        """Read everything once for its faults and once for each part; nothing is kept."""
        refuse_strict(self.options)
        check_rows(self.files, self.options, faults, report)
        if faults:
            return None
        found = Found(0, None)
        target = self.target * POINTS_PER_READING // POINTS_PER_PARTITION
        found.again = selections(self.files, seal, self.options, max(1, -(-report.rows // target)))
        for one in engine.map(look, found.again):
            add_counts(report, one.report)
            found.meet(Written("", one.report.people, one.columns))
        found.held = None
        return found

    def _bucketed(self, faults: Faults, report: ReadReport, hold_points: int, work_dir: str | Path | None) -> Found | None:
        buckets = Buckets(min(MAX_BUCKETS, self._bucket_count()), hold_points, work_dir)
        for frame in self._points(faults, report):
            if not faults:
                buckets.add(Runs.of(frame))
        if faults:
            return None
        found = Found(hold_points if buckets.folder is None else 0, work_dir)
        kept = self._kept(buckets, faults, report, found)
        if buckets.folder is not None:
            buckets.folder.close()
        return kept

    def _bucket_count(self) -> int:
        return int(max(1, -(-expected_rows(self.files) // self.target)))

    def _split(self, runs: Runs) -> Sequence[Runs]:
        """Split runs into parts of whole people of about the target size."""
        if runs.n_points <= 2 * self.target:
            return [runs]
        begins = np.append(np.flatnonzero(starts_of(runs.uid)), len(runs.uid))
        ends = np.concatenate(([0], np.cumsum(runs.lengths)))[begins]
        parts, first = [], 0
        while first < len(begins) - 1:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + self.target, side="right")) - 1)
            parts.append(runs.slice(int(begins[first]), int(begins[last])))
            first = last
        return parts
