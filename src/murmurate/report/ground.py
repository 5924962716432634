"""Draw what lies under every map: water and parks, the roads by class, or the edges of the cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.report.view import View, lines
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork

MAX_VERTICES = 60_000
"""Most vertices of a base map; minor roads beyond are left off, as a grey blur and most of the page's weight. Set by hand."""

MAX_CELL_LINES = 80
"""Most cells across for which edges of cells are drawn; closer lines would hide the map. Set by hand."""

Ring = tuple[Floats, Floats]
"""Latitudes and longitudes of a closed outline."""


@dataclass(frozen=True)
class BaseMap:
    """Hold public ground to draw on: a road network, and named outlines (`water`, `park`) as rings of (lat, lng)."""

    network: RoadNetwork | None = None
    outlines: Mapping[str, Sequence[Ring]] = field(default_factory=dict)


@dataclass(frozen=True)
class Layer:
    """Hold one path of the ground and what it is."""

    kind: str
    d: str

    @property
    def above(self) -> bool:
        """Roads and edges are drawn again over coloured cells, so that people see where they are."""
        return self.kind.startswith(("road", "edge"))


def ground(view: View, base: BaseMap | RoadNetwork | None, grid: Grid | None) -> list[Layer]:
    """Return the layers of the base map, lowest first; without roads, the edges of the cells."""
    base = BaseMap(network=base) if isinstance(base, RoadNetwork) else base or BaseMap()
    layers = [Layer(kind, _rings(view, base.outlines.get(kind, ()))) for kind in ("water", "park")]
    if base.network is not None:
        layers += _roads(view, base.network)
    elif grid is not None:
        layers.append(Layer("edge", _edges(view, grid)))
    return [layer for layer in layers if layer.d]


def _rings(view: View, rings: Sequence[Ring]) -> str:
    return "".join(
        lines(*view.project(np.asarray(lat), np.asarray(lng)), np.array([0, len(lat)]), closed=True) for lat, lng in rings
    )


def _roads(view: View, network: RoadNetwork) -> list[Layer]:
    """Return one path a class, the smallest roads first; of a two-way street one direction is enough."""
    vertices = np.diff(network.shape_offsets)
    inside = _touches(view, network)
    once = inside & ((network.twin < 0) | (np.arange(network.n_links) < network.twin))
    layers: list[Layer] = []
    remaining = MAX_VERTICES
    for road_class in sorted(set(network.road_class[once].tolist())):
        links = np.flatnonzero(once & (network.road_class == road_class))
        remaining -= int(vertices[links].sum())
        if remaining < 0 and layers:
            break
        layers.append(Layer(f"road road{min(max(road_class, 1), 5)}", lines(*link_shapes(view, network, links))))
    return layers[::-1]


def _touches(view: View, network: RoadNetwork) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    lat, lng = network.shape_lat, network.shape_lng
    there = (lat >= view.south) & (lat <= view.north) & (lng >= view.west) & (lng <= view.east)
    before = np.concatenate([[0], np.cumsum(there)])[network.shape_offsets]
    return np.asarray(np.diff(before) > 0)


def link_shapes(view: View, network: RoadNetwork, links: Integers) -> tuple[Integers, Integers, Integers]:
    """Return where the vertices of links lie in a window, and where each link begins among them."""
    count = np.diff(network.shape_offsets)[links]
    offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    at = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count) + np.repeat(network.shape_offsets[links], count)
    return *view.project(network.shape_lat[at], network.shape_lng[at]), offsets


def _edges(view: View, grid: Grid) -> str:
    if max(grid.rows, grid.columns) > MAX_CELL_LINES:
        return ""
    lat, lng = grid.edges()
    across = view.project(np.full(len(lng), grid.south), lng)[0].tolist()
    down = view.project(lat, np.full(len(lat), grid.west))[1].tolist()
    return "".join(f"M{x} 0V{view.height}" for x in across) + "".join(f"M0 {y}H{view.width}" for y in down)
