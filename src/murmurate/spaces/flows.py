"""LinkFlows: counts and speeds of each link in each hour, as a network release holds them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from murmurate.core.expansion import as_schema, most_items, refuse_many
from murmurate.core.parquet import read_table
from murmurate.core.saved import read_object
from murmurate.core.space import Floats, Integers
from murmurate.errors import Fault, InputError
from murmurate.spaces.drives import Drives
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.write import write_roads
from murmurate.spaces.road.write_gpkg import HEADER, open_geopackage

LINKS, GEOPACKAGE, GEOJSON, ABOUT = "links.parquet", "network.gpkg", "network.geojson", "network.json"
"""Files of a network in a release folder."""

SCHEMA: dict[str, type[pl.DataType]] = {
    "link": pl.Int64,
    "hour": pl.Int64,
    "count": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "speed_kmh": pl.Float64,
    "travel_time_s": pl.Float64,
}
"""Columns of `LINKS` and their types."""
LINE = 1
"""Shapely's number of the geometry type LineString."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkFlows:
    """Holds a network and one row for every link and hour that is published; a link without rows is not published.

    `count` is in trips, `low` and `high` bound what noise explains (empty where no noise was added), `speed_kmh` and
    `travel_time_s` are means where known. A `day` column (days since 1970) is there where days are kept apart.

    >>> town = RoadNetwork.from_arrays(node_lat=[0, 0], node_lng=[0, 0.001], link_from=[0], link_to=[1], road_class=[5])
    >>> flows = LinkFlows(network=town, table=pl.DataFrame({"link": [0, 0], "hour": [8, 9], "count": [3.0, 4.0]}))
    >>> flows.totals.tolist(), round(flows.length_km, 3)
    ([7.0], 0.111)
    """

    kind: ClassVar[str] = "network"
    network: RoadNetwork
    table: pl.DataFrame
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Further tables that leave with it, by file name without ending: turns, od, ..."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers that leave with it: thresholds, noise, the rescaling that was paid for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", _canonical(self.table, self.network.n_links))

    @classmethod
    def of_drives(cls, drives: Drives, *, by_day: bool = False) -> LinkFlows:
        """Count driven links and average their speeds, without noise; `by_day` keeps days apart."""
        keys = ["day", "hour", "link"] if by_day else ["hour", "link"]
        columns = {"day": drives.day, "hour": drives.hour, "link": drives.link, "seconds": drives.seconds}
        known = pl.col("seconds").filter(pl.col("seconds") > 0)
        table = pl.DataFrame(columns).group_by(keys).agg(count=pl.len().cast(pl.Float64), travel_time_s=known.mean()).sort(keys)
        length = pl.Series(drives.network.length_m[table["link"].to_numpy()])
        return cls(network=drives.network, table=table.with_columns(speed_kmh=length * 3.6 / pl.col("travel_time_s")))

    # -- as arrays -------------------------------------------------------------------------------------------------

    @cached_property
    def by_hour(self) -> Floats:
        """Return [hour, link] counts, days together; 0 where nothing is published."""
        matrix = np.zeros((24, self.network.n_links))
        np.add.at(matrix, (self.table["hour"].to_numpy(), self.table["link"].to_numpy()), self.table["count"].to_numpy())
        return matrix

    @property
    def totals(self) -> Floats:
        """Return the count of every link."""
        return self.by_hour.sum(axis=0)

    @cached_property
    def used(self) -> Integers:
        """Return the links that are published with a count above zero."""
        return np.flatnonzero(self.totals > 0)

    @property
    def length_km(self) -> float:
        """Return the kilometres of the links in `used`."""
        return float(self.network.length_m[self.used].sum() / 1000)

    def link_table(self) -> pl.DataFrame:
        """Return one row for every link of the network, all hours together; nulls where it is not published."""
        weight = pl.col("count").filter(pl.col("travel_time_s").is_not_null())
        time = (pl.col("travel_time_s") * pl.col("count")).sum() / weight.sum()
        grouped = self.table.group_by("link").agg(count=pl.col("count").sum(), travel_time_s=time)
        found = pl.DataFrame({"link": np.arange(self.network.n_links)}).join(grouped, on="link", how="left").sort("link")
        length = pl.Series(self.network.length_m)
        return found.select("count", observed_kmh=length * 3.6 / pl.col("travel_time_s"))

    # -- as files --------------------------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write links.parquet, network.gpkg, network.geojson, network.json and a Parquet file for each further table."""
        self.table.write_parquet(folder / LINKS)
        for name, table in self.tables.items():
            table.write_parquet(folder / f"{name}.parquet")
        columns = self.link_table()
        for name in (GEOPACKAGE, GEOJSON):
            write_roads(self.network, folder / name, columns=columns)
        (folder / ABOUT).write_text(json.dumps(dict(self.about), indent=2, sort_keys=True) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: str | Path) -> LinkFlows:
        """Read back what `write` wrote, network included."""
        path = Path(folder)
        missing = [name for name in (LINKS, GEOPACKAGE) if not (path / name).is_file()]
        if missing:
            raise InputError([Fault("is missing", file=str(path / name)) for name in missing], "give a release of a network.")
        about = read_object(path / ABOUT, "a network release") if (path / ABOUT).is_file() else {}
        others = {file.stem: read_table(file) for file in sorted(path.glob("*.parquet")) if file.name != LINKS}
        return cls(network=_network(path / GEOPACKAGE), table=read_table(path / LINKS), tables=others, about=about)


def _canonical(table: pl.DataFrame, n_links: int) -> pl.DataFrame:
    """Check a table of flows and give it all columns of `SCHEMA`."""
    absent = [name for name in ("link", "hour", "count") if name not in table.columns]
    if absent:
        raise InputError(f"a table of flows needs link, hour and count; {', '.join(absent)} missing.")
    wanted: dict[str, type[pl.DataType]] = {**({"day": pl.Int64} if "day" in table.columns else {}), **SCHEMA}
    filled = [pl.lit(None, dtype=kind).alias(name) for name, kind in SCHEMA.items() if name not in table.columns]
    table = as_schema(table.with_columns(filled), wanted, "a table of flows")
    faults = [
        Fault(f"{int(bad.sum()):,} values {why}", row=int(bad.arg_max() or 0), column=name)
        for name, maybe, why in (
            ("link", ~table["link"].is_between(0, n_links - 1), f"are no links of this network (0 to {n_links - 1:,})"),
            ("hour", ~table["hour"].is_between(0, 23), "are no hours (0 to 23)"),
            ("count", ~(table["count"].is_finite() & (table["count"] >= 0)), "are no counts (0 and up)"),
        )
        if (bad := maybe.fill_null(True)).any()
    ]
    if faults:
        raise InputError(faults)
    return table


def _network(file: Path) -> RoadNetwork:
    """Read the network of a GeoPackage that `write_roads` made, link for link."""
    import shapely

    try:
        with open_geopackage(file, "links", "nodes") as database:
            names = [row[1] for row in database.execute("PRAGMA table_info(links)")]
            most = most_items(file)
            rows = database.execute("SELECT * FROM links ORDER BY link").fetchmany(most + 1)
            # types are inferred from all rows: a column may begin with thousands of links that are not published
            links = pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)
            nodes = [row[0] for row in database.execute("SELECT geom FROM nodes ORDER BY node").fetchmany(most + 1)]
        refuse_many(max(len(rows), len(nodes)), most, file)
        with np.errstate(invalid="ignore"):  # what is no number is refused as a place of no network
            lines = shapely.from_wkb([shape[len(HEADER) :] for shape in links["geom"].to_list()])
            points = shapely.get_coordinates(shapely.from_wkb([shape[len(HEADER) :] for shape in nodes]))
        if (shapely.get_type_id(lines) != LINE).any() or len(points) != len(nodes):
            raise ValueError("its geometries are not lines between points")
    except (
        sqlite3.Error,
        ValueError,
        TypeError,
        OverflowError,
        pl.exceptions.PolarsError,
        shapely.errors.ShapelyError,
    ) as error:
        raise InputError(f"{file}: is no network release, or damaged ({str(error)[:200]}).") from None
    missing = [name for name in ("from_node", "to_node", "length_m", "road_class", "speed_kmh", "lanes") if name not in names]
    if missing:
        raise InputError(f"{file}: is damaged: its links lack {', '.join(missing)}.")
    vertices = shapely.get_coordinates(lines)
    return RoadNetwork.from_arrays(
        node_lat=points[:, 1],
        node_lng=points[:, 0],
        link_from=links["from_node"].to_numpy(),
        link_to=links["to_node"].to_numpy(),
        length_m=links["length_m"].to_numpy(),
        road_class=links["road_class"].to_numpy(),
        speed_kmh=links["speed_kmh"].to_numpy(),
        lanes=links["lanes"].to_numpy(),
        shape_offsets=np.concatenate([[0], np.cumsum(shapely.get_num_coordinates(lines))]),
        shape_lat=vertices[:, 1],
        shape_lng=vertices[:, 0],
        name=links["name"] if "name" in names else None,
        way_id=links["way_id"].to_numpy() if "way_id" in names else None,
        source=file.name,
    )
