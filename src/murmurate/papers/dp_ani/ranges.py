"""Counts of links within each range of a point, and the range chosen from them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats
from murmurate.noise import Randomness
from murmurate.noise.above import above_threshold
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.index import Buckets, squared_distance, window

STEP_M = 10.0
"""Metres by which the tested radius grows, as in the paper."""


def radii_of(initial_m: float, max_m: float) -> Floats:
    """Return the radii in metres to test: initial_m, initial_m + 10, ... up to max_m."""
    return np.arange(initial_m, max_m + STEP_M / 2, STEP_M)


def links_within(network: RoadNetwork, lat: Floats, lng: Floats, radii: Floats) -> NDArray[np.int32]:
    """Count [point, radius], the directed links of the public network within each radius of each point."""
    x, y = network.index.to_xy(lat, lng)
    return _counts(x, y, radii, network.index.buckets, network.n_links)


def adaptive_radii(
    counts: NDArray[np.int32], radii: Floats, *, threshold: int, epsilon: float, sensitivity: float, rng: Randomness
) -> Floats:
    """Return the first radius whose count passes a noisy threshold (Algorithm 1), the largest where none does."""
    step = above_threshold(counts, threshold=threshold, epsilon=epsilon, sensitivity=sensitivity, rng=rng)
    return np.where(step >= 0, radii[np.maximum(step, 0)], radii[-1])


def fixed_radii(counts: NDArray[np.int32], radii: Floats, *, threshold: int) -> Floats:
    """Return the first radius that holds the threshold of links, chosen without noise; the largest where none does."""
    enough = counts >= threshold
    return np.where(enough.any(axis=1), radii[enough.argmax(axis=1)], radii[-1])


@njit(cache=True, nogil=True)
def _counts(x: Floats, y: Floats, radii: Floats, b: Buckets, n_links: int) -> NDArray[np.int32]:
    """Count directed links by the first radius that reaches them, then add up over radii."""
    steps = len(radii)
    widest = radii[-1]
    counts = np.zeros((len(x), steps), dtype=np.int32)
    nearest = np.full(n_links, np.inf)
    seen = np.empty(n_links, dtype=np.int64)
    for p in range(len(x)):
        found = 0
        low_row, high_row, low, high = window(x[p], y[p], widest, b)
        if low > high:
            continue
        for row in range(low_row, high_row + 1):
            for at in range(b.offsets[row * b.columns + low], b.offsets[row * b.columns + high + 1]):
                s = b.segments[at]
                away = np.sqrt(squared_distance(x[p], y[p], b.seg_xy, s))
                link = b.seg_link[s]
                if away <= widest and away < nearest[link]:
                    if nearest[link] == np.inf:
                        seen[found] = link
                        found += 1
                    nearest[link] = away
        for k in range(found):
            link = seen[k]
            counts[p, np.searchsorted(radii, nearest[link])] += 2 if b.twin[link] >= 0 else 1
            nearest[link] = np.inf
        for step in range(1, steps):
            counts[p, step] += counts[p, step - 1]
    return counts
