"""Run steps of preparation in order and count what each removes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from murmurate.core.trips import Trips


@dataclass(frozen=True)
class Removed:
    """Points and trips that a step left out; below zero where it made more of them (filled or split).

    Counts come from private data: they go to the internal folder, never into a release.
    """

    step: str
    points: int
    trips: int
    why: str

    def __str__(self) -> str:
        return f"{self.step}: {self.points:,} points, {self.trips:,} trips ({self.why})"


Step = Callable[[Trips], tuple[Trips, Removed]]
"""A function of `clean`, `segment` or `discretise` with its options bound (`functools.partial`)."""


def difference(step: str, before: Trips, after: Trips, why: str) -> Removed:
    """Count what a step removed."""
    return Removed(step, before.n_points - after.n_points, before.n_trips - after.n_trips, why)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Trips after all steps, and the private counts of what was removed."""

    trips: Trips
    removed: tuple[Removed, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the counts as plain values, for the internal folder."""
        return [asdict(item) for item in self.removed]


def pipeline(trips: Trips, steps: Iterable[Step]) -> Prepared:
    """Apply the steps in order and collect their counts.

    >>> import polars as pl
    >>> from murmurate.ingest.segment import drop_single_visits
    >>> trips = Trips(pl.DataFrame({"uid": ["a", "b", "b"], "tid": [1, 1, 1], "lat": [1.0, 1, 2], "lng": [0.0, 0, 0]}))
    >>> prepared = pipeline(trips, [drop_single_visits])
    >>> prepared.trips.n_trips, str(prepared.removed[0])
    (1, 'drop_single_visits: 1 points, 1 trips (trips of fewer than 2 visits)')
    """
    current, removed = trips, []
    for step in steps:
        current, counts = step(current)
        removed.append(counts)
    # Prepared trips are still the same file to the ledger: cleaning must not earn a fresh budget.
    if trips.source is not None and current.source is None:
        current = replace(current, source=trips.source)
    return Prepared(current, tuple(removed))
