"""The hidden Markov chain of link matching, compiled: candidates, transitions, outliers and gaps."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.spaces.road.chain import Chain, Path, Points, Roads, Settings
from murmurate.spaces.road.driven import pick_path, write_part
from murmurate.spaces.road.index import Buckets, search
from murmurate.spaces.road.route_table import EXCESS_STEP_S, NO_ROUTE, RouteTable
from murmurate.spaces.road.routing import twice

BEAM = 1e-6
"""Probability relative to the best candidate of a point below which a candidate is not continued; set by hand."""

NEVER = 1e18
"""Seconds that stand for no limit where points have no times."""

LOST = 1e-9
"""Probability below which a step is an outlier or a gap: the point is skipped, or a new part begins. Set by hand."""


@njit(cache=True, nogil=True)
def match_trips(  # noqa: PLR0917
    offsets: Integers,
    x: Floats,
    y: Floats,
    time_s: Floats,
    b: Buckets,
    roads: Roads,
    table: RouteTable,
    s: Settings,
    chain: Chain,
    points: Points,
) -> tuple[Integers, Path]:
    """Match trip by trip; fills `points`, returns offsets by trip and the links driven."""
    path_offsets = np.zeros(len(offsets), dtype=np.int64)
    size = max(64, 2 * len(x))
    path = Path(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size))
    # np.int64: a plain 0 is a type of its own to numba, and every kernel that is given one is compiled again for it
    zero = np.int64(0)
    used = zero
    limit = len(chain.point) - 1
    for trip in range(len(offsets) - 1):
        first, last = offsets[trip], offsets[trip + 1]
        p = first
        part = zero
        n = zero
        skipped = 0
        first_skipped = first
        while p < last or skipped > 0:
            stuck = p >= last  # the trip ends in points that did not fit: they may be a part of their own
            if not stuck:
                found = search(x[p], y[p], s.radius_m, b, chain.link[n], chain.offset[n], chain.away[n])
                if found == 0:
                    p += 1
                    continue
                chain.point[n], chain.found[n] = p, found
                for j in range(found):
                    chain.emission[n, j] = np.exp(-0.5 * (chain.away[n, j] / s.sigma_m) ** 2)
                if n == 0:
                    _begin(chain)
                    n = zero + 1
                    p += 1
                    continue
                q = chain.point[n - 1]
                gap_s = time_s[p] - time_s[q]
                straight = np.sqrt((x[p] - x[q]) ** 2 + (y[p] - y[q]) ** 2)
                far = n == limit or (s.has_time and gap_s > s.max_gap_s)
                if not far and _advance(chain, n, gap_s, straight, roads, table, s):
                    n += 1
                    p += 1
                    skipped = 0
                    continue
                if not far and skipped < s.max_skipped:
                    first_skipped = p if skipped == 0 else first_skipped
                    skipped += 1
                    p += 1
                    continue
            # The chain ends here; what was skipped begins the next part.
            path = _grown(path, used + pick_path(chain, n, roads, table))
            used = write_part(chain, n, part, s.back_m, time_s, roads, table, points, path, used)
            part += 1
            n = zero
            p = first_skipped if skipped > 0 else p
            skipped = 0
        path = _grown(path, used + pick_path(chain, n, roads, table))
        used = write_part(chain, n, part, s.back_m, time_s, roads, table, points, path, used)
        path_offsets[trip + 1] = used
    return path_offsets, Path(path.link[:used].copy(), path.part[:used].copy(), path.entered_s[:used].copy())


@njit(cache=True, nogil=True)
def _grown(path: Path, wanted: int) -> Path:
    """Return the path with arrays twice as large until the wanted entries fit."""
    while wanted > len(path.link):
        path = Path(twice(path.link), twice(path.part), twice(path.entered_s))
    return path


@njit(cache=True, nogil=True)
def _begin(chain: Chain) -> None:
    """Start the chain with the emissions of its first point."""
    for j in range(chain.found[0]):
        chain.best[0, j] = chain.total[0, j] = chain.emission[0, j]
        chain.back[0, j] = -1


@njit(cache=True, nogil=True)
def _advance(  # noqa: PLR0917
    chain: Chain, n: int, gap_s: float, straight: float, roads: Roads, table: RouteTable, s: Settings
) -> bool:
    """Step from the likely candidates; from all of them only where those lead nowhere."""
    return _step(chain, n, gap_s, straight, BEAM, roads, table, s) or _step(chain, n, gap_s, straight, 0.0, roads, table, s)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)
def _step(  # noqa: PLR0917
    chain: Chain, n: int, gap_s: float, straight: float, beam: float, roads: Roads, table: RouteTable, s: Settings
) -> bool:
    """Compute weights from every candidate of the last point to every one of this; False where nothing leads here.

    Written as one loop over local arrays: passing them on to a function per pair would cost more than the work itself.
    """
    if not s.has_time:
        gap_s = straight / 8.0  # without clocks, a city's usual pace sets the scale
    beta = s.beta_m[min(len(s.beta_m) - 1, int(gap_s / EXCESS_STEP_S))]
    latest = 2.0 * gap_s + 5.0 if s.has_time else NEVER
    doubtful = 1.0 / (0.15 * gap_s + 1.0)
    turn_weight, back_m, slower = s.turn_weight, s.back_m, 1.0 / s.fastest
    before, here = chain.found[n - 1], chain.found[n]
    a_links, a_offsets, helds, totals = chain.link[n - 1], chain.offset[n - 1], chain.best[n - 1], chain.total[n - 1]
    c_links, c_offsets, emission, weights = chain.link[n], chain.offset[n], chain.emission[n], chain.weight[n]
    best, total, back = chain.best[n], chain.total[n], chain.back[n]
    link_from, link_to, length_m, s_per_m, twin = roads.link_from, roads.link_to, roads.length_m, roads.s_per_m, roads.twin
    tile_row, tile_column, slot, base, costs = table.tile_row, table.tile_column, table.slot, table.base, table.cost
    metres, seconds, window = table.metres, table.seconds, table.window
    for j in range(here):
        best[j], total[j], back[j] = 0.0, 0.0, -1
    for i in range(before):
        held = helds[i]
        if held < beam:
            for j in range(here):
                weights[i, j] = 0.0
            continue
        a = a_links[i]
        end, turned = link_to[a], twin[a]
        rest = length_m[a] - a_offsets[i]
        corner_row, corner_column = tile_row[end] - window // 2, tile_column[end] - window // 2
        bases = base[end]
        for j in range(here):
            c = c_links[j]
            weights[i, j] = 0.0
            factor = 1.0
            if a == c and c_offsets[j] >= a_offsets[i] - back_m:
                routed = max(0.0, c_offsets[j] - a_offsets[i])
                lasts = routed * s_per_m[a]
            else:
                start = link_from[c]
                down, across = tile_row[start] - corner_row, tile_column[start] - corner_column
                if down < 0 or down >= window or across < 0 or across >= window:
                    continue
                at = bases[down * window + across]
                if at < 0:
                    continue
                cost = costs[at + slot[start]]
                if cost == NO_ROUTE:
                    continue
                between = (cost >> 16) * metres
                routed = rest + between + c_offsets[j]
                lasts = rest * s_per_m[a] + (cost & 0xFFFF) * seconds + c_offsets[j] * s_per_m[c]
                if c == turned:
                    factor = turn_weight
                elif turned >= 0 and between >= length_m[a] - 1.0:  # else the route cannot begin by driving back
                    hop = table.hop[at + slot[start]]
                    if roads.out_links[roads.out_offsets[end] + hop] == turned:
                        factor = turn_weight
            lasts *= slower
            if lasts > latest:
                continue
            doubt = abs(routed - straight) / beta
            if lasts > gap_s and latest < NEVER:
                doubt += (lasts - gap_s) * doubtful
            weight = factor * np.exp(-doubt)
            weights[i, j] = weight
            total[j] += totals[i] * weight
            if held * weight > best[j]:
                best[j], back[j] = held * weight, i
    top_best, top_total = 0.0, 0.0
    for j in range(here):
        best[j] *= emission[j]
        total[j] *= emission[j]
        top_best, top_total = max(top_best, best[j]), max(top_total, total[j])
    if top_best < LOST:
        return False
    for j in range(here):  # keep the numbers near 1: only ratios within a step matter
        best[j] /= top_best
        total[j] /= top_total
    return True
