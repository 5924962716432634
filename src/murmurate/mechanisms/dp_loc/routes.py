"""Protocols of the models of ends and of routes, and routes from counted tables: sampled or most probable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.mechanisms.dp_loc.settings import Route
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.paths import sample_paths
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.shortest import most_probable_paths
from murmurate.synthesis.sizes import Sizes

Arrays = Mapping[str, NDArray[Any]]
"""Plain arrays by name, as models store them."""


class Ends(Protocol):
    """A distribution over (source, destination, hour)."""

    def sample(self, n: int, generator: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        """Draw `n` triples."""
        ...

    def arrays(self) -> Arrays:
        """Return everything it is made of, as plain arrays."""
        ...


class Router(Protocol):
    """Paths between given ends."""

    def paths(self, sources: Integers, destinations: Integers, hours: Integers, generator: np.random.Generator) -> CellTrips:
        """Draw one path a triple, in the order of the triples."""
        ...

    def arrays(self) -> Arrays:
        """Return everything it is made of, as plain arrays."""
        ...


@dataclass(frozen=True, eq=False)
class CountRouter:
    """Routes from tables of weights; the destination alone decides them, so trips are grouped by it."""

    weights: MoveWeights
    sizes: Sizes
    around: Neighbourhood
    route: Route

    def paths(self, sources: Integers, destinations: Integers, hours: Integers, generator: np.random.Generator) -> CellTrips:
        if self.route == "most_probable":
            return most_probable_paths(sources, destinations, hours, weights=self.weights, around=self.around)
        sizes = self.sizes.sample(sources, destinations, hours, generator)
        return sample_paths(sources, destinations, hours, sizes, weights=self.weights, around=self.around, generator=generator)

    def arrays(self) -> Arrays:
        return {
            "towards": self.weights.towards.astype(np.float32),
            "visits": self.weights.visits.astype(np.float32),
            "steps": self.weights.steps.astype(np.float32),
            "sizes": self.sizes.table,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, around: Neighbourhood, route: Route) -> CountRouter:
        weights = MoveWeights(arrays["towards"], arrays["visits"], arrays["steps"])
        return cls(weights, Sizes(arrays["sizes"], around.columns), around, route)
