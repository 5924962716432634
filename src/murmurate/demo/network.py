"""Build the road network of Sturnia: functional classes, one-way streets, bridges, and links as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.demo.draws import NETWORK, uniforms
from murmurate.demo.plan import CITY_NAME, Plan, draw_plan, to_degrees
from murmurate.demo.streets import INNER_SHARE, Drawing, draw_streets
from murmurate.demo.traffic import towards, tree_towards
from murmurate.spaces.road import RoadNetwork

SPEED_KMH = np.array([0, 80, 50, 50, 40, 30], dtype=np.float64)
"""Speed by functional class 1 (motorway) to 5 (local), in km/h. Set by hand."""
LANES = np.array([0, 3, 2, 2, 1, 1], dtype=np.int8)
"""Lanes per direction by functional class. Set by hand."""
COLLECTOR_SHARE, CONNECTOR_SHARE = 0.13, 0.30
"""Shares of the local streets' length, busiest first, that become class 3, and class 3 or 4. Set by hand."""

_BIRDS = (
    "Lapwing", "Curlew", "Avocet", "Plover", "Sandpiper", "Dunlin", "Godwit", "Heron", "Bittern", "Osprey", "Kestrel",
    "Merlin", "Harrier", "Swallow", "Martin", "Swift", "Wagtail", "Pipit", "Dipper", "Wren", "Dunnock", "Redstart",
    "Stonechat", "Wheatear", "Thrush", "Fieldfare", "Warbler", "Goldcrest", "Nuthatch", "Treecreeper", "Jackdaw",
    "Rook", "Raven", "Siskin", "Linnet", "Crossbill", "Bunting", "Yellowhammer", "Kingfisher", "Nightjar", "Hoopoe",
    "Oriole", "Waxwing", "Shrike",
)  # fmt: skip
"""First words of street names."""
_STREETS = ("Street", "Lane", "Way", "Row", "Avenue", "Hill", "Quay", "Court")
"""Second words of names of local streets."""


@dataclass(frozen=True, eq=False)
class StreetMap:
    """The network with coordinates in metres, the ground, and bridges."""

    plan: Plan
    network: RoadNetwork
    node_x: Floats
    node_y: Floats
    shape_x: Floats
    """Three vertices a link: from, middle, to."""
    shape_y: Floats
    bridge: NDArray[np.bool_]
    out_offsets: Integers
    """Links are sorted by the node they leave: node n's are out_offsets[n]:out_offsets[n + 1]."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """(south, west, north, east) in degrees: the square of the city's public width, with 300 m to spare."""
        reach = self.plan.half_m + 300.0
        (south, north), (west, east) = to_degrees([-reach, reach], [-reach, reach])
        return float(south), float(west), float(north), float(east)


@lru_cache(maxsize=4)
def street_map(*, across_km: float = 8.0, seed: int = 1) -> StreetMap:
    """Build the city's streets; the same for the same width and seed."""
    plan = draw_plan(half_m=across_km * 500.0, seed=seed)
    drawing = draw_streets(plan, seed=seed)
    road_class = _classes(drawing, seed)
    forward_only, backward_only = _one_ways(plan, drawing, road_class, seed)
    return _directed(plan, drawing, road_class=road_class, forward_only=forward_only, backward_only=backward_only, seed=seed)


def _classes(drawing: Drawing, seed: int) -> NDArray[np.int8]:
    """Assign functional classes: rings and arterials keep theirs, and streets on most shortest routes become 3 and 4."""
    x, y, one, other = drawing.x, drawing.y, drawing.one, drawing.other
    length = np.hypot(x[one] - x[other], y[one] - y[other])
    road_class = np.where(drawing.road_class == 0, 5, drawing.road_class).astype(np.int8)
    use = np.zeros(len(one))
    start, end = np.r_[one, other], np.r_[other, one]
    time_ms = np.rint(np.tile(length * 3600 / SPEED_KMH[road_class], 2)).astype(np.int64)
    streets = towards(start, end, len(x), time_ms)
    for target in (uniforms(seed, NETWORK, 40, 160) * len(x)).astype(np.int64):
        via, remaining_ms = tree_towards(streets, int(target))
        passed = _passing(via, end, np.argsort(-remaining_ms, kind="stable"))
        use += passed[: len(one)] + passed[len(one) :]
    local = np.flatnonzero(drawing.road_class == 0)
    busiest = local[np.argsort(-use[local], kind="stable")]
    share = np.cumsum(length[busiest]) / length[busiest].sum()
    road_class[busiest[share < CONNECTOR_SHARE]] = 4
    road_class[busiest[share < COLLECTOR_SHARE]] = 3
    return road_class


@njit(cache=True)
def _passing(via: Integers, link_to: Integers, farthest_first: Integers) -> Floats:
    """Count the nodes whose route towards one target passes each link."""
    passed, flow = np.zeros(len(link_to)), np.ones(len(via))
    for node in farthest_first:
        if via[node] >= 0:
            passed[via[node]] += flow[node]
            flow[link_to[via[node]]] += flow[node]
    return passed


def _one_ways(
    plan: Plan, drawing: Drawing, road_class: NDArray[np.int8], seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Choose streets open in one direction only, many in the old town, such that every crossing stays reachable both ways."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, other, n = drawing.one, drawing.other, len(drawing.x)
    chance = uniforms(seed, NETWORK, 50, 2 * len(one))
    from_centre = np.hypot(drawing.x[one], drawing.y[one]) / plan.half_m
    share = np.where(from_centre < 1.15 * INNER_SHARE, 0.5, np.where(from_centre < 0.5, 0.16, 0.05))
    single = (chance[: len(one)] < share) & (road_class >= 4)
    forward = chance[len(one) :] < 0.5
    while True:
        open_there, open_back = ~single | forward, ~single | ~forward
        rows, columns = np.r_[one[open_there], other[open_back]], np.r_[other[open_there], one[open_back]]
        part = connected_components(coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)), connection="strong")[1]
        apart = single & (part[one] != part[other])
        if not apart.any():
            return single & forward, single & ~forward
        single &= ~apart


def _directed(
    plan: Plan,
    drawing: Drawing,
    *,
    road_class: NDArray[np.int8],
    forward_only: NDArray[np.bool_],
    backward_only: NDArray[np.bool_],
    seed: int,
) -> StreetMap:
    x, y = drawing.x, drawing.y
    one, other = drawing.one, drawing.other
    # A gentle bend for local streets: the middle vertex lies a little off the straight line.
    bend = (uniforms(seed, NETWORK, 60, len(one)) - 0.5) * np.where(road_class >= 3, 0.12, 0.0)
    middle_x = np.round((x[one] + x[other]) / 2 - bend * (y[other] - y[one]), 1)
    middle_y = np.round((y[one] + y[other]) / 2 + bend * (x[other] - x[one]), 1)
    there, back = np.flatnonzero(~backward_only), np.flatnonzero(~forward_only)
    street = np.r_[there, back]
    link_from, link_to = np.r_[one[there], other[back]], np.r_[other[there], one[back]]
    order = np.lexsort((link_to, link_from))
    street, link_from, link_to = street[order], link_from[order], link_to[order]
    shape_x = np.column_stack([x[link_from], middle_x[street], x[link_to]]).ravel()
    shape_y = np.column_stack([y[link_from], middle_y[street], y[link_to]]).ravel()
    bridge = plan.east_bank(x[link_from], y[link_from]) != plan.east_bank(x[link_to], y[link_to])
    node_lat, node_lng = to_degrees(x, y)
    shape_lat, shape_lng = to_degrees(shape_x, shape_y)
    klass = road_class[street]
    network = RoadNetwork.from_arrays(
        node_lat=node_lat,
        node_lng=node_lng,
        link_from=link_from,
        link_to=link_to,
        road_class=klass,
        speed_kmh=SPEED_KMH[klass],
        lanes=LANES[klass],
        shape_offsets=np.arange(0, len(shape_x) + 1, 3),
        shape_lat=shape_lat,
        shape_lng=shape_lng,
        name=_names(street, klass, bridge),
        source="",
    )
    offsets = np.r_[0, np.cumsum(np.bincount(link_from, minlength=len(x)))].astype(np.int64)
    return StreetMap(plan, network, x, y, shape_x, shape_y, bridge, offsets)


def _names(street: Integers, klass: NDArray[np.int8], bridge: NDArray[np.bool_]) -> pl.Series:
    """Name the links after birds."""
    names = []
    for number, road_class, over_water in zip(street.tolist(), klass.tolist(), bridge.tolist(), strict=True):
        bird = _BIRDS[(number * 7) % len(_BIRDS)]
        if over_water:
            names.append(f"{bird} Bridge")
        elif road_class == 1:
            names.append(f"{CITY_NAME} Ring")
        else:
            names.append(f"{bird} {'Road' if road_class <= 3 else _STREETS[number % len(_STREETS)]}")
    return pl.Series("name", names)
