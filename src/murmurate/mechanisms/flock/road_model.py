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
from murmurate.mechanisms.flock.roads import KERB_SPACING_M, Kerbs, Links, farthest_points, find_routes, link_coarse_cells
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

NETWORK_FILE = "network.npz"
FACTORS_FILE = "factors.npy"
MAX_DURATION_FACTOR = 2.0
"""Nobody takes longer than this many times what trips usually take of the time the roads allow, and a minute; noisy tables
of speeds have some who do."""
MIN_LENGTH_M = 10.0
"""A trip that drives nowhere still moves this far, if it must have two different points."""
COST_ROUNDS = 4
SIZE_GROUPS = 4
"""Of link groups of similar use, each believed by its own error."""
CALIBRATION_TRIPS = 2000
"""Trips routes in each round of calibration."""
COST_CORRECTION_POWER = 0.35
"""How far a round turns a cost towards what the table says."""
MAX_COST_FACTOR = 3.0
"""Largest factor by which the use of a link makes it cheaper or dearer."""
OUTSIDE_COST_FACTOR = 2.0
"""How much dearer roads are outside the cells a trip walks."""
COST_SETS = 8
COST_LOG_SD = 0.25
"""Spread of what drivers think of a link, as a logarithm; each trip takes one of a few opinions."""
ROUTES_TRIED = 3
FAST_LINK_QUANTILE = 0.1
"""The share of links on which a metre costs less than a search expects of the straight line that is left."""
MIN_VIA_DETOUR = 1.3
LAST_KERB_TRIES = 6


@dataclass(frozen=True, eq=False)
class Routes:
    """The links of every trip; trip k drives `link[offsets[k]:offsets[k + 1]]`, from one kerb to another."""

    offsets: Integers
    link: Integers
    ends: tuple[Integers, Floats, Integers, Floats]
    """Link and share of it where each trip begins, and where it ends."""
    length_m: Floats


@dataclass(frozen=True, eq=False)
class RoadRouter:
    """A public network, and by how much its links are dearer or cheaper than their time says."""

    network: RoadNetwork
    factor: Floats
    """[link]"""
    kerbs: Kerbs

    def route(
        self, tracks: Tracks, frame: Frame, generator: np.random.Generator, *, alternatives: int = ROUTES_TRIED
    ) -> Routes:
        """Outlines for these trips: between roads in the cells of their ends, mostly through the cells they walk."""
        network = self.network
        first = self.kerbs.draw(tracks.source, generator)
        last = self._last_kerbs(first, tracks, frame, generator)
        offsets, links = network.out_links
        random_costs = np.exp(COST_LOG_SD * generator.standard_normal((COST_SETS, network.n_links)))
        cost_set = generator.integers(0, COST_SETS, (tracks.n, alternatives))
        cost = network.time_s * self.factor * random_costs
        per_m = np.quantile(cost / network.length_m, FAST_LINK_QUANTILE, axis=1)
        found, path, length = find_routes(
            (offsets, links, np.array(network.link_from), np.array(network.link_to)),
            (*network.index.to_xy(network.node_lat, network.node_lng), per_m),
            np.array(network.length_m), cost, link_coarse_cells(network, frame),
            (tracks.walks.offsets, tracks.walks.cells), frame.n_coarse,
            (self._nearest_node(first), self._via_node(tracks, frame), self._nearest_node(last)), cost_set, tracks.length_m,
            OUTSIDE_COST_FACTOR,
        )  # fmt: skip
        return Routes(found, path, (*self._link_and_share(first, generator), *self._link_and_share(last, generator)), length)

    def _last_kerbs(self, first: Integers, tracks: Tracks, frame: Frame, generator: np.random.Generator) -> Integers:
        """Kerbs to end at: of a few, those about as far from the first ones as the trip should go."""
        kerbs = self.kerbs
        tried = np.column_stack([kerbs.draw(tracks.destination, generator) for _ in range(LAST_KERB_TRIES)])
        y, x = frame.place(kerbs.lat, kerbs.lng)
        apart = np.hypot(y[tried] - y[first][:, None], x[tried] - x[first][:, None])
        return tried[np.arange(len(first)), np.abs(apart - tracks.apart_m[:, None]).argmin(axis=1)]

    def _link_and_share(self, kerb: Integers, generator: np.random.Generator) -> tuple[Integers, Floats]:
        """Somewhere on the piece of road that a kerb stands for."""
        link = self.kerbs.link[kerb]
        piece = np.minimum(KERB_SPACING_M / self.network.length_m[link], 1.0)
        return link, np.clip(self.kerbs.share[kerb] + piece * (generator.random(len(kerb)) - 0.5), 0.0, 1.0)

    def _nearest_node(self, kerb: Integers) -> Integers:
        """The nearer end of the kerb's link."""
        link = self.kerbs.link[kerb]
        return np.asarray(np.where(self.kerbs.share[kerb] < 0.5, self.network.link_from[link], self.network.link_to[link]))

    def _via_node(self, tracks: Tracks, frame: Frame) -> Integers:
        """A node near where a trip is farthest off the line between its ends, where that is far; else -1."""
        at, detour = farthest_points(tracks.y, tracks.x, tracks.offsets)
        apart = tracks.apart_m
        far = detour > np.maximum(MIN_VIA_DETOUR * apart, apart + 2.0 * frame.block)
        via = np.full(tracks.n, -1, dtype=np.int64)
        cell = frame.fine_at(tracks.y[at[far]], tracks.x[at[far]])
        where = self.kerbs.instead[cell]
        middle = (self.kerbs.offsets[where] + self.kerbs.offsets[where + 1]) // 2
        via[far] = self._nearest_node(middle)
        return via


def fit_router(
    answer: Answer,
    links: Links,
    network: RoadNetwork,
    frame: Frame,
    draw: Callable[[int, np.random.Generator], Tracks],
    *,
    n: float,
    norm: Norm,
    generator: np.random.Generator,
) -> RoadRouter:
    """Turn costs of links until routes trips show the noisy use of links. Reads nothing private."""
    router = RoadRouter(network, np.ones(network.n_links), Kerbs.along(network, frame.grid))
    estimate = None
    offset = answer.deviation / 4
    for _ in range(COST_ROUNDS):
        made = router.route(draw(CALIBRATION_TRIPS, generator), frame, generator, alternatives=1)
        trip = np.repeat(np.arange(CALIBRATION_TRIPS), np.diff(made.offsets))
        shown: Floats = np.asarray(
            links.use(trip, made.link, norm).table() * (n / (CALIBRATION_TRIPS * STEPS)), dtype=np.float64
        )
        if estimate is None:  # what driving by time alone would show, changed as far as the noise does not explain it
            estimate = shrink(answer.noisy, shown + 0.1, deviation=answer.deviation, groups=SIZE_GROUPS)
        ratio = (shown + offset) / (estimate + offset)
        factor = np.clip(router.factor * (ratio**COST_CORRECTION_POWER)[links.group], 1 / MAX_COST_FACTOR, MAX_COST_FACTOR)
        router = replace(router, factor=factor)
    return router


@dataclass(frozen=True, eq=False)
class RoadFlockModel(FlockModel):
    """Trips are drawn as on the grid, then routes on roads."""

    router: RoadRouter
    slot_s: int

    def save(self, path: Path) -> None:
        """Arrays, schema, the public network, and the factors of its links."""
        super().save(path)
        save(self.router.network, path / NETWORK_FILE)
        np.save(path / FACTORS_FILE, np.append(self.router.factor, float(self.slot_s)), allow_pickle=False)

    def _seconds(self, drawn_s: Floats, routes: Routes) -> Floats:
        """Drawn durations without those that only noise explains, seen from how long the roads themselves take."""
        before = np.concatenate([[0.0], np.cumsum(self.router.network.time_s[routes.link])])
        free_s = before[routes.offsets[1:]] - before[routes.offsets[:-1]] + 1.0
        return np.minimum(drawn_s, MAX_DURATION_FACTOR * float(np.median(drawn_s / free_s)) * free_s + 60.0)

    def _released(self, tracks: Tracks, first: int, generator: np.random.Generator) -> Trips:
        frame, pace = self.fitted.base.frame, self.fitted.pace
        routes = self.router.route(tracks, frame, generator)
        longer = replace(tracks, length_m=np.maximum(routes.length_m, MIN_LENGTH_M))
        if pace is None:
            seconds, slot = longer.length_m, frame.coarse_m
        else:
            seconds, slot = self._seconds(pace.seconds(longer, generator), routes), float(self.slot_s)
        link, share, along, offsets = place_points(routes, self.router, seconds, slot, tracks.repeats, frame.max_cells)
        network = self.router.network
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
        network = load(path / NETWORK_FILE)
        factors = np.load(path / FACTORS_FILE, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} does not hold a flock model on roads: {error}") from None
    if len(factors) != network.n_links + 1:
        raise InputError(
            f"{path}: {len(factors) - 1:,} factors for {network.n_links:,} links.", "The files belong to different models."
        )
    router = RoadRouter(network, factors[:-1], Kerbs.along(network, model.grid))
    return RoadFlockModel(model.fitted, model.time_zone, model.day, router, int(factors[-1]))


def fit_on_roads(cells: FlockModel, plan: Plan, rng: Randomness, slot_s: int) -> RoadFlockModel:
    """Put a model of the cells on roads, whose costs show the noisy use of links."""
    if plan.network is None or plan.link_groups is None:
        raise ParameterError("a model on roads needs a road network.")
    fitted = cells.fitted

    def draw_tracks(n: int, generator: np.random.Generator) -> Tracks:
        return cells._tracks(n, fitted.base.ends, generator)

    links = Links(plan.link_groups, int(plan.link_groups.max()) + 1)
    router = fit_router(
        plan.answers["links"], links, plan.network, fitted.base.frame, draw_tracks, n=fitted.n, norm=fitted.norm,
        generator=rng.generator(),
    )  # fmt: skip
    return RoadFlockModel(fitted, cells.time_zone, cells.day, router, slot_s)


def place_points(  # noqa: PLR0917
    routes: Routes,
    router: RoadRouter,
    seconds: Floats,
    slot: float,
    repeats: np.ndarray[tuple[int], np.dtype[np.bool_]],
    most: int,
) -> tuple[Integers, Floats, Floats, Integers]:
    """Link, share of it and seconds of every point: one each slot, and both ends; a repeated point is written twice."""
    return _place_points(routes.offsets, routes.link, routes.ends, router.network.time_s, seconds, slot, repeats, most)


@njit(cache=True, nogil=True)
def _place_points(  # noqa: PLR0917
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
