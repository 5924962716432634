"""`read_roads`: one function for every road file, by its ending."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from murmurate.core.foreign import damaged
from murmurate.core.parameters import whole
from murmurate.errors import InputError
from murmurate.spaces.road.network import RoadNetwork

ENDINGS = ".osm.pbf, .osm, .osm.gz, .graphml, .graphml.gz, .geojson, .json, .gpkg, .parquet, .shp, .npz"
"""Endings of road files, as error messages list them."""


def read_roads(
    path: str | Path,
    *,
    connected: bool = False,
    default_class: int | None = None,
    highways: frozenset[str] | None = None,
    crs: str | None = None,
) -> RoadNetwork:
    """Read a road network from OpenStreetMap, GraphML, GeoJSON, GeoPackage, GeoParquet, shapefile or Murmurate's own .npz.

    The ending of `path` says which. `connected` keeps the largest part in which every node can be reached from every other;
    `default_class` is given to streets without a class; `highways` says which OpenStreetMap values to read; `crs` names the
    system of a file that is not in degrees and does not say so. What was dropped or assumed is counted in `.dropped`.
    """
    if default_class is not None:
        whole("default_class", default_class, at_most=5)
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file.", remedy=f"give a road file ending in {ENDINGS}.")
    if file.stat().st_size == 0:
        raise InputError(f"{file}: the file is empty.")
    with damaged(file, "a road network", f"give a whole file ending in {ENDINGS}."):
        network = _read(file, default_class, highways, crs)
    return largest_connected(network) if connected else network


def _read(file: Path, default_class: int | None, highways: frozenset[str] | None, crs: str | None) -> RoadNetwork:
    """Read a file with the reader of its ending; readers are imported when needed."""
    name = file.name.lower()
    if name.endswith((".osm.pbf", ".pbf", ".osm", ".osm.gz", ".osm.bz2")):
        from murmurate.spaces.road.read_osm import read_osm

        return read_osm(file, highways=highways)
    if name.endswith((".graphml", ".graphml.gz")):
        from murmurate.spaces.road.read_graphml import read_graphml

        return read_graphml(file, default_class=default_class, crs=crs)
    if name.endswith((".geojson", ".geojson.gz", ".json", ".gpkg", ".parquet", ".shp", ".shp.zip")):
        from murmurate.spaces.road.read_lines import read_lines

        return read_lines(file, default_class=default_class, crs=crs)
    if name.endswith(".npz"):
        from murmurate.spaces.road.storage import load

        return load(file)
    raise InputError(f"{file}: not a known road file.", remedy=f"use a file ending in {ENDINGS}.")


def largest_connected(network: RoadNetwork) -> RoadNetwork:
    """Return the largest strongly connected part of `network`, by links; what falls away is counted in `dropped`."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = network.link_from, network.link_to
    matrix = coo_array((np.ones(network.n_links, dtype=np.int8), ends), shape=(network.n_nodes, network.n_nodes))
    _, part = connected_components(matrix.tocsr(), directed=True, connection="strong")
    inside = part[network.link_from] == part[network.link_to]
    if not inside.any():
        raise InputError("no two nodes of this network can be reached from each other; every street is a one-way to nowhere.")
    largest = int(np.bincount(part[network.link_from[inside]]).argmax())
    keep = inside & (part[network.link_from] == largest)
    counts = {
        "links outside the largest connected part": int((~keep).sum()),
        "nodes outside the largest connected part": int((part != largest).sum()),
    }
    return network.take_links(keep, dropped={reason: count for reason, count in counts.items() if count})
