"""Fit and sample flock on a road network: trips are drawn on cells and then routed from street to street."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numba import njit

from murmurate.asking import STEPS, Answer, Norm
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import TIME, Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.flock.model import FlockModel
from murmurate.mechanisms.flock.roads import PITCH_M, Kerbs, Links, farthest_points, find_routes, link_coarse_cells
from murmurate.mechanisms.flock.shapes import SECOND_US, times_us
from murmurate.mechanisms.flock.tracks import Frame, Tracks
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.geometry import points_along
from murmurate.spaces.road.storage import load, save
from murmurate.synthesis.shrink import shrink

if TYPE_CHECKING:
    from collections.abc import Callable

    from murmurate.mechanisms.flock.rounds import Plan
    from murmurate.noise import Randomness

NETWORK = "network.npz"
FACTORS = "factors.npy"
SLOWEST = 2.0
"""Nobody takes longer than this many times what trips usually take of the time the roads allow, and a minute; noisy tables
of speeds have some who do."""
SHORT_STEP_M = 10.0
"""A trip that drives nowhere still moves this far, if it must have two different points."""
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
        found, path, length = find_routes(
            (offsets, links, np.array(network.link_from), np.array(network.link_to)),
            (*network.index.to_xy(network.node_lat, network.node_lng), per_m),
            np.array(network.length_m), cost, link_coarse_cells(network, frame),
            (tracks.walks.offsets, tracks.walks.cells), frame.n_coarse,
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
        at, detour = farthest_points(tracks.y, tracks.x, tracks.offsets)
        apart = tracks.apart_m
        far = detour > np.maximum(VIA_DETOUR * apart, apart + 2.0 * frame.block)
        via = np.full(tracks.n, -1, dtype=np.int64)
        cell = frame.fine_at(tracks.y[at[far]], tracks.x[at[far]])
        where = self.kerbs.instead[cell]
        middle = (self.kerbs.offsets[where] + self.kerbs.offsets[where + 1]) // 2
        via[far] = self._node(middle)
        return via


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
    estimate = None
    offset = answer.deviation / 4
    for _ in range(ROUNDS):
        made = ways.drive(draw(POOL, generator), frame, generator, alternatives=1)
        trip = np.repeat(np.arange(POOL), np.diff(made.offsets))
        shown: Floats = np.asarray(links.use(trip, made.link, norm).table() * (n / (POOL * STEPS)), dtype=np.float64)
        if estimate is None:  # what driving by time alone would show, changed as far as the noise does not explain it
            estimate = shrink(answer.noisy, shown + 0.1, deviation=answer.deviation, groups=GROUPS)
        ratio = (shown + offset) / (estimate + offset)
        factor = np.clip(ways.factor * (ratio**TURN)[links.group], 1 / MOST, MOST)
        ways = replace(ways, factor=factor)
    return ways


@dataclass(frozen=True, eq=False)
class RoadFlockModel(FlockModel):
    """Trips are drawn as on the grid, then driven on roads."""

    ways: RoadWays
    slot_s: int

    def save(self, path: Path) -> None:
        """Arrays, schema, the public network, and the factors of its links."""
        super().save(path)
        save(self.ways.network, path / NETWORK)
        np.save(path / FACTORS, np.append(self.ways.factor, float(self.slot_s)), allow_pickle=False)

    def _seconds(self, drawn_s: Floats, driven: Driven) -> Floats:
        """Drawn durations without those that only noise explains, seen from how long the roads themselves take."""
        before = np.concatenate([[0.0], np.cumsum(self.ways.network.time_s[driven.link])])
        free_s = before[driven.offsets[1:]] - before[driven.offsets[:-1]] + 1.0
        return np.minimum(drawn_s, SLOWEST * float(np.median(drawn_s / free_s)) * free_s + 60.0)

    def _released(self, tracks: Tracks, first: int, generator: np.random.Generator) -> Trips:
        frame, pace = self.fitted.law.frame, self.fitted.pace
        driven = self.ways.drive(tracks, frame, generator)
        longer = replace(tracks, length_m=np.maximum(driven.length_m, SHORT_STEP_M))
        if pace is None:
            seconds, slot = longer.length_m, frame.coarse_m
        else:
            seconds, slot = self._seconds(pace.seconds(longer, generator), driven), float(self.slot_s)
        link, share, along, offsets = placed(driven, self.ways, seconds, slot, tracks.repeats, frame.max_cells)
        network = self.ways.network
        lat, lng = points_along(network.shape_offsets, network.shape_lat, network.shape_lng, link, share)
        trip = np.repeat(np.arange(tracks.n, dtype=np.int64), np.diff(offsets))
        columns: dict[str, Any] = {"uid": trip + first, "tid": trip + first}
        if pace is not None:
            when = times_us(tracks, seconds, time_zone=self.time_zone, day=self.day, generator=generator, hours=frame.hours)
            start = when[tracks.offsets[:-1]]
            columns["datetime"] = pl.Series(start[trip] + np.rint(along).astype(np.int64) * SECOND_US).cast(TIME)
        if frame.hours > 1:
            columns["hour"] = tracks.walks.hours[trip] * (24 // frame.hours)
        columns |= {"lat": lat, "lng": lng, "link": link}
        return Trips(pl.DataFrame(columns), network, self.time_zone)


def read_road_model(path: Path, model: FlockModel) -> RoadFlockModel:
    """The road part of a saved model."""
    try:
        network = load(path / NETWORK)
        factors = np.load(path / FACTORS, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} does not hold a flock model on roads: {error}") from None
    if len(factors) != network.n_links + 1:
        raise InputError(
            f"{path}: {len(factors) - 1:,} factors for {network.n_links:,} links.", "The files belong to different models."
        )
    ways = RoadWays(network, factors[:-1], Kerbs.along(network, model.grid))
    return RoadFlockModel(model.fitted, model.time_zone, model.day, ways, int(factors[-1]))


def fit_on_roads(cells: FlockModel, plan: Plan, rng: Randomness, slot_s: int) -> RoadFlockModel:
    """Put a model of the cells on roads, whose costs show the noisy use of links."""
    if plan.network is None or plan.link_groups is None:
        raise ParameterError("a model on roads needs a road network.")
    fitted = cells.fitted

    def drawn(n: int, generator: np.random.Generator) -> Tracks:
        return cells._tracks(n, fitted.law.ends, generator)

    links = Links(plan.link_groups, int(plan.link_groups.max()) + 1)
    ways = fit_ways(
        plan.answers["links"], links, plan.network, fitted.law.frame, drawn, n=fitted.n, norm=fitted.norm,
        generator=rng.generator(),
    )  # fmt: skip
    return RoadFlockModel(fitted, cells.time_zone, cells.day, ways, slot_s)


def placed(  # noqa: PLR0917
    driven: Driven,
    ways: RoadWays,
    seconds: Floats,
    slot: float,
    repeats: np.ndarray[tuple[int], np.dtype[np.bool_]],
    most: int,
) -> tuple[Integers, Floats, Floats, Integers]:
    """Link, share of it and seconds of every point: one each slot, and both ends; a repeated point is written twice."""
    return _placed(driven.offsets, driven.link, driven.ends, ways.network.time_s, seconds, slot, repeats, most)


@njit(cache=True, nogil=True)
def _placed(  # noqa: PLR0917
    offsets: Integers,
    link: Integers,
    ends: tuple[Integers, Floats, Integers, Floats],
    time_s: Floats,
    seconds: Floats,
    slot: float,
    repeats: np.ndarray[tuple[int], np.dtype[np.bool_]],
    most: int,
) -> tuple[Integers, Floats, Floats, Integers]:
    first_link, first_share, last_link, last_share = ends
    n = len(offsets) - 1
    inner = np.empty(n, dtype=np.int64)
    out = np.zeros(n + 1, dtype=np.int64)
    for trip in range(n):
        inner[trip] = min(max(int(np.ceil(seconds[trip] / slot)) - 1, 0), most) if offsets[trip + 1] > offsets[trip] else 0
        out[trip + 1] = out[trip] + 2 + inner[trip] + repeats[trip]
    where, share, along = np.empty(out[n], dtype=np.int64), np.empty(out[n]), np.empty(out[n])
    for trip in range(n):
        total = 0.0
        for k in range(offsets[trip], offsets[trip + 1]):
            total += time_s[link[k]]
        at, last = out[trip], out[trip + 1] - 1
        where[at], share[at], along[at] = first_link[trip], first_share[trip], 0.0
        k, passed = offsets[trip], 0.0
        for step in range(inner[trip]):
            clock = (step + 1) * (slot if inner[trip] < most else seconds[trip] / (most + 1))
            goal = total * clock / seconds[trip]
            while k < offsets[trip + 1] - 1 and passed + time_s[link[k]] < goal:
                passed += time_s[link[k]]
                k += 1
            at += 1
            where[at], along[at] = link[k], clock
            share[at] = min(max((goal - passed) / time_s[link[k]], 0.0), 1.0)
        at += 1
        where[at], share[at], along[at] = last_link[trip], last_share[trip], seconds[trip]
        if repeats[trip]:
            where[last], share[last], along[last] = where[at], share[at], seconds[trip] + min(slot, 60.0)
    return where, share, along, out
