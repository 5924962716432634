"""Evaluate: every metric that the data allow, of a release against its originals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from murmurate.core import progress
from murmurate.core.parameters import whole
from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.errors import Fault, InputError, ParameterError
from murmurate.metrics import METRICS, measure, metric
from murmurate.metrics.comparison import Comparison, NotMeasurable, Side
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.grid import Grid

DEFAULT_CELL_M = 250.0
BOX_SHARE = 0.99
"""Without a grid, one is laid over the middle 99 % of the originals' points each way: strays would stretch it."""


@dataclass(frozen=True)
class Evaluation:
    """Scores, and the metrics that could not be taken, each with its reason. Internal: it was computed from private data."""

    scores: tuple[Score, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    grid: str = ""
    n_original: int = 0
    n_released: int = 0

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __getitem__(self, name: str) -> Score:
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """`{"scores": [...], "skipped": [...], ...}` in plain values."""
        return {
            "scores": [score.to_json() for score in self.scores],
            "skipped": [{"name": name, "reason": reason} for name, reason in self.skipped.items()],
            "grid": self.grid,
            "trips": {"original": self.n_original, "released": self.n_released},
        }


def evaluate(
    released: Trips,
    original: Trips,
    *,
    grid: Grid | None = None,
    pairing: ArrayLike | None = None,
    metrics: Sequence[str] | None = None,
    workers: int = 2,
    seed: int = 0,
) -> Evaluation:
    """Score a release against its originals.

    `pairing[k]` is the position of the original of released trip k (-1 for none). `grid` is what cells mean; without it
    the release's own grid is used, then the originals', then one of 250 m over the originals. `seed` fixes what is
    sampled, so that scores repeat.

    >>> import polars as pl
    >>> table = pl.DataFrame({"uid": [1, 1, 1], "tid": [1, 1, 1], "lat": [60.1, 60.11, 60.12], "lng": [24.9, 24.9, 24.92]})
    >>> evaluation = evaluate(Trips(table), Trips(table), metrics=["visits", "duration"])
    >>> evaluation["visits.jsd"].value, evaluation.skipped["duration"]
    (0.0, 'the released trips have no timestamps')
    """
    whole("workers", workers)
    chosen = list(METRICS) if metrics is None else list(dict.fromkeys(metrics))
    for name in chosen:
        metric(name)  # an unknown name is refused before any work
    comparison = compare(released, original, grid=grid, pairing=pairing, seed=seed)
    scores: list[Score] = []
    skipped: dict[str, str] = {}
    for name in progress.track(chosen, "metrics", len(chosen)):
        try:
            scores += measure(name, comparison, workers=workers)
        except NotMeasurable as reason:
            skipped[name] = str(reason)
    return Evaluation(tuple(scores), skipped, comparison.grid.spec(), original.n_trips, released.n_trips)


def evaluate_network(released: LinkFlows, original: Trips) -> Evaluation:
    """Score a release of a network against its originals, matched to the same network and counted plainly."""
    from murmurate.metrics.networks import compare_networks  # beside the metrics of trips, never one of them

    if not (original.has_time and original.has_coordinates):
        raise InputError("a network is compared with trips that have times and coordinates; these lack one of them.")
    plain = LinkFlows.of_drives(drives_of(original, released.network), by_day="day" in released.table.columns)
    return Evaluation(tuple(compare_networks(released, plain)), {}, "", original.n_trips, 0)


def compare(
    released: Trips, original: Trips, *, grid: Grid | None = None, pairing: ArrayLike | None = None, seed: int = 0
) -> Comparison:
    """Both sides on one grid, refused where they have nothing to compare."""
    empty = [Fault(f"the {name} side has no trip") for name, trips in _named(original, released) if not trips.n_trips]
    if empty:
        raise InputError(empty, "evaluate a release that holds trips against the file it came from.")
    if grid is not None and not isinstance(grid, Grid):
        raise ParameterError(f"grid must be a Grid, which metrics count in; got {type(grid).__name__}.")
    grid = grid or _own_grid(released) or _own_grid(original) or _grid_over(original)
    sides = Side(original, grid), Side(released, grid)
    outside = [
        Fault(f"no point of the {name} side lies inside {grid.spec()}")
        for (name, _), side in zip(_named(original, released), sides, strict=True)
        if not (side.cell >= 0).any()
    ]
    if outside:
        raise InputError(outside, "give a grid that covers both sides, or check that the two belong together.")
    return Comparison(*sides, _pairing(pairing, released, original), seed)


def _named(original: Trips, released: Trips) -> tuple[tuple[str, Trips], tuple[str, Trips]]:
    return ("original", original), ("released", released)


def _own_grid(trips: Trips) -> Grid | None:
    return trips.space if isinstance(trips.space, Grid) else None


def _grid_over(original: Trips) -> Grid:
    """For the custodian's eyes only: a grid read from private data is never published."""
    if not original.has_coordinates and original.space is None:
        raise InputError("the trips have cells or links but no space that tells where they are.", "give grid=.")
    lat, lng = Side(original, Grid(-1, -1, 1, 1, 1e5)).degrees
    tail = (1 - BOX_SHARE) / 2
    (south, north), (west, east) = (np.quantile(values, [tail, 1 - tail]) for values in (lat, lng))
    cell_m = DEFAULT_CELL_M
    south, north = max(south - 0.002, -90.0), min(north + 0.002, 90.0)
    west, east = max(west - 0.002, -180.0), min(east + 0.002, 180.0)
    while True:
        try:
            return Grid(float(south), float(west), float(north), float(east), cell_m)
        except ParameterError:
            if cell_m > 1e6:
                raise
            cell_m *= 2


def _pairing(pairing: ArrayLike | None, released: Trips, original: Trips) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    if pairing is None:
        return None
    pairs = np.asarray(pairing)
    if pairs.shape != (released.n_trips,) or not np.issubdtype(pairs.dtype, np.integer):
        raise ParameterError(
            f"pairing must be one whole number for each of the {released.n_trips:,} released trips; got {pairs.dtype} of "
            f"shape {pairs.shape}."
        )
    if len(pairs) and (pairs.min() < -1 or pairs.max() >= original.n_trips):
        raise ParameterError(
            f"pairing must hold positions of originals, 0 to {original.n_trips - 1:,}, or -1; got {int(pairs.min())} to "
            f"{int(pairs.max()):,}."
        )
    return pairs.astype(np.int64)
