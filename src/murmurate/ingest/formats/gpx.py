"""Read GPX: every track segment (or route) is a trip of the person the file is named after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

import polars as pl

from murmurate.errors import Fault, InputError
from murmurate.ingest.faults import Faults, Place
from murmurate.ingest.files import SourceFile, chunks
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch

_CHUNK_BYTES, _POINTS_A_BATCH = 2**20, 500_000
"""Bytes parsed at a time, and points from which on a batch is given. Set by hand."""


def batches(file: SourceFile, options: ReadOptions, faults: Faults) -> Iterator[Batch]:
    """Yield the points of a GPX file as uid, tid, datetime, lat, lng."""
    track = _Track(file)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = track.start
    parser.EndElementHandler = track.end
    parser.CharacterDataHandler = track.text
    parser.StartDoctypeDeclHandler = track.refuse_doctype
    first_row = 1
    for chunk in chunks(file.path, _CHUNK_BYTES, options.max_expansion):
        parser.Parse(chunk, False)
        if len(track.lat) >= _POINTS_A_BATCH:
            frame = track.take()
            yield Batch(frame, Place(file.name, first_row))
            first_row += frame.height
    parser.Parse(b"", True)
    if not track.is_gpx:
        raise InputError([Fault("not a GPX file: its outermost element is not <gpx>", file=file.name)])
    yield Batch(track.take(), Place(file.name, first_row))


@dataclass
class _Track:
    """Collects points from the parser's events."""

    file: SourceFile
    is_gpx: bool = False
    segment: int = -1
    lat: list[str | None] = field(default_factory=list)
    lng: list[str | None] = field(default_factory=list)
    time: list[str | None] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    timed: bool | None = None
    _inside: bool = False
    _text: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if name == "gpx":
            self.is_gpx = True
        elif name in ("trkseg", "rte"):
            self.segment += 1
        elif name in ("trkpt", "rtept"):
            self._inside = True
            self.lat.append(attributes.get("lat"))
            self.lng.append(attributes.get("lon"))
            self.time.append(None)
            self.segments.append(self.segment)
        elif name == "time" and self._inside:
            self._text = []

    def end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        if name in ("trkpt", "rtept"):
            self._inside = False
        elif name == "time" and self._text is not None:
            self.time[-1] = "".join(self._text).strip()
            self._text = None

    def text(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def refuse_doctype(self, *_: Any) -> None:
        raise InputError([Fault("a document type declaration, which GPX files have no use for", file=self.file.name)])

    def take(self) -> pl.DataFrame:
        """Return the points collected so far and forget them."""
        columns: dict[str, Any] = {
            "uid": pl.Series([self.file.stem] * len(self.lat), dtype=pl.String),
            "tid": pl.Series(self.segments, dtype=pl.Int64),
            "lat": pl.Series(self.lat, dtype=pl.String),
            "lng": pl.Series(self.lng, dtype=pl.String),
        }
        if self.timed is None:  # a file without any time is a sequence; one with some must have all
            self.timed = any(time is not None for time in self.time)
        if self.timed:
            columns["datetime"] = pl.Series(self.time, dtype=pl.String)
        self.lat, self.lng, self.time, self.segments = [], [], [], []
        return pl.DataFrame(columns)
