"""What one unit adds to the tables of od_counts: its trips by themselves, with one weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from murmurate.asking import Contributions, Part
from murmurate.asking.table import STEPS, once
from murmurate.asking.units import TABLE, count_units
from murmurate.core.space import Floats, Integers, Places
from murmurate.spaces.zone_flows import HOURS
from murmurate.spaces.zone_trips import ZoneTrips


@dataclass(frozen=True)
class ReadTrips:
    """Turns a part into the unit and the bins of its trips."""

    places: Places
    column: str | None
    categories: tuple[str, ...]

    def __call__(self, part: Part) -> tuple[Integers, ZoneTrips]:
        """Locate the ends of every trip and look up its classes."""
        found = ZoneTrips.of(part.trips, self.places, column=self.column, categories=self.categories)
        return part.unit[found.trip], found


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighing:
    """How much the trips of a unit count, so that no table of any round has to scale it down again.

    One weight a unit holds for all tables and rounds, so that they describe the same weighted trips. It follows from the
    unit's own trips and public numbers.
    """

    district: Integers
    shares: Mapping[str, float]
    limit: float
    """Norm that a unit is scaled down to; 0 where each unit is one trip."""
    laplace: bool

    def bins(self, trips: ZoneTrips) -> dict[str, Integers]:
        """Return the bin of each trip in each table of the first round."""
        n_districts = int(self.district.max()) + 1
        pair = self.district[trips.origin] * n_districts + self.district[trips.destination]
        return {
            "departures": trips.origin * HOURS + trips.departure,
            "arrivals": trips.destination * HOURS + trips.arrival,
            "districts": pair * HOURS + trips.departure,
            **trips.classes,
        }

    def pair(self, trips: ZoneTrips) -> Integers:
        """Return the pair of zones of each trip."""
        return trips.origin * len(self.district) + trips.destination

    def weights(self, unit: Integers, trips: ZoneTrips) -> Floats:
        """Return the weight of each trip, that of its unit."""
        if not self.limit or not len(unit):
            return np.ones(len(unit))
        n_units = int(unit.max()) + 1
        if self.laplace:  # the L1 norm of a unit is its number of trips in every table
            norm = np.bincount(unit).astype(np.float64)
        else:
            first = self.bins(trips)
            allowed = sum(self.shares[name] for name in first)
            cost = sum(self.shares[name] / allowed * _squares(unit, bins, n_units) for name, bins in first.items())
            norm = np.sqrt(np.maximum(cost, _squares(unit, self.pair(trips), n_units)))
        weight: Floats = INSIDE * np.minimum(self.limit / np.maximum(norm, self.limit), 1.0)
        return weight[unit]


INSIDE = 1 - 1e-8
"""Factor on weights, so that floating-point error does not make a table scale a unit down once more."""


def _squares(unit: Integers, bins: Integers, n_units: int) -> Floats:
    """Return [unit] the squared L2 norm of its counts in a table."""
    stride = int(bins.max()) + 1  # only keeps keys apart; norms do not depend on it
    key, count = np.unique(unit * stride + bins, return_counts=True)
    return np.asarray(np.bincount(key // stride, weights=count.astype(np.float64) ** 2, minlength=n_units), dtype=np.float64)


def _weighted(unit: Integers, bins: Integers, weight: Floats, steps: int = STEPS) -> Contributions:
    return Contributions(unit, bins, (weight * steps).astype(np.int64))


@dataclass(frozen=True, eq=False)
class CountMargins:
    """Counts of the first round: zones by hour, districts by hour, lengths, durations, categories."""

    weighing: Weighing
    size: bool
    """Whether all trips are counted once more, for units that may be scaled down."""

    def __call__(self, prepared: tuple[Integers, ZoneTrips]) -> dict[str, Contributions]:
        """Let each trip add its weight to one bin of each table."""
        unit, trips = prepared
        weight = self.weighing.weights(unit, trips)
        found = {name: _weighted(unit, bins, weight) for name, bins in self.weighing.bins(trips).items()}
        return {**found, **({"size": once(unit, np.zeros_like(unit))} if self.size else {})}


@dataclass(frozen=True, eq=False)
class CountPairs:
    """Counts of the second round: pairs of zones, all hours together."""

    weighing: Weighing
    steps: int

    def __call__(self, prepared: tuple[Integers, ZoneTrips]) -> dict[str, Contributions]:
        """Let each trip add its weight to its pair."""
        unit, trips = prepared
        weight = self.weighing.weights(unit, trips)
        return {"pairs": _weighted(unit, self.weighing.pair(trips), weight, self.steps)}


@dataclass(frozen=True, eq=False)
class CountHours:
    """Counts of the third round: hours of the pairs that were found."""

    weighing: Weighing
    found: Integers
    """Pairs whose noisy count passed the threshold, ascending."""

    def __call__(self, prepared: tuple[Integers, ZoneTrips]) -> dict[str, Contributions]:
        """Let each trip of a found pair add its weight to its hour."""
        unit, trips = prepared
        pair = self.weighing.pair(trips)
        at = np.minimum(np.searchsorted(self.found, pair), len(self.found) - 1)
        known = self.found[at] == pair
        weight = self.weighing.weights(unit, trips)[known]
        return {"pairs_hour": _weighted(unit[known], (at * HOURS + trips.departure)[known], weight)}


def count_units_only(prepared: tuple[Integers, ZoneTrips]) -> dict[str, Contributions]:
    """Let each unit add one count to the bin of its number of trips."""
    return {TABLE: count_units(prepared[0])}
