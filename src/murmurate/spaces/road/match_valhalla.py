"""Matching by Valhalla, for those who run it in production; its edges are translated to this network's links."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError, MissingPart
from murmurate.spaces.road.matching import Matching
from murmurate.spaces.road.network import RoadNetwork

SNAP_M = 25.0
"""Metres that the middle of Valhalla's edge may lie from the link it is matched to; set by hand."""

UNMATCHED = ("No suitable edges", "Map Match algorithm failed", "No data found", "no path found", "No path could be found")
"""Parts of Valhalla's error messages where there is no road near a trip, or no drive that explains it."""


def match_with_valhalla(  # noqa: PLR0917
    network: RoadNetwork, offsets: Integers, lat: Floats, lng: Floats, time_s: Floats | None, config: str | None
) -> Matching:
    """Match with Valhalla's own map matcher; its tiles should come from the OpenStreetMap file of the network.

    `config` is the path of a Valhalla configuration whose tiles are built. Valhalla gives no posterior: confidence is 1
    where it matched.
    """
    try:
        import valhalla  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise MissingPart("this matcher needs Valhalla: pip install 'murmurate[valhalla]', or use matcher='markov'.") from None
    if config is None:
        raise InputError("matcher='valhalla' needs Options(valhalla_config=...): the path of a configuration with built tiles.")
    try:
        actor = valhalla.Actor(config)
    except (RuntimeError, OSError, ValueError) as error:
        raise InputError(f"{config}: Valhalla cannot use this configuration ({error}).") from None
    n = len(lat)
    link = np.full(n, -1, dtype=np.int64)
    found_lat, found_lng = np.full(n, np.nan), np.full(n, np.nan)
    away = np.full(n, np.nan)
    part = np.full(n, -1, dtype=np.int64)
    path: list[int] = []
    path_part: list[int] = []
    path_point: list[int] = []
    path_offsets = [0]
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        answer = _query(actor, lat[first:last], lng[first:last], None if time_s is None else time_s[first:last])
        if answer is not None:
            links = list(_links(network, answer))
            entered: dict[int, int] = {}
            for k, spot in enumerate(answer["matched_points"]):
                edge = spot.get("edge_index")
                if spot.get("type") == "unmatched" or edge is None or edge >= len(links) or links[edge] < 0:
                    continue
                p = first + k
                link[p], away[p], part[p] = links[edge], spot["distance_from_trace_point"], 0
                found_lat[p], found_lng[p] = spot["lat"], spot["lon"]
                entered.setdefault(edge, p)
            at = first
            for edge, number in enumerate(links):
                at = entered.get(edge, at)
                if number >= 0 and (len(path) == path_offsets[-1] or path[-1] != number):
                    path.append(number)
                    path_part.append(0)
                    path_point.append(at)
        path_offsets.append(len(path))
    return Matching(
        offsets=offsets,
        link=link,
        offset_m=_offsets(network, link, found_lat, found_lng),
        distance_m=away,
        confidence=(link >= 0).astype(np.float64),
        part=part,
        path_offsets=np.array(path_offsets, dtype=np.int64),
        path_link=np.array(path, dtype=np.int64),
        path_part=np.array(path_part, dtype=np.int64),
        path_elapsed_s=np.full(len(path), np.nan) if time_s is None else time_s[np.array(path_point, dtype=np.int64)],
    )


def _query(actor: Any, lat: Floats, lng: Floats, time_s: Floats | None) -> dict[str, Any] | None:
    """Query Valhalla for one trip; None where it finds no match at all."""
    if len(lat) < 2:
        return None
    shape: list[dict[str, Any]] = [{"lat": float(y), "lon": float(x)} for y, x in zip(lat, lng, strict=True)]
    if time_s is not None:
        for point, seconds in zip(shape, time_s.tolist(), strict=True):
            point["time"] = seconds
    request = {
        "shape": shape,
        "costing": "auto",
        "shape_match": "map_snap",
        "use_timestamps": False,
        "filters": {
            "action": "include",
            "attributes": [
                "edge.way_id", "edge.begin_shape_index", "edge.end_shape_index", "shape", "matched.point", "matched.type",
                "matched.edge_index", "matched.distance_from_trace_point",
            ],
        },
    }  # fmt: skip
    try:
        answer = actor.trace_attributes(json.dumps(request))
    except RuntimeError as error:
        if any(word in str(error) for word in UNMATCHED):
            return None  # the trip stays unmatched, as everywhere here
        raise InputError(f"Valhalla refused a trip of {len(lat):,} points: {error}") from None
    found: dict[str, Any] = json.loads(answer) if isinstance(answer, str) else answer
    return found


def _links(network: RoadNetwork, answer: dict[str, Any]) -> Iterator[int]:
    """Find the link of each of Valhalla's edges: same way id where known, same direction, nearest middle."""
    lat, lng = _decoded(answer["shape"])
    for edge in answer["edges"]:
        first, last = edge["begin_shape_index"], edge["end_shape_index"]
        middle = (first + last) // 2
        y = (lat[middle] + lat[min(middle + 1, last)]) / 2
        x = (lng[middle] + lng[min(middle + 1, last)]) / 2
        links, _, _ = network.index.within(y, x, radius_m=SNAP_M, k=12)
        near = links[0][links[0] >= 0]
        east, north = lng[last] - lng[first], lat[last] - lat[first]
        squeeze = np.cos(np.radians(y)) ** 2
        starts, ends = network.link_from[near], network.link_to[near]
        along = (network.node_lng[ends] - network.node_lng[starts]) * east * squeeze
        along += (network.node_lat[ends] - network.node_lat[starts]) * north
        near = near[along > 0]
        if network.way_id is not None and (network.way_id[near] == edge["way_id"]).any():
            near = near[network.way_id[near] == edge["way_id"]]
        yield int(near[0]) if len(near) else -1


def _decoded(text: str) -> tuple[list[float], list[float]]:
    """Decode a polyline of six decimals."""
    values: list[int] = []
    number = shift = 0
    for letter in text:
        bits = ord(letter) - 63
        number |= (bits & 31) << shift
        shift += 5
        if bits < 32:
            values.append(~(number >> 1) if number & 1 else number >> 1)
            number = shift = 0
    steps = np.cumsum(np.array(values).reshape(-1, 2), axis=0) / 1e6
    return steps[:, 0].tolist(), steps[:, 1].tolist()


def _offsets(network: RoadNetwork, link: Integers, lat: Floats, lng: Floats) -> Floats:
    """Return metres along the link at which Valhalla put each point."""
    there = np.flatnonzero(link >= 0)
    offset_m = np.full(len(link), np.nan)
    if len(there):
        links, along, _ = network.index.within(lat[there], lng[there], radius_m=SNAP_M, k=12)
        same = links == link[there][:, None]
        rows = np.flatnonzero(same.any(axis=1))
        offset_m[there[rows]] = along[rows, same[rows].argmax(axis=1)]
    return offset_m
