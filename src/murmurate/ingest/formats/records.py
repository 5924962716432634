"""Read JSON: a list of records, one record a line, or GeoJSON under the name of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from murmurate.core.expansion import parse_json
from murmurate.errors import Fault, InputError
from murmurate.ingest.faults import Faults, Place
from murmurate.ingest.files import SourceFile
from murmurate.ingest.formats import geojson
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch

WRAPPERS = ("data", "trips", "records", "rows", "points", "results", "items", "status_changes")
"""Keys under which publishers put the list of records, such as `data` and `trips` of MDS."""


def batches(file: SourceFile, options: ReadOptions, faults: Faults) -> Iterator[Batch]:
    """Yield the records of a JSON file; a row is a record. Lines may end in a comma or a semicolon."""
    raw = geojson.read_bytes(file, options)
    try:
        content = parse_json(raw, file.path)
    except InputError as error:
        content = _lines(raw, file, faults, error)
        if content is None:
            return
    if isinstance(content, dict) and isinstance(content.get("features"), list):
        yield geojson.batch_of_features(content["features"], file, faults)
        return
    records = _listed(content)
    if records is None:
        raise InputError(
            [Fault("JSON without a list of records", file=file.name)],
            "Records are objects in a list, or one a line, with keys such as uid, datetime, lat and lng.",
        )
    odd = [number for number, record in enumerate(records, start=1) if not isinstance(record, dict)]
    faults.add_numbered("not a record (an object with named values)", odd, file=file.name)
    if odd:
        return
    yield Batch(geojson.frame_of([_flat(record) for record in records], file), Place(file.name))


def _lines(raw: bytes | bytearray, file: SourceFile, faults: Faults, whole: InputError) -> list[Any] | None:
    """Read a record from each line; None where lines are no records either."""
    if whole.remedy:  # too large, not unreadable
        raise whole
    records, bad = [], []
    for number, line in enumerate(bytes(raw).splitlines(), start=1):
        text = line.strip().rstrip(b",;").strip()
        if not text:
            continue
        try:
            records.append(json.loads(text))
        except (ValueError, RecursionError):
            bad.append(number)
    if not records:
        raise whole
    faults.add_numbered("not JSON: every line must be one record", bad, file=file.name)
    return None if bad else records


def _listed(content: Any) -> list[Any] | None:
    if isinstance(content, list):
        return content
    if not isinstance(content, dict):
        return None
    inner = next((content[key] for key in WRAPPERS if isinstance(content.get(key), (list, dict))), None)
    return [content] if inner is None else _listed(inner)


def _flat(record: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Return a record with the values of inner objects under joined names; lists are left out."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{key}_")
        elif not isinstance(value, list):
            flat[f"{before}{key}"] = value
    return flat
