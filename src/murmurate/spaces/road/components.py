"""The largest part of a network in which every node can be reached from every other."""

from __future__ import annotations

import numpy as np

from murmurate.core.space import Integers
from murmurate.errors import InputError
from murmurate.spaces.road.network import RoadNetwork


def strong_components(network: RoadNetwork) -> Integers:
    """The number of the strongly connected part of each node."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = (network.n_nodes, network.n_nodes)
    matrix = coo_array((np.ones(network.n_links, dtype=np.int8), (network.link_from, network.link_to)), shape=size)
    _, part = connected_components(matrix.tocsr(), directed=True, connection="strong")
    return np.asarray(part, dtype=np.int64)


def largest_connected(network: RoadNetwork) -> RoadNetwork:
    """The largest strongly connected part, by links; what falls away is counted in `dropped`."""
    part = strong_components(network)
    inside = part[network.link_from] == part[network.link_to]
    if not inside.any():
        raise InputError("no two nodes of this network can be reached from each other; every street is a one-way to nowhere.")
    largest = int(np.bincount(part[network.link_from[inside]]).argmax())
    keep = inside & (part[network.link_from] == largest)
    kept_nodes = int((part == largest).sum())
    counts = {
        "links outside the largest connected part": int((~keep).sum()),
        "nodes outside the largest connected part": network.n_nodes - kept_nodes,
    }
    return network.take_links(keep, dropped={reason: count for reason, count in counts.items() if count})
