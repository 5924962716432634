"""Sort a source by person on the workers of an engine, through private files: for rows that stand in any order.

Each worker reads its pieces, puts the rows of each person into a bucket by a hash of the name, and leaves one file a piece with
its buckets one after another. A part is then the same bucket of all files. Beyond `FAN` parts there are two levels: pieces are
cut into groups of buckets first and each group into its buckets, so that the number of files grows with the pieces and not with
pieces times parts. Rows of a person stay in the order of the source.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.work_files import WorkFiles
from murmurate.engine import Engine
from murmurate.engine.shared import opened
from murmurate.ingest.buckets import forget_runs, read_bucket, write_buckets
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.people import buckets_of
from murmurate.ingest.pieces import OutOfOrder, Piece, Written, add_counts, read_piece, written
from murmurate.ingest.runs import Runs

FAN = 512
"""Buckets of one file. Set by hand: a bucket of a million points then holds about 2,000, worth a read of its own."""


@dataclass(frozen=True)
class _Scattered:
    """A piece in a private file, its rows by bucket."""

    name: str
    kind: Any
    """Columns and their types, which must agree over the pieces."""
    report: ReadReport


def shuffled_pieces(  # noqa: PLR0917
    pieces: Sequence[Piece], options: ReadOptions, engine: Engine, files: WorkFiles, report: ReadReport, n_parts: int
) -> Iterator[Written]:
    """Yield parts of whole people, written into private files; `OutOfOrder` where the source has a fault."""
    width = -(-n_parts // FAN)  # buckets of a group: 1 where one level is enough
    names: list[str] = []
    kind = None
    for one in engine.map(partial(_scatter_piece, options, files, n_parts, width), pieces):
        if one is None or (kind is not None and one.kind != kind):
            raise OutOfOrder
        kind = one.kind
        names.append(one.name)
        add_counts(report, one.report)
    shared = engine.share(names)
    items = [(shared, k) for k in range(n_parts)]
    if width > 1:
        names, items = _second_level(names, engine, files, n_parts, width)
    for part, counted in engine.map(partial(_gather, files), items):
        add_counts(report, counted)
        if part is not None:
            yield part
    forget_runs(files, names)


def _second_level(
    names: list[str], engine: Engine, files: WorkFiles, n_parts: int, width: int
) -> tuple[list[str], list[tuple[Any, int]]]:
    """Cut the groups of all files into buckets; return the new files, and of each part where its group lies and its bucket."""
    n_groups = -(-n_parts // width)
    chunks = [engine.share(names[k : k + n_groups]) for k in range(0, len(names), n_groups)]  # of a group: about one piece each
    tasks = [(chunk, group) for group in range(n_groups) for chunk in chunks]
    found = list(engine.map(partial(_scatter_group, files, n_parts, width), tasks))
    forget_runs(files, names)
    groups = [engine.share(found[k : k + len(chunks)]) for k in range(0, len(found), len(chunks))]
    return found, [(groups[k // width], k % width) for k in range(n_parts)]


def _scatter_piece(options: ReadOptions, files: WorkFiles, n_parts: int, width: int, piece: Piece) -> _Scattered | None:
    """Read and check a piece in the process of a worker and leave its rows by group; None where it has a fault."""
    found = read_piece(options, piece)
    if found is None:
        return None
    runs = Runs(found.runs.uid, found.runs.tid, found.runs.lengths, found.runs.points.select(pl.exclude("^\0.*$")))
    bucket = buckets_of(runs.uid, n_parts) // width
    name = _scatter(files, runs, bucket, -(-n_parts // width))
    return _Scattered(name, found.understood, found.report)


def _scatter_group(files: WorkFiles, n_parts: int, width: int, item: tuple[Any, int]) -> str:
    """Put the rows of one group of some files by bucket."""
    shared, group = item
    runs = _bucket_of(files, opened(shared), group)
    bucket = buckets_of(runs.uid, n_parts) % width if runs is not None else np.empty(0, np.int64)
    return _scatter(files, runs, bucket, width)


def _scatter(files: WorkFiles, runs: Runs | None, bucket: NDArray[np.int64], n: int) -> str:
    name = f"bucket-{secrets.token_hex(8)}"  # of its own: this may run again on another worker
    ends = np.zeros((2, n + 1), np.int64)
    if runs is not None:
        order = np.argsort(bucket, kind="stable")
        runs = runs.reordered(order)
        ends[0] = np.searchsorted(bucket[order], np.arange(n + 1))
        ends[1] = np.concatenate(([0], np.cumsum(runs.lengths)))[ends[0]]
    write_buckets(files, name, runs, ends)
    return name


def _bucket_of(files: WorkFiles, names: Sequence[str], k: int) -> Runs | None:
    """Return one bucket of several files, in their order; None where nobody is in it."""
    parts = [found for name in names if (found := read_bucket(files, name, k)) is not None]
    return Runs.together(parts) if parts else None


def _gather(files: WorkFiles, item: tuple[Any, int]) -> tuple[Written | None, ReadReport]:
    """Write a part: everybody in one bucket of all files."""
    shared, k = item
    report = ReadReport()
    runs = _bucket_of(files, opened(shared), k)
    return (written(runs, files, report) if runs is not None else None), report
