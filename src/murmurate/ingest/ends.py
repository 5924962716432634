"""Read origin-destination rows: one row is one trip, with the place (and time) of its start and of its end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from murmurate.ingest.columns import ROW_NUMBER, plain, recognise
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.faults import Place
from murmurate.ingest.points import Batch

_START = re.compile(r"(pickup|start|origin|begin|depart|from|^o(?=(lat|lon|lng|long|x|y)))")
"""Words in the names of columns about the start of a trip."""
_END = re.compile(r"(dropoff|end(?!er)|stop|dest|arriv|^to|^d(?=(lat|lon|lng|long|x|y)))")
"""Words in the names of columns about the end of a trip."""
_KINDS = {
    "lat": re.compile(r"(lat|latitude|y)(wgs84|deg)?$"),
    "lng": re.compile(r"(lng|lon|long|longitude|x)(wgs84|deg)?$"),
    "datetime": re.compile(r"(time|datetime|timestamp|date|at)(utc)?$"),
}
"""How the names of places and times end."""


def recognise_ends(names: Sequence[str]) -> dict[str, dict[str, str]] | None:
    """Return the columns of the starts and of the ends; None where rows are points.

    >>> found = recognise_ends(["ride_id", "started_at", "ended_at", "start_lat", "start_lng", "end_lat", "end_lng"])
    >>> found["start"], found["end"]["datetime"]
    ({'datetime': 'started_at', 'lat': 'start_lat', 'lng': 'start_lng'}, 'ended_at')
    """
    found: dict[str, dict[str, str]] = {"start": {}, "end": {}}
    for name in names:
        words = plain(name)
        role = "start" if _START.search(words) else "end" if _END.search(words) else None
        kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(words)), None)
        if role and kind:
            found[role].setdefault(kind, name)
    places = [found[role].get(kind) for role in ("start", "end") for kind in ("lat", "lng")]
    if None in places or len(set(places)) < 4:
        return None
    if not all("datetime" in found[role] for role in ("start", "end")):
        for role in ("start", "end"):
            found[role].pop("datetime", None)
    return found


def as_points(
    batch: Batch, ends: Mapping[str, Mapping[str, str]], overrides: Mapping[str, str | None], report: ReadReport
) -> Batch:
    """Return two points for every row; rows without both places are left out and counted."""
    frame, place = batch.frame, batch.place
    if "lat" in overrides or "lng" in overrides or "geometry" in overrides:
        return batch  # the caller says where the points are
    used = {name for role in ends.values() for name in role.values()}
    rows = frame.with_columns(pl.Series(ROW_NUMBER, np.arange(place.first_row, place.first_row + frame.height)))
    there = pl.all_horizontal(_is_somewhere(role) for role in ends.values())
    kept = rows.filter(there)
    report.leave_out("trips without the place of both ends", rows.height - kept.height)
    others = [name for name in kept.columns if name not in used]
    parts = [
        kept.select(*others, *(pl.col(column).alias(kind) for kind, column in ends[role].items())) for role in ("start", "end")
    ]
    order = np.arange(2 * kept.height).reshape(2, -1).T.ravel()  # each trip's start, then its end
    points = pl.concat(parts)[order]
    if "tid" not in recognise(points.columns, overrides)[0]:
        points = points.with_columns(pl.col(ROW_NUMBER).alias("tid"))
    unused = ROW_NUMBER not in overrides.values()
    return Batch(points.drop(ROW_NUMBER) if unused else points, Place(place.file, place.first_row), batch.crs)


def _is_somewhere(role: Mapping[str, str]) -> pl.Expr:
    """Return where both coordinates are given and are not the 0, 0 that stands for nothing."""
    numbers = [pl.col(role[kind]).cast(pl.String).str.strip_chars().str.replace(",", ".") for kind in ("lat", "lng")]
    filled = pl.all_horizontal((number != "").fill_null(False) for number in numbers)
    zero = pl.all_horizontal((number.cast(pl.Float64, strict=False) == 0).fill_null(False) for number in numbers)
    return filled & ~zero
