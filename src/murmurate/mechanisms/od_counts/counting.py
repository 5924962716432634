"""What one unit adds to the tables of od_counts: its trips by themselves, with one weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from murmurate.asking import Contributions, Part
from murmurate.asking.table import STEPS
from murmurate.core.space import Floats, Integers, Places
from murmurate.mechanisms.od_counts.clip import TABLE, count_norms
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
        if not self.limit:
            return np.ones(len(unit))
        return INSIDE * self.limit / np.maximum(self.norms(unit, trips), self.limit)

    def norms(self, unit: Integers, trips: ZoneTrips) -> Floats:
        """Return for each trip the norm of its unit: the largest of any round, in counts."""
        if not len(unit):
            return np.zeros(0)
        if self.laplace:  # the L1 norm of a unit is its number of trips in every table
            return np.bincount(unit).astype(np.float64)[unit]
        n_units = int(unit.max()) + 1
        first = self.bins(trips)
        allowed = sum(self.shares[name] for name in first)
        cost = sum(self.shares[name] / allowed * _squares(unit, bins, n_units) for name, bins in first.items())
        return np.asarray(np.sqrt(np.maximum(cost, _squares(unit, self.pair(trips), n_units)))[unit])


INSIDE = 1 - 1e-8
"""Factor on weights, so that floating-point error does not make a table scale a unit down once more."""


def _squares(unit: Integers, bins: Integers, n_units: int) -> Floats:
    """Return [unit] the squared L2 norm of its counts in a table."""
    stride = int(bins.max()) + 1  # only keeps keys apart; norms do not depend on it
    key, count = np.unique(unit * stride + bins, return_counts=True)
    return np.asarray(np.bincount(key // stride, weights=count.astype(np.float64) ** 2, minlength=n_units), dtype=np.float64)


Prepared = tuple[Integers, ZoneTrips]
"""The unit of each trip, and its bins."""


@dataclass(frozen=True, eq=False)
class CountNorms:
    """Counts units by the norm of their trips, which the clip follows from."""

    weighing: Weighing

    def __call__(self, prepared: Prepared) -> dict[str, Contributions]:
        """Let each unit add one count to the bin of its norm."""
        return {TABLE: count_norms(prepared[0], self.weighing.norms(*prepared))}


@dataclass(frozen=True, eq=False)
class CountTrips:
    """Counts trips with the weight of their unit."""

    weighing: Weighing
    steps: int = STEPS

    def __call__(self, prepared: Prepared) -> dict[str, Contributions]:
        """Let each trip add its weight to one bin of each table."""
        unit, trips = prepared
        weight = (self.weighing.weights(unit, trips) * self.steps).astype(np.int64)
        return {
            name: Contributions(unit[bins >= 0], bins[bins >= 0], weight[bins >= 0])
            for name, bins in self.tables(trips).items()
        }

    def tables(self, trips: ZoneTrips) -> dict[str, Integers]:
        """Return the bin of each trip in each table of the first round: zones and districts by hour, classes."""
        return self.weighing.bins(trips)


@dataclass(frozen=True, eq=False)
class CountPairs(CountTrips):
    """Counts of the second round."""

    def tables(self, trips: ZoneTrips) -> dict[str, Integers]:
        """Return the pair of zones of each trip, all hours together."""
        return {"pairs": self.weighing.pair(trips)}


@dataclass(frozen=True, eq=False, kw_only=True)
class CountHours(CountTrips):
    """Counts of the third round."""

    found: Integers
    """Pairs whose noisy count passed the threshold, ascending."""

    def tables(self, trips: ZoneTrips) -> dict[str, Integers]:
        """Return the hour of each trip of a found pair; -1 for other trips."""
        pair = self.weighing.pair(trips)
        at = np.minimum(np.searchsorted(self.found, pair), len(self.found) - 1)
        return {"pairs_hour": np.where(self.found[at] == pair, at * HOURS + trips.departure, -1)}
