"""Transform coordinates of a named system to degrees."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from murmurate.core.space import Floats
from murmurate.errors import InputError

DEGREES = frozenset({"", "epsg:4326", "ogc:crs84", "urn:ogc:def:crs:ogc:1.3:crs84", "urn:ogc:def:crs:epsg::4326", "epsg:4269"})
"""Names of systems that need no transformation; NAD83 (4269) differs by less than two metres."""


def to_degrees(lat: Floats, lng: Floats, crs: str | None) -> tuple[Floats, Floats]:
    """Transform y and x of a system to WGS84 latitude and longitude."""
    if crs is None or crs.strip().lower() in DEGREES:
        return lat, lng
    x, y = _transformer(crs).transform(lng, lat)
    return np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)


@lru_cache(maxsize=8)
def _transformer(crs: str) -> Any:
    from pyproj import Transformer
    from pyproj.exceptions import CRSError

    try:
        return Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    except CRSError:
        raise InputError(f"the coordinate system {crs[:80]!r} is not known.", remedy="name it as EPSG:number.") from None
