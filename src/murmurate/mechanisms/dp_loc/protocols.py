"""The two small protocols behind which initialisers and next-cell models stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.synthesis.sequences import CellTrips

Arrays = Mapping[str, NDArray[Any]]


class Ends(Protocol):
    """A distribution over (source, destination, hour)."""

    def sample(self, n: int, generator: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        """`n` triples."""
        ...

    def arrays(self) -> Arrays:
        """Everything it is made of, as plain arrays."""
        ...


class Router(Protocol):
    """Paths between given ends."""

    def paths(self, sources: Integers, destinations: Integers, hours: Integers, generator: np.random.Generator) -> CellTrips:
        """One path a triple, in the order of the triples."""
        ...

    def arrays(self) -> Arrays:
        """Everything it is made of, as plain arrays."""
        ...
