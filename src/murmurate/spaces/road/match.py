"""`match`: from points to the directed links that were driven."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from murmurate import engine
from murmurate.core.parameters import one_of, positive, share, whole
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.spaces.road.chain import Points, Roads, Settings, roads_of, scratch
from murmurate.spaces.road.markov import match_trips
from murmurate.spaces.road.matching import Matching, joined
from murmurate.spaces.road.network import RoadNetwork
from murmurate.spaces.road.route_table import RouteTable, cache_folder, prepare
from murmurate.spaces.road.thinning import fill, moved

MATCHERS = ("markov", "nearest", "valhalla")
"""Names of the matchers, the default first."""

POINTS_AT_A_TIME = 200_000
"""Most points of a task where several processes share the work: a task takes seconds, which evens out the load."""

BETA_SHARE = 0.5
"""Transition scale as a share of the network's usual route excess; chosen on drives with known links."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Holds settings of matching; the defaults suit city driving seen every 5 to 120 seconds."""

    matcher: str = "markov"
    """Set by `match`."""
    radius_m: float = 60.0
    """Links farther from a point than this are no candidates."""
    candidates: int = 10
    """Directed links considered per point."""
    sigma_m: float = 10.0
    """Standard deviation of the points around the road."""
    beta_m: float | None = None
    """Scale of route against straight distance; None lets it follow the sampling interval and the network."""
    back_m: float = 25.0
    """Moving back this far along one link is taken for noise of a standing or slow car."""
    turn_weight: float = 0.1
    """Weight of turning round on the spot."""
    fastest: float = 1.3
    """A route that needs more than this times the speed limits is doubted, then refused."""
    thin_m: float = 40.0
    """Points nearer than this to the one before are not weighed, only placed: they hold more noise than movement."""
    max_gap_s: float = 600.0
    """Longer silences split a trip into parts."""
    max_skipped: int = 3
    """Successive points that may be skipped as outliers before a new part begins."""
    valhalla_config: str | None = None
    """Where Valhalla finds its tiles; only for matcher="valhalla"."""

    def __post_init__(self) -> None:
        one_of("matcher", self.matcher, MATCHERS)
        for name in ("radius_m", "sigma_m", "fastest", "max_gap_s"):
            positive(name, getattr(self, name))
        if self.beta_m is not None:
            positive("beta_m", self.beta_m)
        for name in ("back_m", "thin_m"):
            if getattr(self, name) != 0:
                positive(name, getattr(self, name))
        if self.turn_weight != 1:
            share("turn_weight", self.turn_weight)
        whole("candidates", self.candidates, at_most=64)
        whole("max_skipped", self.max_skipped, at_least=0)


def match(
    trips: Trips, network: RoadNetwork, *, matcher: str = "markov", options: Options | None = None, workers: int = 1
) -> Matching:
    """Find the directed links of `network` that `trips` drove.

    Each trip is matched by its own points, with times counted from its first point: what is found for it, rounding
    included, depends neither on the other trips nor on their order.

    `matcher` is "markov" (hidden Markov chain, the default), "nearest" (nearest nodes joined by routes, as in the
    simple matcher of DP-ANI's Algorithm 2) or "valhalla" (the `[valhalla]` extra). `options` sets the rest. `workers`
    processes share the work and change nothing else.
    """
    if not trips.has_coordinates:
        raise InputError("matching needs lat and lng; these trips have only places.")
    options = replace(options or Options(), matcher=matcher)
    if options.matcher != "valhalla":
        _prepared(network)  # once here, so that processes find the routes on disk
    start_us = trips.time_us[trips.offsets[:-1]] if trips.has_time else None
    tasks = _tasks(trips, network, options, workers, start_us)
    return replace(joined(list(engine.map(_match_task, tasks, workers=workers))), start_us=start_us)


@dataclass(frozen=True)
class _Task:
    network: RoadNetwork
    options: Options
    offsets: Integers
    lat: Floats
    lng: Floats
    time_s: Floats | None
    """Seconds since the first point of the trip."""


def _tasks(trips: Trips, network: RoadNetwork, options: Options, workers: int, start_us: Integers | None) -> list[_Task]:
    """Cut trips into runs of whole trips; one run where there is one worker."""
    size = trips.n_points if workers == 1 else min(POINTS_AT_A_TIME, trips.n_points // (2 * workers) + 1)
    # whole microseconds are subtracted before anything is rounded, trip by trip: a clock shared by trips would pass the
    # rounding of one trip's times on to the others
    time_s = None if start_us is None else (trips.time_us - np.repeat(start_us, np.diff(trips.offsets))) / 1e6
    tasks: list[_Task] = []
    first = 0
    while first < trips.n_trips or not tasks:
        start = trips.offsets[first]
        last = max(first + 1, int(np.searchsorted(trips.offsets, start + size, side="right")) - 1)
        last = min(last, trips.n_trips)
        offsets = trips.offsets[first : last + 1]
        span = slice(int(start), int(offsets[-1]))
        clock = None if time_s is None else time_s[span]
        tasks.append(_Task(network, options, offsets - start, trips.lat[span], trips.lng[span], clock))
        first = last
    return tasks


def _match_task(task: _Task) -> Matching:
    if task.options.matcher == "valhalla":
        from murmurate.spaces.road.match_valhalla import match_with_valhalla

        config = task.options.valhalla_config
        return match_with_valhalla(task.network, task.offsets, task.lat, task.lng, task.time_s, config)
    if task.options.matcher == "nearest":
        from murmurate.spaces.road.match_nearest import match_nearest

        return match_nearest(task.network, task.offsets, task.lat, task.lng, task.time_s, radius_m=task.options.radius_m)
    return _match_markov(task)


def _match_markov(task: _Task) -> Matching:
    network, options, n = task.network, task.options, len(task.lat)
    table, roads = _prepared(network)
    x, y = network.index.to_xy(task.lat, task.lng)
    clock = np.zeros(n) if task.time_s is None else task.time_s
    points = Points(
        link=np.full(n, -1, np.int64),
        offset_m=np.full(n, np.nan),
        distance_m=np.full(n, np.nan),
        confidence=np.zeros(n),
        part=np.full(n, -1, np.int64),
    )
    settings = _settings(options, table, has_time=task.time_s is not None)
    buckets, k = network.index.buckets, options.candidates
    keep = moved(task.offsets, x, y, options.thin_m)
    few = np.concatenate(([0], np.cumsum(keep)))[task.offsets]
    kept = Points(*(values[keep] for values in points))
    arrays = scratch(int(np.diff(few).max(initial=0)), k)
    offsets, path = match_trips(few, x[keep], y[keep], clock[keep], buckets, roads, table, settings, arrays, kept)
    for all_values, values in zip(points, kept, strict=True):
        all_values[keep] = values
    fill(task.offsets, keep, x, y, settings.radius_m, k, buckets, offsets, path.link, points)
    return Matching(
        offsets=task.offsets,
        **points._asdict(),
        path_offsets=offsets,
        path_link=path.link,
        path_part=path.part,
        path_elapsed_s=path.entered_s if task.time_s is not None else np.full(len(path.link), np.nan),
    )


def _settings(options: Options, table: RouteTable, *, has_time: bool) -> Settings:
    floor = 0.8 * options.sigma_m
    beta = np.full(1, options.beta_m) if options.beta_m else np.maximum(floor, BETA_SHARE * table.excess_m)
    return Settings(
        radius_m=float(options.radius_m),
        candidates=options.candidates,
        sigma_m=float(options.sigma_m),
        beta_m=beta.astype(np.float64),
        back_m=float(options.back_m),
        turn_weight=float(options.turn_weight),
        fastest=float(options.fastest),
        max_gap_s=float(options.max_gap_s),
        max_skipped=options.max_skipped,
        has_time=has_time,
    )


@lru_cache(maxsize=2)
def _kept(fingerprint: str, folder: Path) -> list[tuple[RouteTable, Roads]]:
    """Return a list that keeps what belongs to a network in this process."""
    return []


def _prepared(network: RoadNetwork) -> tuple[RouteTable, Roads]:
    """Return the route table and the arrays of a network, made once in this process."""
    kept = _kept(network.fingerprint, cache_folder())
    if not kept:
        kept.append((prepare(network), roads_of(network)))
    return kept[0]
