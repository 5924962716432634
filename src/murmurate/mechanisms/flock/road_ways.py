"""Ways on a public road network: the cheapest one through the cells a trip walks, at costs that show the noisy use of links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from murmurate.asking import STEPS, Answer, Contributions, Norm, Part
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.road_places import PITCH_M, Kerbs, walked_cells
from murmurate.mechanisms.flock.tables import Parts, shared
from murmurate.mechanisms.flock.tracks import Frame, Read, ReadTracks, Tracks
from murmurate.spaces.road import RoadNetwork, match
from murmurate.synthesis.shrink import shrink

if TYPE_CHECKING:
    from collections.abc import Callable

WORTH = 2.5
"""Links are told apart as finely as the mean count of a group stays this many deviations."""
SMALLEST_SQUARE_M = 200.0
ROUNDS = 4
GROUPS = 4
"""Of link groups of similar use, each believed by its own error."""
POOL = 2000
"""Trips driven in each round of calibration."""
TURN = 0.35
"""How far a round turns a cost towards what the table says."""
MOST = 3.0
"""Largest factor by which the use of a link makes it cheaper or dearer."""
OUTSIDE = 2.0
"""How much dearer roads are outside the cells a trip walks."""
FIELDS = 8
TASTE = 0.25
"""Spread of what drivers think of a link, as a logarithm; each trip takes one of a few opinions."""
ALTERNATIVES = 3
NEAR = 0.05
"""A way whose length is this near to the wanted one ends the search for a better one."""
QUICK = 0.1
"""The share of links on which a metre costs less than a search expects of the straight line that is left."""
VIA_DETOUR = 1.3
LAST_TRIES = 6


@dataclass(frozen=True, eq=False)
class Driven:
    """The links of every trip; trip k drives `link[offsets[k]:offsets[k + 1]]`, from one kerb to another."""

    offsets: Integers
    link: Integers
    ends: tuple[Integers, Floats, Integers, Floats]
    """Link and share of it where each trip begins, and where it ends."""
    length_m: Floats


@dataclass(frozen=True, eq=False)
class RoadWays:
    """A public network, and by how much its links are dearer or cheaper than their time says."""

    network: RoadNetwork
    factor: Floats
    """[link]"""
    kerbs: Kerbs

    def drive(
        self, tracks: Tracks, frame: Frame, generator: np.random.Generator, *, alternatives: int = ALTERNATIVES
    ) -> Driven:
        """Ways for these trips: between roads in the cells of their ends, mostly through the cells they walk."""
        network = self.network
        first = self.kerbs.draw(tracks.source, generator)
        last = self._last(first, tracks, frame, generator)
        offsets, links = network.out_links
        taste = np.exp(TASTE * generator.standard_normal((FIELDS, network.n_links)))
        opinion = generator.integers(0, FIELDS, (tracks.n, alternatives))
        cost = network.time_s * self.factor * taste
        per_m = np.quantile(cost / network.length_m, QUICK, axis=1)
        found, path, length = _drive(
            (offsets, links, np.array(network.link_from), np.array(network.link_to)),
            (*network.index.to_xy(network.node_lat, network.node_lng), per_m),
            np.array(network.length_m), cost, walked_cells(network, frame),
            (tracks.walks.offsets, tracks.walks.cells), frame.n_walked,
            (self._node(first), self._via(tracks, frame), self._node(last)), opinion, tracks.length_m, OUTSIDE,
        )  # fmt: skip
        return Driven(found, path, (*self._place(first, generator), *self._place(last, generator)), length)

    def _last(self, first: Integers, tracks: Tracks, frame: Frame, generator: np.random.Generator) -> Integers:
        """Kerbs to end at: of a few, those about as far from the first ones as the trip should go."""
        kerbs = self.kerbs
        tried = np.column_stack([kerbs.draw(tracks.destination, generator) for _ in range(LAST_TRIES)])
        y, x = frame.place(kerbs.lat, kerbs.lng)
        apart = np.hypot(y[tried] - y[first][:, None], x[tried] - x[first][:, None])
        return tried[np.arange(len(first)), np.abs(apart - tracks.apart_m[:, None]).argmin(axis=1)]

    def _place(self, kerb: Integers, generator: np.random.Generator) -> tuple[Integers, Floats]:
        """Somewhere on the piece of road that a kerb stands for."""
        link = self.kerbs.link[kerb]
        piece = np.minimum(PITCH_M / self.network.length_m[link], 1.0)
        return link, np.clip(self.kerbs.share[kerb] + piece * (generator.random(len(kerb)) - 0.5), 0.0, 1.0)

    def _node(self, kerb: Integers) -> Integers:
        """The nearer end of the kerb's link."""
        link = self.kerbs.link[kerb]
        return np.asarray(np.where(self.kerbs.share[kerb] < 0.5, self.network.link_from[link], self.network.link_to[link]))

    def _via(self, tracks: Tracks, frame: Frame) -> Integers:
        """A node near where a trip is farthest off the line between its ends, where that is far; else -1."""
        at, detour = _farthest(tracks.y, tracks.x, tracks.offsets)
        apart = tracks.apart_m
        far = detour > np.maximum(VIA_DETOUR * apart, apart + 2.0 * frame.block)
        via = np.full(tracks.n, -1, dtype=np.int64)
        cell = frame.fine_at(tracks.y[at[far]], tracks.x[at[far]])
        where = self.kerbs.instead[cell]
        middle = (self.kerbs.offsets[where] + self.kerbs.offsets[where + 1]) // 2
        via[far] = self._node(middle)
        return via


@dataclass(frozen=True, eq=False)
class LinksRead:
    """Tracks of private trips, and the links that each trip drove."""

    read: Read
    unit: Integers
    """[trip of the part]"""
    trip: Integers
    link: Integers


@dataclass(frozen=True)
class ReadLinks:
    """Reads tracks and matches each trip to the roads by itself."""

    tracks: ReadTracks
    network: RoadNetwork

    def __call__(self, part: Part) -> LinksRead:
        """Tracks and driven links."""
        found = match(part.trips, self.network)
        return LinksRead(self.tracks(part), part.unit, found.path_trip, found.path_link)


@dataclass(frozen=True, eq=False)
class Links:
    """Groups of links whose use is counted."""

    group: Integers
    n_groups: int

    def contributions(self, prepared: LinksRead, norm: Norm) -> Contributions:
        """Each trip shares one count among the groups it drives."""
        return self.use(prepared.trip, prepared.link, norm).contributions(prepared.unit)

    def use(self, trip: Integers, link: Integers, norm: Norm) -> Parts:
        """The same for any trips."""
        return shared(self.group[link], trip, self.n_groups, norm)


def groups_of(network: RoadNetwork, n: float, deviation: float) -> Integers:
    """[link] its group: links alone where trips are many for the noise, else links of one class in one square."""
    most = max(n / (WORTH * deviation), 8.0)
    if network.n_links <= most:
        return np.arange(network.n_links, dtype=np.int64)
    x, y = network.index.to_xy(*network.midpoint)
    side = SMALLEST_SQUARE_M
    while True:
        row, column = np.floor(y / side).astype(np.int64), np.floor(x / side).astype(np.int64)
        key = ((row - row.min()) * (np.ptp(column) + 1) + column - column.min()) * 8 + network.road_class
        group = np.unique(key, return_inverse=True)[1].astype(np.int64)
        if group.max() < most or side > 1e6:
            return group
        side *= sqrt(2.0)


def fit_ways(
    answer: Answer,
    links: Links,
    network: RoadNetwork,
    frame: Frame,
    draw: Callable[[int, np.random.Generator], Tracks],
    *,
    n: float,
    norm: Norm,
    generator: np.random.Generator,
) -> RoadWays:
    """Turn costs of links until driven trips show the noisy use of links. Reads nothing private."""
    ways = RoadWays(network, np.ones(network.n_links), Kerbs.along(network, frame.grid))
    believed = None
    little = answer.deviation / 4
    for _ in range(ROUNDS):
        made = ways.drive(draw(POOL, generator), frame, generator, alternatives=1)
        trip = np.repeat(np.arange(POOL), np.diff(made.offsets))
        shown: Floats = np.asarray(links.use(trip, made.link, norm).table() * (n / (POOL * STEPS)), dtype=np.float64)
        if believed is None:  # what driving by time alone would show, changed as far as the noise does not explain it
            believed = shrink(answer.noisy, shown + 0.1, deviation=answer.deviation, groups=GROUPS)
        ratio = (shown + little) / (believed + little)
        factor = np.clip(ways.factor * (ratio**TURN)[links.group], 1 / MOST, MOST)
        ways = replace(ways, factor=factor)
    return ways


@njit(cache=True, nogil=True)
def _farthest(y: Floats, x: Floats, offsets: Integers) -> tuple[Integers, Floats]:
    """For each trip the point with the longest way over it from end to end, and that way."""
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
def _drive(  # noqa: PLR0917
    graph: tuple[Integers, Integers, Integers, Integers],
    ahead: tuple[Floats, Floats, Floats],
    length_m: Floats,
    cost: Floats,
    cell: Integers,
    walks: tuple[Integers, Integers],
    n_cells: int,
    nodes: tuple[Integers, Integers, Integers],
    opinion: Integers,
    wanted_m: Floats,
    outside: float,
) -> tuple[Integers, Integers, Floats]:
    """The way of each trip among a few whose length is nearest to the wanted one."""
    walk_offsets, walk_cells = walks
    start, via, end = nodes
    n, n_nodes = len(start), len(graph[0]) - 1
    walked = np.full(n_cells, -1, dtype=np.int64)
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
            walked[walk_cells[k]] = trip
        least, n_best = np.inf, 0
        for k in range(opinion.shape[1]):
            n_tried, here = 0, start[trip]
            for leg in range(2):
                to = via[trip] if leg == 0 else end[trip]
                if to < 0:
                    continue
                mind = opinion[trip, k]
                added = _leg(
                    graph, (ahead[0], ahead[1], ahead[2][mind]), cost[mind], cell, walked, trip, here, to, outside, search,
                    reached, came, seen, done, tried[n_tried:],
                )  # fmt: skip
                search += 1
                n_tried += added
                here = to if added > 0 else here
            total = 0.0
            for at in range(n_tried):
                total += length_m[tried[at]]
            off = abs(np.log((total + 50.0) / (wanted_m[trip] + 50.0)))
            if off < least:
                least, n_best = off, n_tried
                best[:n_tried] = tried[:n_tried]
                lengths[trip] = total
            if least < NEAR:
                break
        while used + n_best > len(path):
            path = np.append(path, np.empty(len(path), dtype=np.int64))
        path[used : used + n_best] = best[:n_best]
        used += n_best
        offsets[trip + 1] = used
    return offsets, path[:used].copy(), lengths


@njit(cache=True, nogil=True)
def _leg(  # noqa: PLR0917
    graph: tuple[Integers, Integers, Integers, Integers],
    ahead: tuple[Floats, Floats, float],
    cost: Floats,
    cell: Integers,
    walked: Integers,
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
    """Write the links of the cheapest way into `out`, and say how many they are; none where there is no way."""
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
            new = reached[at] + cost[link] * (1.0 if walked[cell[link]] == trip else outside)
            if done[to] != search and (seen[to] != search or new < reached[to]):
                reached[to], came[to], seen[to] = new, link, search
                left = np.hypot(x[to] - x[end], y[to] - y[end])
                heappush(heap, (new + per_m * left, to))
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
