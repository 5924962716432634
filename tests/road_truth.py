"""Drives with known links: routes by link times the matcher does not know, seen through noisy, sparse points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from murmurate.core.trips import Trips
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.geometry import points_along
from murmurate.spaces.road.routing import batch_paths, graph
from murmurate.spaces.sphere import METRES_PER_DEGREE, great_circle_m


@dataclass(frozen=True)
class Truth:
    """Simulated trips and the directed links each of them really drove, between its first and last point."""

    trips: Trips
    offsets: np.ndarray
    links: np.ndarray
    point_link: np.ndarray


def drive(
    network: RoadNetwork,
    *,
    n_trips: int,
    interval_s: float,
    seed: int,
    noise_m: float = 10.0,
    spread: float = 0.3,
    slowness: float = 1.3,
    nearest_m: float = 1500.0,
    farthest_m: float = 6000.0,
) -> Truth:
    """Trips between random nodes; every trip has its own link times, lognormal around the usual ones (`spread`)."""
    rng = np.random.default_rng(seed)
    uid, lat, lng, when, point_link, offsets, links = [], [], [], [], [], [0], []
    trip = 0
    while trip < n_trips:
        start, end = rng.integers(0, network.n_nodes, 2)
        gap = great_circle_m(network.node_lat[start], network.node_lng[start], network.node_lat[end], network.node_lng[end])
        if not nearest_m <= gap <= farthest_m:
            continue
        times = network.time_s * slowness * np.exp(rng.normal(0.0, spread, network.n_links))
        _, path = batch_paths(graph(network, cost=times), network.link_from, np.array([start]), np.array([end]))
        if len(path) == 0:
            continue
        ends = np.cumsum(times[path])
        t = np.arange(rng.uniform(0, min(interval_s, ends[-1] / 3)), ends[-1], interval_s)
        if len(t) < 2:
            continue
        at = np.searchsorted(ends, t)
        share = 1.0 - (ends[at] - t) / times[path[at]]
        y, x = points_along(network.shape_offsets, network.shape_lat, network.shape_lng, path[at], share)
        noise = rng.normal(0.0, noise_m, (2, len(t))) / METRES_PER_DEGREE
        uid += [trip] * len(t)
        lat.append(y + noise[0])
        lng.append(x + noise[1] / np.cos(np.radians(y)))
        when.append(t)
        point_link.append(path[at])
        links.append(path[at[0] : at[-1] + 1])
        offsets.append(offsets[-1] + len(links[-1]))
        trip += 1
    seconds = np.concatenate(when)
    table = pl.DataFrame(
        {
            "uid": uid,
            "tid": uid,
            "datetime": pl.Series((seconds * 1e6).astype(np.int64) + 1_600_000_000_000_000).cast(pl.Datetime("us", "UTC")),
            "lat": np.concatenate(lat),
            "lng": np.concatenate(lng),
        }
    )
    return Truth(Trips(table), np.array(offsets), np.concatenate(links), np.concatenate(point_link))


def precision_recall(truth: Truth, path_offsets: np.ndarray, path_links: np.ndarray) -> tuple[float, float]:
    """Of directed links, each trip a multiset, pooled over trips."""
    right = 0
    for k in range(len(truth.offsets) - 1):
        real = np.bincount(truth.links[truth.offsets[k] : truth.offsets[k + 1]])
        found = np.bincount(path_links[path_offsets[k] : path_offsets[k + 1]])
        size = min(len(real), len(found))
        right += int(np.minimum(real[:size], found[:size]).sum())
    return right / max(1, len(path_links)), right / len(truth.links)
