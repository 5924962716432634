"""Files of flow maps: flowmap.gl / flowmap.blue tables and kepler.gl maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from murmurate.exports.tables import places_table, safe_csv, trip_layer
from murmurate.releases.folder import Release
from murmurate.spaces.zone_flows import ZoneFlows

KEPLER_TYPES = {pl.Int64: "integer", pl.Float64: "real", pl.String: "string"}
"""kepler.gl's names of column types."""


def write_flowmap(release: Release, out: Path, promise: list[str]) -> None:
    """Write locations.csv, flows.csv (origin, dest, count, low, high) and properties.csv into a folder."""
    flows: ZoneFlows = release.data
    out.mkdir()
    places = places_table(flows).select(pl.col("place").alias("id"), "name", "lat", pl.col("lng").alias("lon"))
    pairs = flows.pairs().select("origin", pl.col("destination").alias("dest"), pl.col("trips").alias("count"), "low", "high")
    about = pl.DataFrame({"property": ["title", "description"], "value": ["Trips between zones", " ".join(promise)]})
    for name, table in (("locations", places), ("flows", pairs), ("properties", about)):
        (out / f"{name}.csv").write_text(safe_csv(table), encoding="utf-8")


def write_kepler(release: Release, out: Path, promise: list[str]) -> None:
    """Write a kepler.gl map: arcs between zones, or trips as lines."""
    data = release.data
    if isinstance(data, ZoneFlows):
        pairs = data.pairs().select("origin", "destination", "trips", "low", "high")
        ends = {}
        for side, name in (("from", "origin"), ("to", "destination")):
            ends[f"{side}_lat"], ends[f"{side}_lng"] = data.places.centre(pairs[name].to_numpy())
        table, layer = pairs.with_columns(**{name: pl.Series(value) for name, value in ends.items()}), _arcs()
        south, west, north, east = data.places.box
    else:
        import shapely

        rows, shapes, _ = trip_layer(data)
        table = rows.with_columns(_geojson=pl.Series(shapely.to_geojson(shapes).tolist()))
        layer = {
            "id": "trips",
            "type": "geojson",
            "config": {"dataId": "release", "label": "trips", "columns": {"geojson": "_geojson"}, "isVisible": True},
        }
        west, south, east, north = (float(value) for value in shapely.total_bounds(shapes))
    fields = [{"name": name, "type": KEPLER_TYPES.get(kind.base_type(), "string")} for name, kind in table.schema.items()]
    dataset = {
        "id": "release",
        "label": "Murmurate release",
        "allData": [list(row) for row in table.iter_rows()],
        "fields": fields,
    }
    zoom = float(np.clip(np.log2(360 / max(east - west, north - south, 1e-6)), 1, 18))
    config = {
        "version": "v1",
        "config": {
            "visState": {"layers": [layer]},
            "mapState": {"latitude": (south + north) / 2, "longitude": (west + east) / 2, "zoom": zoom},
        },
    }
    content = {
        "datasets": [{"version": "v1", "data": dataset}],
        "config": config,
        "info": {"app": "kepler.gl", "source": "murmurate", "title": "Trips", "description": " ".join(promise)},
    }
    out.write_text(json.dumps(content), encoding="utf-8")


def _arcs() -> dict[str, Any]:
    columns = {"lat0": "from_lat", "lng0": "from_lng", "lat1": "to_lat", "lng1": "to_lng"}
    size = {"sizeField": {"name": "trips", "type": "integer"}, "sizeScale": "linear"}
    return {
        "id": "flows",
        "type": "arc",
        "config": {"dataId": "release", "label": "flows", "columns": columns, "isVisible": True},
        "visualChannels": size,
    }
