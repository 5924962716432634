"""OpenStreetMap files (.osm.pbf, .osm), through osmium."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from murmurate.core.expansion import MAX_EXPANSION, TEXT_FLOOR_BYTES, counted, refuse_long
from murmurate.core.foreign import damaged
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
    refuse_bomb(file)
    with damaged(file, "OpenStreetMap data", "fetch the file again and compare its size or checksum with the source."):
        ways = list(counted(_ways(file, DRIVEN if highways is None else highways, counts), file))
    if not ways:
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in counts.items()) or "it holds no highway at all"
        raise InputError(f"{file}: no road for cars was found ({reasons}).")
    network = build(cut_at_junctions(ways), source=str(file))
    return replace(network, dropped={**counts, **network.dropped})


def refuse_bomb(file: Path) -> None:
    """Refuse a file that expands too far: osmium has no limit of its own."""
    if not file.name.lower().endswith(".pbf"):
        return refuse_long(file)
    allowed = max(TEXT_FLOOR_BYTES, MAX_EXPANSION * file.stat().st_size)
    with damaged(file, "OpenStreetMap data"), file.open("rb") as stream:
        while (length := stream.read(4)) and allowed >= 0:
            header = stream.read(min(int.from_bytes(length, "big"), _MAX_HEADER_BYTES))
            start = stream.tell()
            allowed -= _number_of(stream.read(_BLOB_BEGIN_BYTES), 2)
            stream.seek(start + _number_of(header, 3))
    if allowed < 0:
        raise InputError(
            f"{file}: expands to more than {MAX_EXPANSION} times its size: refused as a decompression bomb.",
            "decompress it yourself if it is right (osmium cat -o FILE.osm).",
        )
    return None


_MAX_HEADER_BYTES = 64 * 2**10
"""Most bytes of the header of a block of OpenStreetMap's binary format, by its definition."""
_BLOB_BEGIN_BYTES = 16
"""Bytes at the beginning of a block in which its expanded size is looked for."""


def _number_of(message: bytes, wanted: int) -> int:
    """Return the number in this field of a protocol buffer message; 0 where there is none before other content."""
    at = 0
    while at < len(message):
        field, kind = message[at] >> 3, message[at] & 7
        value, shift, at = 0, 0, at + 1
        while at < len(message) and shift < 64:
            value |= (message[at] & 127) << shift
            at, shift, more = at + 1, shift + 7, message[at] & 128
            if not more:
                break
        if field == wanted and kind == 0:
            return value
        if kind not in (0, 2):
            return 0
        at += value if kind == 2 else 0
    return 0


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
