"""A network as tables: one row a link, one row a node; what every exporter writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from murmurate.spaces.road.network import RoadNetwork


def links_table(network: RoadNetwork) -> pl.DataFrame:
    """link, from_node, to_node, length_m, road_class, speed_kmh, lanes, oneway and, where known, name and way_id."""
    columns: dict[str, Any] = {
        "link": np.arange(network.n_links),
        "from_node": network.link_from,
        "to_node": network.link_to,
        "length_m": network.length_m,
        "road_class": network.road_class.astype(np.int64),
        "speed_kmh": network.speed_kmh,
        "lanes": network.lanes.astype(np.int64),
        "oneway": network.twin < 0,
    }
    if network.name is not None:
        columns["name"] = network.name
    if network.way_id is not None:
        columns["way_id"] = network.way_id
    return pl.DataFrame(columns)


def link_lines(network: RoadNetwork) -> Any:
    """The geometry of every link as shapely lines, longitude first."""
    import shapely

    vertex_link = np.repeat(np.arange(network.n_links), np.diff(network.shape_offsets))
    return shapely.linestrings(np.column_stack([network.shape_lng, network.shape_lat]), indices=vertex_link)
