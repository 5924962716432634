"""Shortest paths by time or distance: a binary heap over the network's out-links, in compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from murmurate.core.parameters import one_of
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError, ParameterError

if TYPE_CHECKING:
    from murmurate.spaces.road.network import RoadNetwork

By = Literal["time", "distance"]
Bools = NDArray[np.bool_]


class Graph(NamedTuple):
    """A network as the kernels read it: what leaves each node, where it leads, what it costs."""

    offsets: Integers
    links: Integers
    link_to: Integers
    cost: Floats
    """What is minimised, per link: seconds or metres."""
    other: Floats
    """What is added up along a route, per link."""


@dataclass(frozen=True)
class Route:
    """Holds a path of directed links and its costs; `links` is empty where start and end are one node."""

    links: Integers
    length_m: float
    time_s: float


def graph(network: RoadNetwork, *, by: By = "time", cost: Floats | None = None) -> Graph:
    """Prepare a network for routing by time, distance or given costs (one finite number >= 0 per link)."""
    one_of("by", by, ("time", "distance"))
    offsets, links = network.out_links
    time_s, length_m = np.array(network.time_s), np.array(network.length_m)
    main, other = (time_s, length_m) if by == "time" else (length_m, time_s)
    if cost is not None:
        main = np.array(cost, dtype=np.float64)
        if main.shape != (network.n_links,) or not np.isfinite(main).all() or (main < 0).any():
            raise ParameterError(f"cost must be {network.n_links:,} finite numbers of at least 0, one per link.")
    return Graph(offsets, links, np.array(network.link_to), main, other)


def route(network: RoadNetwork, start: int, end: int, *, by: By = "time", cost: Floats | None = None) -> Route | None:
    """Find the cheapest path from node `start` to node `end`, or None where there is none.

    `by` is "time" or "distance"; `cost` gives one number per link instead.

    >>> from murmurate.spaces.road import RoadNetwork
    >>> line = RoadNetwork.from_arrays(
    ...     node_lat=[0, 0, 0], node_lng=[0, 0.001, 0.002], link_from=[0, 1], link_to=[1, 2], road_class=[5, 5]
    ... )
    >>> route(line, 0, 2).links.tolist(), route(line, 2, 0)
    ([0, 1], None)
    """
    return routes(network, [start], [end], by=by, cost=cost)[0]


def routes(
    network: RoadNetwork, starts: ArrayLike, ends: ArrayLike, *, by: By = "time", cost: Floats | None = None
) -> list[Route | None]:
    """Find the cheapest path of each pair of nodes of `starts` and `ends`; None where there is none. See `route`."""
    pairs = [known_nodes(network, values) for values in (starts, ends)]
    if pairs[0].shape != pairs[1].shape:
        raise ParameterError(f"starts has {pairs[0].size:,} nodes and ends {pairs[1].size:,}; they must pair up.")
    offsets, links = batch_paths(graph(network, by=by, cost=cost), network.link_from, pairs[0], pairs[1])
    found: list[Route | None] = []
    for k, (start, end) in enumerate(zip(*pairs, strict=True)):
        path = links[offsets[k] : offsets[k + 1]]
        there = len(path) > 0 or start == end
        found.append(Route(path, float(network.length_m[path].sum()), float(network.time_s[path].sum())) if there else None)
    return found


def costs_from(
    network: RoadNetwork, start: int, *, by: By = "time", limit: float = np.inf, cost: Floats | None = None
) -> Floats:
    """Return the cost from one node to every node, infinite where there is no route within the limit."""
    node = int(known_nodes(network, [start])[0])
    g = graph(network, by=by, cost=cost)
    work = workspace(network.n_nodes)
    settle(g, node, np.int64(-1), limit, *work)
    return np.where(work[4], work[0], np.inf)


def known_nodes(network: RoadNetwork, nodes: ArrayLike) -> Integers:
    """Return node numbers as an array; refuse those that are not in the network."""
    numbers = np.atleast_1d(np.asarray(nodes, dtype=np.int64))
    bad = (numbers < 0) | (numbers >= network.n_nodes)
    if bad.any():
        raise InputError(f"node {int(numbers[bad][0])} is not in this network; it has nodes 0 to {network.n_nodes - 1:,}.")
    return numbers


Workspace = tuple[Floats, Floats, Integers, Integers, Bools, Integers, Floats, Integers]
"""Scratch arrays of a search, in the order of the parameters of `settle`."""


def workspace(n_nodes: int) -> Workspace:
    """Return scratch arrays of a search: cost, other, link and first hop per node, settled, nodes touched, and the heap."""
    return (
        np.full(n_nodes, np.inf),
        np.zeros(n_nodes),
        np.full(n_nodes, -1, dtype=np.int64),
        np.zeros(n_nodes, dtype=np.int64),
        np.zeros(n_nodes, dtype=np.bool_),
        np.empty(n_nodes + 1, dtype=np.int64),
        np.empty(4 * n_nodes + 64),
        np.empty(4 * n_nodes + 64, dtype=np.int64),
    )


compiled_workspace = njit(cache=True)(workspace)
"""`workspace` for kernels."""


@njit(cache=True, nogil=True)
def twice(values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return an array of twice the length that begins with the values; numba compiles `np.append` for longer."""
    grown = np.empty(2 * len(values), values.dtype)
    for k in range(len(values)):
        grown[k] = values[k]
    return grown


@njit(cache=True, nogil=True)
def settle(  # noqa: PLR0917
    g: Graph,
    start: int,
    end: int,
    limit: float,
    cost: Floats,
    other: Floats,
    link_in: Integers,
    hop: Integers,
    done: Bools,
    touched: Integers,
    heap_cost: Floats,
    heap_node: Integers,
) -> int:
    """Search by Dijkstra from one node until `end` (or the limit) and return how many nodes were touched.

    Fills the workspace; `reset` must follow before the next search.
    """
    n_touched = 1
    touched[0] = start
    cost[start], other[start], link_in[start] = 0.0, 0.0, -1
    heap_cost[0], heap_node[0] = 0.0, start
    size = 1
    while size > 0:
        here, at = heap_cost[0], heap_node[0]
        size -= 1
        last_cost, last_node = heap_cost[size], heap_node[size]
        i = 0
        while True:  # sift the last entry down from the top
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and heap_cost[child + 1] < heap_cost[child]:
                child += 1
            if heap_cost[child] >= last_cost:
                break
            heap_cost[i], heap_node[i] = heap_cost[child], heap_node[child]
            i = child
        heap_cost[i], heap_node[i] = last_cost, last_node
        if done[at]:
            continue
        done[at] = True
        if at == end:
            break
        for k in range(g.offsets[at], g.offsets[at + 1]):
            link = g.links[k]
            to = g.link_to[link]
            new = here + g.cost[link]
            if new < cost[to] and new <= limit and not done[to]:
                if cost[to] == np.inf:
                    touched[n_touched] = to
                    n_touched += 1
                cost[to], other[to], link_in[to] = new, other[at] + g.other[link], link
                hop[to] = k - g.offsets[at] if at == start else hop[at]
                if size == len(heap_cost):
                    heap_cost = twice(heap_cost)
                    heap_node = twice(heap_node)
                i = size
                size += 1
                while i > 0 and heap_cost[(i - 1) // 2] > new:
                    heap_cost[i], heap_node[i] = heap_cost[(i - 1) // 2], heap_node[(i - 1) // 2]
                    i = (i - 1) // 2
                heap_cost[i], heap_node[i] = new, to
    return n_touched


@njit(cache=True, nogil=True)
def reset(n_touched: int, cost: Floats, link_in: Integers, done: Bools, touched: Integers) -> None:
    """Make the workspace ready for the next search."""
    for i in range(n_touched):
        cost[touched[i]], link_in[touched[i]], done[touched[i]] = np.inf, -1, False


@njit(cache=True, nogil=True)
def batch_paths(g: Graph, link_from: Integers, starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Return (offsets, links) of the cheapest path of every pair; an empty path where there is none."""
    n_nodes = len(g.offsets) - 1
    cost, other, link_in, hop, done, touched, heap_cost, heap_node = compiled_workspace(n_nodes)
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    out = np.empty(max(16, 8 * len(starts)), dtype=np.int64)
    used = 0
    for p in range(len(starts)):
        n = settle(g, starts[p], ends[p], np.inf, cost, other, link_in, hop, done, touched, heap_cost, heap_node)
        if done[ends[p]]:
            first = used
            at = ends[p]
            while at != starts[p]:
                if used == len(out):
                    out = twice(out)
                out[used] = link_in[at]
                used += 1
                at = link_from[link_in[at]]
            out[first:used] = out[first:used][::-1].copy()
        offsets[p + 1] = used
        reset(n, cost, link_in, done, touched)
    return offsets, out[:used].copy()
