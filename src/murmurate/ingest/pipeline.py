"""Steps of preparation in a row, with what each of them took away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from murmurate.core.trips import Trips
from murmurate.ingest.removed import Removed

Step = Callable[[Trips], tuple[Trips, Removed]]
"""A function of `clean`, `segment` or `discretise` with its options bound (`functools.partial`)."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Trips after all steps, and the private counts of what went."""

    trips: Trips
    removed: tuple[Removed, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """The counts as plain values, for the internal folder."""
        return [{"step": item.step, "points": item.points, "trips": item.trips, "why": item.why} for item in self.removed]


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
