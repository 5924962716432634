"""New end links: planar noise on the end, then the nearest link of the same class within the range of the true end."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.noise import Randomness, planar_laplace
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.index import Buckets

STEPS = 10_000
"""Lattice steps in one radius: noise is drawn for a radius of one and stretched to each end's own."""


def moved_ends(
    network: RoadNetwork, lat: Floats, lng: Floats, link: Integers, radius_m: Floats, *, epsilon: float, rng: Randomness
) -> Integers:
    """The link that stands for each end; its own where no other of its class lies within the range."""
    x, y = network.index.to_xy(lat, lng)
    nought = np.zeros(len(x), dtype=np.int64)
    east, north = planar_laplace(nought, nought, epsilon_per_step=epsilon / STEPS, rng=rng)
    noisy_x, noisy_y = x + east * (radius_m / STEPS), y + north * (radius_m / STEPS)
    return _nearest_of_class(x, y, noisy_x, noisy_y, radius_m, link, network.road_class.astype(np.int64), network.index.buckets)


@njit(cache=True, nogil=True)
def _nearest_of_class(  # noqa: PLR0917
    x: Floats, y: Floats, noisy_x: Floats, noisy_y: Floats, radius: Floats, link: Integers, road_class: Integers, b: Buckets
) -> Integers:
    chosen = link.copy()
    for p in range(len(x)):
        r = radius[p]
        best = np.inf
        low_row, high_row = max(0, int((y[p] - r) // b.bucket_m)), min(b.rows - 1, int((y[p] + r) // b.bucket_m))
        low, high = max(0, int((x[p] - r) // b.bucket_m)), min(b.columns - 1, int((x[p] + r) // b.bucket_m))
        if low > high:
            continue
        for row in range(low_row, high_row + 1):
            for at in range(b.offsets[row * b.columns + low], b.offsets[row * b.columns + high + 1]):
                s = b.segments[at]
                if road_class[b.seg_link[s]] != road_class[link[p]]:
                    continue
                if _away(x[p], y[p], b.seg_xy, s) > r:
                    continue
                away = _away(noisy_x[p], noisy_y[p], b.seg_xy, s)
                if away < best:
                    best = away
                    chosen[p] = _same_way(b.seg_link[s], link[p], b)
    return chosen


@njit(cache=True, nogil=True)
def _same_way(street: int, link: int, b: Buckets) -> int:
    """The direction of a two-way street that is the link itself, if it is one of them; else the one that is listed."""
    return link if b.twin[street] == link else street


@njit(cache=True, nogil=True)
def _away(x: float, y: float, seg_xy: Floats, s: int) -> float:
    ax, ay = seg_xy[s, 0], seg_xy[s, 1]
    dx, dy = seg_xy[s, 2] - ax, seg_xy[s, 3] - ay
    square = dx * dx + dy * dy
    share = 0.0
    if square > 0.0:
        share = min(1.0, max(0.0, ((x - ax) * dx + (y - ay) * dy) / square))
    return np.hypot(ax + share * dx - x, ay + share * dy - y)
