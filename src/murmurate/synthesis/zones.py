"""Make zones of equal noisy mass: halve a grid repeatedly, so that the count of every zone stays clear of its noise."""

from __future__ import annotations

import numpy as np

from murmurate.core.space import Floats, Integers


def zones_of_equal_mass(mass: Floats, *, rows: int, columns: int, depth: int) -> Integers:
    """Return the zone (0 ... 2**depth - 1) of each cell; `zone >> 1` is the zone of the same cell at depth - 1.

    `mass` must be public or already noisy. Each block is cut across its longer side into halves of nearly equal mass; a block
    of one cell is not cut, so some zone ids may stay empty.

    >>> zones_of_equal_mass(np.array([9.0, 1, 1, 7]), rows=1, columns=4, depth=1)
    array([0, 1, 1, 1])
    """
    weight = np.maximum(mass, 0.0).reshape(rows, columns)
    zone = np.zeros((rows, columns), dtype=np.int64)
    blocks = [(0, rows, 0, columns)]
    for _ in range(depth):
        halves = []
        for south, north, west, east in blocks:
            halves.extend(_halve(weight, south, north, west, east))
        blocks = halves
    for index, (south, north, west, east) in enumerate(blocks):
        zone[south:north, west:east] = index
    return zone.ravel()


def _halve(weight: Floats, south: int, north: int, west: int, east: int) -> list[tuple[int, int, int, int]]:
    """Return two blocks of nearly equal mass; the second is empty where there is nothing to cut."""
    height, width = north - south, east - west
    if height * width <= 1:
        return [(south, north, west, east), (south, south, west, west)]
    along_rows = height >= width
    sums = weight[south:north, west:east].sum(axis=1 if along_rows else 0)
    total = sums.sum()
    if total <= 0:
        cut = len(sums) // 2
    else:
        left = np.cumsum(sums)[:-1] / total
        cut = int(np.argmin(np.abs(left - 0.5))) + 1
    if along_rows:
        return [(south, south + cut, west, east), (south + cut, north, west, east)]
    return [(south, north, west, west + cut), (south, north, west + cut, east)]
