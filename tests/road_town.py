"""A small hand-made town on the equator, where a hundred metres are a hundred metres both ways."""

from __future__ import annotations

import numpy as np
import polars as pl

from murmurate.core.trips import Trips
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.sphere import METRES_PER_DEGREE

BLOCK = 100.0 / METRES_PER_DEGREE


def grid_town(size: int = 6, one_way_rows: tuple[int, ...] = ()) -> RoadNetwork:
    """size x size nodes 100 m apart on the equator; node row * size + column; these rows run east only."""
    row, column = np.divmod(np.arange(size * size), size)
    start, end = [], []
    for node in range(size * size):
        if column[node] + 1 < size:
            start.append(node)
            end.append(node + 1)
            if row[node] not in one_way_rows:
                start.append(node + 1)
                end.append(node)
        if row[node] + 1 < size:
            start += [node, node + size]
            end += [node + size, node]
    road_class = np.where(row[np.array(start)] == row[np.array(end)], 4, 5)
    return RoadNetwork.from_arrays(
        node_lat=row * BLOCK, node_lng=column * BLOCK, link_from=start, link_to=end, road_class=road_class
    )


def trip(points_m, *, every_s: float = 10.0, times_s=None, tid: int = 0) -> Trips:
    """One trip of (east, north) metres from node 0 of the town."""
    points = np.array(points_m, dtype=float)
    seconds = np.arange(len(points)) * every_s if times_s is None else np.array(times_s, dtype=float)
    table = pl.DataFrame(
        {
            "uid": ["a"] * len(points),
            "tid": [tid] * len(points),
            "datetime": pl.Series((seconds * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC")),
            "lat": points[:, 1] / METRES_PER_DEGREE,
            "lng": points[:, 0] / METRES_PER_DEGREE,
        }
    )
    return Trips(table)


def nodes_of(network: RoadNetwork, links) -> list[int]:
    """The nodes a path of links passes."""
    links = np.asarray(links)
    return [] if not len(links) else [int(network.link_from[links[0]]), *network.link_to[links].tolist()]
