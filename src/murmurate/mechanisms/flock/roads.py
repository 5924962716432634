"""Places along public roads, groups of links whose use is counted, and the search for routes."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import sqrt

import numpy as np
from numba import njit

from murmurate.asking import Contributions, Norm, Part
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.mechanisms.flock.tables import TripContributions, divide_among_bins
from murmurate.mechanisms.flock.tracks import Frame, Read, ReadTracks
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork, match
from murmurate.spaces.road.geometry import points_along
from murmurate.spaces.road.routing import twice

KERB_SPACING_M = 25.0
"""Spacing of kerbs, the places along roads where trips may begin and end, in metres. Chosen by hand."""
MAX_KERBS = 8_000_000
"""Most kerbs of a network: 200,000 km of links, about 500 MB while they are laid out."""
GRID_CELL_M = 250.0
"""Side of the grid cells over a road network, in metres; doubled while there would be too many cells. Chosen by hand."""
BOX_MARGIN_M = 60.0
"""Distance between the network and the edge of its box, in metres: points that far from a road still belong to it. Chosen by
hand."""
MIN_GROUP_COUNT_SDS = 2.5
"""Smallest mean count of a group of links, in noise standard deviations; groups are made as small as this allows. Chosen by
hand, as for coarse cells."""
MIN_SQUARE_M = 200.0
"""Side of the smallest squares in which links of one class are grouped, in metres. Chosen by hand."""
LENGTH_OFFSET_M = 50.0
"""Metres added to both lengths before they are compared, so that very short trips are not judged by ratios. Chosen by hand."""
LOG_LENGTH_TOLERANCE = 0.05
"""Difference of the logarithms of a route's length and the wanted length below which no further route is tried. Chosen by
hand."""


@dataclass(frozen=True, eq=False)
class Kerbs:
    """Places along roads; those of grid cell c are `offsets[c]:offsets[c + 1]`."""

    link: Integers
    share: Floats
    """Position along the link, 0 to 1."""
    lat: Floats
    lng: Floats
    offsets: Integers
    instead: Integers
    """[grid cell] the nearest cell that has a road."""

    @classmethod
    def along(cls, network: RoadNetwork, grid: Grid) -> Kerbs:
        """Place kerbs along every link, except motorways that are not the only road of their cell."""
        from scipy.spatial import cKDTree

        pieces = np.maximum(np.rint(network.length_m / KERB_SPACING_M), 1).astype(np.int64)
        if pieces.sum() > MAX_KERBS:
            raise InputError(
                f"the network has {network.total_km:,.0f} km of links; trips are drawn on at most "
                f"{MAX_KERBS * KERB_SPACING_M / 1000:,.0f} km."
            )
        link = np.repeat(np.arange(network.n_links), pieces)
        share = (np.arange(len(link)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + 0.5) / pieces[link]
        lat, lng = points_along(network.shape_offsets, network.shape_lat, network.shape_lng, link, share)
        cell = np.maximum(grid.locate(lat, lng), 0)
        fast = network.road_class[link] == 1
        other = np.bincount(cell[~fast], minlength=grid.n_cells)
        keep = ~fast | (other[cell] == 0)
        order = np.flatnonzero(keep)[np.argsort(cell[keep], kind="stable")]
        counts = np.bincount(cell[keep], minlength=grid.n_cells)
        have = np.flatnonzero(counts)
        rows = np.column_stack(np.divmod(np.arange(grid.n_cells), grid.columns))
        instead = have[cKDTree(rows[have]).query(rows)[1]]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(link[order], share[order], lat[order], lng[order], offsets, np.asarray(instead, dtype=np.int64))

    def draw(self, cell: Integers, generator: np.random.Generator) -> Integers:
        """Draw a kerb in each of these grid cells, or in the nearest one that has a road."""
        where = self.instead[cell]
        size = self.offsets[where + 1] - self.offsets[where]
        return np.asarray(self.offsets[where] + (generator.random(len(where)) * size).astype(np.int64))


def grid_over(network: RoadNetwork, most_cells: int) -> Grid:
    """Return the public grid over a network's box on which trips are counted."""
    south, north = float(network.shape_lat.min()), float(network.shape_lat.max())
    west, east = float(network.shape_lng.min()), float(network.shape_lng.max())
    lat_pad = BOX_MARGIN_M / 111_000
    lng_pad = lat_pad / max(np.cos(np.radians((south + north) / 2)), 0.01)
    box = (south - lat_pad, west - lng_pad, north + lat_pad, east + lng_pad)
    cell_m = GRID_CELL_M
    while (grid := Grid(*box, cell_m)).n_cells > most_cells:
        cell_m *= 2
    return grid


def link_coarse_cells(network: RoadNetwork, frame: Frame) -> Integers:
    """Return the coarse cell of the middle of each link."""
    return frame.coarse_at(*frame.place(*network.midpoint))


@dataclass(frozen=True, eq=False)
class LinksRead:
    """Tracks of private trips, and the links of each trip."""

    read: Read
    unit: Integers
    """[trip of the part] its unit."""
    trip: Integers
    """[row] trip of the part."""
    link: Integers
    """[row] link of that trip."""


@dataclass(frozen=True)
class ReadLinks:
    """Convert the trips of a part to tracks, and match each trip to the roads by itself."""

    tracks: ReadTracks
    network: RoadNetwork

    def __call__(self, part: Part) -> LinksRead:
        """Return tracks and matched links."""
        found = match(part.trips, self.network)
        return LinksRead(self.tracks(part), part.unit, found.path_trip, found.path_link)


@dataclass(frozen=True, eq=False)
class Links:
    """Groups of links whose use is counted."""

    group: Integers
    n_groups: int

    def contributions(self, prepared: LinksRead, norm: Norm) -> Contributions:
        """Divide one count of each trip among the groups of its links."""
        return self.use(prepared.trip, prepared.link, norm).contributions(prepared.unit)

    def use(self, trip: Integers, link: Integers, norm: Norm) -> TripContributions:
        """Return the same contributions for trips and links given as rows."""
        return divide_among_bins(self.group[link], trip, self.n_groups, norm)


def groups_of(network: RoadNetwork, n: float, deviation: float) -> Integers:
    """Return [link] its group: single links where trips are many for the noise, otherwise links of one class in one square."""
    most = max(n / (MIN_GROUP_COUNT_SDS * deviation), 8.0)
    if network.n_links <= most:
        return np.arange(network.n_links, dtype=np.int64)
    x, y = network.index.to_xy(*network.midpoint)
    side = MIN_SQUARE_M
    while True:
        row, column = np.floor(y / side).astype(np.int64), np.floor(x / side).astype(np.int64)
        key = ((row - row.min()) * (np.ptp(column) + 1) + column - column.min()) * 8 + network.road_class
        group = np.unique(key, return_inverse=True)[1].astype(np.int64)
        if group.max() < most or side > 1e6:
            return group
        side *= sqrt(2.0)


@njit(cache=True, nogil=True)
def farthest_points(y: Floats, x: Floats, offsets: Integers) -> tuple[Integers, Floats]:
    """Return for each trip the point with the longest detour over it from end to end, and the length of that detour."""
    n = len(offsets) - 1
    at, most = np.zeros(n, dtype=np.int64), np.zeros(n)
    for trip in range(n):
        first, last = offsets[trip], offsets[trip + 1] - 1
        at[trip] = first
        for k in range(first, last + 1):
            over = np.hypot(y[k] - y[first], x[k] - x[first]) + np.hypot(y[k] - y[last], x[k] - x[last])
            if over > most[trip]:
                at[trip], most[trip] = k, over
    return at, most


@njit(cache=True, nogil=True)
def find_routes(  # noqa: PLR0917
    graph: tuple[Integers, Integers, Integers, Integers],
    ahead: tuple[Floats, Floats, Floats],
    length_m: Floats,
    cost: Floats,
    cell: Integers,
    walks: tuple[Integers, Integers],
    n_cells: int,
    nodes: tuple[Integers, Integers, Integers],
    cost_set: Integers,
    wanted_m: Floats,
    outside: float,
) -> tuple[Integers, Integers, Floats]:
    """Find a few cheapest routes for each trip and keep the one whose length is nearest to the wanted length."""
    walk_offsets, walk_cells = walks
    start, via, end = nodes
    n, n_nodes = len(start), len(graph[0]) - 1
    on_trip = np.full(n_cells, -1, dtype=np.int64)
    reached, came = np.empty(n_nodes), np.empty(n_nodes, dtype=np.int64)
    seen, done = np.full(n_nodes, -1, dtype=np.int64), np.full(n_nodes, -1, dtype=np.int64)
    offsets, lengths = np.zeros(n + 1, dtype=np.int64), np.zeros(n)
    path = np.empty(64 * n + 64, dtype=np.int64)
    best = np.empty(4 * n_nodes, dtype=np.int64)
    tried = np.empty(4 * n_nodes, dtype=np.int64)
    search = 0
    used = 0
    for trip in range(n):
        for k in range(walk_offsets[trip], walk_offsets[trip + 1]):
            on_trip[walk_cells[k]] = trip
        least, n_best = np.inf, 0
        for k in range(cost_set.shape[1]):
            n_tried, here = 0, start[trip]
            for leg in range(2):
                to = via[trip] if leg == 0 else end[trip]
                if to < 0:
                    continue
                drawn = cost_set[trip, k]
                added = _shortest_path(
                    graph, (ahead[0], ahead[1], ahead[2][drawn]), cost[drawn], cell, on_trip, trip, here, to, outside, search,
                    reached, came, seen, done, tried[n_tried:],
                )  # fmt: skip
                search += 1
                n_tried += added
                here = to if added > 0 else here
            total = 0.0
            for at in range(n_tried):
                total += length_m[tried[at]]
            off = abs(np.log((total + LENGTH_OFFSET_M) / (wanted_m[trip] + LENGTH_OFFSET_M)))
            if off < least:
                least, n_best = off, n_tried
                best[:n_tried] = tried[:n_tried]
                lengths[trip] = total
            if least < LOG_LENGTH_TOLERANCE:
                break
        while used + n_best > len(path):
            path = twice(path)
        path[used : used + n_best] = best[:n_best]
        used += n_best
        offsets[trip + 1] = used
    return offsets, path[:used].copy(), lengths


@njit(cache=True, nogil=True)
def _shortest_path(  # noqa: PLR0917
    graph: tuple[Integers, Integers, Integers, Integers],
    ahead: tuple[Floats, Floats, float],
    cost: Floats,
    cell: Integers,
    on_trip: Integers,
    trip: int,
    start: int,
    end: int,
    outside: float,
    search: int,
    reached: Floats,
    came: Integers,
    seen: Integers,
    done: Integers,
    out: Integers,
) -> int:
    """Write the links of the cheapest path into `out` and return their number, 0 where there is no path (A* search)."""
    offsets, links, link_from, link_to = graph
    x, y, per_m = ahead
    heap = [(0.0, start)]
    reached[start], came[start], seen[start] = 0.0, -1, search
    while len(heap) > 0:
        at = heappop(heap)[1]
        if done[at] == search:
            continue
        done[at] = search
        if at == end:
            break
        for k in range(offsets[at], offsets[at + 1]):
            link = links[k]
            to = link_to[link]
            new = reached[at] + cost[link] * (1.0 if on_trip[cell[link]] == trip else outside)
            if done[to] != search and (seen[to] != search or new < reached[to]):
                reached[to], came[to], seen[to] = new, link, search
                remaining_m = np.hypot(x[to] - x[end], y[to] - y[end])
                heappush(heap, (new + per_m * remaining_m, to))
    if done[end] != search:
        return 0
    size = 0
    at = end
    while at != start:
        out[size] = came[at]
        size += 1
        at = link_from[came[at]]
    out[:size] = out[:size][::-1].copy()
    return size
