"""Estimate and draw the number of cells of a trip, given the distance of its ends and its hour, from two noisy tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.synthesis.ends import shrink_cells
from murmurate.synthesis.shrink import nonnegative, shrink

RING_GROWTH = 1.5
"""Ratio of the radii of two consecutive rings of distance. Chosen by hand."""
SMOOTHING = np.array([1.0, 2.0, 3.0, 2.0, 1.0]) / 9
"""Weights of five neighbouring sizes in a smoothed row. Chosen by hand."""
FITTING_ROUNDS = 12
"""Rounds of iterative proportional fitting. Chosen by hand."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Estimated trips by distance, hour and number of cells."""

    table: Floats
    """[ring of distance, hour, size]; the last size is `max_cells` and more."""
    columns: int
    least: int = 2
    """Size of the first bin."""

    def sample(self, sources: Integers, destinations: Integers, hours: Integers, generator: np.random.Generator) -> Integers:
        """Draw a number of cells for each triple."""
        ring = np.minimum(rings(sources, destinations, self.columns), len(self.table) - 1)
        flat = self.table.reshape(-1, self.table.shape[2])
        group = ring * self.table.shape[1] + hours
        cumulative = np.cumsum(flat, axis=1)
        at = generator.random(len(group)) * cumulative[group, -1]
        return np.minimum(_places(cumulative, group, at), flat.shape[1] - 1) + self.least


@dataclass(frozen=True, eq=False)
class CoupledSizes:
    """Correct a size that was drawn from another model by a noisy table: the same quantile among trips of its distance."""

    expected: Floats
    """[ring of distance, size] trips by size in that other model."""
    sizes: Sizes

    def corrected(
        self, size: Integers, sources: Integers, destinations: Integers, hours: Integers, generator: np.random.Generator
    ) -> Integers:
        """Return a number of cells for each trip, larger where `size` is large for the distance of its ends."""
        table = self.sizes.table
        ring = np.minimum(rings(sources, destinations, self.sizes.columns), len(table) - 1)
        before = np.concatenate([np.zeros((len(self.expected), 1)), np.cumsum(self.expected, axis=1)], axis=1)
        at = np.minimum(size, self.expected.shape[1]) - 1
        quantile = before[ring, at] + generator.random(len(size)) * self.expected[ring, at]
        quantile /= np.maximum(before[ring, -1], 1e-12)
        cumulative = np.cumsum(table.reshape(-1, table.shape[2]), axis=1)
        group = ring * table.shape[1] + hours
        wanted = quantile * cumulative[group, -1]
        return np.minimum(_places(cumulative, group, wanted), table.shape[2] - 1) + self.sizes.least


@njit(cache=True, nogil=True)
def _places(cumulative: Floats, group: Integers, wanted: Floats) -> Integers:
    """Return how many numbers in the row `group` of each trip are at most `wanted`; numbers in a row never fall."""
    found = np.empty(len(group), dtype=np.int64)
    for trip in range(len(group)):
        row, low, high = group[trip], 0, cumulative.shape[1]
        while low < high:
            middle = (low + high) // 2
            if cumulative[row, middle] <= wanted[trip]:
                low = middle + 1
            else:
                high = middle
        found[trip] = low
    return found


def rings(sources: Integers, destinations: Integers, columns: int) -> Integers:
    """Return the geometric ring of distance (in cells) between two cells; 0 for the same cell."""
    down = destinations // columns - sources // columns
    right = destinations % columns - sources % columns
    apart = np.hypot(down, right)
    return np.where(apart < 1, 0, 1 + np.floor(np.log(np.maximum(apart, 1)) / np.log(RING_GROWTH)).astype(np.int64))


def sizes_from_tables(
    by_ring: Floats,
    by_hour: Floats | None,
    *,
    ring_hour: Floats,
    deviation: float,
    columns: int,
    least: int = 2,
    hour_deviation: float | None = None,
) -> Sizes:
    """Fit sizes to both noisy tables (or the one by distance alone), given distances and hours of the ends.

    `hour_deviation` is the noise of the table by hour where it differs from the other's.
    """
    ring_size = _shrink_rows(by_ring, deviation)
    given_ring = (ring_size + 1e-9) / (ring_size + 1e-9).sum(axis=1, keepdims=True)
    table = (ring_hour[:, :, None] + 1e-9) * given_ring[:, None, :]
    if by_hour is not None:
        hour_size = _shrink_table(by_hour, table.sum(axis=0), hour_deviation or deviation)
        wanted_hour = hour_size * (table.sum(axis=(0, 2)) / np.maximum(hour_size.sum(axis=1), 1e-9))[:, None]
        wanted_ring = ring_size * (table.sum() / max(float(ring_size.sum()), 1e-9))
        for _ in range(FITTING_ROUNDS):
            table *= _ratio(wanted_ring, table.sum(axis=1))[:, None, :]
            table *= _ratio(wanted_hour, table.sum(axis=0))[None, :, :]
    return Sizes(table + 1e-12 * given_ring[:, None, :], columns, least)


def n_rings_of(rows: int, columns: int) -> int:
    """Return the number of rings of a grid."""
    corner = np.array([rows * columns - 1])
    return int(rings(np.zeros(1, dtype=np.int64), corner, columns)[0]) + 1


def _shrink_rows(noisy: Floats, deviation: float) -> Floats:
    """Shrink rows of counts by size towards the shape of all rows, smoothed over neighbouring sizes."""
    whole = shrink(noisy.sum(axis=0), _smooth(noisy.sum(axis=0)), deviation=deviation * len(noisy) ** 0.5)
    totals = nonnegative(noisy.sum(axis=1))
    rows = []
    for row, total in zip(noisy, totals, strict=True):
        prior = np.maximum(_smooth(row), 0.0) + 0.1 * whole * (total / max(float(whole.sum()), 1e-9)) + 1e-9
        rows.append(shrink(row, prior, deviation=deviation))
    return np.array(rows)


def _shrink_table(noisy: Floats, expected: Floats, deviation: float) -> Floats:
    """Shrink [row, size] counts towards expected ones, from blocks of rows and sizes to single ones."""
    rows, columns = noisy.shape
    total = max(float(noisy.sum()), 1.0)
    found = shrink_cells(noisy.ravel(), rows=rows, columns=columns, n=total, deviation=deviation, prior=expected.ravel())
    return found.reshape(noisy.shape)


def _smooth(values: Floats) -> Floats:
    """Smooth a row with triangular weights over five neighbours."""

    def around(row: Floats) -> Floats:  # by hand: mode "same" gives the longer of row and kernel
        """Return weighted sums over neighbours, as long as the row."""
        return np.convolve(row, SMOOTHING)[2 : 2 + len(row)]

    return np.asarray(np.maximum(around(values) / around(np.ones_like(values)), 0.0))


def _ratio(wanted: Floats, have: Floats) -> Floats:
    """Return wanted over present values, 1 where nothing is present."""
    return np.asarray(np.where(have > 0, wanted / np.maximum(have, 1e-300), 1.0))
