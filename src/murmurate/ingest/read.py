"""`mm.read`: read any supported file, folder, glob or frame as validated, fingerprinted `Trips`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from murmurate.core.expansion import refuse_rows
from murmurate.core.space import Space
from murmurate.core.trips import Identity, Trips
from murmurate.errors import InputError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.ends import as_points, recognise_ends
from murmurate.ingest.faults import Faults, guarded
from murmurate.ingest.files import SourceFile, find, fingerprint, refuse_changed
from murmurate.ingest.formats import geojson, gpx, parquet, records, text
from murmurate.ingest.formats.frames import batch_of
from murmurate.ingest.layouts import LAYOUTS, is_porto, porto_points
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.points import Batch, PointChecker
from murmurate.ingest.runs import Runs, settle

_FORMATS: dict[str, Callable[..., Iterator[Batch]]] = {
    "text": text.rows,
    "parquet": parquet.batches,
    "gpx": gpx.batches,
    "geojson": geojson.batches,
    "json": records.batches,
}
"""Readers by the kinds of `files.KINDS`."""


def read(
    source: Any,
    *,
    layout: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    time_zone: str | None = None,
    local_zone: str | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    encoding: str | None = None,
    carry: tuple[str, ...] | None = None,
    max_expansion: int = 25,
    space: Space | str | None = None,
    strict: bool = False,
    report: ReadReport | None = None,
) -> Trips:
    """Read trips from a path, folder, glob or frame; everything wrong with it is in one InputError, and nothing is spent.

    `layout` names a known data set (`murmurate.ingest.layouts`). `columns` maps canonical names (uid, tid, datetime, lat,
    lng, ...) to names in the file; None leaves one out. `carry` names the other columns to keep; by default all plain ones.
    `time_zone` is the zone of times that state none; `local_zone` (by default the same) is the zone of hours and days.
    `time_unit` is the unit of counts since 1970 ("s", "ms", "us", "ns"), and `time_format` says how times are written where
    they are not ISO 8601, such as "%d/%m/%Y %H:%M". `encoding` is that of text; `max_expansion` bounds by what factor a
    compressed file may grow. `space` is the public space that the trips lie in. `report` is filled with private counts of
    what was sorted or left out; `strict` refuses such input instead.

    >>> import polars as pl
    >>> trips = read(pl.DataFrame({"user": ["a", "a"], "t": [1e9, 1e9 + 60], "lat": [60.1, 60.2], "lon": [24.9, 24.9]}))
    >>> trips.columns, trips.n_points
    (['uid', 'tid', 'datetime', 'lat', 'lng'], 2)
    """
    options = ReadOptions(
        layout=layout,
        columns=columns or {},
        time_zone=time_zone,
        local_zone=local_zone,
        time_unit=time_unit,
        time_format=time_format,
        encoding=encoding,
        strict=strict,
        carry=None if carry is None else tuple(carry),
        max_expansion=max_expansion,
    )
    counts = report if report is not None else ReadReport()
    place = parse_space(space)
    faults = Faults()
    runs = None
    with guarded(faults, None):
        if is_path(source):
            runs, seal = _read_files(source, options, faults, counts)
        else:
            runs, seal = _read_frame(source, options, faults, counts), None
    faults.raise_if_any()
    if runs is None:
        raise InputError("there are no points in it.")
    people = tuple(runs.uid.unique(maintain_order=True).cast(pl.String).to_list())
    identity = None if seal is None else Identity(seal, people)
    return runs.trips(space=place, time_zone=options.hours_zone, source=identity)


def parse_space(space: Space | str | None) -> Space | None:
    """Return a space given as an object or as text."""
    if not isinstance(space, str):
        return space
    from murmurate.spaces import parse

    return parse(space)


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
    return [replace(file, path=file.path.absolute()) for file in files]  # workers may have another current folder


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
            for rows in batches:
                report.rows += rows.frame.height
                refuse_rows(report.rows, (one.path for one in files))
                batch = rows if layout else rows_as_points(rows, options, faults, report)
                if batch is None:
                    continue
                frame = checker.take(batch)
                unlike = _unlike(checker, first) if first is not None else None
                if unlike:
                    faults.add(unlike, file=file.name, remedy="All files of a source must have the same columns.")
                    break
                if frame is not None and frame.height:
                    yield frame
        first = first or (checker if checker.found else None)
        _count(checker, report)


def rows_as_points(rows: Batch, options: ReadOptions, faults: Faults, report: ReadReport) -> Batch | None:
    """Return rows that hold a point each, made from rows that hold a whole trip: two ends, or a line of places."""
    if is_porto(rows.frame.columns) and not options.columns:
        return porto_points(rows, faults, report)
    ends = recognise_ends(rows.frame.columns)
    return rows if ends is None else as_points(rows, ends, options.columns, report)


def _read_files(source: Any, options: ReadOptions, faults: Faults, report: ReadReport) -> tuple[Runs | None, str]:
    files = find_files(source, options, report)
    seal = fingerprint(files)
    parts = [Runs.of(frame) for frame in points(files, options, faults, report)]
    refuse_changed(files, seal)
    if not parts and not faults:
        faults.add("there are no rows in it", file=_named(files))
    if faults:
        return None, seal.fingerprint
    names = [file.name for file in files]
    return settle(Runs.together(parts), report, faults, strict=options.strict, files=names), seal.fingerprint


def _read_frame(source: Any, options: ReadOptions, faults: Faults, report: ReadReport) -> Runs | None:
    batch = batch_of(source)
    checker = PointChecker(options, faults, None)
    frame = None
    with guarded(faults, None):
        report.rows += batch.frame.height
        points_of = rows_as_points(batch, options, faults, report)
        frame = None if points_of is None else checker.take(points_of)
    _count(checker, report)
    if frame is not None and not frame.height:
        faults.add("the frame has no rows")
    if frame is None or faults:
        return None
    return settle(Runs.of(frame), report, faults, strict=options.strict, files=[None])


def _named(files: list[SourceFile]) -> str:
    return files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"


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
