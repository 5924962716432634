"""Runs the readers over the files of a source: batches in, canonical points out, every fault kept."""

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

_FORMATS = {"text": text.batches, "parquet": parquet.batches, "gpx": gpx.batches, "geojson": geojson.batches}


def is_path(source: Any) -> bool:
    """Whether a source names files, not a table in memory."""
    return isinstance(source, (str, os.PathLike))


def find_files(source: str | os.PathLike[str], options: ReadOptions, report: ReadReport) -> list[SourceFile]:
    """The files of a source, or one error that says why there are none."""
    faults = Faults()
    layout = LAYOUTS[options.layout] if options.layout else None
    files, report.files_left_out = find(source, faults, suffixes=layout.suffixes if layout else None)
    faults.raise_if_any()
    report.files = len(files)
    return files


def points(files: list[SourceFile], options: ReadOptions, faults: Faults, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Canonical points of all files, batch by batch; a file with faults gives fewer, and the next file is still read."""
    layout = LAYOUTS[options.layout] if options.layout else None
    if layout and options.time_zone is None:
        options = replace(options, time_zone=layout.time_zone)
    first: PointChecker | None = None
    for number, file in enumerate(files):
        checker = PointChecker(options, faults, file.name, number)
        with guarded(faults, file.name):
            batches = layout.read(file, options, faults, report) if layout else _FORMATS[file.kind](file, options, faults)
            for batch in batches:
                frame = _take(checker, batch, report)
                unlike = _unlike(checker, first) if first is not None else None
                if unlike:
                    faults.add(unlike, file=file.name, remedy="All files of a source must have the same columns.")
                    break
                if frame is not None and frame.height:
                    yield frame
        first = first or (checker if checker.found else None)
        _tell(checker, report)


def points_of_frame(batch: Batch, options: ReadOptions, faults: Faults, report: ReadReport) -> pl.DataFrame | None:
    """Canonical points of a table in memory."""
    checker = PointChecker(options, faults, None)
    frame = None
    with guarded(faults, None):
        frame = _take(checker, batch, report)
    _tell(checker, report)
    return frame


def _take(checker: PointChecker, batch: Batch, report: ReadReport) -> pl.DataFrame | None:
    report.rows += batch.frame.height
    return checker.take(batch)


def _unlike(checker: PointChecker, first: PointChecker) -> str | None:
    """How the columns of a file differ from those of the first one."""
    mine, its = set(checker.found), set(first.found)
    if mine == its:
        differ = [name for name, text in checker.text_names.items() if first.text_names.get(name, text) != text]
        return f"{' and '.join(differ)} is not of the type it has in {first.file}" if differ else None
    parts = [f"no {', '.join(sorted(its - mine))}"] * bool(its - mine) + [f"a {', '.join(sorted(mine - its))}"] * bool(
        mine - its
    )
    return f"has {' but '.join(parts)}, unlike {first.file}"


def _tell(checker: PointChecker, report: ReadReport) -> None:
    report.columns = report.columns or dict(checker.found)
    report.columns_left_out += [name for name in checker.left_out if name not in report.columns_left_out]
    report.ambiguous_times += checker.clock.ambiguous if checker.clock else 0
