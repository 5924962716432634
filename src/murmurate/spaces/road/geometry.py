"""Lengths of and points along polylines, on the sphere."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.spaces.sphere import great_circle_m, step_m


def polyline_lengths(offsets: Integers, lat: Floats, lng: Floats) -> Floats:
    """Return metres along each polyline; polyline k is vertices offsets[k]:offsets[k + 1]."""
    if len(lat) == 0:
        return np.zeros(len(offsets) - 1)
    steps = np.zeros(len(lat))
    steps[1:] = great_circle_m(lat[:-1], lng[:-1], lat[1:], lng[1:])
    steps[offsets[:-1]] = 0.0  # the jump from one polyline to the next is no road
    along = np.cumsum(steps)
    return np.asarray(along[offsets[1:] - 1] - along[offsets[:-1]], dtype=np.float64)


@njit(cache=True, nogil=True)
def points_along(offsets: Integers, lat: Floats, lng: Floats, links: Integers, share: Floats) -> tuple[Floats, Floats]:
    """Return the point at a share (0 to 1) of the length of each of these polylines."""
    out_lat = np.empty(len(links))
    out_lng = np.empty(len(links))
    for k in range(len(links)):
        first, last = offsets[links[k]], offsets[links[k] + 1] - 1
        total = 0.0
        for i in range(first, last):
            total += step_m(lat[i], lng[i], lat[i + 1], lng[i + 1])
        remaining = total * share[k]
        out_lat[k], out_lng[k] = lat[last], lng[last]
        for i in range(first, last):
            step = step_m(lat[i], lng[i], lat[i + 1], lng[i + 1])
            if step > 0.0 and remaining <= step:
                out_lat[k] = lat[i] + (lat[i + 1] - lat[i]) * remaining / step
                out_lng[k] = lng[i] + (lng[i + 1] - lng[i]) * remaining / step
                break
            remaining -= step
    return out_lat, out_lng
