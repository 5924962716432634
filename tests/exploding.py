"""Private trips that tell when they are touched: the boundary the door must not cross before the charge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from murmurate.core.trips import Identity, Trips


class TouchedTooEarly(AssertionError):
    """Somebody read private rows before the ledger was charged."""


class Guarded:
    """Looks like `Trips` from outside; `allowed()` decides whether its content may be read yet."""

    def __init__(self, trips: Trips, allowed: Callable[[], bool]) -> None:
        self._trips = trips
        self._allowed = allowed
        self.identity: Identity = trips.identity
        self.time_zone = trips.time_zone
        self.n_points = trips.n_points

    def carries(self) -> frozenset[str]:
        return self._trips.carries()

    def __iter__(self) -> Any:
        if not self._allowed():
            raise TouchedTooEarly
        return iter([self._trips])
