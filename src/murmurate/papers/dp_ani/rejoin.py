"""Join drives with replaced first and last links by fastest routes to the points between."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Integers
from murmurate.spaces.drives import Drives
from murmurate.spaces.road import Matching
from murmurate.spaces.road.chain import Roads, roads_of
from murmurate.spaces.road.match_nearest import append_entry, append_route
from murmurate.spaces.road.route_table import RouteTable, look_up, prepare


def rejoined(drives: Drives, found: Matching, trips: Integers, first: Integers, last: Integers) -> Drives:
    """Give these trips new end links; what lies between their second and their last but one point stays as it was.

    Of the two directions of a new street, the one with the shorter route is taken. Routes run from the new origin to the link
    of the second point and from that of the last but one to the new destination; where none is in reach the parts stay apart.
    """
    network = drives.network
    path_offsets, entries = _rejoin(
        trips, first, last, drives.offsets, drives.link, found.offsets, found.link, roads_of(network), prepare(network)
    )
    source = entries[:, 1]
    return Drives(
        network=network,
        offsets=path_offsets,
        link=entries[:, 0].copy(),
        part=drives.part[source],
        hour=drives.hour[source],
        day=drives.day[source],
        seconds=np.where(entries[:, 2] > 0, drives.seconds[source], np.nan),
    )


@njit(cache=True, nogil=True)
def _rejoin(  # noqa: PLR0917
    trips: Integers,
    first: Integers,
    last: Integers,
    offsets: Integers,
    path: Integers,
    point_offsets: Integers,
    point_link: Integers,
    roads: Roads,
    table: RouteTable,
) -> tuple[Integers, Integers]:
    """Return offsets by trip, and rows (link, driven link whose hour it takes, whether it is that link)."""
    new_offsets = np.zeros(len(trips) + 1, dtype=np.int64)
    entries = np.empty((1024, 3), dtype=np.int64)
    used = new_offsets[0]  # a plain 0 is a type of its own to numba, and `append_entry` would be compiled again for it
    for k in range(len(trips)):
        trip = trips[k]
        begin, end = offsets[trip], offsets[trip + 1]
        # where the path passes the second and the last but one matched point
        inner_begin, inner_end = _inner(path, begin, end, point_link, point_offsets[trip], point_offsets[trip + 1])
        origin, destination = first[k], last[k]
        goal = roads.link_from[path[inner_begin]] if inner_begin < inner_end else roads.link_from[destination]
        origin = _shorter(origin, goal, True, roads, table)
        entries, used = append_entry(entries, used, origin, begin, np.int64(origin == path[begin]))
        entries, used = append_route(entries, used, roads.link_to[origin], goal, begin, np.int64(0), roads, table)
        if inner_begin < inner_end:
            at = inner_begin
            if entries[used - 1, 0] == path[at]:
                at += 1
            for e in range(at, inner_end):
                entries, used = append_entry(entries, used, path[e], e, np.int64(1))
            start = roads.link_to[path[inner_end - 1]]
            destination = _shorter(destination, start, False, roads, table)
            if entries[used - 1, 0] != destination:
                entries, used = append_route(
                    entries, used, start, roads.link_from[destination], end - 1, np.int64(0), roads, table
                )
        if entries[used - 1, 0] != destination:
            entries, used = append_entry(entries, used, destination, end - 1, np.int64(destination == path[end - 1]))
        new_offsets[k + 1] = used
    return new_offsets, entries[:used].copy()


@njit(cache=True, nogil=True)
def _inner(  # noqa: PLR0917
    path: Integers, begin: int, end: int, point_link: Integers, first_point: int, last_point: int
) -> tuple[int, int]:
    """Find the part of a path from the link of its second matched point to that of its last but one; perhaps empty."""
    second, before_last = -1, -1
    matched = 0
    for p in range(first_point, last_point):
        if point_link[p] >= 0:
            matched += 1
            if matched == 2:
                second = point_link[p]
    seen = 0
    for p in range(last_point - 1, first_point - 1, -1):
        if point_link[p] >= 0:
            seen += 1
            if seen == 2:
                before_last = point_link[p]
                break
    if matched < 3:
        return begin, begin
    low = begin
    while low < end and path[low] != second:
        low += 1
    high = end - 1
    while high >= begin and path[high] != before_last:
        high -= 1
    if low >= end or high < low:
        return begin, begin
    return low, high + 1


@njit(cache=True, nogil=True)
def _shorter(link: int, node: int, leaving: bool, roads: Roads, table: RouteTable) -> int:
    """Return the direction of a street from (or to) which the node is nearer by time."""
    other = roads.twin[link]
    if other < 0:
        return link
    costs = np.empty(2)
    for i, candidate in enumerate((link, other)):
        at = look_up(table, roads.link_to[candidate], node) if leaving else look_up(table, node, roads.link_from[candidate])
        costs[i] = np.inf if at < 0 else float(table.cost[at] & np.uint32(0xFFFF))
    return other if costs[1] < costs[0] else link
