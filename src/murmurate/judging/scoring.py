"""Scoring: every metric that a kind of release and its data allow, against the originals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from murmurate.core import progress
from murmurate.core.parameters import whole
from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.metrics import measure, metric
from murmurate.metrics.comparison import NotMeasurable
from murmurate.releases.kind import Kind
from murmurate.spaces.grid import Grid


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


def score_release(
    kind: Kind,
    released: Any,
    original: Trips,
    *,
    grid: Grid | None = None,
    pairing: ArrayLike | None = None,
    metrics: Sequence[str] | None = None,
    workers: int = 2,
    seed: int = 0,
) -> Evaluation:
    """Measure what was released against its originals by the metrics that read this kind."""
    whole("workers", workers)
    chosen = list(kind.scores) if metrics is None else list(dict.fromkeys(metrics))
    strangers = [name for name in chosen if metric(name).reads != kind.written_as]  # an unknown name is refused before any work
    if strangers:
        raise ParameterError(
            f"{', '.join(strangers)} read {metric(strangers[0]).reads}; on a {kind.written_as} there are "
            f"{', '.join(kind.scores) or 'none'}."
        )
    comparison = kind.compare(released, original, grid=grid, pairing=pairing, seed=seed)
    scores: list[Score] = []
    skipped: dict[str, str] = {}
    for name in progress.track(chosen, "metrics", len(chosen)):
        try:
            scores += measure(name, comparison, workers=workers)
        except NotMeasurable as reason:
            skipped[name] = str(reason)
    laid = getattr(comparison, "grid", None)
    return Evaluation(tuple(scores), skipped, laid.spec() if laid is not None else "", original.n_trips, kind.n_trips(released))
