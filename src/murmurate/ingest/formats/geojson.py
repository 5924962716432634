"""Read GeoJSON: points with properties, and lines with a list of times (or none)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from murmurate.core.expansion import parse_json, refuse_cells
from murmurate.errors import Fault, InputError
from murmurate.ingest.columns import named_as
from murmurate.ingest.faults import Faults, Place
from murmurate.ingest.files import SourceFile, chunks
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch

MAX_BYTES = 2**30
"""Largest file in bytes, because JSON is parsed whole. Set by hand."""

_TIMES = ("times", "coordtimes", "timestamps", "datetimes")
"""Properties that hold the times of a line, in lower case."""


def batches(file: SourceFile, options: ReadOptions, faults: Faults) -> Iterator[Batch]:
    """Yield the points of a GeoJSON file; a line is a trip, named by its tid or its position. A row is a feature."""
    content = parse_json(read_bytes(file, options), file.path)
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list):
        raise InputError([Fault("not a GeoJSON FeatureCollection: it has no list of features", file=file.name)])
    yield batch_of_features(features, file, faults)


def read_bytes(file: SourceFile, options: ReadOptions) -> bytearray:
    """Read a JSON file whole, up to MAX_BYTES."""
    raw = bytearray()
    for chunk in chunks(file.path, 2**24, options.max_expansion):
        raw += chunk
        if len(raw) > MAX_BYTES:
            raise InputError([Fault("JSON of more than 1 GiB", file=file.name)], "Convert it to Parquet or CSV.")
    return raw


def batch_of_features(features: list[Any], file: SourceFile, faults: Faults) -> Batch:
    """Return the points of features as a batch."""
    records: list[dict[str, Any]] = []
    for number, feature in enumerate(features, start=1):
        reason = _take(feature, number, records)
        if reason:
            faults.add_numbered(reason, [number], file=file.name)
    return Batch(frame_of(records, file), Place(file.name))


def frame_of(records: list[dict[str, Any]], file: SourceFile) -> pl.DataFrame:
    """Return records as a table with a column for every key."""
    keys: dict[str, None] = {}
    for record in records:
        keys.update(dict.fromkeys(record))
    refuse_cells(records, len(keys), file.path)
    columns = [_column(key, [record.get(key) for record in records]) for key in keys]
    return pl.DataFrame(columns) if columns else pl.DataFrame(schema={"uid": pl.String, "lat": pl.Float64, "lng": pl.Float64})


def _take(feature: Any, number: int, records: list[dict[str, Any]]) -> str | None:
    """Add the points of a feature, or return the reason why not."""
    if not isinstance(feature, dict) or not isinstance(feature.get("geometry"), dict):
        return "a feature without a geometry"
    properties = feature.get("properties") or {}
    if not isinstance(properties, dict):
        return "properties that are not an object"
    shape, places = feature["geometry"].get("type"), feature["geometry"].get("coordinates")
    if shape == "Point":
        if not _is_place(places):
            return "a point without two coordinates"
        records.append({**_plain(properties), "lat": places[1], "lng": places[0]})
        return None
    if shape not in ("LineString", "MultiPoint"):
        return f"a geometry that is neither Point nor LineString: {shape!r:.40}"
    if not isinstance(places, list) or not all(_is_place(place) for place in places):
        return "a line whose coordinates are not pairs"
    times = _times(properties)
    if times is not None and len(times) != len(places):
        return f"{len(times)} times for {len(places)} coordinates"
    named = _plain(properties)
    if not any(named_as(key, "tid") for key in named):
        named["tid"] = number
    for position, place in enumerate(places):
        record = {**named, "lat": place[1], "lng": place[0]}
        if times is not None:
            record["datetime"] = times[position]
        records.append(record)
    return None


def _is_place(place: Any) -> bool:
    return (
        isinstance(place, list)
        and len(place) >= 2
        and all(isinstance(part, (int, float)) and not isinstance(part, bool) for part in place[:2])
    )


def _plain(properties: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in properties.items() if not isinstance(value, (list, dict))}


def _times(properties: dict[str, Any]) -> list[Any] | None:
    for key, value in properties.items():
        if isinstance(value, list) and (key.lower() in _TIMES or named_as(key, "datetime")):
            return value
        if key.lower() == "coordinateproperties" and isinstance(value, dict) and isinstance(value.get("times"), list):
            return list(value["times"])
    return None


def _column(name: str, values: list[Any]) -> pl.Series:
    """Return a column of its own type; a mixture of types becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds and kinds <= {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)
