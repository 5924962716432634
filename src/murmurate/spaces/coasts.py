"""Read the coast lines of the world that ship with the package (Natural Earth, public domain; `scripts/land-outlines`)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Floats
from murmurate.spaces.sphere import METRES_PER_DEGREE

FILE = Path(__file__).parent / "data" / "land.npz"
"""Rings of land: first vertex, moves between vertices, size, whether it is a hole."""
STEPS_PER_DEG = 1000
"""Stored steps of a degree."""
MIN_ACROSS_M = 15_000
"""Windows smaller than this get no coast line: it is drawn for 1:10 million and would be wrong by a visible part of the map."""


def sea_rings(south: float, west: float, north: float, east: float) -> list[tuple[Floats, Floats]]:
    """Return outlines (latitudes, longitudes) of the sea in a box; none where the box is all land, all sea, or too small."""
    import shapely

    if (north - south) * METRES_PER_DEGREE < MIN_ACROSS_M:
        return []
    window = shapely.box(west, south, east, north)
    boxes, polygons = _land()
    there = (boxes[:, 0] <= east) & (boxes[:, 2] >= west) & (boxes[:, 1] <= north) & (boxes[:, 3] >= south)
    land = [shapely.clip_by_rect(polygon, west, south, east, north) for polygon in shapely.make_valid(polygons[there])]
    sea = window.difference(shapely.union_all([part for part in land if not part.is_empty]))
    if sea.is_empty or sea.equals(window):
        return []
    rings = [
        shapely.get_coordinates(ring)
        for part in shapely.get_parts(sea)
        if part.geom_type == "Polygon"
        for ring in rings_of(part)
    ]
    return [(xy[:, 1], xy[:, 0]) for xy in rings]


def rings_of(polygon: Any) -> list[Any]:
    """Return the outer ring of a polygon and its holes, which run the other way, so that a filled path leaves them blank."""
    from shapely.geometry.polygon import orient

    turned = orient(polygon)
    return [turned.exterior, *turned.interiors]


@lru_cache(maxsize=1)
def _land() -> tuple[Floats, Any]:
    """Return the boxes (west, south, east, north) and polygons of all land.

    Rounding lets a few rings touch themselves. Whoever cuts them makes them valid first, which takes long for all; distances
    do not need it.
    """
    import shapely

    with np.load(FILE) as stored:
        first, moves, size, hole = stored["first"], stored["moves"].T, stored["size"], stored["hole"]
    ends = np.cumsum(size - 1)
    rings = [
        np.vstack([start, start + np.cumsum(moves[end - n + 1 : end], axis=0, dtype=np.int64)]) / STEPS_PER_DEG
        for start, n, end in zip(first, size, ends, strict=True)
    ]
    polygons: list[tuple[Floats, list[Floats]]] = []
    for ring, is_hole in zip(rings, hole, strict=True):
        if is_hole:
            polygons[-1][1].append(ring)
        else:
            polygons.append((ring, []))
    shapes = np.array([shapely.Polygon(outer, inner) for outer, inner in polygons])
    return shapely.bounds(shapes), shapes


def on_land(lat: Floats, lng: Floats, *, within_deg: float = 0.0) -> NDArray[np.bool_]:
    """Return which places lie on land or within so many degrees of it, as roughly as coasts are drawn.

    >>> on_land(np.array([60.2, 30.0]), np.array([24.9, -40.0])).tolist()
    [True, False]
    """
    import shapely

    boxes, polygons = _land()
    there, points = np.zeros(len(lat), dtype=bool), shapely.points(lng, lat)
    west, south, east, north = (*(low - within_deg for low in (lng.min(), lat.min())), lng.max(), lat.max())
    near = (
        (boxes[:, 0] <= east + within_deg)
        & (boxes[:, 2] >= west)
        & (boxes[:, 1] <= north + within_deg)
        & (boxes[:, 3] >= south)
    )
    for polygon in polygons[near]:
        shapely.prepare(polygon)
        there |= shapely.dwithin(polygon, points, within_deg)
    return there
