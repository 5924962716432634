"""What all kinds of places share: areas on the sphere, districts of those without a hierarchy, a file of outlines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers, Places
from murmurate.spaces.sphere import EARTH_RADIUS_M

PLACES = "places.geojson"
"""File of outlines in the folder of a release."""


def areas_m2(shapes: NDArray[Any]) -> Floats:
    """Return the area of each polygon on the sphere, by the cylinder that keeps areas (Lambert)."""
    import shapely

    def equal_area(degrees: Floats) -> Floats:
        lng, lat = np.radians(degrees).T
        return np.column_stack([EARTH_RADIUS_M * lng, EARTH_RADIUS_M * np.sin(lat)])

    return np.asarray(shapely.area(shapely.transform(shapes, equal_area)), dtype=np.float64)


def halved(lat: Floats, lng: Floats, n_groups: int) -> Integers:
    """Divide places into about `n_groups` compact groups of as many places each, by halving them along their longer side.

    >>> halved(np.array([0.0, 0.0, 0.0, 0.0]), np.array([3.0, 1.0, 2.0, 0.0]), 2).tolist()
    [0, 1, 0, 1]
    """
    x, y = lng * np.cos(np.radians(lat.mean() if len(lat) else 0.0)), lat
    group = np.zeros(len(lat), dtype=np.int64)
    parts = [np.arange(len(lat))]
    while len(parts) < n_groups:
        parts.sort(key=len)
        part = parts.pop()
        if len(part) < 2:
            parts.append(part)
            break
        along = x if np.ptp(x[part]) >= np.ptp(y[part]) else y
        order = part[np.argsort(along[part], kind="stable")]
        parts += [order[: len(order) // 2], order[len(order) // 2 :]]
    for number, part in enumerate(sorted(parts, key=lambda part: int(part.min()) if len(part) else 0)):
        group[part] = number
    return group


def n_districts(n_cells: int) -> int:
    """Return how many districts a number of places has: about its square root, as many as each of them has places."""
    return max(1, round(n_cells**0.5))


def write_places(places: Places, path: Path) -> None:
    """Write outlines, names and districts of places as GeoJSON."""
    import shapely

    shapes = places.boundary(np.arange(places.n_cells))
    named = zip(shapes, places.names(), places.districts().tolist(), strict=True)
    features = [
        f'{{"type":"Feature","id":{k},"properties":{json.dumps({"place": k, "name": name, "district": district})},'
        f'"geometry":{shapely.to_geojson(shape)}}}'
        for k, (shape, name, district) in enumerate(named)
    ]
    path.write_text('{"type":"FeatureCollection","features":[\n' + ",\n".join(features) + "\n]}\n", encoding="utf-8")
