"""Lay a release and its originals on the same places, refused where they have nothing to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.errors import Fault, InputError, ParameterError
from murmurate.metrics.comparison import Comparison, Side
from murmurate.spaces.grid import Grid

DEFAULT_CELL_M = 250.0
"""Side of a cell, in metres, of the grid laid over the originals where none is given. Set by hand."""
BOX_SHARE = 0.99
"""Without a grid, one is laid over the middle 99 % of the originals' points each way: strays would stretch it."""


def compare(
    released: Trips, original: Trips, *, grid: Places | None = None, pairing: ArrayLike | None = None, seed: int = 0
) -> Comparison:
    """Return both sides on the same places, refused where they have nothing to compare.

    For `grid`, `pairing` and `seed` see `murmurate.evaluate`.
    """
    named = {"original": original, "released": released}
    empty = [Fault(f"the {name} side has no trip") for name, trips in named.items() if not trips.n_trips]
    if empty:
        raise InputError(empty, "evaluate a release that holds trips against the file it came from.")
    if grid is not None and not isinstance(grid, Places):
        raise ParameterError(
            f"grid must be a Grid, hexagons, zones or stops, which metrics count in; got {type(grid).__name__}."
        )
    own = (trips.space for trips in (released, original) if isinstance(trips.space, Places))
    grid = grid or next(own, None) or _grid_over(original)
    sides = Side(original, grid), Side(released, grid)
    outside = [
        Fault(f"no point of the {name} side lies inside {grid.spec()}")
        for name, side in zip(named, sides, strict=True)
        if not (side.cell >= 0).any()
    ]
    if outside:
        raise InputError(outside, "give a grid that covers both sides, or check that the two belong together.")
    return Comparison(*sides, _pairing(pairing, released, original), seed)


def _grid_over(original: Trips) -> Grid:
    """Return a grid over the originals, for the custodian only: a grid read from private data is never published."""
    if not original.has_coordinates and original.space is None:
        raise InputError("the trips have cells or links but no space that tells where they are.", "give grid=.")
    lat, lng = Side(original, Grid(-1, -1, 1, 1, 1e5)).degrees
    tail = (1 - BOX_SHARE) / 2
    (south, north), (west, east) = (np.quantile(values, [tail, 1 - tail]) for values in (lat, lng))
    cell_m = DEFAULT_CELL_M
    south, north = max(south - 0.002, -90.0), min(north + 0.002, 90.0)
    west, east = max(west - 0.002, -180.0), min(east + 0.002, 180.0)
    while True:
        try:
            return Grid(float(south), float(west), float(north), float(east), cell_m)
        except ParameterError:
            if cell_m > 1e6:
                raise
            cell_m *= 2


def _pairing(pairing: ArrayLike | None, released: Trips, original: Trips) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    if pairing is None:
        return None
    pairs = np.asarray(pairing)
    if pairs.shape != (released.n_trips,) or not np.issubdtype(pairs.dtype, np.integer):
        raise ParameterError(
            f"pairing must be one whole number for each of the {released.n_trips:,} released trips; got {pairs.dtype} of "
            f"shape {pairs.shape}."
        )
    if len(pairs) and (pairs.min() < -1 or pairs.max() >= original.n_trips):
        raise ParameterError(
            f"pairing must hold positions of originals, 0 to {original.n_trips - 1:,}, or -1; got {int(pairs.min())} to "
            f"{int(pairs.max()):,}."
        )
    return pairs.astype(np.int64)
