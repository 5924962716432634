"""Draw what lies under every map: water and parks, the roads by class, names, or the edges of the cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from murmurate.core.space import Floats, Integers, Places
from murmurate.report.density import outlines
from murmurate.report.view import View, lines
from murmurate.spaces.coasts import sea_rings
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork

MAX_VERTICES = 60_000
"""Most vertices of a base map; minor roads beyond are left off, as a grey blur and most of the page's weight. Set by hand."""

MAX_CELL_LINES = 80
"""Most cells across for which edges of cells are drawn; closer lines would hide the map. Set by hand."""

MAX_LABELS = 14
"""Names of places on a map. Set by hand: more would cover it."""

LETTER, LINE = 15, 34
"""Width of a letter and height of a line of a name, in units of the drawing (the style sheet's letters are 28 units)."""

CREDIT = "Coast lines: Natural Earth, 1:10 million; good to about a kilometre."
"""What a page says that shows the outlines shipped with the package."""

Ring = tuple[Floats, Floats]
"""Latitudes and longitudes of an outline or a line."""


@dataclass(frozen=True)
class Place:
    """Hold a named place; a smaller rank is more important."""

    name: str
    lat: float
    lng: float
    rank: int = 0
    people: int = 0


@dataclass(frozen=True)
class BaseMap:
    """Hold public ground to draw on: roads, named outlines (`water`, `park`, `area`), other lines, and names of places."""

    network: RoadNetwork | None = None
    outlines: Mapping[str, Sequence[Ring]] = field(default_factory=dict)
    lines: Sequence[Ring] = ()
    places: Sequence[Place] = ()
    credit: str = ""
    """What a page that shows it must say."""

    @property
    def box(self) -> tuple[float, float, float, float] | None:
        """South, west, north and east of everything in it; None where it is empty."""
        lat = [ring[0] for rings in (*self.outlines.values(), self.lines) for ring in rings]
        lng = [ring[1] for rings in (*self.outlines.values(), self.lines) for ring in rings]
        lat.append(np.array([place.lat for place in self.places]))
        lng.append(np.array([place.lng for place in self.places]))
        if self.network is not None:
            lat.append(self.network.shape_lat)
            lng.append(self.network.shape_lng)
        lats, lngs = np.concatenate(lat), np.concatenate(lng)
        return (float(lats.min()), float(lngs.min()), float(lats.max()), float(lngs.max())) if len(lats) else None

    def covers(self, south: float, west: float, north: float, east: float) -> bool:
        """Whether anything of it may lie in this box."""
        mine = self.box
        return mine is not None and mine[0] <= north and mine[2] >= south and mine[1] <= east and mine[3] >= west


@dataclass(frozen=True)
class Layer:
    """Hold one path of the ground and what it is."""

    kind: str
    d: str

    @property
    def above(self) -> bool:
        """Roads and edges are drawn again over coloured cells, so that people see where they are."""
        return self.kind.startswith(("road", "edge", "coast"))


@dataclass(frozen=True)
class Label:
    """Hold the name of a place and where it stands."""

    x: int
    y: int
    text: str


@dataclass(frozen=True)
class Ground:
    """Hold what lies under every map of a page: layers, lowest first, names, and whom the page must credit."""

    layers: tuple[Layer, ...]
    labels: tuple[Label, ...] = ()
    credit: str = ""


def ground(view: View, base: BaseMap | RoadNetwork | None, places: Places | None) -> Ground:
    """Draw the base map of a window; without one, coast lines of the world and the edges of the cells."""
    if isinstance(base, RoadNetwork):
        base = BaseMap(network=base)
    if base is None:
        sea = sea_rings(view.south, view.west, view.north, view.east)
        base = BaseMap(outlines={"water": sea}, credit=CREDIT) if sea else BaseMap()
    layers = [Layer(kind, _rings(view, base.outlines.get(kind, ()))) for kind in ("water", "park", "area")]
    layers.append(Layer("coast", _rings(view, base.lines, closed=False)))
    if base.network is not None:
        layers += _roads(view, base.network)
    elif places is not None and not base.lines:
        layers.append(Layer("edge", _edges(view, places)))
    return Ground(tuple(layer for layer in layers if layer.d), tuple(_labels(view, base.places)), base.credit)


def _rings(view: View, rings: Sequence[Ring], *, closed: bool = True) -> str:
    """Draw rings or lines as one path; what is smaller than a pixel is left out, and so is all beyond the most vertices."""
    parts = []
    remaining = MAX_VERTICES
    for lat, lng in rings:
        x, y = view.project(np.asarray(lat), np.asarray(lng))
        outside = x.max() < 0 or x.min() > view.width or y.max() < 0 or y.min() > view.height
        if outside or np.ptp(x) + np.ptp(y) < 2 or remaining < len(x):
            continue
        remaining -= len(x)
        parts.append(lines(x, y, np.array([0, len(x)]), closed=closed))
    return "".join(parts)


def _labels(view: View, places: Sequence[Place]) -> list[Label]:
    """Choose names that do not cover each other, the most important first."""
    found: list[Label] = []
    order = sorted(places, key=lambda place: (place.rank, -place.people, place.name))
    for place in order:
        x, y = (int(value) for value in view.project(np.array(place.lat), np.array(place.lng)))
        half = LETTER * len(place.name) / 2
        inside = half <= x <= view.width - half and 2 * LINE <= y <= view.height - 2 * LINE
        clear = all(abs(y - other.y) > LINE or abs(x - other.x) > half + LETTER * len(other.text) / 2 for other in found)
        if inside and clear:
            found.append(Label(x, y, place.name))
        if len(found) == MAX_LABELS:
            break
    return found


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


def _edges(view: View, places: Places) -> str:
    if not isinstance(places, Grid):
        return outlines(view, places, np.arange(places.n_cells)) if places.n_cells <= MAX_CELL_LINES**2 else ""
    grid = places
    if max(grid.rows, grid.columns) > MAX_CELL_LINES:
        return ""
    lat, lng = grid.edges()
    across = view.project(np.full(len(lng), grid.south), lng)[0].tolist()
    down = view.project(lat, np.full(len(lat), grid.west))[1].tolist()
    return "".join(f"M{x} 0V{view.height}" for x in across) + "".join(f"M0 {y}H{view.width}" for y in down)
