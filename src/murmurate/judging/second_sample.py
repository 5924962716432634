"""Score one half of the originals against the other: what a second real sample of the same size of city would score."""

from __future__ import annotations

from typing import Any

import numpy as np

from murmurate.core.score import Score
from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.judging.scoring import Evaluation, take_metrics
from murmurate.judging.uses import uses_of
from murmurate.releases.kind import Kind

MIN_PEOPLE = 40
"""People from which on the halves are of people; with fewer, two halves of people differ by who happens to be in them, and the
halves are of trips. Set by hand."""

WITHOUT_FLOORS = {"od_emd": {"floor": False}}
"""Options of metrics: a second sample of the second sample would say nothing new, and takes half of the time."""


def second_sample(
    kind: Kind, released: Any, original: Trips, scores: tuple[Score, ...], *, grid: Places | None = None, seed: int = 0
) -> Evaluation:
    """Take the metrics that judge a use, of one half of the originals against the other half. Internal.

    `scores` are those of the release; `grid` is the one they were taken on. Empty where the kind of release cannot show
    trips as they are, or a half holds none.
    """
    first, other = halves(original, seed)
    metrics = list(dict.fromkeys(use.score.split(".")[0] for use in uses_of({score.name: score for score in scores}, kind)))
    if not metrics or not first.n_trips or not other.n_trips:
        return Evaluation(())
    shown = kind.unprotected(first, released)
    if shown is None:
        return Evaluation(())
    return take_metrics(kind, shown, other, grid=grid, metrics=metrics, seed=seed, options=WITHOUT_FLOORS)


def halves(original: Trips, seed: int = 0) -> tuple[Trips, Trips]:
    """Split the originals at random into two halves: of people, or of trips where there are few people."""
    draw = np.random.default_rng([seed, 53])
    if original.n_users >= MIN_PEOPLE:
        chosen = np.zeros(original.n_users, dtype=bool)
        chosen[draw.permutation(original.n_users)[: original.n_users // 2]] = True
        mask = chosen[original.trip_user]
    else:
        mask = np.zeros(original.n_trips, dtype=bool)
        mask[draw.permutation(original.n_trips)[: original.n_trips // 2]] = True
    return original.take_trips(mask), original.take_trips(~mask)
