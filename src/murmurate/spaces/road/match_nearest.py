"""The simple matcher: the nearest link at both ends, the nearest node in between, joined by routes."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.spaces.road.chain import Roads, roads_of
from murmurate.spaces.road.matching import Matching
from murmurate.spaces.road.network import RoadNetwork
from murmurate.spaces.road.route_table import RouteTable, look_up, prepare


def match_nearest(
    network: RoadNetwork, offsets: Integers, lat: Floats, lng: Floats, time_s: Floats | None, *, radius_m: float = 60.0
) -> Matching:
    """Match by DP-ANI's Algorithm 2 without its noise: each point on its own, so that every wrong snap is followed."""
    links, offsets_m, distances_m = network.index.nearest(lat, lng, radius_m=radius_m)
    nodes = nearest_nodes(network, lat, lng)
    nodes[links < 0] = -1
    n_trips = len(offsets) - 1
    first, last = np.full(n_trips, -1, dtype=np.int64), np.full(n_trips, -1, dtype=np.int64)
    there = offsets[1:] - offsets[:-1] > 1
    first[there], last[there] = links[offsets[:-1][there]], links[offsets[1:][there] - 1]
    table = prepare(network)
    path_offsets, path, part, point = join_nodes(network, table, offsets, nodes, first_links=first, last_links=last)
    entered = np.full(len(path), np.nan) if time_s is None else time_s[point]
    matched = links >= 0
    return Matching(
        offsets=offsets,
        link=links,
        offset_m=offsets_m,
        distance_m=distances_m,
        confidence=np.where(matched, 1.0, 0.0),
        part=np.where(matched, 0, -1).astype(np.int64),
        path_offsets=path_offsets,
        path_link=path,
        path_part=part,
        path_elapsed_s=entered,
    )


def nearest_nodes(network: RoadNetwork, lat: Floats, lng: Floats) -> Integers:
    """Return the nearest node of each point, however far; -1 for points without finite coordinates."""
    from scipy.spatial import cKDTree

    x, y = network.index.to_xy(lat, lng)
    tree = cKDTree(np.column_stack(network.index.to_xy(network.node_lat, network.node_lng)))
    finite = np.isfinite(x) & np.isfinite(y)
    nodes = np.full(len(x), -1, dtype=np.int64)
    if finite.any():
        nodes[finite] = tree.query(np.column_stack([x[finite], y[finite]]))[1]
    return nodes


def join_nodes(
    network: RoadNetwork,
    table: RouteTable,
    offsets: Integers,
    nodes: Integers,
    *,
    first_links: Integers | None = None,
    last_links: Integers | None = None,
) -> tuple[Integers, Integers, Integers, Integers]:
    """Join each trip's nodes (-1 skipped) by fastest routes, between a given first and last link where there is one.

    Returns (offsets, links, parts, points): the links of each trip, the part they belong to (a new one begins where no
    route is in reach) and the point each was driven to.
    """
    none = np.full(len(offsets) - 1, -1, dtype=np.int64)
    first = none if first_links is None else np.ascontiguousarray(first_links, dtype=np.int64)
    last = none if last_links is None else np.ascontiguousarray(last_links, dtype=np.int64)
    path_offsets, entries = _join(np.asarray(offsets), np.asarray(nodes), first, last, roads_of(network), table)
    return path_offsets, entries[:, 0].copy(), entries[:, 1].copy(), entries[:, 2].copy()


@njit(cache=True, nogil=True)
def _join(  # noqa: PLR0917
    offsets: Integers, nodes: Integers, first: Integers, last: Integers, roads: Roads, table: RouteTable
) -> tuple[Integers, Integers]:
    """Return offsets by trip, and rows (link, part, point)."""
    path_offsets = np.zeros(len(offsets), dtype=np.int64)
    entries = np.empty((64, 3), dtype=np.int64)
    # a plain 0 is a type of its own to numba, and kernels that are given one are compiled again for it
    used = path_offsets[0]
    for trip in range(len(offsets) - 1):
        begin, end = offsets[trip], offsets[trip + 1]
        part = np.int64(0)
        at = -1
        if first[trip] >= 0:
            entries, used = append_entry(entries, used, first[trip], part, begin)
            at = roads.link_to[first[trip]]
        for p in range(begin, end + 1):
            closing = p == end
            if closing and last[trip] < 0:
                break
            if not closing and ((first[trip] >= 0 and p == begin) or (last[trip] >= 0 and p == end - 1)):
                continue  # the ends are given by their links
            goal = roads.link_from[last[trip]] if closing else nodes[p]
            if closing and first[trip] == last[trip] and used > path_offsets[trip] and entries[used - 1, 0] == last[trip]:
                break
            if goal < 0:
                continue
            if at >= 0 and at != goal and look_up(table, at, goal) < 0:
                part += 1
                at = -1
            if at >= 0:
                entries, used = append_route(entries, used, at, goal, part, min(p, end - 1), roads, table)
            at = goal
            if closing:
                entries, used = append_entry(entries, used, last[trip], part, end - 1)
        path_offsets[trip + 1] = used
    return path_offsets, entries[:used].copy()


@njit(cache=True, nogil=True)
def append_route(  # noqa: PLR0917
    entries: Integers, used: int, start: int, goal: int, second: int, third: int, roads: Roads, table: RouteTable
) -> tuple[Integers, int]:
    """Append a row for each link of the fastest route between two nodes; nothing where none is in reach."""
    at = start
    while at != goal:
        k = look_up(table, at, goal)
        if k < 0:
            break
        link = roads.out_links[roads.out_offsets[at] + table.hop[k]]
        entries, used = append_entry(entries, used, link, second, third)
        at = roads.link_to[link]
    return entries, used


@njit(cache=True, nogil=True)
def append_entry(entries: Integers, used: int, link: int, second: int, third: int) -> tuple[Integers, int]:
    """Append a row of three numbers, in an array twice as large where it is full."""
    if used == len(entries):
        grown = np.empty((2 * used, 3), dtype=np.int64)
        for k in range(used):  # a slice would bring numba's messages about shapes along, seconds of compilation
            for column in range(3):
                grown[k, column] = entries[k, column]
        entries = grown
    entries[used, 0], entries[used, 1], entries[used, 2] = link, second, third
    return entries, used + 1
