"""Choose the classes of a common colour scale: round numbers, one step of 1-2-5 apart, that all panels share."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from murmurate.core.space import Floats, Integers


@dataclass(frozen=True)
class Breaks:
    """Hold the edges of classes: `edges[k]` is the least value of class k + 1; what is less stands in class 0."""

    edges: tuple[float, ...]

    @property
    def n(self) -> int:
        """How many classes."""
        return len(self.edges) + 1

    def classes(self, values: Floats) -> Integers:
        """Return the class of each value."""
        return np.searchsorted(np.array(self.edges), values, side="right").astype(np.int64)

    def labels(self, unit: str) -> list[str]:
        """Say in words what each class holds."""
        edges = [f"{edge:.12g}" for edge in self.edges]
        if not edges:
            return [f"any, in {unit}"]
        between = [f"{low} to {high} {unit}" for low, high in pairwise(edges)]
        return [f"under {edges[0]} {unit}", *between, f"{edges[-1]} {unit} and more"]


def shared_breaks(greatest: float, n: int) -> Breaks:
    """Return `n` classes of the 1-2-5 series that end just below the greatest value of all panels.

    >>> shared_breaks(7.3, 4).labels("%")
    ['under 1 %', '1 to 2 %', '2 to 5 %', '5 % and more']
    """
    if not greatest > 0:
        return Breaks(())
    power = int(np.floor(np.log10(greatest)))
    series = [float(f"{digit}e{exponent}") for exponent in range(power - n, power + 1) for digit in (1, 2, 5)]
    return Breaks(tuple([edge for edge in series if edge < greatest][-(n - 1) :]))
