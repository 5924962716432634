"""`inspect`: describe what is in a file and what is wrong with it, for the custodian only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.trips import Identity, Trips
from murmurate.engine import Engine
from murmurate.engine import engine as open_engine
from murmurate.errors import InputError
from murmurate.ingest.cleaning import CleanedPartitions, Cleaning
from murmurate.ingest.columns import option
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.picture import Picture
from murmurate.ingest.read import is_path, read
from murmurate.ingest.stream import scan, worth_streaming
from murmurate.spaces.swapped import why_swapped

INTERVALS_PER_PART = 200_000
"""Points of each part whose intervals are looked at; quantiles need no more. Set by hand."""
RAW_STREAM_S = 3 * 3600.0
"""Median seconds of a trip from which on it looks like a raw stream. Set by hand."""


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What a source holds. Everything in it is private."""

    source: str
    fingerprint: str | None = None
    report: ReadReport = field(default_factory=ReadReport)
    time_zone: str = "UTC"
    first: str | None = None
    """The earliest time, UTC."""
    last: str | None = None
    interval_s: dict[str, float] | None = None
    """Seconds between neighbouring points of a trip: the 10 %, 50 % and 90 % quantiles."""
    extent: dict[str, float] | None = None
    """South, west, north, east in degrees."""
    points_per_trip: dict[str, float] | None = None
    trips_per_person: dict[str, float] | None = None
    notes: tuple[str, ...] = ()
    """What looks wrong although it can be read, and what to type."""
    cleaning: tuple[str, ...] = ()
    """How it was cleaned, where it was."""
    faults: tuple[str, ...] = ()
    remedy: str | None = None
    picture: Picture | None = field(default=None, repr=False, compare=False)
    """Counts for a page; not part of the JSON."""

    @property
    def readable(self) -> bool:
        """Whether it has no fault."""
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        values = asdict(replace(self, picture=None))
        del values["picture"]
        lists = {name: list(values[name]) for name in ("faults", "notes", "cleaning")}
        return {**values, **lists, "readable": self.readable}

    def words(self) -> str:
        """Return a page for a terminal."""
        if self.faults:
            lines = [f"{self.source}: cannot be read as traces", *[f"  - {fault}" for fault in self.faults]]
            return "\n".join([*lines, *([f"What to do: {self.remedy}"] if self.remedy else [])])
        seen = self.report
        lines = [
            f"{self.source}",
            f"  {seen.points:,} points, {seen.trips:,} trips, {seen.people:,} people"
            + (f" in {seen.files:,} files" if seen.files > 1 else ""),
            "  columns: " + ", ".join(f"{name} = {column!r}" for name, column in seen.columns.items()),
        ]
        if self.first:
            lines.append(f"  time: {self.first} to {self.last} (UTC; hours are counted in {self.time_zone})")
        else:
            lines.append("  time: none, or weekday and hour only")
        if self.interval_s:
            lines.append("  seconds between points: " + _quantile_words(self.interval_s))
        if self.extent:
            lines.append("  extent: " + ", ".join(f"{name} {value:.5f}" for name, value in self.extent.items()))
        for name, values in (("points a trip", self.points_per_trip), ("trips a person", self.trips_per_person)):
            if values:
                lines.append(f"  {name}: {_quantile_words(values)}")
        lines += [f"  {line}" for line in (*self.cleaning, *_oddities(seen))]
        lines += [f"  NOTE: {note}" for note in self.notes]
        return "\n".join([*lines, "These figures are private: they describe the data, not a release."])


def inspect(
    source: Any,
    *,
    clean: Mapping[str, Any] | None = None,
    engine: int | str | Engine = 1,
    on_identity: Callable[[Identity], None] | None = None,
    **read_options: Any,
) -> Inspection:
    """Describe a source without spending or releasing anything; faults are listed, not raised.

    Options are those of `read`; `clean` are settings of `Cleaning`, to see the trips that they make. An
    `engine` shares the reading of a large file. `on_identity` is called with whose data it holds, where it can be read.
    """
    cleaning = Cleaning.of(clean or {})
    name = str(source) if is_path(source) else type(source).__name__
    report = ReadReport()
    options = {**read_options, "report": report}
    try:
        if worth_streaming(source):
            carry = (cleaning.occupied,) if cleaning and cleaning.occupied else ()
            with open_engine(engine) as running, scan(source, carry=carry, engine=running, **options) as partitions:
                if on_identity is not None:
                    on_identity(partitions.identity)
                parts = partitions if cleaning is None else CleanedPartitions(partitions, cleaning)
                return _described(name, parts, report, partitions.identity.fingerprint, cleaning)
        trips = read(source, **options)
        if on_identity is not None:
            on_identity(trips.identity)
        whole = trips if cleaning is None else cleaning.apply(trips)[0]
        return _described(name, [whole], report, trips.identity.fingerprint, cleaning)
    except InputError as error:
        faults = tuple(str(fault) for fault in error.faults)
        return Inspection(source=name, report=report, faults=faults, remedy=error.remedy)


def _described(
    name: str, parts: Iterable[Trips], report: ReadReport, fingerprint: str, cleaning: Cleaning | None
) -> Inspection:
    time_zone, picture = "UTC", Picture()
    times, lows, highs, intervals, trip_sizes, person_sizes, lasts_s = [], [], [], [], [], [], []
    swapped: str | None = None
    for part in parts:
        time_zone = part.time_zone
        if not part.n_points:
            continue
        picture.add(part)
        trip_sizes.append(np.diff(part.offsets))
        person_sizes.append(np.diff(part.user_offsets))
        if part.has_time:
            times += [int(part.time_us.min()), int(part.time_us.max())]
            steps_s = np.diff(part.time_us[:INTERVALS_PER_PART]) / 1e6
            intervals.append(steps_s[np.diff(part.point_trip[:INTERVALS_PER_PART]) == 0])
            lasts_s.append((part.time_us[part.offsets[1:] - 1] - part.time_us[part.offsets[:-1]]) / 1e6)
        if part.has_coordinates:
            lows.append((part.lat.min(), part.lng.min()))
            highs.append((part.lat.max(), part.lng.max()))
            swapped = swapped or why_swapped(part)
    if cleaning is not None:
        points, trips = int(sum(sizes.sum() for sizes in trip_sizes)), sum(map(len, trip_sizes))
        report = replace(report, points=points, trips=trips)
    corners = [*np.min(lows, axis=0).tolist(), *np.max(highs, axis=0).tolist()] if lows else []
    return Inspection(
        source=name,
        fingerprint=fingerprint,
        report=report,
        time_zone=time_zone,
        first=_moment(min(times, default=None)),
        last=_moment(max(times, default=None)),
        interval_s=_quantiles(intervals),
        extent=dict(zip(("south", "west", "north", "east"), corners, strict=True)) if corners else None,
        points_per_trip=_quantiles(trip_sizes),
        trips_per_person=_quantiles(person_sizes),
        notes=tuple(_notes(report, _quantiles(lasts_s), swapped)),
        cleaning=tuple(cleaning.words()) if cleaning else (),
        picture=picture,
    )


def _notes(report: ReadReport, lasts_s: dict[str, float] | None, swapped: str | None) -> Iterable[str]:
    """Say what looks wrong although the file can be read, and what to type."""
    if swapped:
        exchanged = option(lat=report.columns.get("lng", "lng"), lng=report.columns.get("lat", "lat"))
        yield f"latitude and longitude look swapped: {swapped}. Say {exchanged}"
    if lasts_s and lasts_s["50%"] > RAW_STREAM_S:
        yield "trips last for hours: a raw stream? Add --split-gap 5min --split-stay 10min --max-speed 200"


def _quantiles(parts: Sequence[NDArray[Any]]) -> dict[str, float] | None:
    if not any(map(len, parts)):
        return None
    values = np.concatenate(parts)
    return {name: float(np.quantile(values, share)) for name, share in (("10%", 0.1), ("50%", 0.5), ("90%", 0.9))}


def _quantile_words(values: dict[str, float]) -> str:
    return f"median {values['50%']:.4g}; the lowest tenth up to {values['10%']:.4g}, the highest tenth from {values['90%']:.4g}"


def _moment(us: int | None) -> str | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="seconds")


def _oddities(seen: ReadReport) -> list[str]:
    counts = {
        "points out of order, sorted": seen.out_of_order,
        "duplicate points, the first kept": seen.duplicates,
        "points elsewhere at the time of another, the first kept": seen.two_places_at_once,
        "one-point trips, kept": seen.one_point_trips,
        "local times that happened twice, read as the earlier": seen.ambiguous_times,
        **{f"{reason}, left out": count for reason, count in seen.rows_left_out.items()},
    }
    lines = [f"{count:,} {what}" for what, count in counts.items() if count]
    if seen.columns_left_out:
        lines.append(f"columns left out (not plain values): {', '.join(seen.columns_left_out)}")
    if seen.files_left_out:
        lines.append(f"{len(seen.files_left_out):,} files of no known format left out")
    return lines
