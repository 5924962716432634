"""Planted faults: copies of a mechanism that break its promise in one way each, for audits that have to catch them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from murmurate.asking.bounding import units_of_trips
from murmurate.asking.meter import Counted
from murmurate.asking.rounds import facts_of
from murmurate.asking.table import Answer, Answers, Contributions, Facts, Part, Round, SparseTable, TreeTable
from murmurate.core.trips import Trips

Draw = Callable[[Any, Any, Any, Any], Answer]
"""draw(budget, table, exact sums, rng) -> noisy counts."""
TIMES = 1_000
"""How often a unit repeats what it adds where nothing clips it."""


def honest(budget: Any, table: Any, exact: Any, rng: Any) -> Answer:
    """Draw as releases do."""
    answer: Answer = budget.draw(table, exact, rng)
    return answer


def no_noise(budget: Any, table: Any, exact: Any, rng: Any) -> Answer:
    """Release exact counts, but state the standard deviation of the noise that is missing."""
    said = budget.deviation(table.share, table.limit)
    if isinstance(table, TreeTable | SparseTable):
        bins, sums = exact
        enough = sums >= table.threshold[bins // table.n_columns] * table.steps
        return Answer(sums[enough] / table.steps, said, bins[enough])
    return Answer(np.asarray(exact, dtype=np.float64).ravel() / table.steps, said)


def half_noise(budget: Any, table: Any, exact: Any, rng: Any) -> Answer:
    """Draw noise of half the scale: as if each unit could add half as much as it can."""
    if isinstance(table, TreeTable):
        return honest(budget, replace(table, limit=table.limit / 2), exact, rng)
    drawn = honest(budget, replace(table, limit=table.limit / 2), exact, rng)
    return Answer(drawn.noisy, 2 * drawn.deviation, drawn.bins)


DRAWS: dict[str, Draw] = {"no noise": no_noise, "half noise": half_noise}
"""Faults in drawing noise, by name."""


def unclipped_share(mechanism: Any, private: Trips, neighbour: Trips, rng: Any) -> float:
    """Return the share of the promise that a unit spends where nobody clips it, and it adds everything a thousand times."""
    facts, budget, unit = facts_of(private), mechanism.budget(), mechanism.guarantee().unit
    answers: dict[str, Answer] = {}
    total = 0.0
    while (asked := mechanism.ask(dict(answers), facts)) is not None:
        sides = []
        for trips in (private, neighbour):
            rows = asked.contribute(asked.prepare(Part(trips, units_of_trips(trips, unit))))
            sides.append({name: _summed(found) for name, found in rows.items()})
        for table in asked.tables:
            sums = tuple(side[table.name] for side in sides)
            total += TIMES * Counted(table, sums).cost("l1")
            answers[table.name] = honest(budget, table, Counted(table, sums).exact(0), rng)
    return total


def _summed(rows: Contributions) -> tuple[Any, Any]:
    bins, at = np.unique(rows.bin, return_inverse=True)
    size = np.zeros(len(bins), dtype=np.int64)
    np.add.at(size, at.ravel(), rows.weight)
    return bins.astype(np.int64), size


@dataclass(frozen=True)
class SharedFrame:
    """Counts times from the earliest time of a part, and places from its southernmost: others change what a unit adds."""

    mechanism: Any

    @property
    def name(self) -> str:
        """Return the name of the mechanism."""
        return f"{self.mechanism.name} with a shared clock"

    def budget(self) -> Any:
        """Return the budget of the mechanism."""
        return self.mechanism.budget()

    def guarantee(self) -> Any:
        """Return the promise of the mechanism, which this breaks."""
        return self.mechanism.guarantee()

    def ask(self, answers: Answers, facts: Facts) -> Round | None:
        """Ask what the mechanism asks, of shifted trips."""
        asked: Round | None = self.mechanism.ask(answers, facts)
        return asked and replace(asked, prepare=_Shifted(asked.prepare), keep=None)

    def model(self, answers: Answers, facts: Facts, rng: Any) -> Any:
        """Make nothing: only what is counted matters."""
        return None


@dataclass(frozen=True)
class _Shifted:
    prepare: Callable[[Part], Any]

    def __call__(self, part: Part) -> Any:
        table = part.trips.table
        clock = pl.col("datetime") - (pl.col("datetime").min() - datetime(2024, 1, 1, tzinfo=UTC))
        # a thousandth of the extent: enough to change cells, not enough to leave the roads
        place = pl.col("lat") - (pl.col("lat").max() - pl.col("lat").min()) * 0.05
        shifted = table.with_columns(clock, place) if table.height else table
        return self.prepare(Part(Trips(shifted, part.trips.space, part.trips.time_zone), part.unit))


class CopiedBlock:
    """Draws words ahead and keeps them, so that a forked child hands out the words of its parent."""

    def __init__(self) -> None:
        self._left = np.random.default_rng().integers(0, 2**63, 64)

    def __call__(self, n: int) -> Any:
        """Return the next words."""
        taken, self._left = self._left[:n], self._left[n:]
        return taken
