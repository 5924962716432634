"""Evaluate data too large for memory: sums over all trips, of a size that does not grow with them, and a sample of trips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers, Places
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import Comparison, NotMeasurable, Side
from murmurate.metrics.flows import SAMPLED, ZONES
from murmurate.metrics.mergeable import Distribution, Drawn, Histogram, LabelCounts, digest
from murmurate.metrics.queries import OD_QUERIES, query_boxes

SUMMED = frozenset(
    (
        "length", "duration", "speed", "trip_size", "od_emd", "od_emd_whole", "od_matrix", "od_queries", "visits",
        "counting_queries", "range_queries", "top_places", "hot_spots", "time_of_day", "adatrace_length",
        "dpmobility_visits", "dpmobility_od",
    )
)  # fmt: skip
"""Metrics that are computed from sums alone, so that they use all trips."""
SAMPLE_POINTS = 1_000_000
"""Approximate number of points of each side that the other metrics use: whole trips, drawn at random. Set by hand."""
MAX_FLOWS = 1 << 20
"""Maximum of origin-destination pairs that are counted; of more, those with the smallest hashes. 16 MB for each side."""
FREQUENT_FLOWS = 1 << 15
"""Number of most frequent pairs in the sample of each side. They are always counted: scores compare the busiest pairs."""
DRAWN_TRIPS = 2 * SAMPLED
"""Trips of each hour whose ends are kept: enough for two disjoint samples for the earth mover's distance."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Say what is counted in every part of both sides."""

    grid: Places
    frequent: Integers
    """Origin-destination pairs that are always counted."""
    boxes: Integers
    """Pairs of rectangles for `od_queries`."""

    @classmethod
    def of(cls, samples: Comparison) -> Plan:
        """Choose frequent pairs by the samples of both sides."""
        found = []
        for side in samples.sides:
            most = np.argsort(-side.flows.counts, kind="stable")[:FREQUENT_FLOWS]
            found.append(side.flows.labels[most])
        boxes = query_boxes(samples.original, OD_QUERIES, samples.generator(5))
        return cls(samples.grid, np.unique(np.concatenate(found)), boxes)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over some parts. They add up to the same in any order and grouping."""

    totals: dict[str, NDArray[Any]]
    values: dict[str, Histogram]
    labels: dict[str, LabelCounts]
    ends: Drawn

    @classmethod
    def of(cls, trips: Trips, plan: Plan) -> Sums:
        """Return the sums over a part that the metrics in `SUMMED` need."""
        side = Side(trips, plan.grid)
        has_hour = trips.has_time or "hour" in trips.columns
        group = side.hour if has_hour else np.zeros(side.n, dtype=np.int64)
        flows = LabelCounts.of(side.flow_labels, MAX_FLOWS, plan.frequent)
        totals = {
            "visits": side.visits,
            "end_visits": side.end_visits,
            "zone_flows": side.zone_flows(ZONES),
            "between": side.between(plan.boxes),
            "digests": np.array([digest(side.ends_xy[group == hour]) for hour in range(24)]),
        }
        values, labels = {"length_m": Histogram.of(side.length_m)}, {"flows": flows}
        if trips.has_time:
            totals["hours"] = side.hours
            values |= {"duration_s": Histogram.of(side.duration_s), "speed_kmh": Histogram.of(side.speed_kmh)}
        if has_hour:
            labels["trip_sizes"] = side.trip_sizes
        return cls(totals, values, labels, Drawn.of(group, trip_hashes(trips), side.ends_xy, DRAWN_TRIPS))

    @classmethod
    def add(cls, parts: Sequence[Sums]) -> Sums:
        """Add up sums over different parts."""
        first = parts[0]
        return cls(
            {name: np.sum([part.totals[name] for part in parts], axis=0) for name in first.totals},
            {name: Histogram.add([part.values[name] for part in parts]) for name in first.values},
            {name: LabelCounts.add([part.labels[name] for part in parts]) for name in first.labels},
            Drawn.add([part.ends for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class SummedSide(Side):
    """A side whose `trips` are a sample, with sums over all trips for the metrics in `SUMMED`."""

    sums: Sums

    @property
    def n(self) -> int:
        """Number of all trips, not only those of the sample."""
        return int(self.ends_digest()[0])

    @cached_property
    def visits(self) -> Integers:
        return self.sums.totals["visits"]

    @cached_property
    def hours(self) -> Integers:
        return self.sums.totals["hours"]

    @cached_property
    def end_visits(self) -> Integers:
        return self.sums.totals["end_visits"]

    @cached_property
    def trip_sizes(self) -> LabelCounts:
        return self.sums.labels["trip_sizes"]

    @cached_property
    def flows(self) -> LabelCounts:
        return self.sums.labels["flows"]

    def distribution(self, name: str) -> Distribution:
        return self.sums.values[name].distribution()

    def zone_flows(self, zones: int) -> Integers:
        if zones != ZONES:
            raise NotMeasurable(f"flows of a large release were counted between {ZONES} zones a side; asked for {zones}")
        return self.sums.totals["zone_flows"]

    def between(self, boxes: Integers) -> Integers:
        if len(boxes) != OD_QUERIES:
            raise NotMeasurable(f"a large release was counted in {OD_QUERIES:,} pairs of rectangles; asked for {len(boxes):,}")
        return self.sums.totals["between"]

    def ends_of(self, hour: int | None = None) -> Floats:
        """Return the ends of sampled trips of an hour, or of all hours."""
        return self.sums.ends.of_group(hour)

    def ends_digest(self, hour: int | None = None) -> NDArray[np.uint64]:
        digests = self.sums.totals["digests"]
        found: NDArray[np.uint64] = digests.sum(axis=0) if hour is None else digests[hour]
        return found


def trip_hashes(trips: Trips) -> NDArray[np.uint64]:
    """Return a hash of the uid and tid of each trip; it does not depend on the part."""
    names = pl.DataFrame([trips.table[name].gather(trips.offsets[:-1]).cast(pl.String) for name in ("uid", "tid")])
    return names.hash_rows(1).to_numpy()


def drawn(trips: Trips, share: float) -> NDArray[np.bool_]:
    """Return which trips are in the sample, by the hashes of their uid and tid."""
    return np.asarray(trip_hashes(trips) / 2.0**64 < share)
