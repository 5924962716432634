"""How far trips go: their diameter, how far their ends lie apart within it, and how long they are for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.asking import Answer
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tables import (
    APART_EDGES,
    DIAMETERS,
    GROWTH,
    LENGTH_EDGES,
    SHAPE_STEP,
    SHORTEST_M,
    diameter_bin,
    diameter_middle_m,
)
from murmurate.synthesis.ends import draw_within
from murmurate.synthesis.shrink import nonnegative, shrink

ROWS = -(-DIAMETERS // SHAPE_STEP)
LONGEST_RATIO = 8.0
DIRECT = 0.7
"""Of trips whose ends lie about as far apart as they go: those that never go further."""
DRAWN = 200_000


@dataclass(frozen=True, eq=False)
class Shapes:
    """Expected trips by diameter, and by diameter and both ratios."""

    diameter: Floats
    """[diameter bin]"""
    ratios: Floats
    """[diameter row, distance of ends over diameter, length over diameter]"""

    def draw(self, n: int, generator: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Diameters, distances of the ends, and lengths, in metres."""
        bin_ = draw_within(self.diameter.reshape(1, -1), np.zeros(n, dtype=np.int64), generator)
        edges = bin_edges_m()
        diameter = edges[bin_] * (edges[bin_ + 1] / edges[bin_]) ** generator.random(n)
        row = bin_ // SHAPE_STEP
        flat = self.ratios.reshape(ROWS, -1) + 1e-12
        column = draw_within(flat, row, generator) // (len(LENGTH_EDGES) + 1)
        return diameter, diameter * _apart_ratio(column, generator), diameter * self._ratio(row, column, generator)

    def apart(self, generator: np.random.Generator) -> Floats:
        """[bin of distance] share of trips whose ends lie that far apart."""
        return np.bincount(diameter_bin(self.draw(DRAWN, generator)[1]), minlength=DIAMETERS) / DRAWN

    def given_apart(self, apart_m: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """A diameter and a length for each distance of the ends."""
        edges = row_edges_m()
        middle = np.sqrt(edges[1:] * edges[:-1])
        ratio_width = np.diff([0.0, *APART_EDGES, 1.0])
        law = self.ratios.sum(axis=2) / np.maximum(self.ratios.sum(), 1e-9)
        weights = np.zeros((DIAMETERS, ROWS))
        for at, apart in enumerate(diameter_middle_m()):
            ratio = np.minimum(apart / middle, 1.0)
            column = np.searchsorted(APART_EDGES, ratio)
            possible = edges[1:] > apart
            weights[at] = possible * (law[np.arange(ROWS), column] / (ratio_width[column] * middle) + 1e-15)
            weights[at, min(at // SHAPE_STEP, ROWS - 1)] += 1e-15
        row = draw_within(weights, diameter_bin(apart_m), generator)
        diameter = np.maximum(edges[row] * (edges[row + 1] / edges[row]) ** generator.random(len(row)), apart_m)
        column = np.searchsorted(APART_EDGES, np.minimum(apart_m / diameter, 1.0))
        return diameter, diameter * self._ratio(row, column, generator)

    def within(self, n: int, most_m: float, generator: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """The same as `draw`, of trips that go no further than that."""
        edges = row_edges_m()
        law = self.ratios.sum(axis=2) * (edges[:-1] < most_m)[:, None] + 1e-9 * (np.arange(ROWS) == 0)[:, None]
        at = draw_within(law.reshape(1, -1), np.zeros(n, dtype=np.int64), generator)
        row, column = np.divmod(at, len(APART_EDGES) + 1)
        wide = edges[row] * (edges[row + 1] / edges[row]) ** generator.random(n)
        return wide, wide * _apart_ratio(column, generator), wide * self._ratio(row, column, generator)

    def _ratio(self, row: Integers, column: Integers, generator: np.random.Generator) -> Floats:
        """Length over diameter."""
        edges = np.array([1.0, *LENGTH_EDGES, LONGEST_RATIO])
        flat = self.ratios.reshape(-1, len(LENGTH_EDGES) + 1) + 1e-9
        bin_ = draw_within(flat, row * (len(APART_EDGES) + 1) + column, generator)
        return np.asarray(edges[bin_] + np.diff(edges)[bin_] * generator.random(len(row)))


def believed_shapes(diameter: Answer, shape: Answer) -> Shapes:
    """Both noisy tables: diameters shrunk towards smooth ones, ratios towards those of all diameters."""
    by_diameter = diameter.noisy.reshape(-1, 2).sum(axis=1)
    smooth = np.convolve(np.pad(by_diameter, 2, mode="edge"), [1 / 9, 2 / 9, 3 / 9, 2 / 9, 1 / 9], mode="valid")
    believed = shrink(by_diameter, np.maximum(smooth, 0.0) + 1e-6, deviation=diameter.deviation * 2**0.5, scaled=True)
    noisy = shape.noisy.reshape(ROWS, len(APART_EDGES) + 1, len(LENGTH_EDGES) + 1)
    rows = nonnegative(by_diameter).reshape(ROWS, SHAPE_STEP).sum(axis=1)
    ratios = nonnegative(noisy.sum(axis=0))
    prior = rows[:, None, None] * (ratios / max(ratios.sum(), 1e-9))[None] + 1e-6
    return Shapes(believed + 1e-9, shrink(noisy, prior, deviation=shape.deviation, scaled=True) + 1e-3 * prior)


def _apart_ratio(column: Integers, generator: np.random.Generator) -> Floats:
    edges = np.array([0.0, *APART_EDGES, 1.0])
    ratio = edges[column] + np.diff(edges)[column] * generator.random(len(column))
    direct = (column == len(APART_EDGES)) & (generator.random(len(column)) < DIRECT)
    return np.asarray(np.where(direct, 1.0, ratio))


def bin_edges_m() -> Floats:
    """Edges of the bins of diameter."""
    return np.concatenate([[0.2 * SHORTEST_M], SHORTEST_M * GROWTH ** np.arange(DIAMETERS)])


def row_edges_m() -> Floats:
    """Edges of the rows of the shape table."""
    upper = SHORTEST_M * GROWTH ** (np.arange(1, ROWS + 1) * SHAPE_STEP - 1)
    return np.concatenate([[0.2 * SHORTEST_M], upper])
