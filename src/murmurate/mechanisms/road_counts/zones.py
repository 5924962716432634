"""Divide links into zones: the network is halved again and again so that each half carries the same (noisy) traffic."""

from __future__ import annotations

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.spaces.road import RoadNetwork

HEADINGS = 4
"""Hourly profiles of a zone, one for each quarter of the compass: morning traffic heads one direction, evening traffic the
other."""


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
