"""OpenStreetMap files (.osm.pbf, .osm), through osmium."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from murmurate.errors import InputError
from murmurate.spaces.road.build import build
from murmurate.spaces.road.classes import DRIVEN
from murmurate.spaces.road.network import RoadNetwork
from murmurate.spaces.road.ways import Way, cut_at_junctions

CLOSED = frozenset({"no", "private", "agricultural", "forestry", "delivery", "emergency"})
"""Values of OpenStreetMap access tags that close a way to ordinary cars."""


def read_osm(file: Path, *, highways: frozenset[str] | None = None) -> RoadNetwork:
    """Read roads that cars drive on, cut at junctions, with one-ways."""
    counts: Counter[str] = Counter()
    try:
        ways = list(_ways(file, DRIVEN if highways is None else highways, counts))
    except RuntimeError as error:  # osmium's one error for files that end early or are something else
        raise InputError(
            f"{file}: cannot be read as OpenStreetMap data ({error}); it may be cut off or of another format.",
            remedy="fetch the file again and compare its size or checksum with the source.",
        ) from None
    if not ways:
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in counts.items()) or "it holds no highway at all"
        raise InputError(f"{file}: no road for cars was found ({reasons}).")
    network = build(cut_at_junctions(ways), source=str(file))
    return replace(network, dropped={**counts, **network.dropped})


def _ways(file: Path, highways: frozenset[str], counts: Counter[str]) -> Iterator[Way]:
    import osmium

    roads = osmium.FileProcessor(str(file)).with_locations().with_filter(osmium.filter.KeyFilter("highway"))
    for way in roads:
        if not way.is_way():
            continue
        tags = dict(way.tags)
        if tags["highway"] not in highways:
            counts["ways no car uses"] += 1
        elif tags.get("area") == "yes":
            counts["areas"] += 1
        elif _closed(tags):
            counts["ways closed to cars"] += 1
        else:
            yield from _parts(way, tags, counts)


def _closed(tags: dict[str, str]) -> bool:
    """Decide by the most specific access tag whether a way is closed to cars."""
    for key in ("motorcar", "motor_vehicle", "vehicle", "access"):
        if key in tags:
            return tags[key] in CLOSED
    return False


def _parts(way: Any, tags: dict[str, str], counts: Counter[str]) -> Iterator[Way]:
    """Split a way into the runs whose nodes are in the file; extracts cut ways at their border."""
    refs: list[int] = []
    lat: list[float] = []
    lng: list[float] = []
    missing = 0
    for node in [*way.nodes, None]:
        if node is not None and node.location.valid():
            if not refs or refs[-1] != node.ref:
                refs.append(node.ref)
                lat.append(node.location.lat)
                lng.append(node.location.lon)
            continue
        missing += node is not None
        if len(refs) > 1:
            yield Way(refs, np.array(lat), np.array(lng), tags, way.id)
        refs, lat, lng = [], [], []
    if missing:
        counts["way nodes outside the extract"] += missing
