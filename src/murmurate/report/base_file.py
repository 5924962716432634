"""Read a base map from a public file: roads, water, parks and place names of an OpenStreetMap extract, or any features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from murmurate.core.foreign import FOREIGN, shown
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.releases.folder import Release
from murmurate.report.ground import BaseMap, Place, Ring
from murmurate.spaces.coasts import rings_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.read_osm import refuse_bomb

ENDINGS = ".osm.pbf, .osm, .geojson, .json, .gpkg, .parquet, .shp, .graphml, .npz"
"""Endings of base maps, as messages list them."""
WATER = {"natural": ("water", "bay", "wetland"), "waterway": ("riverbank", "dock"), "landuse": ("reservoir", "basin")}
"""OpenStreetMap tags of areas drawn as water."""
PARK = {
    "leisure": ("park", "garden", "nature_reserve", "golf_course"),
    "landuse": ("forest", "grass", "recreation_ground", "cemetery", "meadow"),
    "natural": ("wood", "scrub", "heath"),
}
"""OpenStreetMap tags of areas drawn as parks."""
RANKS = ("city", "town", "borough", "suburb", "village", "quarter", "hamlet", "neighbourhood")
"""OpenStreetMap values of `place` whose names are shown, the most important first."""
_ODBL = "Map: OpenStreetMap contributors, ODbL."
"""What a page must say that shows OpenStreetMap data."""


def read_base(path: str | Path) -> BaseMap:
    """Read a base map; a file that is none is refused in one message.

    An OpenStreetMap extract gives roads, water, parks, coast lines and place names. GeoJSON, GeoPackage, GeoParquet and
    shapefiles give their lines, areas (water and parks by the tags of OpenStreetMap, others as outlines) and named points.
    Other road files give their roads.
    """
    file = Path(path)
    if not file.is_file():
        raise _no_map(file, "there is no such file")
    name = file.name.lower()
    try:
        if name.endswith((".osm.pbf", ".pbf", ".osm", ".osm.gz", ".osm.bz2")):
            base = _openstreetmap(file)
        elif name.endswith((".geojson", ".geojson.gz", ".json", ".gpkg", ".parquet", ".shp", ".shp.zip")):
            base = _features(file)
        else:
            base = BaseMap(network=_roads(file))
    except InputError as error:
        raise _no_map(file, str(error).splitlines()[0]) from None
    except FOREIGN as error:
        raise _no_map(file, shown(error)) from None
    if base.box is None:
        raise _no_map(file, "it holds no road, area, line or named place")
    return base


def refuse_elsewhere(base: BaseMap, release: Release, file: str | Path) -> None:
    """Refuse a base map that shows another part of the world than a release."""
    data = release.trips if release.kind.identifiers else release.data
    network = data.network if isinstance(data, LinkFlows) else data.space if isinstance(data, Trips) else None
    if isinstance(data, Trips) and data.has_coordinates:
        lat, lng = data.lat, data.lng
    elif isinstance(network, RoadNetwork):
        lat, lng = network.shape_lat, network.shape_lng
    else:
        return
    if len(lat) and not base.covers(lat.min(), lng.min(), lat.max(), lng.max()):
        south, west, north, east = base.box or (np.nan,) * 4
        raise InputError(
            f"{file} shows {south:.2f},{west:.2f} to {north:.2f},{east:.2f}; the release lies elsewhere.",
            "give a base map of the region of the release, or leave out --base.",
        )


def _no_map(file: Path, why: str) -> InputError:
    why = why.removeprefix(f"{file}: ").rstrip(".")
    return InputError(
        f"{file} is not a base map: {why}.",
        f"give an OpenStreetMap extract, GeoJSON or GeoPackage ({ENDINGS}), or leave out --base.",
    )


def _roads(file: Path) -> RoadNetwork:
    from murmurate.spaces.road.read import read_roads

    return read_roads(file)


# -- OpenStreetMap -----------------------------------------------------------------------------------------------------


def _openstreetmap(file: Path) -> BaseMap:
    import osmium

    refuse_bomb(file)
    try:
        network = _roads(file)
    except InputError:  # water and names may be there without roads for cars
        network = None
    pairs = [(key, value) for tags in (WATER, PARK) for key, values in tags.items() for value in values]
    shown = osmium.filter.TagFilter(*pairs)
    areas = osmium.FileProcessor(str(file)).with_areas(shown).with_filter(shown)
    outlines: dict[str, list[Ring]] = {"water": [], "park": []}
    for area in areas:
        if area.is_area():
            kind = area_kind(dict(area.tags))
            rings = [*area.outer_rings(), *(hole for outer in area.outer_rings() for hole in area.inner_rings(outer))]
            outlines[kind or "park"] += [_ring((node.lat, node.lon) for node in ring) for ring in rings if len(ring) > 2]
    coast = osmium.FileProcessor(str(file)).with_locations().with_filter(osmium.filter.TagFilter(("natural", "coastline")))
    lines = [
        _ring((node.location.lat, node.location.lon) for node in way.nodes if node.location.valid())
        for way in coast
        if way.is_way()
    ]
    named = osmium.FileProcessor(str(file), osmium.osm.NODE).with_filter(
        osmium.filter.TagFilter(*(("place", r) for r in RANKS))
    )
    places = [place for node in named if (place := _place(dict(node.tags), node.location.lat, node.location.lon))]
    return BaseMap(network, outlines, [line for line in lines if len(line[0]) > 1], places, credit=_ODBL)


def area_kind(tags: Mapping[str, str]) -> str | None:
    """Return `water` or `park` for an area with these OpenStreetMap tags.

    >>> area_kind({"natural": "water"}), area_kind({"landuse": "grass"}), area_kind({"building": "yes"})
    ('water', 'park', None)
    """
    for kind, known in (("water", WATER), ("park", PARK)):
        if any(tags.get(key) in values for key, values in known.items()):
            return kind
    return None


def _place(tags: Mapping[str, str], lat: float, lng: float) -> Place | None:
    name = tags.get("name", "").strip()
    if not name:
        return None
    rank = RANKS.index(tags["place"]) if tags.get("place") in RANKS else len(RANKS)
    people = "".join(letter for letter in tags.get("population", "") if letter.isdigit())
    return Place(name, lat, lng, rank, int(people or 0))


def _ring(points: Iterable[tuple[float, float]]) -> Ring:
    xy = np.array(list(points), dtype=np.float64).reshape(-1, 2)
    return xy[:, 0], xy[:, 1]


# -- features ----------------------------------------------------------------------------------------------------------


def _features(file: Path) -> BaseMap:
    """Sort features by their geometry: lines, areas, named points."""
    import shapely

    from murmurate.spaces.road.read_lines import read_features

    rows, crs = read_features(file)
    outlines: dict[str, list[Ring]] = {"water": [], "park": [], "area": []}
    lines: list[Ring] = []
    places: list[Place] = []
    for tags, shape in rows:
        for part in [] if shape is None else shapely.get_parts(shape):
            if part.is_empty:
                continue
            if part.geom_type == "Polygon":
                outlines[area_kind(tags) or "area"] += [_degrees(ring, crs, file) for ring in rings_of(part)]
            elif part.geom_type in ("LineString", "LinearRing"):
                lines.append(_degrees(part, crs, file))
            elif part.geom_type == "Point":
                lat, lng = _degrees(part, crs, file)
                place = _place(tags, float(lat[0]), float(lng[0]))
                places += [] if place is None else [place]
    return BaseMap(None, outlines, lines, places)


def _degrees(shape: Any, crs: str | None, file: Path) -> Ring:
    import shapely

    from murmurate.spaces.road.reproject import to_degrees

    xy = shapely.get_coordinates(shape)
    lat, lng = to_degrees(xy[:, 1], xy[:, 0], crs)
    if not (np.abs(lat) <= 90).all() or not (np.abs(lng) <= 180).all():
        raise InputError(f"{file}: coordinates are not degrees, and the file does not name their system.")
    return lat, lng
