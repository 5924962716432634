"""Fit and sample flock on a road network: trips are drawn on cells and then routed from street to street."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numba import njit

from murmurate.asking import STEPS, Answer, Norm
from murmurate.core import saved
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
"""File name of the public network in a saved model."""
FACTORS_FILE = "factors.npy"
"""File name of the cost factors of its links in a saved model."""
MAX_DURATION_FACTOR = 2.0
"""Longest duration, as a multiple of the median ratio of drawn to free-flow duration; longer ones are treated as noise of the
speed tables. Chosen by hand."""
EXTRA_DURATION_S = 60.0
"""Seconds added to that bound, so that very short trips are not cut. Chosen by hand."""
MIN_LENGTH_M = 10.0
"""Length given to a trip that stays in place, in metres, so that it has a duration. Chosen by hand."""
COST_ROUNDS = 4
"""Rounds of calibrating cost factors. Chosen by hand."""
SIZE_GROUPS = 4
"""Groups of links of similar use, each shrunk by its own relative error. Chosen by hand."""
CALIBRATION_TRIPS = 2000
"""Trips routed in each round of calibration. Chosen by hand."""
COST_CORRECTION_POWER = 0.35
"""Power of the correction of a cost factor in a round; below 1, because the use of a link depends on all others. Chosen by
hand."""
MAX_COST_FACTOR = 3.0
"""Largest factor by which the use of a link raises or lowers its cost. Chosen by hand."""
OUTSIDE_COST_FACTOR = 2.0
"""Cost factor of links outside the coarse cells of a trip. Chosen by hand."""
COST_SETS = 8
"""Random sets of link costs; each route uses one of them. Chosen by hand."""
COST_LOG_SD = 0.25
"""Standard deviation of the logarithm of random link costs. Chosen by hand."""
ROUTES_TRIED = 3
"""Largest number of routes tried for a trip. Chosen by hand."""
FAST_LINK_QUANTILE = 0.1
"""Quantile of the cost per metre of links that the A* search expects of the remaining straight line. Chosen by hand: lower
finds cheaper paths, higher is faster."""
MIN_VIA_DETOUR = 1.3
"""Smallest detour, as a multiple of the distance of the ends, from which a route passes the farthest point. Chosen by hand."""
LAST_KERB_TRIES = 6
"""Kerbs tried for the end of a trip. Chosen by hand."""


@dataclass(frozen=True, eq=False)
class Routes:
    """Links of every trip, from one kerb to another; those of trip k are `link[offsets[k]:offsets[k + 1]]`."""

    offsets: Integers
    link: Integers
    ends: tuple[Integers, Floats, Integers, Floats]
    """Link and position on it (0 to 1) where each trip begins, and where it ends."""
    length_m: Floats


@dataclass(frozen=True, eq=False)
class RoadRouter:
    """A public network with calibrated costs of its links, which routes drawn trips."""

    network: RoadNetwork
    factor: Floats
    """[link] cost as a multiple of the driving time."""
    kerbs: Kerbs

    def route(
        self, tracks: Tracks, frame: Frame, generator: np.random.Generator, *, alternatives: int = ROUTES_TRIED
    ) -> Routes:
        """Find routes between roads in the cells of the trips' ends, mostly through the coarse cells of each trip."""
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
        """Draw last kerbs: of a few, the one whose distance from the first is nearest to the distance of the trip's ends."""
        kerbs = self.kerbs
        tried = np.column_stack([kerbs.draw(tracks.destination, generator) for _ in range(LAST_KERB_TRIES)])
        y, x = frame.place(kerbs.lat, kerbs.lng)
        apart = np.hypot(y[tried] - y[first][:, None], x[tried] - x[first][:, None])
        return tried[np.arange(len(first)), np.abs(apart - tracks.apart_cells[:, None]).argmin(axis=1)]

    def _link_and_share(self, kerb: Integers, generator: np.random.Generator) -> tuple[Integers, Floats]:
        """Draw a position on the piece of road that a kerb stands for."""
        link = self.kerbs.link[kerb]
        piece = np.minimum(KERB_SPACING_M / self.network.length_m[link], 1.0)
        return link, np.clip(self.kerbs.share[kerb] + piece * (generator.random(len(kerb)) - 0.5), 0.0, 1.0)

    def _nearest_node(self, kerb: Integers) -> Integers:
        """Return the nearer end of the kerb's link."""
        link = self.kerbs.link[kerb]
        return np.asarray(np.where(self.kerbs.share[kerb] < 0.5, self.network.link_from[link], self.network.link_to[link]))

    def _via_node(self, tracks: Tracks, frame: Frame) -> Integers:
        """Return a node near the point with the longest detour, where that detour is large; otherwise -1."""
        at, detour = farthest_points(tracks.y, tracks.x, tracks.offsets)
        apart = tracks.apart_cells
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
    """Calibrate link costs until routed trips reproduce the noisy use of links; reads nothing private."""
    router = RoadRouter(network, np.ones(network.n_links), Kerbs.along(network, frame.grid))
    estimate = None
    offset = answer.deviation / 4
    for _ in range(COST_ROUNDS):
        made = router.route(draw(CALIBRATION_TRIPS, generator), frame, generator, alternatives=1)
        trip = np.repeat(np.arange(CALIBRATION_TRIPS), np.diff(made.offsets))
        shown: Floats = np.asarray(
            links.use(trip, made.link, norm).table() * (n / (CALIBRATION_TRIPS * STEPS)), dtype=np.float64
        )
        if estimate is None:  # shrunk towards what routing by driving time alone shows
            estimate = shrink(answer.noisy, shown + 0.1, deviation=answer.deviation, groups=SIZE_GROUPS)
        ratio = (shown + offset) / (estimate + offset)
        factor = np.clip(router.factor * (ratio**COST_CORRECTION_POWER)[links.group], 1 / MAX_COST_FACTOR, MAX_COST_FACTOR)
        router = replace(router, factor=factor)
    return router


@dataclass(frozen=True, eq=False)
class RoadFlockModel(FlockModel):
    """A fitted flock whose trips are drawn on the grid and then routed on roads."""

    router: RoadRouter
    slot_s: int

    def save(self, path: Path) -> None:
        """Write arrays, schema, the public network, and the cost factors of its links."""
        super().save(path)
        save(self.router.network, path / NETWORK_FILE)
        np.save(path / FACTORS_FILE, np.append(self.router.factor, float(self.slot_s)), allow_pickle=False)

    def _seconds(self, drawn_s: Floats, routes: Routes) -> Floats:
        """Cap drawn durations by a multiple of the free-flow duration, as longer ones are noise."""
        before = np.concatenate([[0.0], np.cumsum(self.router.network.time_s[routes.link])])
        free_s = before[routes.offsets[1:]] - before[routes.offsets[:-1]] + 1.0
        return np.minimum(drawn_s, MAX_DURATION_FACTOR * float(np.median(drawn_s / free_s)) * free_s + EXTRA_DURATION_S)

    def _released(self, tracks: Tracks, first: int, generator: np.random.Generator) -> Trips:
        """Route tracks and convert them to trips with times, hours, degrees and links; names start at `first`."""
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
    """Read the road part of a saved model."""
    network = load(path / NETWORK_FILE)
    factors = saved.read_npy(path / FACTORS_FILE, "a flock model on roads")
    if factors.shape != (network.n_links + 1,):
        raise InputError(
            f"{path}: factors of shape {factors.shape} for {network.n_links:,} links.", "The files belong to different models."
        )
    # clipped at each round of calibration, so that no factor can lie further from 1
    links = saved.Range(low=1 / MAX_COST_FACTOR, high=MAX_COST_FACTOR, shape=(network.n_links,))
    ranges = {"factors": links, "slot_s": saved.Range(low=1.0, high=86_400.0, shape=(1,))}
    saved.check(path / FACTORS_FILE, {"factors": factors[:-1], "slot_s": factors[-1:]}, ranges)
    router = RoadRouter(network, factors[:-1], Kerbs.along(network, model.grid))
    return RoadFlockModel(model.fitted, model.time_zone, model.day, router, int(factors[-1]))


def fit_on_roads(cells: FlockModel, plan: Plan, rng: Randomness, slot_s: int) -> RoadFlockModel:
    """Put a model of cells on roads, with link costs calibrated to the noisy use of links."""
    if plan.network is None or plan.link_groups is None:
        raise ParameterError("a model on roads needs a road network.")
    fitted = cells.fitted

    def draw_tracks(n: int, generator: np.random.Generator) -> Tracks:
        """Draw tracks on cells."""
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
    """Return link, position on it and seconds of every point: both ends, one point a slot, and repeated points."""
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
    """Do the work of `place_points` on plain arrays."""
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
