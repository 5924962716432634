"""Skip points that hardly moved, which add only noise to the chain, and place them on the links driven."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.spaces.road.chain import Points
from murmurate.spaces.road.index import Buckets, search


@njit(cache=True, nogil=True)
def moved(offsets: Integers, x: Floats, y: Floats, least_m: float) -> NDArray[np.bool_]:
    """Mark the points to match: the ends of every trip, and those at least `least_m` from the one matched before."""
    keep = np.ones(len(x), dtype=np.bool_)
    for trip in range(len(offsets) - 1):
        before = offsets[trip]
        for p in range(offsets[trip] + 1, offsets[trip + 1] - 1):
            keep[p] = (x[p] - x[before]) ** 2 + (y[p] - y[before]) ** 2 >= least_m * least_m
            if keep[p]:
                before = p
        last = offsets[trip + 1] - 1
        if before > offsets[trip] and (x[last] - x[before]) ** 2 + (y[last] - y[before]) ** 2 < least_m * least_m:
            keep[before] = False  # the last point alone gives the end of the trip
    return keep


@njit(cache=True, nogil=True)
def fill(  # noqa: PLR0917
    offsets: Integers,
    keep: NDArray[np.bool_],
    x: Floats,
    y: Floats,
    radius_m: float,
    k: int,
    b: Buckets,
    path_offsets: Integers,
    path: Integers,
    points: Points,
) -> None:
    """Put each skipped point on the nearest link its trip drove; unmatched where none is in reach."""
    links, offsets_m, away = np.zeros(k, dtype=np.int64), np.zeros(k), np.zeros(k)
    driver = np.full(len(b.length_m), -1, dtype=np.int64)
    for trip in range(len(offsets) - 1):
        for at in range(path_offsets[trip], path_offsets[trip + 1]):
            driver[path[at]] = trip
        before = offsets[trip]
        for p in range(offsets[trip], offsets[trip + 1]):
            if keep[p]:
                before = p
                continue
            if points.link[before] < 0:
                continue
            for i in range(search(x[p], y[p], radius_m, b, links, offsets_m, away)):
                if driver[links[i]] == trip or links[i] == points.link[before]:
                    points.link[p], points.offset_m[p], points.distance_m[p] = links[i], offsets_m[i], away[i]
                    points.confidence[p], points.part[p] = points.confidence[before], points.part[before]
                    break
