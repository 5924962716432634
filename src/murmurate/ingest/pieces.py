"""Read a large source in pieces on the workers of an engine: each reads its own row groups, or lines, and writes its own part.

This works for files that are in order: no fault anywhere, and each person's rows in one place. Anything else is left to
`stream`, which reads the source from its start in one process and finds every fault.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from murmurate.core.space import Integers
from murmurate.core.work_files import WorkFiles
from murmurate.engine import Engine
from murmurate.engine.shared import HELD_BYTES, give_back_memory
from murmurate.errors import MurmurateError
from murmurate.ingest.buckets import write_hashes, write_runs
from murmurate.ingest.columns import ROW_NUMBER
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.faults import Faults
from murmurate.ingest.files import SourceFile
from murmurate.ingest.formats import parquet, text
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.packed import Blocks, Packed
from murmurate.ingest.points import Batch, PointChecker
from murmurate.ingest.read import rows_as_points
from murmurate.ingest.runs import Runs, settle, starts_of

MAX_GROUP_POINTS = 4
"""Largest row group that is read at once, in parts: a file of larger ones is read in one process, batch by batch."""


BYTES_A_ROW = 40
"""Typical bytes of a row of text, for cutting files. Set by hand."""


Whole = Literal["people", "trips"]
"""What no two parts share: people, or, where the unit of a promise is a trip, trips alone."""


class OutOfOrder(Exception):
    """The source has a fault or does not stand person by person."""


@dataclass(frozen=True)
class Piece:
    """Some row groups of one file, or some bytes of text."""

    file: SourceFile
    file_number: int
    part: range
    first_row: int
    """Number of its first row; of text, whose rows nobody has counted, 1."""


@dataclass(frozen=True)
class Written:
    """A part in a private file: its name there, how many people are in it, and its columns."""

    name: str
    n_people: int
    columns: list[str]


@dataclass
class Settled:
    """What a worker found in a piece. The first and the last person may go on in the neighbouring pieces."""

    understood: Any
    """How columns, names and times were understood, which must agree over the pieces."""
    head: Runs
    tail: Runs | None
    """None where the piece holds one person only."""
    middle: Written | None = None
    """Everybody between the first and the last person."""
    report: ReadReport = field(default_factory=ReadReport)


def pieces_of(files: Sequence[SourceFile], options: ReadOptions, target: int) -> list[Piece]:
    """Cut files into pieces of about `target` rows; none where workers cannot share the reading."""
    if options.layout is not None or options.strict or any(file.kind not in ("parquet", "text") for file in files):
        return []
    pieces = []
    for number, file in enumerate(files):
        if file.kind == "text":
            if ROW_NUMBER in options.columns.values() or not (found := text.spans(file, options, target * BYTES_A_ROW)):
                return []
            pieces += [Piece(file, number, span, 1) for span in found]
            continue
        rows = parquet.group_rows(file)
        if max(rows, default=0) > MAX_GROUP_POINTS * target:
            return []
        ends = np.cumsum(rows)
        first = 0
        while first < len(rows):
            done = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + target, side="right")))
            pieces.append(Piece(file, number, range(first, last), done + 1))
            first = last
    return pieces if len(pieces) > 1 else []


def settled_pieces(  # noqa: PLR0917
    pieces: Sequence[Piece], options: ReadOptions, engine: Engine, files: WorkFiles, report: ReadReport, whole: Whole
) -> Iterator[Written]:
    """Yield each part of whole people or trips that was written into private files; `OutOfOrder` where that cannot be."""
    edges = _Edges(files, report, whole)
    known: Settled | None = None
    for one in engine.map(partial(_settle_piece, options, files, whole), pieces):
        if one is None:
            raise OutOfOrder
        if known is not None and one.understood != known.understood:
            raise OutOfOrder
        known = known or one
        add_counts(report, one.report)
        yield from edges.before(one.head, ends=one.tail is not None)
        if one.middle is not None:
            yield one.middle
        if one.tail is not None:
            edges.after(one.tail)
    # by a worker, which has loaded what sorts them; this process may need it for nothing else
    for part, counted in engine.map(partial(_write_edges, files, whole), edges.rest()):
        add_counts(report, counted)
        yield part


class _Edges:
    """Joins the people (or trips) at the edges of pieces, and puts them into parts of their own."""

    def __init__(self, files: WorkFiles, report: ReadReport, whole: Whole) -> None:
        self._files, self._report, self._whole_what = files, report, whole
        self._open: list[Runs] = []
        self._whole: list[Runs] = []

    def before(self, head: Runs, *, ends: bool) -> Iterator[Written]:
        """Take the first person of a piece; `ends` says that others follow it there."""
        if self._open and self._names(self._open[0]) != self._names(head):
            yield from self._close()
        self._open.append(head)
        if ends:
            yield from self._close()

    def after(self, tail: Runs) -> None:
        """Take the last person of a piece."""
        self._open.append(tail)

    def rest(self) -> list[Runs]:
        """Return what is left."""
        left, self._open, self._whole = [*self._whole, *self._open], [], []
        return [Runs.together(left)] if left else []

    def _names(self, runs: Runs) -> tuple[Any, ...]:
        return (runs.uid[0], runs.tid[0]) if self._whole_what == "trips" else (runs.uid[0],)

    def _close(self) -> Iterator[Written]:
        if self._open:
            self._whole.append(Runs.together(self._open))
            self._open = []
        if sum(runs.n_points for runs in self._whole) >= parquet.GROUP_ROWS:
            yield from self._write()

    def _write(self) -> Iterator[Written]:
        if self._whole:
            runs, self._whole = Runs.together(self._whole), []
            yield written(runs, self._files, self._report, self._whole_what)


@dataclass
class Read:
    """The rows of a piece, and how they were understood."""

    runs: Runs
    understood: Any
    """How columns, names and times were understood, which must agree over the pieces."""
    report: ReadReport


def read_piece(options: ReadOptions, piece: Piece) -> Read | None:
    """Read and check a piece in the process of a worker; None where anything in it is at fault or cannot be opened."""
    faults, report = Faults(), ReadReport()
    checker = PointChecker(options, faults, piece.file.name, piece.file_number)
    parts = []
    try:
        for batch in _batches(piece, options, faults):
            report.rows += batch.frame.height
            if rows_as_points(batch, options, faults, report) is not batch:
                return None  # rows of whole trips
            frame = checker.take(batch)
            if frame is None or faults:
                return None
            if frame.height:
                parts.append(Runs.of(frame))
    except (MurmurateError, OSError):  # a file that this worker cannot open may be one that the driver can
        return None
    if not parts:
        return None
    report.columns, report.columns_left_out = dict(checker.found), list(checker.left_out)
    report.ambiguous_times = checker.clock.ambiguous if checker.clock else 0
    runs, form = Runs.together(parts), checker.clock.form if checker.clock else None
    return Read(runs, (checker.found, checker.text_names, form, runs.points.columns), report)


def _batches(piece: Piece, options: ReadOptions, faults: Faults) -> Iterator[Batch]:
    if piece.file.kind == "text":
        return text.rows_within(piece.file, options, piece.part)
    return parquet.batches(piece.file, options, faults, groups=piece.part, first_row=piece.first_row)


def _settle_piece(options: ReadOptions, files: WorkFiles, whole: Whole, piece: Piece) -> Settled | None:
    """Read, check and sort a piece in the process of a worker; None where anything in it is out of order."""
    give_back_memory(HELD_BYTES)  # of the piece before
    found = read_piece(options, piece)
    if found is None:
        return None
    runs, report = found.runs, found.report
    at = group_starts(runs, whole)
    names = pl.DataFrame([runs.uid.gather(at[:-1]), *([runs.tid.gather(at[:-1])] if whole == "trips" else [])])
    if names.n_unique() < len(names):
        return None
    return Settled(
        found.understood,
        head=runs.slice(0, int(at[1])),
        tail=runs.slice(int(at[-2]), int(at[-1])) if len(names) > 1 else None,
        middle=written(runs.slice(int(at[1]), int(at[-2])), files, report, whole) if len(names) > 2 else None,
        report=report,
    )


def _write_edges(files: WorkFiles, whole: Whole, runs: Runs) -> tuple[Written, ReadReport]:
    """Sort and write the people, or trips, at the edges of pieces."""
    report = ReadReport()
    return written(runs, files, report, whole), report


def group_starts(runs: Runs, whole: Whole) -> Integers:
    """Return the first run of each person, or trip, in a row, and the number of runs."""
    begins = starts_of(runs.uid)
    if whole == "trips":
        begins |= starts_of(runs.tid)
    return np.append(np.flatnonzero(begins), len(runs.uid))


def written(runs: Runs, files: WorkFiles, report: ReadReport, whole: Whole = "people") -> Written:
    """Sort the trips of some people and write them."""
    settled = settle(runs, report, Faults(), strict=False, files=[])
    name = f"part-{secrets.token_hex(8)}"  # of its own: a piece may be read again by another worker
    write_runs(files, name, Packed.of(settled, Blocks()))
    return Written(
        name, write_hashes(files, name, settled.uid, settled.tid if whole == "trips" else None), settled.points.columns
    )


def add_counts(report: ReadReport, other: ReadReport) -> None:
    """Add the counts of a piece."""
    for one in fields(ReadReport):
        mine, its = getattr(report, one.name), getattr(other, one.name)
        if isinstance(mine, int):
            setattr(report, one.name, mine + its)
    report.columns = report.columns or other.columns
    report.columns_left_out += [name for name in other.columns_left_out if name not in report.columns_left_out]
