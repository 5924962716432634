"""Turn the candidates chosen for a part into its results: links of points, links driven, times, probabilities."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats
from murmurate.spaces.road.chain import Chain, Path, Points, Roads
from murmurate.spaces.road.route_table import RouteTable, look_up

TOUCH_M = 5.0
"""Metres of a link at the end of a part below which it does not count as driven: that is within GPS noise. Set by hand."""


@njit(cache=True, nogil=True)
def pick_path(chain: Chain, n: int, roads: Roads, table: RouteTable) -> int:
    """Choose the best candidate of every point and return a bound on how many links that path has."""
    if n == 0:
        return 0
    best = 0
    for j in range(chain.found[n - 1]):
        if chain.best[n - 1, j] > chain.best[n - 1, best]:
            best = j
    chain.chosen[n - 1] = best
    for c in range(n - 1, 0, -1):
        chain.chosen[c - 1] = chain.back[c, chain.chosen[c]]
    most = 1
    for c in range(1, n):
        a, d = chain.link[c - 1, chain.chosen[c - 1]], chain.link[c, chain.chosen[c]]
        if a == d and chain.offset[c, chain.chosen[c]] >= chain.offset[c - 1, chain.chosen[c - 1]]:
            continue
        at = roads.link_to[a]
        while at != roads.link_from[d]:
            k = look_up(table, at, roads.link_from[d])
            if k < 0:
                break
            at = roads.link_to[roads.out_links[roads.out_offsets[at] + table.hop[k]]]
            most += 1
        most += 1
    return most


@njit(cache=True, nogil=True)
def write_part(  # noqa: PLR0917
    chain: Chain,
    n: int,
    part: int,
    back_m: float,
    time_s: Floats,
    roads: Roads,
    table: RouteTable,
    points: Points,
    path: Path,
    used: int,
) -> int:
    """Write the results of the chosen path for points and links, and return how many path entries there are now."""
    if n == 0:
        return used
    _posterior(chain, n, points)
    start = used
    for c in range(n):
        p, j = chain.point[c], chain.chosen[c]
        link, offset = chain.link[c, j], chain.offset[c, j]
        points.link[p], points.offset_m[p], points.distance_m[p], points.part[p] = link, offset, chain.away[c, j], part
        if n == 1:
            return used  # one point alone gives a place but no drive
        if c == 0:
            path.link[used], path.part[used], path.entered_s[used] = link, part, time_s[p]
            used += 1
            continue
        q, i = chain.point[c - 1], chain.chosen[c - 1]
        a, a_offset = chain.link[c - 1, i], chain.offset[c - 1, i]
        used = _drive(a, a_offset, link, offset, back_m, part, time_s[q], time_s[p], roads, table, path, used)
    last = chain.chosen[n - 1]
    if used - start > 1 and path.link[used - 1] == chain.link[n - 1, last] and chain.offset[n - 1, last] < TOUCH_M:
        used -= 1
    first = chain.chosen[0]
    begun = chain.link[0, first]
    if used - start > 1 and path.link[start + 1] != begun and roads.length_m[begun] - chain.offset[0, first] < TOUCH_M:
        for k in range(start, used - 1):
            path.link[k], path.part[k], path.entered_s[k] = path.link[k + 1], path.part[k + 1], path.entered_s[k + 1]
        used -= 1
    return used


@njit(cache=True, nogil=True)
def _drive(  # noqa: PLR0917
    a: int,
    a_offset: float,
    link: int,
    offset: float,
    back_m: float,
    part: int,
    start_s: float,
    end_s: float,
    roads: Roads,
    table: RouteTable,
    path: Path,
    used: int,
) -> int:
    """Append the links entered between two points, with the times they were entered, even pace assumed."""
    if a == link and offset >= a_offset - back_m:
        return used
    first = used
    driven = roads.length_m[a] - a_offset
    at = roads.link_to[a]
    while at != roads.link_from[link]:
        k = look_up(table, at, roads.link_from[link])
        if k < 0:
            break
        step = roads.out_links[roads.out_offsets[at] + table.hop[k]]
        path.link[used], path.part[used], path.entered_s[used] = step, part, driven
        driven += roads.length_m[step]
        at = roads.link_to[step]
        used += 1
    path.link[used], path.part[used], path.entered_s[used] = link, part, driven
    driven += offset
    used += 1
    for k in range(first, used):
        share = path.entered_s[k] / driven if driven > 0.0 else 1.0
        path.entered_s[k] = start_s + share * (end_s - start_s)
    return used


@njit(cache=True, nogil=True)
def _posterior(chain: Chain, n: int, points: Points) -> None:
    """Compute the probability of each chosen candidate given all points of the part."""
    k = chain.link.shape[1]
    total, weight, emission, count, confidence = chain.total, chain.weight, chain.emission, chain.found, points.confidence
    ahead, fresh = np.ones(k), np.ones(k)
    for c in range(n - 1, -1, -1):
        norm = 0.0
        for i in range(count[c]):
            norm += total[c, i] * ahead[i]
        j = chain.chosen[c]
        confidence[chain.point[c]] = total[c, j] * ahead[j] / norm if norm > 0.0 else 0.0
        if c > 0:
            for m in range(count[c]):
                ahead[m] *= emission[c, m]
            top = 0.0
            for i in range(count[c - 1]):
                value = 0.0
                for m in range(count[c]):
                    value += weight[c, i, m] * ahead[m]
                fresh[i] = value
                top = max(top, value)
            for i in range(count[c - 1]):
                ahead[i] = fresh[i] / top if top > 0.0 else 1.0
