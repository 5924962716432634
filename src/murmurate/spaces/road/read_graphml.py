"""GraphML, plain or gzipped: OSMnx's own, this product's, and any with x, y and a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import numpy as np

from murmurate.core.expansion import most_items, open_text, refuse_many
from murmurate.core.foreign import damaged
from murmurate.core.space import Floats
from murmurate.errors import InputError
from murmurate.spaces.road.build import Street, build
from murmurate.spaces.road.network import RoadNetwork
from murmurate.spaces.road.reproject import to_degrees
from murmurate.spaces.road.ways import street_tags

NODE_COLUMNS = (("x", "y"), ("lng", "lat"), ("lon", "lat"), ("longitude", "latitude"))
"""Names of x and y of a node, tried in this order."""


PARTS = 20
"""Elements for each node or edge of a file that holds as many of these as its size allows; OSMnx writes about twelve."""


@dataclass
class _File:
    """Holds what was read so far: coordinates by node, edges, and attributes of the graph."""

    node_at: dict[str, tuple[float, float]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    directed: bool = True
    crs: str | None = None


def read_graphml(file: Path, *, default_class: int | None = None, crs: str | None = None) -> RoadNetwork:
    """Read a graph; every edge of a directed graph is one link, of an undirected one two."""
    with damaged(file, "GraphML", "fetch or write the file again."), open_text(file) as stream:
        content = _parse(stream, file)
    if not content.edges:
        raise InputError(f"{file}: the graph has {len(content.node_at):,} nodes and no edges.")
    return build(_streets(content, file, crs or content.crs), source=str(file), default_class=default_class)


def _parse(stream: IO[bytes], file: Path) -> _File:
    content = _File()
    names: dict[str, str] = {}
    values: dict[str, str] = {}
    inside: list[Any] = []
    most, elements = most_items(file), 0
    for event, element in ElementTree.iterparse(stream, events=("start", "end")):  # noqa: S314 - expat expands no outside entity
        tag = element.tag.rpartition("}")[2]
        if event == "start":
            inside.append(element)
            if tag == "graph":
                content.directed = element.get("edgedefault", "directed") != "undirected"
            elif tag in ("node", "edge"):
                values = {}
            continue
        if tag == "key":
            names[element.get("id", "")] = element.get("attr.name", "").strip().lower()
        elif tag == "data":
            values[names.get(element.get("key", ""), "")] = (element.text or "").strip()
            if names.get(element.get("key", "")) == "crs":
                content.crs = (element.text or "").strip() or None
        elif tag == "node":
            content.node_at[element.get("id", "")] = _node(values, element.get("id", ""), file)
        elif tag == "edge":
            content.edges.append((element.get("source", ""), element.get("target", ""), values))
        elements += 1
        refuse_many(max(len(names) + len(content.node_at) + len(content.edges), elements // PARTS), most, file)
        inside.pop()
        if inside:
            inside[-1].remove(element)  # so that memory does not grow with the file
    return content


def _node(values: dict[str, str], node: str, file: Path) -> tuple[float, float]:
    for x, y in NODE_COLUMNS:
        if x in values and y in values:
            try:
                return float(values[y]), float(values[x])
            except ValueError:
                raise InputError(
                    f"{file}: node {node} stands at x={values[x]!r}, y={values[y]!r}, which are no numbers."
                ) from None
    raise InputError(f"{file}: node {node} has no x (longitude) and y (latitude); found {', '.join(values) or 'nothing'}.")


def _streets(content: _File, file: Path, crs: str | None) -> Iterator[Street]:
    for number, (start, end, tags) in enumerate(content.edges):
        try:
            ends = content.node_at[start], content.node_at[end]
        except KeyError as missing:
            raise InputError(f"{file}: edge {number} ends at node {missing}, which the file does not hold.") from None
        lat, lng = _shape(tags, *ends, file, number)
        lat, lng = to_degrees(lat, lng, crs)
        length = tags.get("length_m") or tags.get("length") or ""
        way = tags.get("way_id") or tags.get("osmid") or ""
        yield Street(
            start=start,
            end=end,
            lat=lat,
            lng=lng,
            forward=True,
            backward=not content.directed,
            way_id=int(way) if way.lstrip("-").isdigit() else -1,
            length_m=_number(length),
            **street_tags(tags),
        )


def _shape(
    tags: dict[str, str], start: tuple[float, float], end: tuple[float, float], file: Path, number: int
) -> tuple[Floats, Floats]:
    """Return vertices from `via` ("lng,lat lng,lat" without ends), from WKT in `geometry`, or the straight line."""
    via, wkt = tags.get("via", ""), tags.get("geometry", "")
    try:
        if via:
            middle = [[float(part) for part in pair.split(",")] for pair in via.split()]
            points = [(start[1], start[0]), *((x, y) for x, y in middle), (end[1], end[0])]
        elif wkt:
            inside = wkt[wkt.index("(") + 1 : wkt.rindex(")")]
            points = [(float(x), float(y)) for x, y, *_ in (pair.split() for pair in inside.split(","))]
        else:
            points = [(start[1], start[0]), (end[1], end[0])]
    except ValueError:
        raise InputError(f"{file}: the geometry of edge {number} cannot be read: {(via or wkt)[:60]!r}.") from None
    array = np.array(points, dtype=np.float64)
    return array[:, 1], array[:, 0]


def _number(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
