"""GeoPackage through SQLite alone: a `links` table of lines and a `nodes` table of points."""

from __future__ import annotations

import errno
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from murmurate.spaces.road.write import link_lines, links_table

if TYPE_CHECKING:
    from murmurate.spaces.road.network import RoadNetwork

HEADER = b"GP" + struct.pack("<BBi", 0, 1, 4326)
"""Bytes before each geometry (GeoPackage 1.3): magic, version 0, little-endian without envelope, EPSG:4326."""

WGS84 = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],'
    'UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]'
)
"""Well-known text of EPSG:4326, as GeoPackage asks for."""

TABLES = """
PRAGMA application_id = 1196444487;
PRAGMA user_version = 10300;
CREATE TABLE gpkg_spatial_ref_sys (
  srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (
  table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE, description TEXT DEFAULT '',
  last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER);
CREATE TABLE gpkg_geometry_columns (
  table_name TEXT NOT NULL PRIMARY KEY, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL,
  srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL);
"""
"""Statements that make the tables GeoPackage 1.3 requires."""


def write_geopackage(network: RoadNetwork, file: Path, *, columns: pl.DataFrame | None = None) -> None:
    """Write both tables; an older file of the same name is replaced. It holds no time of writing."""
    import shapely

    nodes = pl.DataFrame({"node": np.arange(network.n_nodes)})
    points = shapely.points(network.node_lng, network.node_lat)
    links = ("links", links_table(network, columns), link_lines(network), "LINESTRING")
    write_layers(file, [links, ("nodes", nodes, points, "POINT")])


def write_layers(file: Path, layers: Sequence[tuple[str, pl.DataFrame, Any, str]], *, notes: Sequence[str] = ()) -> None:
    """Write tables of features (name, attributes, shapes, type) in degrees, and notes as a table of texts."""
    part = file.with_name(file.name + ".part")
    part.unlink(missing_ok=True)
    database = sqlite3.connect(part)
    try:
        with database:
            database.executescript(TABLES)
            for name, number, owner in (
                ("Undefined Cartesian", -1, "NONE"),
                ("Undefined geographic", 0, "NONE"),
                ("WGS 84", 4326, "EPSG"),
            ):
                row = (name, number, owner, number, WGS84 if number > 0 else "undefined", None)
                database.execute("INSERT INTO gpkg_spatial_ref_sys VALUES (?, ?, ?, ?, ?, ?)", row)
            for layer in layers:
                _features(database, *layer)
            if notes:
                database.execute("CREATE TABLE promise (fid INTEGER PRIMARY KEY, sentence TEXT)")
                database.executemany("INSERT INTO promise (sentence) VALUES (?)", [(note,) for note in notes])
                database.execute(
                    "INSERT INTO gpkg_contents (table_name, data_type, identifier, last_change) "
                    "VALUES ('promise', 'attributes', 'promise', ?)",
                    (LONG_AGO,),
                )
    except sqlite3.OperationalError as error:
        database.close()
        part.unlink(missing_ok=True)
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}:
            raise
        raise OSError(errno.ENOSPC, f"{error}", str(file)) from None  # as other formats say it
    finally:
        database.close()
    part.replace(file)


LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
"""Time of the last change that every file states, so that equal content gives equal files."""


def _features(database: sqlite3.Connection, name: str, table: pl.DataFrame, shapes: Any, kind: str) -> None:
    """Write one table of features with its entries in the two registers."""
    import shapely

    bounds = [float(value) for value in shapely.total_bounds(shapes)]
    database.execute(
        "INSERT INTO gpkg_contents VALUES (?, 'features', ?, '', ?, ?, ?, ?, ?, 4326)", (name, name, LONG_AGO, *bounds)
    )
    database.execute("INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', ?, 4326, 0, 0)", (name, kind))
    quoted = ['"{}"'.format(column.replace('"', '""')) for column in table.columns]
    types = [_sql_type(kind_of) for kind_of in table.dtypes]
    fields = ", ".join(f"{column} {sql}" for column, sql in zip(quoted, types, strict=True))
    database.execute(f"CREATE TABLE {name} (fid INTEGER PRIMARY KEY, geom {kind}, {fields})")
    blobs = [HEADER + shape for shape in shapely.to_wkb(shapes, byte_order=1)]
    placeholders = ", ".join("?" * (len(quoted) + 1))
    rows = ((blob, *values) for blob, values in zip(blobs, table.iter_rows(), strict=True))
    database.executemany(f"INSERT INTO {name} (geom, {', '.join(quoted)}) VALUES ({placeholders})", rows)  # noqa: S608 - quoted above


def _sql_type(kind: pl.DataType) -> str:
    if kind == pl.Boolean:
        return "BOOLEAN"
    if kind.is_float():
        return "DOUBLE"
    return "INTEGER" if kind.is_integer() else "TEXT"


MAX_STEPS = 2_000
"""Thousands of SQLite's steps that reading a GeoPackage may take; a network of a million links takes about 100. Set by hand."""


@contextmanager
def open_geopackage(file: Path, *tables: str) -> Iterator[sqlite3.Connection]:
    """Open a GeoPackage for reading; one that hides queries behind its tables, or works for ever, is refused."""
    database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    left = MAX_STEPS

    def stop() -> int:
        nonlocal left
        left -= 1
        return int(left < 0)

    try:
        database.execute("PRAGMA trusted_schema = OFF")
        database.set_progress_handler(stop, 1_000_000)
        kinds = dict(database.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')").fetchall())
        views = [name for name in tables if kinds.get(name) != "table"]
        if views:
            raise sqlite3.DatabaseError(f"it has no table {', '.join(views)}")
        yield database
    finally:
        database.close()
