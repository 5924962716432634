"""Traffic of the small hand-made town: cars that drive along its streets, some on every street, at two times of day."""

from __future__ import annotations

import numpy as np
import polars as pl

from murmurate.core.trips import Trips
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.geometry import points_along
from murmurate.spaces.road.routing import routes


def traffic(network: RoadNetwork, *, people: int = 40, trips_each: int = 4, seed: int = 0, every_s: float = 10.0) -> Trips:
    """Each person drives `trips_each` fastest routes between random nodes, two thirds of them at 8, the others at 17."""
    rng = np.random.default_rng(seed)
    rows: list[pl.DataFrame] = []
    tid = 0
    for uid in range(people):
        for _ in range(trips_each):
            start, end = rng.choice(network.n_nodes, 2, replace=False, p=_popular(network.n_nodes))
            path = routes(network, [start], [end])[0].links
            hour = 8 if rng.random() < 2 / 3 else 17
            seconds = np.cumsum(network.time_s[path] * 1.5)
            t = np.arange(0.0, seconds[-1], every_s)
            at = np.searchsorted(seconds, t, side="right")
            share = 1 - (seconds[at] - t) / (network.time_s[path[at]] * 1.5)
            lat, lng = points_along(network.shape_offsets, network.shape_lat, network.shape_lng, path[at], share)
            began = (hour * 3600 + rng.integers(0, 1800) + 86_400 * (tid % 3)) * 1_000_000
            moment = pl.Series(began + (t * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
            rows.append(pl.DataFrame({"uid": uid, "tid": tid, "datetime": moment, "lat": lat, "lng": lng}))
            tid += 1
    return Trips(pl.concat(rows))


def _popular(n: int) -> np.ndarray:
    weight = 1.0 / (1 + np.arange(n) % 7)
    return weight / weight.sum()
