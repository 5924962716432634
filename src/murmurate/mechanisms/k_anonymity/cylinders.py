"""Move every trip of a group to its pivot's times, and no farther than needed into their common cylinder."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.spaces.sphere import METRES_PER_DEGREE, step_m

ROUNDING_M = 0.2
"""Metres kept free for rounding of a place and of the middle to microdegrees, at most 0.08 m each."""

Tracks = tuple[Integers, Floats, Floats, Floats]
"""Offsets, seconds, latitudes and longitudes."""


def sizes(offsets: Integers, member: Integers, pivots: Integers) -> Integers:
    """Return the number of points of each released trip: those of its pivot; none for trash."""
    of_pivot = np.diff(offsets)[pivots]
    return np.where(member >= 0, of_pivot[member], 0) if len(pivots) else np.zeros(len(member), dtype=np.int64)


@njit(cache=True, nogil=True)
def move(tracks: Tracks, member: Integers, pivots: Integers, out_offsets: Integers, reach_m: float) -> tuple[Floats, Floats]:
    """Return latitudes and longitudes of the released trips; trip k is out_offsets[k]:out_offsets[k + 1].

    At each of the pivot's times a member stands where it was at the same share of its own duration. The middle of the group
    is the mean of these places; who is farther from it than `reach_m` moves straight towards it, and no farther than needed.
    """
    offsets, time_s, _, lng = tracks
    out_lat, out_lng = np.empty(out_offsets[-1]), np.empty(out_offsets[-1])
    order = np.argsort(member, kind="mergesort")
    at = np.searchsorted(member[order], 0)
    for group in range(len(pivots)):
        first = at
        while at < len(order) and member[order[at]] == group:
            at += 1
        pivot = pivots[group]
        begin, end = offsets[pivot], offsets[pivot + 1]
        for i in range(end - begin):
            span = time_s[end - 1] - time_s[begin]
            share = (time_s[begin + i] - time_s[begin]) / span if span > 0 else 0.0
            for one in range(first, at):
                trip = order[one]
                where = out_offsets[trip] + i
                out_lat[where], out_lng[where] = _at_share(tracks, trip, share, lng[begin])
            _gather(out_offsets[order[first:at]] + i, out_lat, out_lng, reach_m)
    return out_lat, out_lng


@njit(cache=True, nogil=True)
def _at_share(tracks: Tracks, trip: int, share: float, near_lng: float) -> tuple[float, float]:
    """Return where a trip was at a share of its duration, with the longitude within half a turn of another one."""
    offsets, time_s, lat, lng = tracks
    first, last = offsets[trip], offsets[trip + 1] - 1
    when = time_s[first] + (time_s[last] - time_s[first]) * share
    at = first + np.searchsorted(time_s[first : last + 1], when, side="right") - 1
    at = min(max(at, first), max(last - 1, first))
    after = min(at + 1, last)
    gap = time_s[after] - time_s[at]
    part = min(max((when - time_s[at]) / gap, 0.0), 1.0) if gap > 0 else 0.0
    start = near_lng + _half_turn(lng[at] - near_lng)
    return lat[at] + part * (lat[after] - lat[at]), start + part * _half_turn(lng[after] - lng[at])


@njit(cache=True, nogil=True)
def _gather(group: Integers, lat: Floats, lng: Floats, reach_m: float) -> None:
    """Bring these points within reach of their middle, rounded to microdegrees."""
    middle_lat, middle_lng = 0.0, 0.0
    for where in group:
        middle_lat += lat[where] / len(group)
        middle_lng += lng[where] / len(group)
    middle_lat, middle_lng = round(middle_lat * 1e6) / 1e6, round(middle_lng * 1e6) / 1e6
    east = METRES_PER_DEGREE * math.cos(middle_lat * math.pi / 180)
    for where in group:
        up, right = lat[where] - middle_lat, lng[where] - middle_lng
        metres = math.hypot(up * METRES_PER_DEGREE, right * east)
        keep = min(1.0, (reach_m - ROUNDING_M) * (1.0 - 1e-4) / metres) if metres > 0 else 1.0
        lat[where] = round((middle_lat + keep * up) * 1e6) / 1e6
        lng[where] = round((middle_lng + keep * right) * 1e6) / 1e6
        # the flat map above is good nearby; the promise is about the sphere, so what it misjudged goes to the middle
        if not step_m(lat[where], lng[where], middle_lat, middle_lng) <= reach_m:
            lat[where], lng[where] = middle_lat, middle_lng
        lng[where] = _half_turn(lng[where])


@njit(cache=True, nogil=True)
def _half_turn(degrees: float) -> float:
    """Wrap degrees to -180 ... 180; unchanged where they are."""
    if -180.0 <= degrees <= 180.0:
        return degrees
    return (degrees + 180.0) % 360.0 - 180.0
