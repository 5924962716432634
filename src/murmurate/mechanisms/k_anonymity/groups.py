"""Group trips greedily around pivots; trips that fit no group go to the trash."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.spaces.sphere import EARTH_RADIUS_M

MOMENTS = 16
"""Places of each trip, at equal shares of its duration, that two trips are compared by; set by hand."""

TRASH, UNGROUPED = -1, -2
"""Group numbers of trips that are dropped, and of trips that have no group yet."""


class Shapes(NamedTuple):
    """Holds what trips are compared by."""

    place_m: Floats
    """[trip, moment, 3]: metres from the middle of the Earth, so that no map is needed."""
    start_s: Floats
    end_s: Floats
    person: Integers


def shapes(offsets: Integers, time_s: Floats, lat: Floats, lng: Floats, person: Integers) -> Shapes:
    """Return places of trips at equal shares of their durations: a trip an hour later, or slower, has the same."""
    phi, lam = np.radians(lat), np.radians(lng)
    xyz = np.column_stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)]) * EARTH_RADIUS_M
    places = _at_equal_shares(offsets, time_s, xyz)
    return Shapes(places, time_s[offsets[:-1]], time_s[offsets[1:] - 1], person)


@njit(cache=True, nogil=True)
def _at_equal_shares(offsets, time_s, xyz):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Interpolate [trip, moment, axis] places."""
    n = len(offsets) - 1
    out = np.empty((n, MOMENTS, 3))
    for trip in range(n):
        first, last = offsets[trip], offsets[trip + 1] - 1
        at = first
        for m in range(MOMENTS):
            when = time_s[first] + (time_s[last] - time_s[first]) * m / (MOMENTS - 1)
            while at < last - 1 and time_s[at + 1] <= when:
                at += 1
            after = min(at + 1, last)
            gap = time_s[after] - time_s[at]
            share = min(max((when - time_s[at]) / gap, 0.0), 1.0) if gap > 0 else 0.0
            for axis in range(3):
                out[trip, m, axis] = xyz[at, axis] + share * (xyz[after, axis] - xyz[at, axis])
    return out


@njit(cache=True, nogil=True)
def _apart_m(these, one, other, limit, time_cost):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return mean metres between two trips at equal shares of their durations, plus the cost of different times.

    Infinity beyond `limit`.
    """
    place = these.place_m
    total = (
        time_cost
        * (abs(these.start_s[one] - these.start_s[other]) + abs(these.end_s[one] - these.end_s[other]))
        * (MOMENTS / 2.0)
    )
    for m in range(MOMENTS):
        if total > limit * MOMENTS:
            return math.inf
        x = place[one, m, 0] - place[other, m, 0]
        y = place[one, m, 1] - place[other, m, 1]
        z = place[one, m, 2] - place[other, m, 2]
        total += math.sqrt(x * x + y * y + z * z)
    return total / MOMENTS if total <= limit * MOMENTS else math.inf


@njit(cache=True, nogil=True)
def group(these: Shapes, k: int, most_apart_m: float, time_cost_m_per_s: float, order: Integers) -> tuple[Integers, Integers]:
    """Return the group of each trip (-1: trash) and the pivot of each group; no trip is farther than this from its pivot.

    Pivots are tried in `order`; one with fewer than k - 1 free trips of other people near enough is skipped, and joins the
    nearest group at the end.
    """
    n = len(order)
    free = order.copy()
    member = np.full(n, UNGROUPED, dtype=np.int64)
    pivots = np.empty(n // k + 1, dtype=np.int64)
    n_groups, n_free = 0, n
    near, apart = np.empty(n, dtype=np.int64), np.empty(n)
    chosen = np.empty(k, dtype=np.int64)
    for pivot in order:
        if member[pivot] != UNGROUPED:
            continue
        found, kept = 0, 0
        for at in range(n_free):
            trip = free[at]
            if member[trip] >= 0:
                continue
            free[kept] = trip  # grouped trips drop out of the list
            kept += 1
            if these.person[trip] != these.person[pivot]:
                metres = _apart_m(these, pivot, trip, most_apart_m, time_cost_m_per_s)
                if metres < math.inf:
                    near[found], apart[found] = trip, metres
                    found += 1
        n_free = kept
        if found < k - 1:
            continue
        chosen[0] = pivot
        size = 1
        for at in np.argsort(apart[:found]):
            trip = near[at]
            stranger = True
            for j in range(size):
                stranger = stranger and these.person[chosen[j]] != these.person[trip]
            if stranger:
                chosen[size] = trip
                size += 1
                if size == k:
                    break
        if size == k:
            for j in range(k):
                member[chosen[j]] = n_groups
            pivots[n_groups] = pivot
            n_groups += 1
    for trip in range(n):
        if member[trip] == UNGROUPED:
            best, nearest = most_apart_m, TRASH
            for one in range(n_groups):
                metres = _apart_m(these, pivots[one], trip, best, time_cost_m_per_s)
                if metres <= best:
                    best, nearest = metres, one
            member[trip] = nearest
    return member, pivots[:n_groups].copy()
