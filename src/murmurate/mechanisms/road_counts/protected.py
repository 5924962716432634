"""Cut trips back to where they leave the zones of their ends, circles of a public map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.spaces.drives import Drives
from murmurate.spaces.road import RoadNetwork

PITCH_M = 100.0
"""Metres between the points of the lattice; a city block, so that neighbouring links often share a zone."""

MAX_POINTS = 200_000
"""Most points of the lattice; on larger networks the pitch is doubled until they are fewer, which bounds time and memory."""

MAX_RADIUS_M = 1_000.0
"""Largest radius of a zone in metres, however few the roads: a trip in empty country must not lose kilometres."""


@dataclass(frozen=True, eq=False)
class Zones:
    """Circles around the points of a public lattice: wide where roads are few, narrow where they are many."""

    centre_x: Floats
    centre_y: Floats
    radius_m: Floats
    """Of the zone that each link belongs to, with its centre in metres of the network's index."""
    link_x: Floats
    link_y: Floats


def public_zones(network: RoadNetwork, *, links: int) -> Zones:
    """Return the zone of every link: around the lattice point nearest to its middle, as wide as its `links` nearest links lie.

    Everything is a function of the public network; a private point only picks one of these circles.
    """
    x, y = network.index.to_xy(*network.midpoint)
    pitch = PITCH_M
    while (np.ptp(x) / pitch + 1) * (np.ptp(y) / pitch + 1) > MAX_POINTS:
        pitch *= 2
    column, row = np.rint(x / pitch).astype(np.int64), np.rint(y / pitch).astype(np.int64)
    stride = int(column.max()) + 1
    keys, place = np.unique(row * stride + column, return_inverse=True)
    centre_x, centre_y = (keys % stride) * pitch, (keys // stride) * pitch
    lat = network.index.south + centre_y / network.index.m_per_lat
    lng = network.index.west + centre_x / network.index.m_per_lng
    far = network.index.within(lat, lng, radius_m=MAX_RADIUS_M, k=links)[2][:, -1]
    radius = np.where(np.isfinite(far), far, MAX_RADIUS_M)
    return Zones(centre_x[place], centre_y[place], radius[place], x, y)


def trimmed(drives: Drives, zones: Zones) -> Drives:
    """Drop the links at either end of each trip that lie inside the zone of that end; a trip within one zone vanishes."""
    keep = _outside(drives.offsets, drives.link, zones.centre_x, zones.centre_y, zones.radius_m, zones.link_x, zones.link_y)
    return drives.take(keep)


@njit(cache=True, nogil=True)
def _outside(  # noqa: PLR0917
    offsets: Integers, link: Integers, x: Floats, y: Floats, radius: Floats, link_x: Floats, link_y: Floats
) -> NDArray[np.bool_]:
    keep = np.ones(len(link), dtype=np.bool_)
    for trip in range(len(offsets) - 1):
        first, last = offsets[trip], offsets[trip + 1] - 1
        if last < first:
            continue
        begun, ended = link[first], link[last]
        k = first
        while k <= last and (link_x[link[k]] - x[begun]) ** 2 + (link_y[link[k]] - y[begun]) ** 2 <= radius[begun] ** 2:
            keep[k] = False
            k += 1
        k = last
        while k >= first and (link_x[link[k]] - x[ended]) ** 2 + (link_y[link[k]] - y[ended]) ** 2 <= radius[ended] ** 2:
            keep[k] = False
            k -= 1
    return keep
