"""Cut ways at the places where they meet others, so that links run from junction to junction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from murmurate.core.space import Floats
from murmurate.spaces.road.build import Street

YES = frozenset({"yes", "true", "1", "t", "y"})
"""Values of `oneway` for a street driven in the drawn direction only."""

AGAINST = frozenset({"-1", "reverse"})
"""Values of `oneway` for a street driven against the drawn direction only."""


@dataclass(frozen=True)
class Way:
    """Holds a drawn line whose vertices have names; two ways meet where they share one."""

    refs: Sequence[Hashable]
    lat: Floats
    lng: Floats
    tags: Mapping[str, str]
    way_id: int = -1


def cut_at_junctions(ways: Iterable[Way]) -> Iterator[Street]:
    """Cut ways into streets between junctions: ends of ways, and vertices from which more than two others can be reached."""
    kept = list(ways)
    junctions = _junctions(kept)
    for way in kept:
        forward, backward = directions(way.tags)
        first = 0
        for at in range(1, len(way.refs)):
            if at == len(way.refs) - 1 or way.refs[at] in junctions:
                yield Street(
                    start=way.refs[first],
                    end=way.refs[at],
                    lat=way.lat[first : at + 1],
                    lng=way.lng[first : at + 1],
                    forward=forward,
                    backward=backward,
                    way_id=way.way_id,
                    **street_tags(way.tags),
                )
                first = at


def _junctions(ways: Sequence[Way]) -> set[Hashable]:
    """Find junctions; a vertex passed twice is none yet, since a street may be drawn once for each direction."""
    passes: Counter[Hashable] = Counter()
    for way in ways:
        passes.update(way.refs)
    beside: dict[Hashable, set[Hashable]] = {ref: set() for ref, count in passes.items() if count > 1}
    for way in ways:
        for at, ref in enumerate(way.refs):
            if ref in beside:
                beside[ref].update(way.refs[max(0, at - 1) : at + 2])
    found = {ref for ref, near in beside.items() if len(near) > 3}  # itself and more than two others
    return found | {ref for way in ways for ref in (way.refs[0], way.refs[-1])}


def directions(tags: Mapping[str, str]) -> tuple[bool, bool]:
    """Say whether cars may drive along and against the drawn direction.

    >>> directions({"oneway": "yes"}), directions({"oneway": "-1"}), directions({"junction": "roundabout"}), directions({})
    ((True, False), (False, True), (True, False), (True, True))
    """
    oneway = tags.get("oneway", "").strip().lower()
    if oneway in AGAINST:
        return False, True
    if oneway in YES:
        return True, False
    implied = tags.get("junction") in ("roundabout", "circular") or tags.get("highway") == "motorway"
    return True, not (implied and not oneway)


class Tags(TypedDict):
    """What a street carries besides its line."""

    road_class: str
    max_speed: str
    lanes: str
    name: str


def street_tags(tags: Mapping[str, str]) -> Tags:
    """Return class, speed, lanes and name, under whichever name the source gives them."""
    return {
        "road_class": _first(tags, "road_class", "highway", "functional_class", "fclass", "mtfcc", "class"),
        "max_speed": _first(tags, "speed_kmh", "maxspeed", "max_speed", "speed_limit"),
        "lanes": _first(tags, "lanes"),
        "name": _first(tags, "name", "fullname"),
    }


def _first(tags: Mapping[str, str], *keys: str) -> str:
    for key in keys:
        value = tags.get(key, "").strip()
        if value and value.lower() not in ("none", "nan", "null"):
            return value
    return ""


def coordinate_refs(lat: Floats, lng: Floats) -> list[tuple[int, int]]:
    """Name vertices by their coordinates, to about a centimetre: how ways meet in files without node ids."""
    return list(zip(np.round(lat * 1e7).astype(int).tolist(), np.round(lng * 1e7).astype(int).tolist(), strict=True))
