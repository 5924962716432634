"""What one unit adds to the tables of od_counts: each trip by itself, one count to each table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from murmurate.asking import Contributions, Part
from murmurate.asking.table import STEPS, once
from murmurate.core.space import Integers, Places
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


@dataclass(frozen=True, eq=False)
class CountMargins:
    """Counts of the first round: zones by hour, districts by hour, lengths, durations, categories."""

    district: Integers
    size: bool
    """Whether all trips are counted once more, for units that may be scaled down."""

    def __call__(self, prepared: tuple[Integers, ZoneTrips]) -> dict[str, Contributions]:
        """Let each trip add one count to one bin of each table."""
        unit, trips = prepared
        add = partial(once, unit)
        n_districts = int(self.district.max()) + 1
        pair = self.district[trips.origin] * n_districts + self.district[trips.destination]
        return {
            "departures": add(trips.origin * HOURS + trips.departure),
            "arrivals": add(trips.destination * HOURS + trips.arrival),
            "districts": add(pair * HOURS + trips.departure),
            **({"size": add(np.zeros_like(pair))} if self.size else {}),
            **{name: add(bins) for name, bins in trips.classes.items()},
        }


@dataclass(frozen=True)
class CountPairs:
    """Counts of the second round: pairs of zones, all hours together."""

    n_zones: int
    steps: int

    def __call__(self, prepared: tuple[Integers, ZoneTrips]) -> dict[str, Contributions]:
        """Let each trip add one count to its pair."""
        unit, trips = prepared
        return {"pairs": once(unit, trips.origin * self.n_zones + trips.destination, steps=self.steps)}


@dataclass(frozen=True, eq=False)
class CountHours:
    """Counts of the third round: hours of the pairs that were found."""

    n_zones: int
    found: Integers
    """Pairs whose noisy count passed the threshold, ascending."""

    def __call__(self, prepared: tuple[Integers, ZoneTrips]) -> dict[str, Contributions]:
        """Let each trip of a found pair add one count to its hour."""
        unit, trips = prepared
        pair = trips.origin * self.n_zones + trips.destination
        at = np.minimum(np.searchsorted(self.found, pair), len(self.found) - 1)
        known = self.found[at] == pair
        weight = np.full(int(known.sum()), STEPS, dtype=np.int64)
        return {"pairs_hour": Contributions(unit[known], (at * HOURS + trips.departure)[known], weight)}
