"""Hold points with their person and trip stored once per run: the compact form between reading and `Trips`.

A run is a sequence of rows of one person and trip. Names cost nothing per point, so a file can be held, moved between
buckets and sorted with three numbers a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Integers, Space
from murmurate.core.trips import ORDER, Identity, Trips
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.faults import Faults
from murmurate.ingest.points import FILE_NUMBER, ROW
from murmurate.ingest.times import counts_of


@dataclass(frozen=True)
class Runs:
    """Runs of points; `uid` and `tid` name each run, `points` holds the other columns of every point."""

    uid: pl.Series
    tid: pl.Series
    lengths: Integers
    points: pl.DataFrame

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Runs:
        """Return the runs of a canonical frame, in its order."""
        change = np.zeros(frame.height, dtype=bool)
        change[:1] = True
        for name in ("uid", "tid"):
            codes = _codes(frame[name])
            change[1:] |= codes[1:] != codes[:-1]
        starts = np.flatnonzero(change)
        uid, tid = (_at(frame[name], starts) for name in ("uid", "tid"))
        points = pl.DataFrame([series for series in frame if series.name not in ("uid", "tid")])
        return cls(uid, tid, np.diff(np.append(starts, frame.height)), points)

    @classmethod
    def together(cls, parts: Sequence[Runs]) -> Runs:
        """Join parts one after another."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            _concat([part.uid for part in parts]),
            _concat([part.tid for part in parts]),
            np.concatenate([part.lengths for part in parts]),
            concat_frames([part.points for part in parts]),
        )

    @property
    def n_points(self) -> int:
        return self.points.height

    def slice(self, first: int, last: int) -> Runs:
        """Return runs first..last - 1."""
        start, end = int(self.lengths[:first].sum()), int(self.lengths[:last].sum())
        return Runs(self.uid[first:last], self.tid[first:last], self.lengths[first:last], self.points.slice(start, end - start))

    def reordered(self, order: Integers) -> Runs:
        """Return the runs in another order (or some of them), with their points."""
        starts = np.cumsum(self.lengths) - self.lengths
        rows = _expand(starts[order], self.lengths[order])
        return Runs(self.uid.gather(order), self.tid.gather(order), self.lengths[order], self.points[rows])

    def trips(self, *, space: Space | None, time_zone: str, source: Identity | None) -> Trips:
        """Return settled runs as `Trips`; nothing is checked again."""
        offsets = np.concatenate(([0], np.cumsum(self.lengths)))
        series = {column.name: column for column in self.points if column.name not in (ROW, FILE_NUMBER)}
        series |= {name: _spread(getattr(self, name), self.lengths).alias(name) for name in ("uid", "tid")}
        known = [name for name in ORDER if name in series]
        table = pl.DataFrame([series[name] for name in (*known, *[name for name in series if name not in known])])
        return Trips._trusted(
            table,
            space=space,
            time_zone=time_zone,
            source=source,
            offsets=offsets,
            user_offsets=np.append(np.flatnonzero(starts_of(self.uid)), len(self.uid)),
        )


def settle(runs: Runs, report: ReadReport, faults: Faults, *, strict: bool, files: Sequence[str | None]) -> Runs:
    """Sort people, trips and times and merge each trip into one run; every repair is counted (refused when strict)."""
    runs = _merge(_ordered(runs))
    ones = runs.lengths == 1
    report.one_point_trips += int(ones.sum())
    if strict and ones.any():
        _refuse("one-point trip", np.repeat(ones, runs.lengths), runs, faults, files)
    if "datetime" in runs.points.columns:
        runs = _in_time(runs, report, faults, strict, files)
    report.points += runs.n_points
    report.trips += len(runs.lengths)
    report.people += int(starts_of(runs.uid).sum())
    return runs


def _in_time(runs: Runs, report: ReadReport, faults: Faults, strict: bool, files: Sequence[str | None]) -> Runs:
    times = counts_of(runs.points["datetime"])
    reversals, ties = _count_reversals(times, runs.lengths)
    trip = np.repeat(np.arange(len(runs.lengths)), runs.lengths) if reversals or ties else np.empty(0, np.int64)
    if reversals:
        report.out_of_order += reversals
        if strict:
            earlier = np.concatenate(([False], (np.diff(times) < 0) & (np.diff(trip) == 0)))
            _refuse("earlier than the row before it in its trip", earlier, runs, faults, files)
        order = np.lexsort((times, trip))  # stable: what came first in the file stays first
        runs = Runs(runs.uid, runs.tid, runs.lengths, runs.points[order])
        times = times[order]
        _, ties = _count_reversals(times, runs.lengths)
    if ties:
        places = [runs.points[name].to_numpy() for name in ("lat", "lng", "cell", "link") if name in runs.points.columns]
        kind = _find_ties(times, runs.lengths, tuple(np.array(place, np.float64) for place in places))
        report.duplicates += int((kind == 1).sum())
        report.two_places_at_once += int((kind == 2).sum())
        if strict:
            _refuse("the time and place of another row of its trip", kind == 1, runs, faults, files)
            _refuse("two places at one time in one trip", kind == 2, runs, faults, files)
        keep = kind == 0
        lengths = np.bincount(trip[keep], minlength=len(runs.lengths))
        runs = Runs(runs.uid, runs.tid, lengths, runs.points.filter(pl.Series(keep)))
    return runs


def _refuse(reason: str, bad: NDArray[np.bool_], runs: Runs, faults: Faults, files: Sequence[str | None]) -> None:
    where = runs.points.select(ROW, FILE_NUMBER).filter(pl.Series(bad)).sort(FILE_NUMBER, ROW)
    for number in where[FILE_NUMBER].unique(maintain_order=True):
        rows = where.filter(pl.col(FILE_NUMBER) == number)[ROW].to_numpy()
        remedy = "Leave out strict to have such rows dealt with by the stated rules."
        faults.add_numbered(reason, rows, file=files[number], remedy=remedy)


def _ordered(runs: Runs) -> Runs:
    if len(runs.uid) < 2:
        return runs
    first, second = runs.uid[:-1], runs.uid[1:]
    tied = first == second
    if ((first < second) | (tied & (runs.tid[:-1] <= runs.tid[1:]))).all():
        return runs
    names = pl.DataFrame({"uid": runs.uid, "tid": runs.tid}).with_row_index("at")
    return runs.reordered(names.sort("uid", "tid", maintain_order=True)["at"].cast(pl.Int64).to_numpy())


def _merge(runs: Runs) -> Runs:
    """Merge neighbouring runs of one trip."""
    begins = starts_of(runs.uid) | starts_of(runs.tid)
    if begins.all():
        return runs
    at = np.flatnonzero(begins)
    return Runs(runs.uid.gather(at), runs.tid.gather(at), np.add.reduceat(runs.lengths, at), runs.points)


def starts_of(names: pl.Series) -> NDArray[np.bool_]:
    """Return where a new name begins."""
    begins = np.ones(len(names), dtype=bool)
    begins[1:] = (names[1:] != names[:-1]).to_numpy()
    return begins


def concat_frames(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Join frames of the same columns; a carried column that one of them lacks is empty there."""
    if all(frame.schema == frames[0].schema for frame in frames):
        return pl.concat(frames, rechunk=True)
    return pl.concat(frames, how="diagonal_relaxed", rechunk=True)


def _concat(names: list[pl.Series]) -> pl.Series:
    if any(series.dtype != names[0].dtype for series in names):
        names = [series.cast(pl.String) for series in names]
    return pl.concat(names, rechunk=True)


def _at(names: pl.Series, rows: Integers) -> pl.Series:
    """Return the names in these rows, as text or whole numbers."""
    if names.dtype == pl.Int64:
        return pl.Series(names.name, names.to_numpy()[rows])
    some = names.gather(rows)
    return some if names.dtype == pl.String else some.cast(pl.String)


def _spread(names: pl.Series, lengths: Integers) -> pl.Series:
    """Return the name of each run at each of its points."""
    if names.dtype == pl.Int64:
        return pl.Series(names.name, np.repeat(names.to_numpy(), lengths))
    return names.gather(pl.Series(np.repeat(np.arange(len(names), dtype=np.uint32), lengths)))


def _codes(names: pl.Series) -> NDArray[np.generic]:
    """Return numbers that change exactly where the name does."""
    if names.dtype == pl.String:
        return names.rle_id().to_numpy()
    return (names if names.dtype == pl.Int64 else names.to_physical()).to_numpy()


@njit(cache=True, nogil=True)
def _expand(starts: Integers, lengths: Integers) -> Integers:
    """Return the rows of runs: starts[k], starts[k] + 1, ... for each k."""
    rows = np.empty(lengths.sum(), np.int64)
    at = 0
    for k in range(len(starts)):
        for j in range(lengths[k]):
            rows[at] = starts[k] + j
            at += 1
    return rows


@njit(cache=True, nogil=True)
def _count_reversals(times: Integers, lengths: Integers) -> tuple[int, int]:
    """Count points earlier than the one before, and at the same time as it, within runs."""
    reversals = 0
    ties = 0
    at = 0
    for length in lengths:
        for k in range(at + 1, at + length):
            reversals += times[k] < times[k - 1]
            ties += times[k] == times[k - 1]
        at += length
    return reversals, ties


@njit(cache=True, nogil=True)
def _find_ties(times: Integers, lengths: Integers, places: tuple[NDArray[np.float64], ...]) -> NDArray[np.int8]:
    """Return 0 for the first point of its time, 1 for one at the same place as the first, 2 for one elsewhere."""
    kind = np.zeros(len(times), np.int8)
    at = 0
    for length in lengths:
        first = at
        for k in range(at + 1, at + length):
            if times[k] != times[first]:
                first = k
                continue
            kind[k] = 1
            for place in places:
                if place[k] != place[first]:
                    kind[k] = 2
        at += length
    return kind
