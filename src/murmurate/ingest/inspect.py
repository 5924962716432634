"""`inspect`: describe what is in a file and what is wrong with it, for the custodian only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.trips import Identity, Trips
from murmurate.errors import InputError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.read import is_path, read
from murmurate.ingest.stream import scan, worth_streaming

INTERVALS_PER_PART = 200_000
"""Points of each part whose intervals are looked at; quantiles need no more. Set by hand."""


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
    faults: tuple[str, ...] = ()
    remedy: str | None = None

    @property
    def readable(self) -> bool:
        """Whether it has no fault."""
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "faults": list(self.faults), "readable": self.readable}

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
            lines.append(f"  time: {self.first} to {self.last} (UTC; hours are told in {self.time_zone})")
        else:
            lines.append("  time: none, or weekday and hour only")
        if self.interval_s:
            lines.append("  seconds between points: " + _quantile_words(self.interval_s))
        if self.extent:
            lines.append("  extent: " + ", ".join(f"{name} {value:.5f}" for name, value in self.extent.items()))
        for name, values in (("points a trip", self.points_per_trip), ("trips a person", self.trips_per_person)):
            if values:
                lines.append(f"  {name}: {_quantile_words(values)}")
        lines += [f"  {line}" for line in _oddities(seen)]
        return "\n".join([*lines, "These figures are private: they describe the data, not a release."])


def inspect(source: Any, *, on_identity: Callable[[Identity], None] | None = None, **read_options: Any) -> Inspection:
    """Describe a source without spending or releasing anything; faults are listed, not raised. Options are those of `read`.

    `on_identity` is called with whose data it holds, where it can be read.
    """
    name = str(source) if is_path(source) else type(source).__name__
    report = ReadReport()
    options = {**read_options, "report": report}
    try:
        if worth_streaming(source):
            with scan(source, **options) as partitions:
                if on_identity is not None:
                    on_identity(partitions.identity)
                return _described(name, partitions, report, partitions.identity.fingerprint)
        trips = read(source, **options)
        if on_identity is not None:
            on_identity(trips.identity)
        return _described(name, [trips], report, trips.identity.fingerprint)
    except InputError as error:
        faults = tuple(str(fault) for fault in error.faults)
        return Inspection(source=name, report=report, faults=faults, remedy=error.remedy)


def _described(name: str, parts: Iterable[Trips], report: ReadReport, fingerprint: str) -> Inspection:
    time_zone = "UTC"
    times, lows, highs, intervals, trip_sizes, person_sizes = [], [], [], [], [], []
    for part in parts:
        time_zone = part.time_zone
        trip_sizes.append(np.diff(part.offsets))
        person_sizes.append(np.diff(part.user_offsets))
        if part.has_time:
            times += [int(part.time_us.min()), int(part.time_us.max())]
            steps_s = np.diff(part.time_us[:INTERVALS_PER_PART]) / 1e6
            intervals.append(steps_s[np.diff(part.point_trip[:INTERVALS_PER_PART]) == 0])
        if part.has_coordinates:
            lows.append((part.lat.min(), part.lng.min()))
            highs.append((part.lat.max(), part.lng.max()))
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
    )


def _quantiles(parts: Sequence[NDArray[Any]]) -> dict[str, float] | None:
    if not any(map(len, parts)):
        return None
    values = np.concatenate(parts)
    return {name: float(np.quantile(values, share)) for name, share in (("10%", 0.1), ("50%", 0.5), ("90%", 0.9))}


def _quantile_words(values: dict[str, float]) -> str:
    return f"half of them {values['50%']:g} or less, a tenth {values['10%']:g} or less, a tenth {values['90%']:g} or more"


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
