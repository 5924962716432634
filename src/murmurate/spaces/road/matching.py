"""Results of matching: the link of every point, the links every trip drove, and their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.spaces.road.network import RoadNetwork


@dataclass(frozen=True, eq=False, kw_only=True)
class Matching:
    """Holds links per point and per trip; what could not be matched is -1 or NaN, never filled in.

    A trip is matched in parts: a new part begins where no drive explains the step from the point before (a long gap,
    a leap, a piece of road that is not on the map). Between parts nothing is assumed to have been driven.
    """

    offsets: Integers
    """Trip k is points offsets[k]:offsets[k + 1]."""
    link: Integers
    """The directed link of each point; -1 unmatched."""
    offset_m: Floats
    """Metres along that link."""
    distance_m: Floats
    """Metres between the point and the link."""
    confidence: Floats
    """Posterior probability of that very link; 0 unmatched. Near a junction several links share it."""
    part: Integers
    """The part of its trip each point belongs to; -1 unmatched."""
    path_offsets: Integers
    """Trip k drove path_link[path_offsets[k]:path_offsets[k + 1]]."""
    path_link: Integers
    path_part: Integers
    path_elapsed_s: Floats
    """Seconds from the first point of its trip until each link was entered, at an even pace between points; NaN without
    times. Follows from the trip alone, rounding included."""
    start_us: Integers | None = None
    """Microseconds since 1970 of the first point of each trip; None without times."""

    @property
    def n_trips(self) -> int:
        return len(self.offsets) - 1

    @property
    def trip_confidence(self) -> Floats:
        """Return the mean confidence of each trip's points, unmatched ones counting 0."""
        return np.add.reduceat(self.confidence, self.offsets[:-1]) / np.diff(self.offsets) if self.n_trips else np.zeros(0)

    @property
    def trip_unmatched(self) -> Integers:
        """Count the unmatched points of each trip."""
        missing = (self.link < 0).astype(np.int64)
        return np.add.reduceat(missing, self.offsets[:-1]) if self.n_trips else np.zeros(0, np.int64)

    @property
    def path_trip(self) -> Integers:
        """Return the trip of each driven link."""
        return np.repeat(np.arange(self.n_trips, dtype=np.int64), np.diff(self.path_offsets))

    @property
    def path_entered_s(self) -> Floats:
        """Return seconds since 1970 at which each link was entered, to about a microsecond; NaN without times."""
        if self.start_us is None:
            return self.path_elapsed_s
        return self.start_us[self.path_trip] / 1e6 + self.path_elapsed_s

    def path(self, trip: int) -> Integers:
        """Return the directed links that trip number `trip` drove, in order."""
        return self.path_link[self.path_offsets[trip] : self.path_offsets[trip + 1]]

    def summary(self) -> dict[str, float]:
        """Count matched points and trips for the custodian; the counts are private and must not leave."""
        there = self.link >= 0
        return {
            "points": len(self.link),
            "points_matched": int(there.sum()),
            "points_unmatched": int((~there).sum()),
            "trips": self.n_trips,
            "trips_without_path": int((np.diff(self.path_offsets) == 0).sum()),
            "trips_in_several_parts": len(np.unique(self.offsets.searchsorted(np.flatnonzero(self.part > 0), side="right"))),
            "links_driven": len(self.path_link),
            "mean_confidence": float(self.confidence.mean()) if len(self.link) else 0.0,
            "median_distance_m": float(np.median(self.distance_m[there])) if there.any() else float("nan"),
        }

    def to_trips(self, trips: Trips, network: RoadNetwork) -> Trips:
        """Return the driven links of `trips` as trips on `network`, with a `link` column and the time each was entered."""
        uid = trips.table["uid"].gather(self.offsets[:-1]).gather(self.path_trip)
        columns: dict[str, Any] = {"uid": uid, "tid": trips.trip_ids.gather(self.path_trip)}
        if trips.has_time:
            entered_us = trips.time_us[self.offsets[:-1]][self.path_trip] + np.round(self.path_elapsed_s * 1e6).astype(np.int64)
            columns["datetime"] = pl.Series(entered_us).cast(pl.Datetime("us", "UTC"))
        columns["link"] = self.path_link
        return Trips(pl.DataFrame(columns), network, trips.time_zone)


def joined(parts: Sequence[Matching]) -> Matching:
    """Join matchings of consecutive trips."""
    if len(parts) == 1:
        return parts[0]
    fields = ("link", "offset_m", "distance_m", "confidence", "part", "path_link", "path_part", "path_elapsed_s")
    values: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in fields}
    for name in ("offsets", "path_offsets"):
        sizes = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        values[name] = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Matching(**values)
