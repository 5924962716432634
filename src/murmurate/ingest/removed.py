"""What a step of preparation took away, and why: for the custodian only."""

from __future__ import annotations

from dataclasses import dataclass

from murmurate.core.trips import Trips


@dataclass(frozen=True)
class Removed:
    """How many points and trips a step left out; below zero where it made more of them (filled or split).

    Counts come from private data: they go to the internal folder, never into a release.
    """

    step: str
    points: int
    trips: int
    why: str

    def __str__(self) -> str:
        return f"{self.step}: {self.points:,} points, {self.trips:,} trips ({self.why})"


def difference(step: str, before: Trips, after: Trips, why: str) -> Removed:
    """The counts between two stages."""
    return Removed(step, before.n_points - after.n_points, before.n_trips - after.n_trips, why)
