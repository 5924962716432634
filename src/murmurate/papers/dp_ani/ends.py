"""New end links: planar noise on the end, then the nearest link of the same class within the range of the true end."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.noise import Randomness, planar_laplace
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.index import Buckets, squared_distance, window

STEPS = 10_000
"""Lattice steps in one radius: noise is drawn for a radius of one and stretched to each end's own. Set by hand: a step is
within 5 cm at the default range of 500 m."""


def moved_ends(
    network: RoadNetwork, lat: Floats, lng: Floats, link: Integers, radius_m: Floats, *, epsilon: float, rng: Randomness
) -> Integers:
    """Draw the link that replaces each end; its own where no other of its class lies within the range."""
    x, y = network.index.to_xy(lat, lng)
    nought = np.zeros(len(x), dtype=np.int64)
    east, north = planar_laplace(nought, nought, epsilon_per_step=epsilon / STEPS, rng=rng)
    noisy_x, noisy_y = x + east * (radius_m / STEPS), y + north * (radius_m / STEPS)
    return _nearest_of_class(x, y, noisy_x, noisy_y, radius_m, link, network.road_class.astype(np.int64), network.index.buckets)


@njit(cache=True, nogil=True)
def _nearest_of_class(  # noqa: PLR0917
    x: Floats, y: Floats, noisy_x: Floats, noisy_y: Floats, radius: Floats, link: Integers, road_class: Integers, b: Buckets
) -> Integers:
    """Return the link of the end's class, within the radius of the true end, that is nearest to the noisy end."""
    chosen = link.copy()
    for p in range(len(x)):
        square = radius[p] * radius[p]
        best = np.inf
        low_row, high_row, low, high = window(x[p], y[p], radius[p], b)
        if low > high:
            continue
        for row in range(low_row, high_row + 1):
            for at in range(b.offsets[row * b.columns + low], b.offsets[row * b.columns + high + 1]):
                s = b.segments[at]
                street = b.seg_link[s]
                if road_class[street] != road_class[link[p]] or squared_distance(x[p], y[p], b.seg_xy, s) > square:
                    continue
                away = squared_distance(noisy_x[p], noisy_y[p], b.seg_xy, s)
                if away < best:
                    best = away
                    # of a two-way street only one direction is listed
                    chosen[p] = link[p] if b.twin[street] == link[p] else street
    return chosen
