"""Divide links into zones: the network is halved again and again so that each half carries the same (noisy) traffic.

Means of noisy counts over the links of a zone, where noise averages out, say what links of a class carry nearby.
"""

from __future__ import annotations

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.spaces.road import RoadNetwork

HEADINGS = 4
"""Hourly profiles of a zone, one for each quarter of the compass: morning traffic heads one direction, evening traffic the
other."""

LEVELS = (1, 8, 64)
"""Zones of each level, from the whole network to neighbourhoods of some hundred links; means of a level are shrunk towards
those of the level before."""


def zones_of_links(network: RoadNetwork, traffic: Floats, n_zones: int) -> Integers:
    """Return the zone (0 ... n_zones - 1, a power of two) of each link; `traffic` must be public or already noisy."""
    x, y = network.index.to_xy(*network.midpoint)
    places = np.column_stack([x, y])
    weight = np.maximum(traffic, 0.0) + 1e-9 * max(float(traffic.max(initial=0.0)), 1.0)
    zone = np.zeros(network.n_links, dtype=np.int64)
    parts = [np.arange(network.n_links)]
    while len(parts) < n_zones:
        halves = []
        for part in parts:
            if len(part) < 2:
                halves += [part, part[:0]]
                continue
            along = int(np.argmax(np.ptp(places[part], axis=0)))
            order = part[np.argsort(places[part, along], kind="stable")]
            mass = np.cumsum(weight[order])
            cut = int(np.clip(np.searchsorted(mass, mass[-1] / 2) + 1, 1, len(order) - 1))
            halves += [order[:cut], order[cut:]]
        parts = halves
    for number, part in enumerate(parts):
        zone[part] = number
    return zone


def usual_counts(network: RoadNetwork, noisy: Floats, rough: Floats, *, deviation: float) -> Floats:
    """Estimate the mean count of every link's class in its neighbourhood; `rough` (estimated counts) halves the zones.

    >>> kinds = np.repeat([1, 5], 50)
    >>> means = _means(np.where(kinds == 1, 100.0, 2.0), np.full(100, 51.0), kinds, deviation=1.0)
    >>> means[[0, 99]].round().tolist()
    [100.0, 2.0]
    """
    road_class = network.road_class.astype(np.int64)
    usual = np.full(network.n_links, max(float(noisy.mean()), 0.0))
    for n_zones in LEVELS:
        cell = zones_of_links(network, rough, n_zones) * 6 + road_class
        usual = _means(noisy, usual, cell, deviation=deviation)
    return usual


def _means(noisy: Floats, before: Floats, cell: Integers, *, deviation: float) -> Floats:
    """Shrink means of cells towards the estimates of the level before, the less the more cells differ beyond noise."""
    _, cell, size = np.unique(cell, return_inverse=True, return_counts=True)
    mean, parent = (np.bincount(cell, weights=values) / size for values in (noisy, before))
    noise = deviation**2 / size
    expected = float((size * parent**2).sum())
    relative = max(float((size * ((mean - parent) ** 2 - noise)).sum()), 0.0) / expected if expected > 0 else 0.0
    weight = relative * parent**2 / (relative * parent**2 + noise)
    return np.maximum(parent + weight * (mean - parent), 0.0)[cell]
