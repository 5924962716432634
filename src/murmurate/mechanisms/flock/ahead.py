"""Let routes look ahead: a step is better where good ways lead on from there to the destination.

A walk that weighs only the cell it enters next does not find the motorway two cells further on. Over wide cells, the weights of
all ways from one cell to another, of any length, sum to an entry of the inverse of I - W, where W holds the weights of single
steps. What that sum is with visits, over what it is by geometry alone, is a further weight of a step.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import ceil, sqrt

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tracks import Frame

MAX_WIDE_CELLS = 700
"""Largest number of wide cells; the matrix of all pairs of them is inverted in each round of calibration. Chosen by hand for
its time."""
VISITS_POWER = 0.3
"""Power of the routing weights by which ways are weighed. Chosen at epsilon 1 and 16 on other San Francisco and Geolife trips
than are scored, two releases each: .5 made lengths of Geolife worse. Without noise, 1 made ranks and patterns worse."""
MAX_RADIUS = 0.6
"""Largest spectral radius of the weights of single steps; below 1, so that long ways sum to little. Chosen by hand."""
RADIUS_ROUNDS = 30
"""Rounds of power iteration by which the radius is found. Chosen by hand."""
MAX_LOG_RATIO = 60.0
"""Largest difference of logarithms that is distinguished, so that weights stay within the range of single precision."""
DETOUR_SCALE_CELLS = 0.4
"""Way, in cells, that makes a step less likely by a factor of e where steps have no table. Chosen by hand."""


def look_ahead(frame: Frame, visits: Floats) -> tuple[Integers, Floats]:
    """Return the wide cell of each coarse cell, and [wide destination, wide cell] the weight of entering it.

    `visits` are the routing weights of coarse cells.
    """
    wide = replace(frame, block=max(frame.block, ceil(sqrt(frame.grid.n_cells / MAX_WIDE_CELLS))))
    fine = np.arange(frame.grid.n_cells)
    wide_of_fine, coarse_of_fine = wide.coarse_of(fine), frame.coarse_of(fine)
    within = np.bincount(wide_of_fine, minlength=wide.n_coarse)
    mean = np.bincount(wide_of_fine, weights=visits[coarse_of_fine], minlength=wide.n_coarse) / within
    step, by_geometry = _ways_by_geometry(wide.rows, wide.columns, min(frame.stride, 1.0))
    weighted = step * mean**VISITS_POWER
    radius, vector = 0.0, np.ones(len(mean))
    for _ in range(RADIUS_ROUNDS):
        vector = weighted @ vector
        radius = float(vector.max())
        vector /= max(radius, 1e-30)
    weighted /= max(radius / MAX_RADIUS, 1.0)
    ratio = _log_ways(weighted) - by_geometry
    ratio -= ratio.max(axis=0)
    wide_of = np.zeros(frame.n_coarse, dtype=np.int64)
    wide_of[coarse_of_fine] = wide_of_fine
    return wide_of, np.ascontiguousarray(np.exp(np.maximum(ratio, -MAX_LOG_RATIO)).T)


@lru_cache(maxsize=4)
def _ways_by_geometry(rows: int, columns: int, corner: float) -> tuple[Floats, Floats]:
    """Return [cell, cell] the weights of steps to the eight cells around, and the logarithms of the weights of all ways."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    far = np.hypot(row[:, None] - row, column[:, None] - column)
    beside = (far > 0) & (far < 1.5)
    step = np.where(beside, np.exp(-far / DETOUR_SCALE_CELLS) * np.where(far > 1, corner, 1.0), 0.0)
    return step, _log_ways(step)


def _log_ways(step: Floats) -> Floats:
    """Return [cell, cell] the logarithms of the summed weights of all ways, given those of single steps."""
    return np.log(np.maximum(np.linalg.inv(np.eye(len(step)) - step), 1e-300))
