"""Networks for other tools: GeoJSON, GeoPackage, GraphML, GeoParquet, and networkx as OSMnx has it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from murmurate.errors import MissingPart, OutputError
from murmurate.spaces.road.classes import CLASS_WORDS

if TYPE_CHECKING:
    from murmurate.spaces.road.network import RoadNetwork


def write_roads(network: RoadNetwork, path: str | Path, *, columns: pl.DataFrame | None = None) -> Path:
    """Write a network to `path` by its ending: .geojson, .gpkg, .graphml(.gz), .parquet or .npz.

    `columns` adds one value per link (counts, say) to .geojson, .gpkg and .parquet.
    """
    from murmurate.spaces.road.storage import save
    from murmurate.spaces.road.write_gpkg import write_geopackage

    file = Path(path)
    name = file.name.lower()
    writers: dict[str, Callable[[], Any]] = {
        ".geojson": lambda: write_geojson(network, file, columns=columns),
        ".gpkg": lambda: write_geopackage(network, file, columns=columns),
        ".graphml": lambda: write_graphml(network, file),
        ".graphml.gz": lambda: write_graphml(network, file),
        ".parquet": lambda: write_geoparquet(network, file, columns=columns),
        ".npz": lambda: save(network, file),
    }
    for ending, write in writers.items():
        if name.endswith(ending):
            try:
                write()
            except OSError as error:
                raise OutputError(f"{file}: cannot be written ({error.strerror or error}).") from None
            return file
    raise OutputError(f"{file}: networks are written as {', '.join(writers)}; give a name that ends so.")


def links_table(network: RoadNetwork, columns: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return one row for each link of a network, with further columns of one value per link where given."""
    if columns is not None and columns.height != network.n_links:
        raise OutputError(f"columns has {columns.height:,} rows where the network has {network.n_links:,} links.")
    values: dict[str, Any] = {
        "link": np.arange(network.n_links),
        "from_node": network.link_from,
        "to_node": network.link_to,
        "length_m": network.length_m,
        "road_class": network.road_class.astype(np.int64),
        "speed_kmh": network.speed_kmh,
        "lanes": network.lanes.astype(np.int64),
        "oneway": network.twin < 0,
    }
    known = {"name": network.name, "way_id": network.way_id}
    values |= {key: value for key, value in known.items() if value is not None}
    return pl.DataFrame(values).with_columns([] if columns is None else columns.get_columns())


def link_lines(network: RoadNetwork) -> Any:
    """Return the geometry of every link as shapely lines, longitude first."""
    import shapely

    vertex_link = np.repeat(np.arange(network.n_links), np.diff(network.shape_offsets))
    return shapely.linestrings(np.column_stack([network.shape_lng, network.shape_lat]), indices=vertex_link)


def write_geojson(network: RoadNetwork, file: Path, *, columns: pl.DataFrame | None = None) -> None:
    """Write a FeatureCollection, one line a link, coordinates to 1e-7 degrees (a centimetre)."""
    table = links_table(network, columns)
    lat, lng, ends = network.shape_lat.round(7).tolist(), network.shape_lng.round(7).tolist(), network.shape_offsets.tolist()
    with file.open("w", encoding="utf-8") as out:
        out.write('{"type": "FeatureCollection", "features": [\n')
        for number, row in enumerate(table.iter_rows(named=True)):
            points = [[lng[k], lat[k]] for k in range(ends[number], ends[number + 1])]
            feature = {"type": "Feature", "properties": row, "geometry": {"type": "LineString", "coordinates": points}}
            out.write((",\n" if number else "") + json.dumps(feature, ensure_ascii=False))
        out.write("\n]}\n")


def write_geoparquet(network: RoadNetwork, file: Path, *, columns: pl.DataFrame | None = None) -> None:
    """Write GeoParquet 1.0: well-known binary in a `geometry` column, degrees."""
    import pyarrow
    import pyarrow.parquet
    import shapely

    table = links_table(network, columns).to_arrow()
    lines = link_lines(network)
    table = table.append_column("geometry", pyarrow.array(shapely.to_wkb(lines).tolist(), type=pyarrow.binary()))
    bounds = [float(value) for value in shapely.total_bounds(lines)]
    about = {
        "version": "1.0.0",
        "primary_column": "geometry",
        "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["LineString"], "bbox": bounds}},
    }
    pyarrow.parquet.write_table(table.replace_schema_metadata({"geo": json.dumps(about)}), file)


def write_graphml(network: RoadNetwork, file: Path) -> None:
    """Write GraphML that OSMnx loads: nodes x, y; edges osmid, highway, length, maxspeed, lanes, name, oneway, geometry."""
    from xml.sax.saxutils import escape

    table = links_table(network)
    lat, lng, ends = network.shape_lat.tolist(), network.shape_lng.tolist(), network.shape_offsets.tolist()
    node_keys = ("y", "x", "street_count")
    edge_keys = ("osmid", "highway", "road_class", "length", "maxspeed", "speed_kmh", "lanes", "name", "oneway", "geometry")
    keys = [f'<key id="n{k}" for="node" attr.name="{key}" attr.type="string"/>' for k, key in enumerate(node_keys)]
    keys += [f'<key id="e{k}" for="edge" attr.name="{key}" attr.type="string"/>' for k, key in enumerate(edge_keys)]
    keys.append('<key id="g0" for="graph" attr.name="crs" attr.type="string"/>')
    opener: Any = gzip.open if file.name.lower().endswith(".gz") else Path.open
    seen: dict[tuple[int, int], int] = {}
    with opener(file, "wt", encoding="utf-8") as out:
        out.write('<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        out.write("\n".join(keys) + '\n<graph edgedefault="directed">\n<data key="g0">epsg:4326</data>\n')
        streets = _street_counts(network)
        for node, place in enumerate(zip(network.node_lat.tolist(), network.node_lng.tolist(), streets, strict=True)):
            values = "".join(f'<data key="n{k}">{value}</data>' for k, value in enumerate(place))
            out.write(f'<node id="{node}">{values}</node>\n')
        for number, row in enumerate(table.iter_rows(named=True)):
            pair = row["from_node"], row["to_node"]
            seen[pair] = seen.get(pair, -1) + 1
            points = ", ".join(f"{lng[k]!r} {lat[k]!r}" for k in range(ends[number], ends[number + 1]))
            attributes = (
                row.get("way_id", number),
                CLASS_WORDS[row["road_class"]] if row["road_class"] < 5 else "residential",
                row["road_class"],
                repr(row["length_m"]),
                repr(row["speed_kmh"]),
                repr(row["speed_kmh"]),
                row["lanes"] or None,
                row.get("name") or None,
                row["oneway"],
                f"LINESTRING ({points})",
            )
            filled = [(k, value) for k, value in enumerate(attributes) if value is not None]
            values = "".join(f'<data key="e{k}">{escape(str(value))}</data>' for k, value in filled)
            out.write(f'<edge source="{pair[0]}" target="{pair[1]}" id="{seen[pair]}">{values}</edge>\n')
        out.write("</graph>\n</graphml>\n")


def to_networkx(network: RoadNetwork) -> Any:
    """Return a MultiDiGraph with the attributes OSMnx expects; needs the `[geo]` extra."""
    try:
        import networkx
    except ImportError:
        raise MissingPart("to_networkx needs networkx: pip install 'murmurate[geo]'.") from None
    graph = networkx.MultiDiGraph(crs="epsg:4326", simplified=True)
    streets = _street_counts(network)
    for node in range(network.n_nodes):
        place = {"y": float(network.node_lat[node]), "x": float(network.node_lng[node])}
        graph.add_node(node, **place, street_count=streets[node])
    lines = link_lines(network)
    for row in links_table(network).iter_rows(named=True):
        graph.add_edge(
            row["from_node"],
            row["to_node"],
            link=row["link"],
            osmid=row.get("way_id", row["link"]),
            length=row["length_m"],
            highway=CLASS_WORDS[row["road_class"]] if row["road_class"] < 5 else "residential",
            road_class=row["road_class"],
            speed_kph=row["speed_kmh"],
            travel_time=row["length_m"] * 3.6 / row["speed_kmh"],
            lanes=row["lanes"],
            name=row.get("name") or "",
            oneway=row["oneway"],
            geometry=lines[row["link"]],
        )
    return graph


def _street_counts(network: RoadNetwork) -> list[int]:
    """Count the streets that meet at each node; a two-way street counts once."""
    once = (network.twin < 0) | (np.arange(network.n_links) < network.twin)
    ends = np.concatenate((network.link_from[once], network.link_to[once]))
    return np.bincount(ends, minlength=network.n_nodes).tolist()
