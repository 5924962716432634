"""GraphML, plain or gzipped: OSMnx's own, this product's, and any with x, y and a class."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import numpy as np

from murmurate.core.expansion import open_text
from murmurate.core.space import Floats
from murmurate.errors import InputError
from murmurate.spaces.road.build import Street, build
from murmurate.spaces.road.network import RoadNetwork
from murmurate.spaces.road.reproject import to_degrees
from murmurate.spaces.road.ways import street_tags

NODE_COLUMNS = (("x", "y"), ("lng", "lat"), ("lon", "lat"), ("longitude", "latitude"))
"""Names of x and y of a node, tried in this order."""


@dataclass
class _File:
    """Holds what was read so far: coordinates by node, edges, and attributes of the graph."""

    node_at: dict[str, tuple[float, float]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    directed: bool = True
    crs: str | None = None


def read_graphml(file: Path, *, default_class: int | None = None, crs: str | None = None) -> RoadNetwork:
    """Read a graph; every edge of a directed graph is one link, of an undirected one two."""
    try:
        with open_text(file) as stream:
            content = _parse(stream, file)
    except (ElementTree.ParseError, EOFError, zlib.error, OSError, ValueError) as error:
        raise InputError(
            f"{file}: is not whole GraphML ({error}); it may be cut off or of another format.",
            remedy="fetch or write the file again.",
        ) from None
    if not content.edges:
        raise InputError(f"{file}: the graph has {len(content.node_at):,} nodes and no edges.")
    return build(_streets(content, file, crs or content.crs), source=str(file), default_class=default_class)


def _parse(stream: IO[bytes], file: Path) -> _File:
    content = _File()
    names: dict[str, str] = {}
    graph: Any = None
    for event, element in ElementTree.iterparse(stream, events=("start", "end")):  # noqa: S314 - expat expands no outside entity
        tag = element.tag.rpartition("}")[2]
        if event == "start":
            if tag == "graph":
                graph = element
                content.directed = element.get("edgedefault", "directed") != "undirected"
            continue
        if tag == "key":
            names[element.get("id", "")] = element.get("attr.name", "").strip().lower()
        elif tag == "node":
            content.node_at[element.get("id", "")] = _node(_values(element, names), element.get("id", ""), file)
            _forget(element, graph)
        elif tag == "edge":
            content.edges.append((element.get("source", ""), element.get("target", ""), _values(element, names)))
            _forget(element, graph)
        elif tag == "data" and names.get(element.get("key", "")) == "crs":
            content.crs = (element.text or "").strip() or None
    return content


def _forget(element: Any, graph: Any) -> None:
    """Drop a parsed element, and its place in the graph, so that memory does not grow with the file."""
    element.clear()
    if graph is not None:
        graph.clear()


def _values(element: Any, names: dict[str, str]) -> dict[str, str]:
    return {names.get(data.get("key", ""), ""): (data.text or "").strip() for data in element if data.tag.endswith("data")}


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
