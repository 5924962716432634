"""Spatial index of links: a bucket grid over link segments, searched in compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from murmurate.core.parameters import positive, whole
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.spaces.sphere import METRES_PER_DEGREE

if TYPE_CHECKING:
    from murmurate.spaces.road.network import RoadNetwork

BUCKET_M = 60.0
"""Side of a bucket in metres: the default search radius, so that a search reads three by three buckets."""

MAX_BUCKETS = 20_000_000
"""Most buckets of an index, 160 MB of offsets; set by hand. Buckets of larger areas grow."""


class Buckets(NamedTuple):
    """Holds segments listed by the square bucket they touch, as compiled searches take them.

    Only one link of a two-way pair is listed (they lie on top of each other); a search returns both.
    """

    bucket_m: float
    rows: int
    columns: int
    offsets: Integers
    segments: NDArray[np.int32]
    seg_xy: Floats
    """x, y of one end and x, y of the other, metres from the index's corner."""
    seg_link: NDArray[np.int32]
    seg_start_m: Floats
    """Metres along the link at which each segment begins, scaled to the link's stated length."""
    seg_scale: Floats
    """Stated metres per metre of geometry, so that offsets never pass the link's length."""
    twin: Integers
    length_m: Floats


@dataclass(frozen=True, eq=False)
class LinkIndex:
    """Finds the links of a network near points."""

    south: float
    west: float
    m_per_lat: float
    m_per_lng: float
    """Metres per degree at the network's middle."""
    buckets: Buckets

    @classmethod
    def build(cls, network: RoadNetwork, *, bucket_m: float = BUCKET_M) -> LinkIndex:
        """Index a network; buckets grow where the area would need too many."""
        positive("bucket_m", bucket_m)
        south, west = float(network.shape_lat.min()), float(network.shape_lng.min())
        m_per_lng = METRES_PER_DEGREE * float(np.cos(np.radians((south + float(network.shape_lat.max())) / 2)))
        x, y = (network.shape_lng - west) * m_per_lng, (network.shape_lat - south) * METRES_PER_DEGREE
        while (x.max() / bucket_m + 1) * (y.max() / bucket_m + 1) > MAX_BUCKETS:
            bucket_m *= 2
        rows, columns = int(y.max() / bucket_m) + 1, int(x.max() / bucket_m) + 1
        link_of_vertex = np.repeat(np.arange(network.n_links), np.diff(network.shape_offsets))
        is_last = np.zeros(len(x), dtype=bool)
        is_last[network.shape_offsets[1:] - 1] = True
        listed = (network.twin < 0) | (np.arange(network.n_links) < network.twin)
        first = np.flatnonzero(~is_last & listed[link_of_vertex])
        steps = np.hypot(np.diff(x, append=x[-1:]), np.diff(y, append=y[-1:]))
        steps[is_last] = 0.0
        along = np.concatenate(([0.0], np.cumsum(steps)[:-1]))
        along -= along[network.shape_offsets[:-1]][link_of_vertex]
        drawn = np.add.reduceat(steps, network.shape_offsets[:-1])
        scale = np.where(drawn > 0, network.length_m / np.where(drawn > 0, drawn, 1.0), 1.0)
        seg_xy = np.column_stack([x[first], y[first], x[first + 1], y[first + 1]])
        seg_link = link_of_vertex[first]
        offsets, segments = _bucket_lists(seg_xy, bucket_m, rows, columns)
        buckets = Buckets(
            bucket_m=bucket_m,
            rows=rows,
            columns=columns,
            offsets=offsets,
            segments=segments,
            seg_xy=seg_xy,
            seg_link=seg_link.astype(np.int32),
            seg_start_m=along[first] * scale[seg_link],
            seg_scale=scale[seg_link],
            twin=network.twin,
            length_m=np.array(network.length_m),
        )
        return cls(south, west, METRES_PER_DEGREE, m_per_lng, buckets)

    def to_xy(self, lat: ArrayLike, lng: ArrayLike) -> tuple[Floats, Floats]:
        """Return metres east and north of the index's corner."""
        lat, lng = np.atleast_1d(np.asarray(lat, np.float64)), np.atleast_1d(np.asarray(lng, np.float64))
        if lat.shape != lng.shape:
            raise InputError(f"lat has {lat.size:,} values and lng {lng.size:,}; they must pair up.")
        return (lng - self.west) * self.m_per_lng, (lat - self.south) * self.m_per_lat

    def nearest(self, lat: ArrayLike, lng: ArrayLike, *, radius_m: float) -> tuple[Integers, Floats, Floats]:
        """Return the nearest link within the radius, metres along it, and metres away; -1, NaN and NaN where there is none."""
        links, offsets_m, distances_m = self.within(lat, lng, radius_m=radius_m, k=1)
        return links[:, 0], offsets_m[:, 0], distances_m[:, 0]

    def within(self, lat: ArrayLike, lng: ArrayLike, *, radius_m: float, k: int = 8) -> tuple[Integers, Floats, Floats]:
        """Return the `k` nearest links of each point within the radius, nearest first: links, metres along, metres away."""
        positive("radius_m", radius_m)
        whole("k", k)
        x, y = self.to_xy(lat, lng)
        links = np.full((len(x), k), -1, dtype=np.int64)
        offsets_m = np.full((len(x), k), np.nan)
        distances_m = np.full((len(x), k), np.nan)
        _search_all(x, y, float(radius_m), self.buckets, links, offsets_m, distances_m)
        return links, offsets_m, distances_m

    def links_within(self, lat: float, lng: float, *, radius_m: float) -> Integers:
        """Return every link within the radius of one point, both directions, sorted."""
        positive("radius_m", radius_m)
        x, y = self.to_xy(lat, lng)
        listed = _all_within(float(x[0]), float(y[0]), float(radius_m), self.buckets)
        both = np.concatenate((listed, self.buckets.twin[listed]))
        return np.unique(both[both >= 0])


@njit(cache=True, nogil=True)
def squared_distance(x: float, y: float, seg_xy: Floats, s: int) -> float:
    """Return squared metres from a point to a segment."""
    ax, ay = seg_xy[s, 0], seg_xy[s, 1]
    dx, dy = seg_xy[s, 2] - ax, seg_xy[s, 3] - ay
    square = dx * dx + dy * dy
    share = 0.0
    if square > 0.0:
        share = min(1.0, max(0.0, ((x - ax) * dx + (y - ay) * dy) / square))
    ex, ey = ax + share * dx - x, ay + share * dy - y
    return ex * ex + ey * ey


@njit(cache=True, nogil=True)
def window(x: float, y: float, radius_m: float, b: Buckets) -> tuple[int, int, int, int]:
    """Return first and last row and column of the buckets a circle touches."""
    return (
        max(0, int(np.floor((y - radius_m) / b.bucket_m))),
        min(b.rows - 1, int(np.floor((y + radius_m) / b.bucket_m))),
        max(0, int(np.floor((x - radius_m) / b.bucket_m))),
        min(b.columns - 1, int(np.floor((x + radius_m) / b.bucket_m))),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def search(  # noqa: PLR0917
    x: float, y: float, radius_m: float, b: Buckets, links: Integers, offsets_m: Floats, distances_m: Floats
) -> int:
    """Fill one point's row with its nearest links, nearest first, and return how many there are."""
    k = len(links)
    found = 0
    low_row, high_row, low_column, high_column = window(x, y, radius_m, b)
    if low_column > high_column:
        return 0
    # Local names: reading arrays out of the tuple inside the loop costs more than the arithmetic.
    runs, segments, seg_xy, seg_link, columns = b.offsets, b.segments, b.seg_xy, b.seg_link, b.columns
    worst = radius_m * radius_m
    for row in range(low_row, high_row + 1):
        # Buckets of one row stand side by side, so a row of them is a single run of segments.
        for at in range(runs[row * columns + low_column], runs[row * columns + high_column + 1]):
            s = segments[at]
            ax, ay = seg_xy[s, 0], seg_xy[s, 1]
            dx, dy = seg_xy[s, 2] - ax, seg_xy[s, 3] - ay
            square = dx * dx + dy * dy
            share = 0.0
            if square > 0.0:
                share = min(1.0, max(0.0, ((x - ax) * dx + (y - ay) * dy) / square))
            ex, ey = ax + share * dx - x, ay + share * dy - y
            away = ex * ex + ey * ey
            if away > worst:
                continue
            link = seg_link[s]
            spot = -1
            for i in range(found):
                if links[i] == link:
                    spot = i
                    break
            if spot >= 0:
                if away >= distances_m[spot]:
                    continue
            elif found < k:
                spot = found
                found += 1
            else:
                spot = k - 1
            while spot > 0 and distances_m[spot - 1] > away:
                links[spot], offsets_m[spot], distances_m[spot] = links[spot - 1], offsets_m[spot - 1], distances_m[spot - 1]
                spot -= 1
            links[spot], distances_m[spot] = link, away
            offsets_m[spot] = min(b.length_m[link], b.seg_start_m[s] + share * np.sqrt(square) * b.seg_scale[s])
            if found == k:
                worst = min(worst, distances_m[k - 1])
    return _both_ways(np.int64(found), b, links, offsets_m, distances_m)


@njit(cache=True, nogil=True)
def _both_ways(found: int, b: Buckets, links: Integers, offsets_m: Floats, distances_m: Floats) -> int:
    """Split streets into their two directions, nearest first; squared metres become metres."""
    k = len(links)
    streets = 0
    total = 0
    while streets < found and total < k:
        total += 2 if b.twin[links[streets]] >= 0 else 1
        streets += 1
    spot = total
    for i in range(streets - 1, -1, -1):  # from the back, so that no street is overwritten before it is read
        link, offset, away = links[i], offsets_m[i], np.sqrt(distances_m[i])
        other = b.twin[link]
        if other >= 0:
            spot -= 1
            if spot < k:
                links[spot], distances_m[spot] = other, away
                offsets_m[spot] = b.length_m[other] * (1.0 - offset / b.length_m[link])
        spot -= 1
        links[spot], offsets_m[spot], distances_m[spot] = link, offset, away
    return min(total, k)


@njit(cache=True, nogil=True)
def _search_all(  # noqa: PLR0917
    x: Floats, y: Floats, radius_m: float, b: Buckets, links: Integers, offsets_m: Floats, distances_m: Floats
) -> None:
    for p in range(len(x)):
        if not (np.isfinite(x[p]) and np.isfinite(y[p])):
            continue
        found = search(x[p], y[p], radius_m, b, links[p], offsets_m[p], distances_m[p])
        for i in range(found, links.shape[1]):
            links[p, i], offsets_m[p, i], distances_m[p, i] = -1, np.nan, np.nan


@njit(cache=True, nogil=True)
def _all_within(x: float, y: float, radius_m: float, b: Buckets) -> Integers:
    hits = [np.int64(0) for _ in range(0)]  # an empty list whose type the compiler knows
    low_row, high_row, low_column, high_column = window(x, y, radius_m, b)
    if low_column <= high_column:
        for row in range(low_row, high_row + 1):
            for at in range(b.offsets[row * b.columns + low_column], b.offsets[row * b.columns + high_column + 1]):
                if squared_distance(x, y, b.seg_xy, b.segments[at]) <= radius_m * radius_m:
                    hits.append(np.int64(b.seg_link[b.segments[at]]))  # noqa: PERF401 - compiled
    return np.unique(np.array(hits))


@njit(cache=True, nogil=True)
def _bucket_lists(seg_xy: Floats, bucket_m: float, rows: int, columns: int) -> tuple[Integers, NDArray[np.int32]]:
    """Return (offsets, segments): which segments touch each bucket, row by row."""
    counts = np.zeros(rows * columns + 1, dtype=np.int64)
    fill = np.zeros(1, dtype=np.int64)
    segments = np.zeros(0, dtype=np.int32)
    offsets = counts
    for turn in range(2):
        if turn == 1:
            offsets = np.cumsum(counts)
            segments = np.empty(offsets[-1], dtype=np.int32)
            fill = offsets[:-1].copy()
        for s in range(len(seg_xy)):
            ax, ay, bx, by = seg_xy[s]
            size = np.sqrt((bx - ax) ** 2 + (by - ay) ** 2)
            for row in range(int(min(ay, by) / bucket_m), min(rows - 1, int(max(ay, by) / bucket_m)) + 1):
                for column in range(int(min(ax, bx) / bucket_m), min(columns - 1, int(max(ax, bx) / bucket_m)) + 1):
                    if size > bucket_m:
                        # A long slanted segment misses most buckets of its box: keep those its line comes near.
                        cx, cy = (column + 0.5) * bucket_m - ax, (row + 0.5) * bucket_m - ay
                        if abs(cx * (by - ay) - cy * (bx - ax)) > size * bucket_m * 0.7072:
                            continue
                    bucket = row * columns + column
                    if turn == 0:
                        counts[bucket + 1] += 1
                    else:
                        segments[fill[bucket]] = s
                        fill[bucket] += 1
    return offsets, segments
