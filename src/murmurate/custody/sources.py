"""Open private files as a recipe says: read, cleaned, and with a note of both, so that judging opens them the same way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from murmurate import engine
from murmurate.core.trips import Trips
from murmurate.custody.internal import Internal
from murmurate.errors import InputError
from murmurate.ingest.cleaning import CleanedPartitions, Cleaning, described
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.read import read as read_trips
from murmurate.ingest.stream import Partitions, scan
from murmurate.releases.manifest import Manifest

Opened = Trips | Partitions | CleanedPartitions
"""Private trips, in memory or in parts."""


def open_private(
    source: Any,
    *,
    read: Mapping[str, Any] | None = None,
    clean: Mapping[str, Any] | None = None,
    people: str | None = None,
    report: ReadReport | None = None,
) -> Trips:
    """Read a file into memory, and clean it; the identity of the trips notes how, `report` what was found."""
    cleaning = Cleaning.of(clean or {})
    trips = read_trips(source, **{**(read or {}), "report": report})
    identity = described(trips.identity, read or {}, cleaning.settings() if cleaning else {}, people)
    return (cleaning.apply(trips)[0] if cleaning else trips).with_source(identity)


def open_in_parts(
    source: str,
    running: engine.Engine,
    *,
    read: Mapping[str, Any],
    clean: Mapping[str, Any],
    people: str | None,
    work_dir: str | Path | None,
    unit: str = "user",
    column: str | None = None,
) -> Partitions | CleanedPartitions:
    """Read a file in parts of whole people, cleaned as they are loaded; for the unit trip whole trips are enough.

    `column` is kept beside those of points: the one that a mechanism counts.
    """
    cleaning = Cleaning.of(clean)
    carry = tuple(name for name in (cleaning.occupied if cleaning else None, column) if name)
    trips = unit == "trip" and cleaning is None  # cleaning cuts the days of people into trips
    options = {"work_dir": work_dir, "carry": carry, "whole_trips": trips, **read}
    parts = scan(source, workers=running.workers, engine=running, **options)
    parts.identity = described(parts.identity, read, cleaning.settings() if cleaning else {}, people)
    return CleanedPartitions(parts, cleaning, running) if cleaning else parts


def open_again(source: str, manifest: Manifest, internal: Internal, *, read: Mapping[str, Any], force: bool = False) -> Trips:
    """Open the file of a release as the release was made: with its record beside the ledger, and what its manifest says.

    `read` are options given now. Hours are counted as in the release and trips are cut as in the release; options that say
    otherwise are refused unless `force` is given.
    """
    return open_private(source, read=_as_made(manifest, internal, read, force), clean=manifest.cleaning)


def open_parts_again(
    source: str,
    manifest: Manifest,
    internal: Internal,
    running: engine.Engine,
    *,
    read: Mapping[str, Any],
    force: bool = False,
    work_dir: str | Path | None = None,
) -> Partitions | CleanedPartitions:
    """Open the file of a release in parts, as `open_again` opens it whole."""
    options = _as_made(manifest, internal, read, force)
    return open_in_parts(source, running, read=options, clean=manifest.cleaning, people=None, work_dir=work_dir)


def _as_made(manifest: Manifest, internal: Internal, read: Mapping[str, Any], force: bool) -> dict[str, Any]:
    """Return the options of reading that a release was made with, and those given now."""
    known = internal.made_from()
    options = {**known.get("read", {}), **read}
    zone = read.get("local_zone", manifest.time_zone)
    if zone != manifest.time_zone and not force:
        raise InputError(
            f"the release counts hours in {manifest.time_zone}, not in {zone}.",
            "Leave out --local-zone: the release's own record is used. --force compares all the same.",
        )
    return {**options, "local_zone": zone}
