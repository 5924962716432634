"""Lines with attributes: GeoJSON, GeoPackage and GeoParquet natively, shapefiles where pyogrio is installed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from murmurate.core.expansion import (
    MAX_EXPANSION,
    TEXT_FLOOR_BYTES,
    counted,
    most_items,
    open_text,
    parse_json,
    refuse_many,
)
from murmurate.core.foreign import damaged
from murmurate.core.parquet import check_parquet
from murmurate.errors import InputError, MissingPart
from murmurate.spaces.road.build import Street, build
from murmurate.spaces.road.network import RoadNetwork
from murmurate.spaces.road.reproject import to_degrees
from murmurate.spaces.road.ways import Way, coordinate_refs, cut_at_junctions, street_tags
from murmurate.spaces.road.write_gpkg import open_geopackage

Rows = list[tuple[dict[str, str], Any]]
"""Attributes and geometry of each feature."""


def read_lines(file: Path, *, default_class: int | None = None, crs: str | None = None) -> RoadNetwork:
    """Read lines: those that name their nodes (`from_node`, `to_node`) are links, others are cut where they share a vertex."""
    rows, found_crs = read_features(file)
    linked = all("from_node" in tags and "to_node" in tags for tags, _ in rows)
    lines = _lines(rows, crs or found_crs, file)
    streets = _links(lines) if linked else cut_at_junctions(lines)
    return build(streets, source=str(file), default_class=default_class)


def read_features(file: Path) -> tuple[Rows, str | None]:
    """Read attributes and geometry of every feature of a file, and the name of its coordinate system where it says so."""
    name = file.name.lower()
    with damaged(file, "lines", "write the file again, as lines with a class column (highway, road_class or MTFCC)."):
        if name.endswith((".geojson", ".geojson.gz", ".json")):
            rows, found_crs = _geojson(file)
        elif name.endswith(".gpkg"):
            rows, found_crs = _geopackage(file)
        elif name.endswith(".parquet"):
            rows, found_crs = _geoparquet(file)
        else:
            rows, found_crs = _shapefile(file)
    if not rows:
        raise InputError(f"{file}: holds no features.")
    return rows, found_crs


def _lines(rows: Rows, crs: str | None, file: Path) -> Iterator[Way]:
    other = 0
    for number, (tags, shape) in enumerate(rows):
        if shape is None or shapely.get_type_id(shape) not in (1, 5):
            other += 1
            continue
        for line in shapely.get_parts(shape):
            xy = shapely.get_coordinates(line)
            if len(xy) < 2:
                continue
            lat, lng = to_degrees(xy[:, 1], xy[:, 0], crs)
            far = (np.abs(lat) > 90).any() or (np.abs(lng) > 180).any()
            refs: list[Any] = list(range(len(lat))) if far or not np.isfinite(lat + lng).all() else coordinate_refs(lat, lng)
            way = tags.get("way_id", "")
            yield Way(refs, lat, lng, tags, int(way) if way.lstrip("-").isdigit() else number)
    if other == len(rows):
        raise InputError(f"{file}: none of its {other:,} features is a line.")


def _links(lines: Iterator[Way]) -> Iterator[Street]:
    for line in lines:
        length = line.tags.get("length_m", "")
        yield Street(
            start=line.tags["from_node"],
            end=line.tags["to_node"],
            lat=line.lat,
            lng=line.lng,
            forward=True,
            backward=False,
            way_id=line.way_id,
            length_m=float(length) if length else None,
            **street_tags(line.tags),
        )


def _geojson(file: Path) -> tuple[Rows, str | None]:
    import shapely.geometry

    with open_text(file) as stream:
        content = parse_json(stream.read(), file)
    if not isinstance(content, dict) or not isinstance(content.get("features"), list):
        raise ValueError("expected a FeatureCollection with a list of features")
    crs = content.get("crs") or {}
    name = crs.get("properties", {}).get("name") if isinstance(crs, dict) else None
    rows: Rows = []
    with np.errstate(invalid="ignore"):  # NaN coordinates are counted later, with the street they belong to
        for feature in counted(content["features"], file):
            shape = feature.get("geometry")
            rows.append((_tags(feature.get("properties") or {}), None if shape is None else shapely.geometry.shape(shape)))
    return rows, name


def _geopackage(file: Path) -> tuple[Rows, str | None]:
    """Read the first table of features; GeoPackage is SQLite with a header before each well-known binary."""
    with open_geopackage(file, "gpkg_geometry_columns") as database:
        tables = database.execute("SELECT table_name, column_name, srs_id FROM gpkg_geometry_columns").fetchall()
        if not tables:
            raise ValueError("no table of features")
        # Of several tables, links come first: this product writes links and nodes.
        table, column, srs = min(tables, key=lambda row: (row[0] != "links", row[0]))
        found = database.execute(
            "SELECT organization, organization_coordsys_id FROM gpkg_spatial_ref_sys WHERE srs_id = ?", (srs,)
        ).fetchone()
        kind = database.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if kind is None or kind[0] != "table":
            raise ValueError(f"{table!r:.60} is not a table")
        cursor = database.execute('SELECT * FROM "{}"'.format(table.replace('"', '""')))  # noqa: S608 - quoted; the name is the file's own
        names = [entry[0] for entry in cursor.description]
        rows: Rows = []
        for values in counted(cursor, file):
            row = dict(zip(names, values, strict=True))
            blob = row.pop(column)
            rows.append((_tags(row), None if blob is None else shapely.from_wkb(_without_header(blob))))
    return rows, f"{found[0]}:{found[1]}" if found and found[1] and found[1] > 0 else None


def _without_header(blob: bytes) -> bytes:
    if blob[:2] != b"GP":
        raise ValueError("a geometry is not GeoPackage binary")
    envelope = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}[(blob[3] >> 1) & 7]
    return blob[8 + envelope :]


def _geoparquet(file: Path) -> tuple[Rows, str | None]:
    checked = check_parquet(file)
    checked.refuse_expansion()
    refuse_many(checked.n_rows, most_items(file), file)
    with checked.open() as parquet:
        table = parquet.read(use_threads=False)
    about = json.loads((table.schema.metadata or {}).get(b"geo", b"{}"))
    column = about.get("primary_column", "geometry")
    crs = about.get("columns", {}).get(column, {}).get("crs")
    code = (crs or {}).get("id", {})
    shapes = shapely.from_wkb(table.column(column).to_pylist())
    rows = [(_tags(row), shape) for row, shape in zip(table.drop_columns([column]).to_pylist(), shapes, strict=True)]
    return rows, f"{code['authority']}:{code['code']}" if code else None


def _shapefile(file: Path) -> tuple[Rows, str | None]:
    try:
        from pyogrio import raw  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise MissingPart("shapefiles need pyogrio: pip install 'murmurate[geo]', or convert the file to GeoPackage.") from None
    meta, _, shapes, columns = raw.read(_checked_shapefile(file))
    lines = shapely.from_wkb(shapes)
    names = [str(name) for name in meta["fields"]]
    return [(_tags(dict(zip(names, values, strict=True))), line) for line, *values in zip(lines, *columns, strict=True)], meta[
        "crs"
    ]


def _checked_shapefile(file: Path) -> str:
    """Return how GDAL opens a shapefile; what is none, or expands far, is refused.

    GDAL recognises a file by its first bytes: another one under this name could have it open other files and addresses.
    """
    if file.suffix.lower() != ".zip":
        beside = file.with_suffix(".shx")
        index = beside.read_bytes() if beside.is_file() else b""
        with file.open("rb") as stream:
            begins = stream.read(4)
        size, opened = file.stat().st_size, str(file)
    else:
        with zipfile.ZipFile(file) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
            if sum(sizes.values()) > max(TEXT_FLOOR_BYTES, MAX_EXPANSION * file.stat().st_size):
                raise ValueError(f"it expands to more than {MAX_EXPANSION} times its size: refused as a decompression bomb")
            names = [name for name in sizes if name.lower().endswith(".shp")]
            if len(names) != 1 or ".." in names[0] or names[0].startswith("/"):
                raise ValueError(f"expected one shapefile in it, found {len(names)}")
            with archive.open(names[0]) as stream:
                begins = stream.read(4)
            indices = [name for name in sizes if name.lower() == f"{names[0][:-4]}.shx".lower()]
            index = archive.read(indices[0]) if indices else b""
        size, opened = sizes[names[0]], f"/vsizip/{{{file.absolute()}}}/{names[0]}"
    if begins != SHAPEFILE:
        raise ValueError("it does not begin as a shapefile does")
    words = np.frombuffer(index[100 : 100 + (len(index) - 100) // 8 * 8], dtype=">i4") if len(index) > 108 else np.zeros(0)
    if int(np.maximum(words[1::2], 0).astype(np.int64).sum()) * 2 > size:
        raise ValueError("its index names more bytes than it has")
    return opened


SHAPEFILE = (9994).to_bytes(4, "big")
"""First bytes of every shapefile."""


def _tags(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(key).lower(): "" if value is None else str(value) for key, value in values.items()}
