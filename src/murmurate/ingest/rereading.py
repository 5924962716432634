"""Read a source again for every part, so that no row is kept on any disk: a part is everybody whose hash falls in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from murmurate.errors import InputError, ParameterError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.faults import Faults
from murmurate.ingest.files import Seal, SourceFile, refuse_changed
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.people import buckets_of
from murmurate.ingest.read import points
from murmurate.ingest.runs import Runs, settle

POINTS_PER_READING = 2_000_000
"""Points of a part of a source that is read again for each: twice those of a part that is kept, so that there are half as many
readings. Set by hand."""


@dataclass(frozen=True)
class Selection:
    """Everybody of a source whose hash falls in bucket `k` of `n`; called, it reads the whole source and returns their runs."""

    files: tuple[SourceFile, ...]
    seal: Seal
    options: ReadOptions
    n: int
    k: int

    def __call__(self) -> Runs:
        """Return the settled runs of the part."""
        return self.settled(ReadReport())

    def settled(self, report: ReadReport) -> Runs:
        """Return the settled runs of the part, and count what was repaired in them."""
        refuse_changed(self.files, self.seal)
        parts: list[Runs] = []
        empty: Runs | None = None
        for frame in points(list(self.files), self.options, Faults(), ReadReport()):
            runs = Runs.of(frame)
            mine = np.flatnonzero(buckets_of(runs.uid, self.n) == self.k)
            empty = empty or runs.slice(0, 0)
            if len(mine):
                parts.append(runs.reordered(mine))
        if empty is None:
            raise InputError("there are no rows in it.")
        refuse_changed(self.files, self.seal)
        return settle(Runs.together(parts or [empty]), report, Faults(), strict=False, files=[])


@dataclass(frozen=True)
class NamesAgain:
    """Names of the people of a source, batch by batch; a person who is in two batches comes twice."""

    files: tuple[SourceFile, ...]
    options: ReadOptions

    def __iter__(self) -> Iterator[Callable[[], pl.Series]]:
        for frame in points(list(self.files), self.options, Faults(), ReadReport()):
            yield partial(_names, frame)


def _names(frame: pl.DataFrame) -> pl.Series:
    return frame["uid"].unique().cast(pl.String)


@dataclass(frozen=True)
class Looked:
    """What the first reading of a part found: counts, and the columns of its points."""

    report: ReadReport
    columns: list[str]


def look(selection: Selection) -> Looked:
    """Read a part for the first time, in any process; nothing of it is kept."""
    report = ReadReport()
    runs = selection.settled(report)
    return Looked(report, runs.points.columns)


def refuse_strict(options: ReadOptions) -> None:
    """Refuse what needs all rows at once."""
    if options.strict:
        raise ParameterError(
            "--work none reads each person by itself and cannot list every doubtful row of a file, as --strict does; leave out "
            "one of them."
        )


def check_rows(files: Sequence[SourceFile], options: ReadOptions, faults: Faults, report: ReadReport) -> None:
    """Read everything once and keep nothing: every fault is found, and rows are counted."""
    for _ in points(list(files), options, faults, report):
        pass


def selections(files: Sequence[SourceFile], seal: Seal, options: ReadOptions, n: int) -> list[Selection]:
    """Return the parts of a source."""
    first = Selection(tuple(files), seal, options, n, 0)
    return [replace(first, k=k) for k in range(n)]
