"""Read places from geometries: well-known binary, well-known text, any reference system."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from murmurate.ingest.faults import Faults, Place

Degrees = tuple[NDArray[np.float64], NDArray[np.float64]]

_POINT_BYTES = 21
"""Bytes of a point in well-known binary: byte order, type, x, y."""
_POINT_HEADER = np.array([1, 1, 0, 0, 0], np.uint8)
"""First bytes of a little-endian point."""


def coordinates(geometries: pl.Series, crs: object, faults: Faults, place: Place) -> Degrees | None:
    """Return latitude and longitude of a column of points; None where something is wrong."""
    column = geometries.name
    if geometries.dtype not in (pl.Binary, pl.String):
        reason = f"wrong type: expected points as well-known binary or text, not {geometries.dtype}"
        faults.add(reason, file=place.file, column=column)
        return None
    empty = geometries.is_null()
    if empty.any():
        faults.add_rows("empty", empty, place, column=column)
        return None
    points = _plain_points(geometries) if geometries.dtype == pl.Binary else None
    if points is None:
        points = _any_points(geometries, faults, place)
    if points is None:
        return None
    x, y = points
    return (y, x) if crs is None else to_degrees(x, y, crs, faults, place)


def is_degrees(crs: object) -> bool:
    """Return whether a reference system is WGS84 longitude and latitude."""
    import pyproj

    system = pyproj.CRS.from_user_input(crs)
    return bool(system.equals(pyproj.CRS("OGC:CRS84"), ignore_axis_order=True))


def to_degrees(x: NDArray[np.float64], y: NDArray[np.float64], crs: object, faults: Faults, place: Place) -> Degrees | None:
    """Convert coordinates of any reference system to latitude and longitude."""
    import pyproj

    try:
        lng, lat = pyproj.Transformer.from_crs(pyproj.CRS.from_user_input(crs), "OGC:CRS84", always_xy=True).transform(x, y)
    except pyproj.exceptions.ProjError as error:
        faults.add(f"its reference system is not known: {str(error).splitlines()[0][:120]}", file=place.file)
        return None
    return np.asarray(lat, np.float64), np.asarray(lng, np.float64)


def _plain_points(geometries: pl.Series) -> Degrees | None:
    """Read two-dimensional little-endian points straight from the bytes; None where some are anything else."""
    array = geometries.to_arrow().cast(pa.large_binary())
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    if len(array) == 0 or data is None or (np.diff(starts) != _POINT_BYTES).any():
        return None
    raw = np.frombuffer(data, np.uint8)[starts[0] : starts[-1]].reshape(-1, _POINT_BYTES)
    if (raw[:, :5] != _POINT_HEADER).any():
        return None
    xy = np.ascontiguousarray(raw[:, 5:]).view("<f8")
    return xy[:, 0].copy(), xy[:, 1].copy()


def _any_points(geometries: pl.Series, faults: Faults, place: Place) -> Degrees | None:
    import shapely

    reader: Any = shapely.from_wkb if geometries.dtype == pl.Binary else shapely.from_wkt
    shapes = reader(geometries.to_numpy(), on_invalid="ignore")
    broken = shapely.is_missing(shapes)
    faults.add_rows("not a geometry", broken, place, column=geometries.name)
    other = ~broken & ((shapely.get_type_id(shapes) != 0) | shapely.is_empty(shapes))
    faults.add_rows("a geometry that is not a point", other, place, column=geometries.name)
    if broken.any() or other.any():
        return None
    return shapely.get_x(shapes), shapely.get_y(shapes)
