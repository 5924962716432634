"""How many links lie within each range of a point, and the range chosen from that."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats
from murmurate.noise import Randomness
from murmurate.noise.above import above_threshold
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.index import Buckets

STEP_M = 10.0


def radii_of(initial_m: float, max_m: float) -> Floats:
    """initial, initial + 10, ... m: the radius tested at step l is initial + 10 (l - 1)."""
    return np.arange(initial_m, max_m + STEP_M / 2, STEP_M)


def links_within(network: RoadNetwork, lat: Floats, lng: Floats, radii: Floats) -> NDArray[np.int32]:
    """[point, radius]: directed links of the public network within each radius of each point."""
    x, y = network.index.to_xy(lat, lng)
    return _counts(x, y, radii, network.index.buckets, network.n_links)


def adaptive_radii(
    counts: NDArray[np.int32], radii: Floats, *, threshold: int, epsilon: float, sensitivity: float, rng: Randomness
) -> Floats:
    """Algorithm 1: the first radius whose count passes a noisy threshold, the largest where none does."""
    step = above_threshold(counts, threshold=threshold, epsilon=epsilon, sensitivity=sensitivity, rng=rng)
    return np.where(step >= 0, radii[np.maximum(step, 0)], radii[-1])


def fixed_radii(counts: NDArray[np.int32], radii: Floats, *, threshold: int) -> Floats:
    """The first radius that holds the threshold of links, chosen without noise."""
    enough = counts >= threshold
    return np.where(enough.any(axis=1), radii[enough.argmax(axis=1)], radii[-1])


@njit(cache=True, nogil=True)
def _counts(x: Floats, y: Floats, radii: Floats, b: Buckets, n_links: int) -> NDArray[np.int32]:
    steps = len(radii)
    widest = radii[-1]
    counts = np.zeros((len(x), steps), dtype=np.int32)
    nearest = np.full(n_links, np.inf)
    seen = np.empty(n_links, dtype=np.int64)
    for p in range(len(x)):
        found = 0
        low_row, high_row = max(0, int((y[p] - widest) // b.bucket_m)), min(b.rows - 1, int((y[p] + widest) // b.bucket_m))
        low, high = max(0, int((x[p] - widest) // b.bucket_m)), min(b.columns - 1, int((x[p] + widest) // b.bucket_m))
        if low > high:
            continue
        for row in range(low_row, high_row + 1):
            for at in range(b.offsets[row * b.columns + low], b.offsets[row * b.columns + high + 1]):
                s = b.segments[at]
                ax, ay = b.seg_xy[s, 0], b.seg_xy[s, 1]
                dx, dy = b.seg_xy[s, 2] - ax, b.seg_xy[s, 3] - ay
                square = dx * dx + dy * dy
                share = 0.0
                if square > 0.0:
                    share = min(1.0, max(0.0, ((x[p] - ax) * dx + (y[p] - ay) * dy) / square))
                away = np.hypot(ax + share * dx - x[p], ay + share * dy - y[p])
                link = b.seg_link[s]
                if away <= widest and away < nearest[link]:
                    if nearest[link] == np.inf:
                        seen[found] = link
                        found += 1
                    nearest[link] = away
        for k in range(found):
            link = seen[k]
            first = np.searchsorted(radii, nearest[link])
            if first < steps:
                counts[p, first] += 2 if b.twin[link] >= 0 else 1
            nearest[link] = np.inf
        for step in range(1, steps):
            counts[p, step] += counts[p, step - 1]
    return counts
