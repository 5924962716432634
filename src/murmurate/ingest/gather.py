"""Run the readers over the files of a source: batches in, canonical points out, every fault kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from murmurate.ingest.counts import ReadReport
from murmurate.ingest.faults import Faults, guarded
from murmurate.ingest.files import SourceFile, find
from murmurate.ingest.formats import geojson, gpx, parquet, text
from murmurate.ingest.layouts import LAYOUTS
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch, PointChecker

_FORMATS = {"text": text.rows, "parquet": parquet.batches, "gpx": gpx.batches, "geojson": geojson.batches}
"""Readers by the kinds of `files.KINDS`."""


def is_path(source: Any) -> bool:
    """Return whether a source names files, not a table in memory."""
    return isinstance(source, (str, os.PathLike))


def find_files(source: str | os.PathLike[str], options: ReadOptions, report: ReadReport) -> list[SourceFile]:
    """Return the files of a source, or raise one error that says why there are none."""
    faults = Faults()
    layout = LAYOUTS[options.layout] if options.layout else None
    files, report.files_left_out = find(source, faults, suffixes=layout.suffixes if layout else None)
    faults.raise_if_any()
    report.files = len(files)
    return files


def points(files: list[SourceFile], options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield canonical points of all files, batch by batch; a file with faults gives fewer, and the next file is still read."""
    layout = LAYOUTS[options.layout] if options.layout else None
    if layout and options.time_zone is None:
        options = replace(options, time_zone=layout.time_zone)
    first: PointChecker | None = None
    for number, file in enumerate(files):
        checker = PointChecker(options, faults, file.name, number)
        with guarded(faults, file.name):
            batches = layout.read(file, options, faults, report) if layout else _FORMATS[file.kind](file, options, faults)
            for batch in batches:
                report.rows += batch.frame.height
                frame = checker.take(batch)
                unlike = _unlike(checker, first) if first is not None else None
                if unlike:
                    faults.add(unlike, file=file.name, remedy="All files of a source must have the same columns.")
                    break
                if frame is not None and frame.height:
                    yield frame
        first = first or (checker if checker.found else None)
        _count(checker, report)


def points_of_frame(batch: Batch, options: ReadOptions, faults: Faults, report: ReadReport) -> pl.DataFrame | None:
    """Return canonical points of a table in memory."""
    checker = PointChecker(options, faults, None)
    frame = None
    with guarded(faults, None):
        report.rows += batch.frame.height
        frame = checker.take(batch)
    _count(checker, report)
    return frame


def _unlike(checker: PointChecker, first: PointChecker) -> str | None:
    """Say how the columns of a file differ from those of the first one; None where they do not."""
    mine, its = set(checker.found), set(first.found)
    if mine == its:
        differ = [name for name, text in checker.text_names.items() if first.text_names.get(name, text) != text]
        return f"{' and '.join(differ)} is not of the type it has in {first.file}" if differ else None
    differences = (("no", its - mine), ("a", mine - its))
    parts = [f"{word} {', '.join(sorted(names))}" for word, names in differences if names]
    return f"has {' but '.join(parts)}, unlike {first.file}"


def _count(checker: PointChecker, report: ReadReport) -> None:
    report.columns = report.columns or dict(checker.found)
    report.columns_left_out += [name for name in checker.left_out if name not in report.columns_left_out]
    report.ambiguous_times += checker.clock.ambiguous if checker.clock else 0
