"""CSV, GeoJSON, GeoPackage and GeoParquet: figures with their intervals, zones as polygons, flows as lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.ingest.export import inert
from murmurate.releases.folder import Release
from murmurate.spaces.road.write_gpkg import write_layers
from murmurate.spaces.zone_flows import ZoneFlows

Layer = tuple[pl.DataFrame, NDArray[Any], str]
"""A table, the shapes of its rows and their type."""


def safe_csv(table: pl.DataFrame) -> str:
    """Return CSV text in which no cell and no name can be read as a formula: such texts begin with an apostrophe."""
    return inert(table).write_csv()


def write_csv(release: Release, out: Path, promise: list[str]) -> None:
    """Write one CSV file (trips, links) or a folder of them (flows)."""
    data = release.data
    if isinstance(data, ZoneFlows):
        out.mkdir()
        tables = {"zones": data.zones, "od": data.od, "classes": data.classes, "places": places_table(data)}
        for name, table in tables.items():
            (out / f"{name}.csv").write_text(safe_csv(table), encoding="utf-8")
    else:
        out.write_text(safe_csv(data.table), encoding="utf-8")


def write_geojson(release: Release, out: Path, promise: list[str]) -> None:
    """Write zones and flows of a release of flows into a folder, or trips as lines into one file."""
    layers = layers_of(release)
    if len(layers) > 1:
        out.mkdir()
    for name, (table, shapes, _) in layers.items():
        path = out / f"{name}.geojson" if len(layers) > 1 else out
        path.write_text(geojson(table, shapes, promise), encoding="utf-8")


def write_gpkg(release: Release, out: Path, promise: list[str]) -> None:
    """Write all layers into one GeoPackage, the promise as a table of its own."""
    write_layers(out, [(name, *layer) for name, layer in layers_of(release).items()], notes=promise)


def write_geoparquet(release: Release, out: Path, promise: list[str]) -> None:
    """Write a GeoParquet 1.1 file for each layer, with the promise in its metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import shapely

    layers = layers_of(release)
    if len(layers) > 1:
        out.mkdir()
    for name, (table, shapes, _) in layers.items():
        box = [float(value) for value in shapely.total_bounds(shapes)]
        about = {"encoding": "WKB", "geometry_types": sorted({str(shape.geom_type) for shape in shapes}), "bbox": box}
        geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about}}
        arrow = table.to_arrow().append_column("geometry", pa.array(shapely.to_wkb(shapes).tolist(), pa.binary()))
        arrow = arrow.replace_schema_metadata({"geo": json.dumps(geo), "murmurate": json.dumps(promise)})
        pq.write_table(arrow, out / f"{name}.parquet" if len(layers) > 1 else out)


def layers_of(release: Release) -> dict[str, Layer]:
    """Return what is drawn of a release: zones and flows, or trips."""
    data = release.data
    if isinstance(data, ZoneFlows):
        return {"zones": zone_layer(data), "flows": flow_layer(data)}
    return {"trips": trip_layer(data)}


def zone_layer(flows: ZoneFlows) -> Layer:
    """Return every zone with its departures and arrivals of a whole day."""
    table = places_table(flows)
    for direction in ("departures", "arrivals"):
        day = flows.zones.filter(direction=direction, area="zone", time="day").sort("place")
        table = table.with_columns(day[name].alias(f"{direction}_{name}") for name in ("trips", "se", "low", "high"))
    return table, flows.places.boundary(np.arange(flows.places.n_cells)), "POLYGON"


def flow_layer(flows: ZoneFlows) -> Layer:
    """Return listed pairs of zones, whole days, as straight lines between centres."""
    import shapely

    pairs = flows.pairs().select("origin", "destination", "trips", "se", "low", "high")
    ends = [flows.places.centre(pairs[name].to_numpy()) for name in ("origin", "destination")]
    xy = np.stack([np.column_stack([lng, lat]) for lat, lng in ends], axis=1).reshape(-1, 2, 2)
    return pairs, np.asarray(shapely.linestrings(xy)), "LINESTRING"


def trip_layer(trips: Trips) -> Layer:
    """Return trips of at least two points as lines."""
    import shapely

    if not trips.has_coordinates:
        raise InputError("these trips have cells or links and no coordinates, so there are no lines to write.")
    many = np.diff(trips.offsets) > 1
    point = np.repeat(many, np.diff(trips.offsets))
    number = np.cumsum(many)[trips.point_trip[point]] - 1
    shapes = shapely.linestrings(np.column_stack([trips.lng[point], trips.lat[point]]), indices=number)
    first, last = trips.offsets[:-1][many], trips.offsets[1:][many] - 1
    table = trips.table[first].select(pl.col("uid", "tid").cast(pl.String))
    if trips.has_time:
        stamps = trips.table["datetime"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        table = table.with_columns(start=stamps.gather(first), end=stamps.gather(last))
    return table, np.asarray(shapes), "LINESTRING"


def geojson(table: pl.DataFrame, shapes: NDArray[Any], promise: list[str]) -> str:
    """Return a FeatureCollection; the promise is a foreign member, as RFC 7946 allows."""
    import shapely

    rows = zip(table.iter_rows(named=True), shapely.to_geojson(shapes), strict=True)
    features = [f'{{"type":"Feature","properties":{json.dumps(row)},"geometry":{shape}}}' for row, shape in rows]
    head = f'{{"type":"FeatureCollection","promise":{json.dumps(promise)},"features":[\n'
    return head + ",\n".join(features) + "\n]}\n"


def places_table(flows: ZoneFlows) -> pl.DataFrame:
    """Return number, name, district and centre of every place."""
    lat, lng = flows.places.centre(np.arange(flows.places.n_cells))
    columns = {"place": np.arange(flows.places.n_cells), "name": flows.places.names(), "district": flows.district}
    return pl.DataFrame({**columns, "lat": lat, "lng": lng})
