"""Build a RoadNetwork from streets as files hold them (polylines with tags); what is dropped is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.spaces.road.checks import PROJECTED
from murmurate.spaces.road.classes import class_and_speed, lane_count, speed_kmh
from murmurate.spaces.road.network import SHORTEST_M, RoadNetwork

MAX_SPEED_LIMIT_KMH = 200.0
"""Largest speed limit that is taken; a higher one is an error of the map. Set by hand."""


@dataclass(frozen=True)
class Street:
    """Holds one line between two nodes, as a file has it."""

    start: Hashable
    end: Hashable
    lat: Floats
    lng: Floats
    forward: bool
    backward: bool
    road_class: str
    max_speed: str = ""
    lanes: str = ""
    name: str = ""
    way_id: int = -1
    length_m: float | None = None


def build(streets: Iterable[Street], *, source: str, default_class: int | None = None) -> RoadNetwork:
    """Build the network of these streets; drops and assumptions are counted in `dropped`."""
    counts: Counter[str] = Counter()
    nodes: dict[Hashable, int] = {}
    node_at: list[tuple[float, float]] = []
    rows: list[tuple[int, int, int, float, int, str, int, float]] = []
    shapes: list[tuple[Floats, Floats]] = []
    with_class = seen = 0
    for street in streets:
        seen += 1
        if not (np.isfinite(street.lat).all() and np.isfinite(street.lng).all()):
            counts["streets with NaN coordinates"] += 1
            continue
        if (np.abs(street.lat) > 90).any() or (np.abs(street.lng) > 180).any():
            at = f"{street.lng[0]:g}, {street.lat[0]:g}"
            raise InputError(
                f"{source}: a street lies at {at}, outside longitude -180 to 180 and latitude -90 to 90; {PROJECTED}."
            )
        found = _class_of(street, default_class, counts)
        with_class += bool(street.road_class.strip())
        if found is None:
            continue
        given = street.length_m
        for start, end, lat, lng, share in _without_loops(street, counts):
            ends = []
            for key, spot in ((start, (lat[0], lng[0])), (end, (lat[-1], lng[-1]))):
                if key not in nodes:
                    nodes[key] = len(node_at)
                    node_at.append((float(spot[0]), float(spot[1])))
                ends.append(nodes[key])
            length_m = -1.0 if given is None else given * share
            tags = (found[0], found[1], lane_count(street.lanes), street.name, street.way_id, length_m)
            if street.forward:
                rows.append((ends[0], ends[1], *tags))
                shapes.append((lat, lng))
            if street.backward:
                rows.append((ends[1], ends[0], *tags))
                shapes.append((lat[::-1], lng[::-1]))
    if not rows:
        raise _nothing_left(source, seen, counts, no_class=not with_class and default_class is None)
    columns = list(zip(*rows, strict=True))
    network = RoadNetwork.from_arrays(
        node_lat=[spot[0] for spot in node_at],
        node_lng=[spot[1] for spot in node_at],
        link_from=columns[0],
        link_to=columns[1],
        road_class=columns[2],
        speed_kmh=columns[3],
        lanes=columns[4],
        shape_offsets=np.concatenate(([0], np.cumsum([len(lat) for lat, _ in shapes]))),
        shape_lat=np.concatenate([lat for lat, _ in shapes]),
        shape_lng=np.concatenate([lng for _, lng in shapes]),
        name=columns[5] if any(columns[5]) else None,
        way_id=columns[6] if any(k >= 0 for k in columns[6]) else None,
    )
    return _with_lengths(network, np.array(columns[7], dtype=np.float64), source, counts)


def _class_of(street: Street, default_class: int | None, counts: Counter[str]) -> tuple[int, float] | None:
    """Return class and speed: the stated limit where it is plausible, else the usual speed of the class."""
    word = street.road_class.strip()
    found = class_and_speed(word) if word else None
    if found is None and word:
        counts[f"streets of a class no car uses ({word[:40]})"] += 1
        return None
    if found is None:
        if default_class is None:
            counts["streets without a class"] += 1
            return None
        counts[f"streets without a class, taken as class {default_class}"] += 1
        found = class_and_speed(str(default_class)) or (5, 30.0)
    limit = speed_kmh(street.max_speed)
    if limit is not None and limit > MAX_SPEED_LIMIT_KMH:
        counts["speed limits above 200 km/h, ignored"] += 1
        limit = None
    return found if limit is None else (found[0], limit)


def _without_loops(street: Street, counts: Counter[str]) -> list[tuple[Hashable, Hashable, Floats, Floats, float]]:
    """Return pieces (start, end, lat, lng, share of length): a ring is cut in two, a line without extent is dropped."""
    lat, lng = street.lat, street.lng
    if len(lat) < 2 or (np.ptp(lat) == 0 and np.ptp(lng) == 0):
        counts["streets without length"] += 1
        return []
    if street.start != street.end:
        return [(street.start, street.end, lat, lng, 1.0)]
    steps = np.hypot(np.diff(lat), np.diff(lng) * np.cos(np.radians(lat[0])))
    along = np.cumsum(steps)
    cut = int(np.clip(np.searchsorted(along, along[-1] / 2) + 1, 1, len(lat) - 2)) if len(lat) > 2 else 0
    if cut == 0 or along[cut - 1] in (0.0, along[-1]):
        counts["self-loops"] += 1
        return []
    counts["rings cut in two"] += 1
    share = float(along[cut - 1] / along[-1])
    middle = ("ring", street.start, street.way_id, float(lat[cut]), float(lng[cut]))
    return [
        (street.start, middle, lat[: cut + 1], lng[: cut + 1], share),
        (middle, street.end, lat[cut:], lng[cut:], 1.0 - share),
    ]


def _nothing_left(source: str, seen: int, counts: Counter[str], *, no_class: bool) -> InputError:
    if seen and no_class and counts["streets without a class"]:
        return InputError(
            f"{source}: none of its {seen:,} streets has a road class; expected a column or tag named highway, road_class, "
            "functional_class, fclass or MTFCC.",
            remedy="add the column, or read with default_class=5 to take every street as local.",
        )
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)
    return InputError(f"{source}: no road is left of {seen:,} streets{' (' + reasons + ')' if reasons else ''}.")


def _with_lengths(network: RoadNetwork, given: Floats, source: str, counts: Counter[str]) -> RoadNetwork:
    """Use stated lengths where they are plausible (0.8 to 3 times the drawn line), else the drawn ones."""
    drawn = network.length_m
    stated = given >= 0
    plausible = stated & (given >= 0.8 * drawn) & (given <= 3.0 * drawn + 1.0) & (given > 0)
    wrong = int((stated & ~plausible).sum())
    if wrong:
        counts["stated lengths far from the drawn ones, replaced"] = wrong
    length_m = np.where(plausible, given, drawn)
    length_m = np.maximum(length_m, SHORTEST_M)
    length_m.flags.writeable = False
    unique = _first_of_each(network)
    counts["links listed twice (one street under two names)"] = network.n_links - len(unique)
    counts = Counter({reason: count for reason, count in counts.items() if count})
    network = replace(network, length_m=length_m, source=source, dropped=dict(counts))
    return network if len(unique) == network.n_links else network.take_links(unique)


def _first_of_each(network: RoadNetwork) -> Integers:
    """Return, of links between the same nodes along the same line, the one of the highest class."""
    count = np.diff(network.shape_offsets)
    middle = network.shape_offsets[:-1] + count // 2
    table = pl.DataFrame(
        {
            "from": network.link_from,
            "to": network.link_to,
            "vertices": count,
            "lat": network.shape_lat[middle],
            "lng": network.shape_lng[middle],
            "class": network.road_class,
        }
    ).with_row_index("link")
    best = table.sort("class", "link").unique(["from", "to", "vertices", "lat", "lng"], keep="first", maintain_order=True)
    return best["link"].sort().to_numpy().astype(np.int64)
