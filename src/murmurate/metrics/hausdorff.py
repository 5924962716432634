"""Measure Hausdorff distances between trips: every vertex to the other polyline, in both directions, in metres."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.metrics.comparison import Comparison, Lines
from murmurate.spaces.sphere import METRES_PER_DEGREE

SAMPLED = 2_000
"""Released trips that are held against every original. Set by hand."""

OUTERMOST = 3
"""Vertices of a trip that are compared with bounding boxes. Set by hand: more cost more than they save."""

Line = tuple[Floats, Floats]
"""Metres east and north of the vertices of one trip."""
Span = tuple[int, int]
"""The vertices first:last of a line."""


def hausdorff(comparison: Comparison) -> list[Score]:
    """Measure the distance of each released trip from its original, in a plane local to the original."""
    released, original = comparison.paired
    metres = paired(comparison.original.track, original, comparison.released.track, released)
    return comparison.summarise("hausdorff", metres, unit="m", family="trips")


def hausdorff_nearest(comparison: Comparison, *, sampled: int = SAMPLED) -> list[Score]:
    """Measure the distance of (at most `sampled`) released trips from whichever original is nearest; needs no pairing."""
    n = comparison.released.n
    chosen = np.arange(n)
    if n > sampled:
        chosen = np.sort(comparison.generator(1).choice(n, size=sampled, replace=False))
    metres = nearest(comparison.original.lines, comparison.released.lines, chosen)
    note = f"{len(chosen):,} of {n:,} released trips, drawn by a fixed seed" if len(chosen) < n else ""
    return comparison.summarise("hausdorff_nearest", metres, unit="m", family="trips", note=note)


def nearest(lines: Lines, other: Lines, chosen: Integers) -> Floats:
    """Return the least Hausdorff distance from each chosen trip of the other side to any trip of this one; exact.

    >>> along, ends = np.array([0.0, 10.0]), np.array([0, 2])
    >>> nearest((along, np.zeros(2), ends), (along, np.full(2, 3.0), ends), np.array([0]))
    array([3.])
    """
    return _nearest(lines, _boxes(*lines), other, chosen)


@njit(cache=True, nogil=True)
def paired(track: Lines, chosen: Integers, other: Lines, other_chosen: Integers) -> Floats:
    """Return the Hausdorff metres of each pair of trips in degrees, scaled at the mean latitude of the first of the pair."""
    lat, lng, offsets = track
    other_lat, other_lng, other_offsets = other
    most = max(np.diff(offsets).max(), np.diff(other_offsets).max())
    x, y, ox, oy = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    result = np.empty(len(chosen))
    for pair in range(len(chosen)):
        first, last = offsets[chosen[pair]], offsets[chosen[pair] + 1]
        other_first, other_last = other_offsets[other_chosen[pair]], other_offsets[other_chosen[pair] + 1]
        n, other_n = last - first, other_last - other_first
        lat0, lng0 = lat[first:last].mean(), lng[first]
        scale = METRES_PER_DEGREE * math.cos(lat0 * math.pi / 180)
        for k in range(first, last):
            x[k - first], y[k - first] = (lng[k] - lng0) * scale, (lat[k] - lat0) * METRES_PER_DEGREE
        for k in range(other_first, other_last):
            ox[k - other_first] = (other_lng[k] - lng0) * scale
            oy[k - other_first] = (other_lat[k] - lat0) * METRES_PER_DEGREE
        result[pair] = math.sqrt(_squared((x[:n], y[:n]), (x, y), (0, n), (ox, oy), (0, other_n), np.inf))
    return result


@njit(cache=True, nogil=True)
def squared_to_polyline(point: tuple[float, float], x: Floats, y: Floats, span: Span, enough: float) -> float:
    """Return the least squared distance from a point to a polyline; stops once it is at most `enough`."""
    px, py = point
    first, last = span
    east, north = px - x[first], py - y[first]
    best = east * east + north * north
    for k in range(first, last - 1):
        if best <= enough:
            return best
        ex, ey = x[k + 1] - x[k], y[k + 1] - y[k]
        square = ex * ex + ey * ey
        if square > 0:
            along = ((px - x[k]) * ex + (py - y[k]) * ey) / square
            along = min(1.0, max(0.0, along))
            east, north = px - x[k] - along * ex, py - y[k] - along * ey
            best = min(best, east * east + north * north)
    return best


@njit(cache=True, nogil=True)
def _boxes(x: Floats, y: Floats, offsets: Integers) -> Floats:
    """Return west, east, south and north of each trip."""
    boxes = np.empty((4, len(offsets) - 1))
    for trip in range(len(offsets) - 1):
        first, last = offsets[trip], offsets[trip + 1]
        boxes[0, trip], boxes[1, trip] = x[first:last].min(), x[first:last].max()
        boxes[2, trip], boxes[3, trip] = y[first:last].min(), y[first:last].max()
    return boxes


@njit(cache=True, nogil=True)
def _nearest(lines: Lines, boxes: Floats, other: Lines, chosen: Integers) -> Floats:
    """Find the nearest trip of each by branch and bound on bounding boxes.

    The outermost vertex of one trip lies at least as far from the other trip as the edges of their boxes differ, and every
    vertex at least as far as from the other's box; a trip for which that is more than the best distance so far cannot be
    nearer. The likeliest candidate comes first, then rings of growing bound; and the vertices that lie farthest out are
    held against a candidate before the others, because they mostly decide.
    """
    x, y, offsets = lines
    other_x, other_y, other_offsets = other
    n = len(offsets) - 1
    bound = np.empty(n)
    result = np.empty(len(chosen))
    for k in range(len(chosen)):
        span = (other_offsets[chosen[k]], other_offsets[chosen[k] + 1])
        own_x, own_y = other_x[span[0] : span[1]], other_y[span[0] : span[1]]
        outward = np.argsort(-((own_x - own_x.mean()) ** 2 + (own_y - own_y.mean()) ** 2))
        outer = (own_x[outward], own_y[outward])
        likely = _bound_by_edges(outer, boxes, bound)
        best = _squared(outer, (other_x, other_y), span, (x, y), (offsets[likely], offsets[likely + 1]), np.inf)
        bound[likely] = np.inf
        least = math.sqrt(_bound_by_vertices(outer, boxes, bound, best))
        for share in (0.125, 0.5, 1.0):
            reach = (least + share * (math.sqrt(best) - least)) ** 2
            for trip in range(n):
                if bound[trip] < best and bound[trip] <= reach:
                    candidate = (offsets[trip], offsets[trip + 1])
                    best = min(best, _squared(outer, (other_x, other_y), span, (x, y), candidate, best))
                    bound[trip] = np.inf
        result[k] = math.sqrt(best)
    return result


@njit(cache=True, nogil=True)
def _bound_by_edges(outer: Line, boxes: Floats, bound: Floats) -> int:
    """Fill in the squared distance below which no trip with such a box can be, for each box; return which is least."""
    x, y = outer
    west, east, south, north = x.min(), x.max(), y.min(), y.max()
    likely = 0
    for trip in range(boxes.shape[1]):
        sideways = max(abs(boxes[0, trip] - west), abs(boxes[1, trip] - east))
        bound[trip] = max(sideways, abs(boxes[2, trip] - south), abs(boxes[3, trip] - north)) ** 2
        if bound[trip] < bound[likely]:
            likely = trip
    return likely


@njit(cache=True, nogil=True)
def _bound_by_vertices(outer: Line, boxes: Floats, bound: Floats, best: float) -> float:
    """Raise the bounds below `best` to the distance of outer vertices from the box; return the least of them."""
    x, y = outer
    least = best
    for trip in range(boxes.shape[1]):
        if bound[trip] >= best:
            continue
        for i in range(min(OUTERMOST, len(x))):
            away_x = max(boxes[0, trip] - x[i], x[i] - boxes[1, trip], 0.0)
            away_y = max(boxes[2, trip] - y[i], y[i] - boxes[3, trip], 0.0)
            bound[trip] = max(bound[trip], away_x * away_x + away_y * away_y)
        least = min(least, bound[trip])
    return least


@njit(cache=True, nogil=True)
def _squared(  # noqa: PLR0917
    outer: Line, line: Line, span: Span, other: Line, other_span: Span, limit: float
) -> float:
    """Return the squared Hausdorff distance, vertices of `line` in the order `outer`; infinity once it reaches `limit`."""
    worst = 0.0
    for k in range(len(outer[0])):
        worst = max(worst, squared_to_polyline((outer[0][k], outer[1][k]), other[0], other[1], other_span, worst))
        if worst >= limit:
            return np.inf
    for k in range(*other_span):
        worst = max(worst, squared_to_polyline((other[0][k], other[1][k]), line[0], line[1], span, worst))
        if worst >= limit:
            return np.inf
    return worst
