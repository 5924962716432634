"""Stops: public points such as the stops of a GTFS feed or docking stations; a place is what lies nearest to a stop."""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from murmurate.core.expansion import MAX_EXPANSION, TEXT_FLOOR_BYTES, counted
from murmurate.core.foreign import damaged
from murmurate.core.space import Floats, Integers
from murmurate.errors import Fault, InputError
from murmurate.spaces.sphere import METRES_PER_DEGREE
from murmurate.spaces.zones import SHOWN_FAULTS, Zones, districts_of, features_of, in_degrees, labels_of

REACH_M = 500.0
"""Metres beyond which a point belongs to no stop; a walk to public transport is rarely longer."""

LAT = ("stop_lat", "lat", "latitude", "y")
"""Names of the column of latitudes, in the order in which they are tried."""

LNG = ("stop_lon", "lng", "lon", "longitude", "x")
"""Names of the column of longitudes."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Stops(Zones):
    """Holds points; a place is everything within 500 m that is nearer to its stop than to any other (Voronoi)."""

    kind: ClassVar[str] = "stops"
    lat: Floats
    lng: Floats

    @classmethod
    def read(cls, file: str | Path) -> Self:
        """Read stops of a GTFS feed (zip or stops.txt), any CSV with coordinates, or points of a geographic file."""
        path = Path(file)
        with damaged(path, "stops", "give a GTFS feed, its stops.txt, a CSV with lat and lng, or points of a geographic file."):
            return cls._read(path)

    @classmethod
    def _read(cls, path: Path) -> Self:
        table = path.suffix.lower() in (".txt", ".csv", ".zip") and not path.name.lower().endswith(".shp.zip")
        tags, lat, lng = _rows(path) if table else _points(path)
        if not len(lat):
            raise InputError(f"{path}: holds no stops.")
        _, first = np.unique(np.column_stack([lat, lng]), axis=0, return_index=True)  # platforms at one point are one place
        first.sort()
        tags, lat, lng = [tags[k] for k in first.tolist()], lat[first], lng[first]
        return cls(
            shapes=_voronoi(lat, lng),
            labels=labels_of(tags),
            district=districts_of(tags, lat, lng),
            source=path.name,
            lat=lat,
            lng=lng,
        )

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Return the nearest stop of each point; -1 beyond 500 m (or for what is not a number)."""
        lat, lng = np.broadcast_arrays(np.asarray(lat, dtype=np.float64), np.asarray(lng, dtype=np.float64))
        out = np.full(lat.shape, -1, dtype=np.int64)
        known = np.isfinite(lat + lng)
        far, at = self._near.query(_metres(lat[known], lng[known], self.lat), distance_upper_bound=REACH_M)
        out[known] = np.where(np.isfinite(far), at, -1)
        return out

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Return latitude and longitude of each stop."""
        return self.lat[np.asarray(place)], self.lng[np.asarray(place)]

    @cached_property
    def _near(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(_metres(self.lat, self.lng, self.lat))


def _metres(lat: Floats, lng: Floats, around: Floats) -> Floats:
    """Return x and y in metres at the mean latitude of the stops."""
    east = METRES_PER_DEGREE * np.cos(np.radians(around.mean()))
    return np.column_stack([lng * east, lat * METRES_PER_DEGREE])


def _voronoi(lat: Floats, lng: Floats) -> Any:
    """Return what is nearest to each stop, as polygons in degrees, cut at the reach of a stop."""
    import shapely

    here = _metres(lat, lng, lat)
    circles = shapely.buffer(shapely.points(here), REACH_M, quad_segs=8)
    cells = circles
    if len(lat) > 1:
        whole = shapely.multipoints(shapely.points(here))
        around = shapely.box(*(here.min(axis=0) - 2 * REACH_M), *(here.max(axis=0) + 2 * REACH_M))
        parts = shapely.get_parts(shapely.voronoi_polygons(whole, extend_to=around))
        at, of = shapely.STRtree(parts).query(shapely.points(here), predicate="intersects")
        own = np.zeros(len(lat), dtype=np.int64)
        own[at] = of
        cells = shapely.intersection(circles, parts[own])
    east = METRES_PER_DEGREE * np.cos(np.radians(lat.mean()))
    return shapely.transform(cells, lambda xy: xy / np.array([east, METRES_PER_DEGREE]))


def _rows(path: Path) -> tuple[list[dict[str, str]], Floats, Floats]:
    """Read stops of a table; all stops without usable coordinates are refused together."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    reader = csv.DictReader(io.StringIO(_text(path)))
    n_columns = len(reader.fieldnames or ())
    if n_columns > MAX_COLUMNS:
        raise InputError(f"{path}: it names {n_columns:,} columns; at most {MAX_COLUMNS:,} are read.")
    rows = [{str(key).strip().lower(): value or "" for key, value in row.items()} for row in counted(reader, path)]
    columns = rows[0] if rows else {}
    names = next((name for name in LAT if name in columns), None), next((name for name in LNG if name in columns), None)
    if None in names:
        raise InputError(
            f"{path}: stops need columns stop_lat and stop_lon (or lat and lng); found {', '.join(columns) or 'none'}."
        )
    degrees = np.array([[_number(row[str(name)]) for name in names] for row in rows], dtype=np.float64)
    bad = ~(np.abs(degrees) <= (90, 180)).all(axis=1)
    # entrances and platforms without a place of their own are allowed in GTFS; they are no stops
    nameless = np.array([row.get("location_type", "") in ("3", "4") for row in rows])
    wrong = np.flatnonzero(bad & ~nameless)
    if len(wrong):
        listed = ", ".join(str(row + 1) for row in wrong[:SHOWN_FAULTS].tolist())
        fault = Fault(f"{len(wrong):,} stops without coordinates in degrees: rows {listed}", file=str(path))
        raise InputError([fault], "give every stop its latitude and longitude, or leave it out.")
    chosen = np.flatnonzero(~bad & ~nameless)
    return [rows[k] for k in chosen.tolist()], degrees[chosen, 0], degrees[chosen, 1]


def _text(path: Path) -> str:
    most = max(TEXT_FLOOR_BYTES, MAX_EXPANSION * path.stat().st_size)
    if path.suffix.lower() != ".zip":
        return path.read_text(encoding="utf-8-sig")
    with zipfile.ZipFile(path) as feed:
        if "stops.txt" not in feed.namelist():
            raise InputError(f"{path}: is no GTFS feed with a stops.txt.")
        info = feed.getinfo("stops.txt")
        if info.file_size > most:
            raise InputError(
                f"{path}: stops.txt expands to {info.file_size:,} bytes, over {MAX_EXPANSION} times the feed: refused as a "
                "decompression bomb.",
                "unpack stops.txt yourself if it is right.",
            )
        return feed.read(info).decode("utf-8-sig")


MAX_COLUMNS = 1_000
"""Most columns of a table of stops. Set by hand: GTFS has fifteen."""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _points(path: Path) -> tuple[list[dict[str, str]], Floats, Floats]:
    import shapely

    rows, crs = features_of(path, "stops as points")
    shapes = np.array([shape for _, shape in rows], dtype=object)
    if (shapely.get_type_id(shapes) != 0).any():
        raise InputError(f"{path}: stops are points; {int((shapely.get_type_id(shapes) != 0).sum()):,} features are none.")
    shapes = in_degrees(shapes, crs, path)
    return [tags for tags, _ in rows], np.asarray(shapely.get_y(shapes)), np.asarray(shapely.get_x(shapes))
