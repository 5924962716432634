"""Run one cell: rehearse the mechanism for each repeat and measure it; in any process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numba import njit

from murmurate import noise
from murmurate.attacks import NAMES
from murmurate.core.score import Better, Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.custody.door import rehearse
from murmurate.errors import InputError, MurmurateError
from murmurate.judging.scoring import releasing_again
from murmurate.judging.study.datasets import Dataset, load
from murmurate.judging.study.grid import ORIGINAL, Cell, mechanism_of
from murmurate.metrics import METRICS, measure
from murmurate.metrics.bootstrap import STATISTICS
from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import Comparison, NotMeasurable, Side
from murmurate.metrics.hausdorff import SAMPLED, nearest

TOGETHER_POINTS = 400_000
"""Most points of the repeats that go through a mechanism in one call, where it treats people apart. Set by hand."""


@dataclass(frozen=True)
class _OfReleased:
    """Take a measure of every released trip that needs no pairing, named `metric` + `joint` + statistic."""

    values: Callable[[Comparison], Floats]
    unit: str
    joint: str = ".released_"
    better: Better = "neither"
    timed: bool = False


def _nearest(comparison: Comparison) -> Floats:
    return nearest(comparison.original.lines, comparison.released.lines, np.arange(comparison.released.n))


OF_RELEASED: dict[str, _OfReleased] = {
    "length": _OfReleased(lambda both: both.released.length_m, "m"),
    "duration": _OfReleased(lambda both: both.released.duration_s, "s", timed=True),
    "speed": _OfReleased(lambda both: both.released.speed_kmh, "km/h", timed=True),
    "hausdorff_nearest": _OfReleased(_nearest, "m", ".", "lower"),
}
"""Metrics of which a study takes the statistics of each repeat; of length and the like the originals' own are the intercept."""

SCHEMA = {
    "repeat": pl.Int64,
    **dict.fromkeys(("kind", "metric"), pl.String),
    **dict.fromkeys(("value", "low", "high", "chance"), pl.Float64),
    **dict.fromkeys(("better", "unit"), pl.String),
}
"""Columns of the results of a cell, one row a value."""


@dataclass
class Outcome:
    """Hold the results of a cell: rows, or the reason why there are none."""

    cell: Cell
    rows: pl.DataFrame
    skipped: dict[str, str] = field(default_factory=dict)
    failed: str | None = None


@dataclass(frozen=True, eq=False)
class _Batch:
    """Hold released trips of one or several repeats."""

    first: int
    """The number of its first repeat."""
    released: Trips
    repeat: Integers
    """Of each trip, counted from `first`."""
    original: Integers | None
    """Of each trip; None where the mechanism pairs none."""
    knows: Mapping[str, Any] = field(default_factory=dict)
    """What attacks take besides both sides, where the mechanism pairs none."""


def run_cell(cell: Cell) -> Outcome:
    """Measure one cell; what a mechanism or an input refuses is returned, not raised, so that the study goes on."""
    rows: list[pl.DataFrame] = []
    skipped: dict[str, str] = {}
    try:
        data = load(cell.dataset, cell.folder)
        if data.identity.fingerprint != cell.fingerprint:
            raise InputError(f"the file of dataset {cell.dataset.name!r} was changed while the study ran.", "run it again.")
        for batch in _releases(cell, data):
            rows += _measure(cell, data, batch, skipped)
    except MurmurateError as error:
        return Outcome(cell, pl.DataFrame(schema=SCHEMA), skipped, str(error))
    return Outcome(cell, pl.concat(rows) if rows else pl.DataFrame(schema=SCHEMA), skipped)


def _releases(cell: Cell, data: Dataset) -> Iterator[_Batch]:
    """Yield batches of repeats until all are done."""
    if cell.label == ORIGINAL:
        own = np.arange(data.trips.n_trips, dtype=np.int64)
        yield _Batch(0, data.trips, np.zeros_like(own), own)
        return
    mechanism = mechanism_of(cell.mechanism, cell.parameters, data.spaces)
    apart = mechanism.local and mechanism.paired
    together = max(1, TOGETHER_POINTS // data.trips.n_points) if apart else 1
    rng = noise.secure() if cell.seed is None else noise.seeded(cell.noise_seed)
    for first in range(0, cell.repeats, together):
        times = min(together, cell.repeats - first)
        payload = rehearse(mechanism, data.repeated(times), rng=rng).payload
        if not isinstance(payload, Trips):
            raise InputError(f"{mechanism.name} releases no trips, and a study compares trips.")
        if mechanism.paired:
            yield _Batch(cell.first + first, payload, *data.positions(payload))
        else:
            knows = releasing_again(mechanism, seeded_runs=cell.seed is not None)
            yield _Batch(cell.first + first, payload, np.zeros(payload.n_trips, dtype=np.int64), None, knows)


def _measure(cell: Cell, data: Dataset, batch: _Batch, skipped: dict[str, str]) -> list[pl.DataFrame]:
    first, released, repeat, original = batch.first, batch.released, batch.repeat, batch.original
    few = data.trips.n_trips <= SAMPLED  # of more trips the metric itself draws some
    by_trip = [
        name for name in cell.metrics if METRICS[name].by_trip or (name in OF_RELEASED and (few or name != "hausdorff_nearest"))
    ]
    others = [name for name in cell.metrics if name not in by_trip]
    times = int(repeat.max()) + 1 if len(repeat) else 0
    groups = _Groups(repeat, times, first)
    whole = Comparison(data.side, Side(released, data.side.grid), original, summarise=groups.collect)
    for name in by_trip:
        with _noting(name, skipped):
            if name in OF_RELEASED:
                measured = OF_RELEASED[name]
                if measured.timed and not (released.has_time and data.trips.has_time):
                    raise NotMeasurable("the trips have no timestamps")
                names = [f"{name}{measured.joint}{word}" for word in STATISTICS]
                groups.add(names, measured.values(whole), repeat, measured.unit, measured.better)
            else:
                groups.among = whole.paired[0]
                measure(name, whole)
    rows = groups.rows
    if not others and not cell.attacks:
        return rows
    for k in range(times):
        mine = repeat == k
        part = released if times == 1 else released.take_trips(mine)
        pairing = None if original is None else original[mine]
        comparison = compare(part, data.trips, grid=data.side.grid, pairing=pairing, seed=first + k)
        scores: list[tuple[str, Score]] = []
        for name in others:
            with _noting(name, skipped):
                scores += [("metric", score) for score in measure(name, comparison)]
        for name in cell.attacks:
            with _noting(name, skipped):
                knows = {key: value for key, value in batch.knows.items() if key in NAMES[name].takes}
                found = NAMES.load(name)(part, data.trips, pairing=pairing, **knows)
                scores += [("attack", score) for score in found]
        rows.append(_table(first + k, scores))
    return rows


@contextmanager
def _noting(name: str, skipped: dict[str, str]) -> Iterator[None]:
    """Note why a metric or an attack could not be taken, and go on."""
    try:
        yield
    except NotMeasurable as reason:
        skipped[name] = str(reason)


class _Groups:
    """Collect statistics of a measure of trips, repeat by repeat, without the intervals that a single release gets."""

    def __init__(self, repeat: Integers, times: int, first: int) -> None:
        self.repeat, self.times, self.first = repeat, times, first
        self.among: Integers = np.arange(len(repeat))
        """The released trips that the values of `collect` belong to."""
        self.rows: list[pl.DataFrame] = []

    def collect(
        self, name: str, values: Floats, *, unit: str, family: str, better: Better = "lower", note: str = ""
    ) -> list[Score]:
        """Take the statistics of a measure; used in place of `bootstrap.summary`."""
        self.add([f"{name}.{word}" for word in STATISTICS], values, self.repeat[self.among], unit, better)
        return []

    def add(self, names: list[str], values: Floats, repeat: Integers, unit: str, better: str) -> None:
        """Add five statistics of the values of each repeat."""
        found = _statistics(np.ascontiguousarray(values, dtype=np.float64), repeat, self.times)
        self.rows.append(
            pl.DataFrame(
                {
                    "repeat": np.tile(np.arange(self.first, self.first + self.times, dtype=np.int64), len(names)),
                    "kind": "metric",
                    "metric": np.repeat(names, self.times),
                    "value": found.T.ravel(),
                    "low": None,
                    "high": None,
                    "chance": None,
                    "better": better,
                    "unit": unit,
                },
                schema=SCHEMA,
            )
        )


def _table(repeat: int, scores: list[tuple[str, Score]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            (repeat, kind, score.name, float(score.value), score.low, score.high, score.chance, score.better, score.unit)
            for kind, score in scores
        ],
        schema=SCHEMA,
        orient="row",
    )


@njit(cache=True, nogil=True)
def _statistics(values: Floats, group: Integers, n: int) -> Floats:
    """Return mean, sd, least, greatest and sum of the finite values of each group; NaN for a group without any."""
    result = np.empty((n, 5))
    count, mean = np.zeros(n), np.zeros(n)
    squares, total = np.zeros(n), np.zeros(n)
    least, greatest = np.full(n, np.inf), np.full(n, -np.inf)
    for i in range(len(values)):
        value, k = values[i], group[i]
        if np.isfinite(value):
            count[k] += 1
            total[k] += value
            # Welford: no digits are lost where the mean is large
            away = value - mean[k]
            mean[k] += away / count[k]
            squares[k] += away * (value - mean[k])
            least[k], greatest[k] = min(least[k], value), max(greatest[k], value)
    for k in range(n):
        if count[k] == 0:
            result[k] = np.nan
        else:
            result[k, 0], result[k, 1] = mean[k], np.sqrt(squares[k] / count[k])
            result[k, 2], result[k, 3], result[k, 4] = least[k], greatest[k], total[k]
    return result
