"""`read_roads`: one function for every road file, by its ending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from murmurate.core.parameters import whole
from murmurate.errors import InputError
from murmurate.spaces.road.components import largest_connected
from murmurate.spaces.road.network import RoadNetwork

ENDINGS = ".osm.pbf, .osm, .osm.gz, .graphml, .graphml.gz, .geojson, .json, .gpkg, .parquet, .shp, .npz"


def read_roads(
    path: str | Path,
    *,
    connected: bool = False,
    default_class: int | None = None,
    highways: frozenset[str] | None = None,
    crs: str | None = None,
) -> RoadNetwork:
    """A road network from OpenStreetMap, GraphML, GeoJSON, GeoPackage, GeoParquet, shapefile or Murmurate's own .npz.

    `connected` keeps the largest part in which every node can be reached from every other; `default_class` is given to
    streets without a class; `highways` says which OpenStreetMap values to read; `crs` names the system of a file that
    does not say it is not in degrees. What was left out or assumed is counted in `.dropped`.
    """
    if default_class is not None:
        whole("default_class", default_class, at_most=5)
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file.", remedy=f"give a road file ending in {ENDINGS}.")
    if file.stat().st_size == 0:
        raise InputError(f"{file}: the file is empty.")
    network = _reader(file)(file, default_class, highways, crs)
    return largest_connected(network) if connected else network


Reader = Callable[[Path, int | None, frozenset[str] | None, str | None], RoadNetwork]


def _reader(file: Path) -> Reader:
    name = file.name.lower()
    if name.endswith((".osm.pbf", ".pbf", ".osm", ".osm.gz", ".osm.bz2")):
        from murmurate.spaces.road.read_osm import read_osm

        return lambda file, default, highways, crs: read_osm(file, highways=highways)
    if name.endswith((".graphml", ".graphml.gz")):
        from murmurate.spaces.road.read_graphml import read_graphml

        return lambda file, default, highways, crs: read_graphml(file, default_class=default, crs=crs)
    if name.endswith((".geojson", ".geojson.gz", ".json", ".gpkg", ".parquet", ".shp", ".shp.zip")):
        from murmurate.spaces.road.read_lines import read_lines

        return lambda file, default, highways, crs: read_lines(file, default_class=default, crs=crs)
    if name.endswith(".npz"):
        from murmurate.spaces.road.storage import load

        return lambda file, default, highways, crs: load(file)
    raise InputError(f"{file}: not a known road file.", remedy=f"use a file ending in {ENDINGS}.")
