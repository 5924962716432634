"""Take every metric and run every attack that a kind of release and its data allow, against the originals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl
from numpy.typing import ArrayLike

from murmurate.asking.rounds import fitted, is_measured
from murmurate.attacks import NAMES
from murmurate.core import progress
from murmurate.core.score import Score
from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.core.views import view
from murmurate.engine import Engine, engine
from murmurate.errors import Fault, InputError, ParameterError
from murmurate.metrics import METRICS, measure
from murmurate.metrics.comparison import NotMeasurable
from murmurate.noise import secure, seeded
from murmurate.releases.kind import Kind

FRAME: dict[str, type[pl.DataType]] = {
    "name": pl.String,
    **dict.fromkeys(("value", "low", "high"), pl.Float64),
    "better": pl.String,
    "chance": pl.Float64,
    "unit": pl.String,
    "family": pl.String,
    "n": pl.Int64,
    "note": pl.String,
}
"""Columns of `Evaluation.to_frame` and their types."""


@dataclass(frozen=True)
class Evaluation:
    """Hold the scores of metrics or attacks, and what could not be measured, each with its reason.

    Internal: it was computed from private data. Scores of attacks carry their chance levels.
    """

    scores: tuple[Score, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    grid: str = ""
    n_original: int = 0
    n_released: int = 0
    places: Places | None = field(default=None, repr=False)
    """The places that `grid` names, where they were given as such: the file of zones need not be here."""

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __getitem__(self, name: str) -> Score:
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(name)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a score: name, value, low, high, better, chance, unit, family, n, note."""
        return pl.DataFrame([asdict(score) for score in self.scores], schema=FRAME)

    def _repr_html_(self) -> str:
        return str(view("evaluation.html", self))

    def to_json(self) -> dict[str, Any]:
        """Return `{"scores": [...], "skipped": [...], ...}` in plain values."""
        return {
            "scores": [score.to_json() for score in self.scores],
            "skipped": [{"name": name, "reason": reason} for name, reason in self.skipped.items()],
            "grid": self.grid,
            "trips": {"original": self.n_original, "released": self.n_released},
        }


def take_metrics(
    kind: Kind,
    released: Any,
    original: Trips,
    *,
    grid: Places | None = None,
    pairing: ArrayLike | None = None,
    metrics: Sequence[str] | None = None,
    workers: int | str | Engine = 2,
    seed: int = 0,
    comparison: Any = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Evaluation:
    """Measure what was released against its originals by the metrics that read this kind.

    `comparison` holds both, if given; `options` gives keyword options to single metrics by name.
    """
    chosen = _chosen(metrics, kind, kind.scores, lambda name: (METRICS[name].reads,))
    given = options or {}
    comparison = comparison or kind.compare(released, original, grid=grid, pairing=pairing, seed=seed)
    with engine(workers) as running:
        scores, skipped = _run(
            chosen, "metrics", lambda name: measure(name, comparison, workers=running, **given.get(name, {}))
        )
    laid = getattr(comparison, "grid", None)
    return Evaluation(scores, skipped, laid.spec() if laid is not None else "", original.n_trips, kind.n_trips(released), laid)


def run_attacks(
    kind: Kind,
    released: Any,
    original: Trips,
    *,
    pairing: ArrayLike | None = None,
    attacks: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    knows: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Evaluation:
    """Run the attacks that read this kind on what was released; `knows` is what some attacks take besides both sides."""
    chosen = _chosen(attacks, kind, kind.attacks, lambda name: NAMES[name].reads)
    given = dict(options or {})
    stray = [name for name in given if name not in chosen]
    if stray:
        raise ParameterError(f"options name attacks that are not run: {', '.join(stray)}; run are {', '.join(chosen)}.")
    n_released = kind.n_trips(released)
    sides = (("original", original.n_trips), ("released", n_released if kind.identifiers else 1))
    empty = [Fault(f"the {name} side has no trip") for name, trips in sides if not trips]
    if empty:
        raise InputError(empty, "attack a release that holds trips, with the file it came from.")

    def run(name: str) -> list[Score]:
        more = {key: value for key, value in (knows or {}).items() if key in NAMES[name].takes}
        options = {"seed": seed, **more, **given.get(name, {})}
        scores: list[Score] = NAMES.load(name)(released, original, pairing=pairing, **options)
        return scores

    scores, skipped = _run(chosen, "attacks", run)
    if not chosen and kind.no_attack:
        skipped["every attack"] = kind.no_attack
    return Evaluation(scores, skipped, "", original.n_trips, n_released)


def releasing_again(mechanism: Any, *, seeded_runs: bool) -> dict[str, Any]:
    """Return what attacks on membership take: how to release other people by a mechanism, and whether it protects people.

    With `seeded_runs`, for demos and tests, every attack releases alike. An attack whose people are too few for the mechanism
    is not measurable; the other attacks go on.
    """

    def again(members: Trips, n: int, run: int) -> Any:
        rng = seeded(run) if seeded_runs else secure()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a third of the people that they are few: nobody releases them
                made = fitted(mechanism, members, rng) if is_measured(mechanism) else mechanism.apply(members, rng)
        except InputError as refused:
            raise NotMeasurable(
                f"{mechanism.name} refused to release some of the people again: {refused.faults[0]}"
            ) from refused
        return made.sample(n, rng) if hasattr(made, "sample") else made

    return {"again": again, "by_person": mechanism.guarantee().unit.name != "trip"}


def _chosen(
    names: Sequence[str] | None, kind: Kind, known: Sequence[str], reads: Callable[[str], tuple[str, ...]]
) -> list[str]:
    """Return the names to run (default: all `known`); unknown names and those of other kinds are refused before any work."""
    chosen = list(known) if names is None else list(dict.fromkeys(names))
    strangers = [name for name in chosen if kind.written_as not in reads(name)]
    if strangers:
        raise ParameterError(
            f"{', '.join(strangers)} read {' or '.join(reads(strangers[0]))}; on a {kind.written_as} there are "
            f"{', '.join(known) or 'none'}."
        )
    return chosen


def _run(names: Sequence[str], what: str, scores_of: Callable[[str], list[Score]]) -> tuple[tuple[Score, ...], dict[str, str]]:
    """Return all scores, and the reason of each name that is not measurable on these data."""
    scores: list[Score] = []
    skipped: dict[str, str] = {}
    for name in progress.track(names, what, len(names)):
        try:
            scores += scores_of(name)
        except NotMeasurable as reason:
            skipped[name] = str(reason)
    return tuple(scores), skipped
