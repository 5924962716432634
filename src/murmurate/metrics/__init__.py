"""List the metrics of utility by name; each file is one family, imported only when used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from murmurate.core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from murmurate.core.score import Score
    from murmurate.engine import Engine


@dataclass(frozen=True)
class Metric(Entry):
    """Say where a metric is, what kind of data it reads, and what it needs: pairing, time, or an hour of day.

    The function takes a comparison (see `Comparable`); its keyword options are the metric's parameters.
    """

    needs: frozenset[str] = frozenset()
    reads: str = "trips"
    """The kind of release it measures."""
    parallel: bool = False
    """Whether it takes `workers` and runs its parts on the engine."""
    by_trip: bool = False
    """Whether it is a value of every pair of trips, made into scores by `comparison.summarise`."""


class Comparable(Protocol):
    """Hold a release beside its originals, as the metrics of its kind read them."""

    def missing(self) -> Mapping[str, str]:
        """Return what the data lack (pairing, time, hour), each with the sentence that says so."""
        ...


@dataclass(frozen=True)
class Pair:
    """Hold what was released beside what it is compared with; nothing is missing."""

    released: object
    original: object

    def missing(self) -> Mapping[str, str]:
        return {}


def _metric(module: str, *needs: str, reads: str = "trips", parallel: bool = False, by_trip: bool = False) -> Metric:
    return Metric(f"murmurate.metrics.{module}", frozenset(needs), reads, parallel, by_trip)


METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "length": _metric("trips:length"),
        "duration": _metric("trips:duration", "time"),
        "speed": _metric("trips:speed", "time"),
        "length_change": _metric("trips:length_change", "pairing", by_trip=True),
        "duration_change": _metric("trips:duration_change", "pairing", "time", by_trip=True),
        "speed_change": _metric("trips:speed_change", "pairing", "time", by_trip=True),
        "point_displacement": _metric("trips:point_displacement", "pairing", by_trip=True),
        "centroid_displacement": _metric("trips:centroid_displacement", "pairing", by_trip=True),
        "trip_size": _metric("trips:trip_size", "hour"),
        "hausdorff": _metric("hausdorff:hausdorff", "pairing", by_trip=True),
        "hausdorff_nearest": _metric("hausdorff:hausdorff_nearest"),
        "od_emd": _metric("flows:od_emd", "hour", parallel=True),
        "od_emd_whole": _metric("flows:od_emd_whole"),
        "od_matrix": _metric("flows:od_matrix"),
        "visits": _metric("density:visits"),
        "counting_queries": _metric("density:counting_queries"),
        "range_queries": _metric("density:range_queries"),
        "od_queries": _metric("queries:od_queries"),
        "top_places": _metric("density:top_places"),
        "hot_spots": _metric("density:hot_spots"),
        "gyration": _metric("density:gyration"),
        "time_of_day": _metric("density:time_of_day", "hour"),
        "patterns": _metric("patterns:patterns"),
        "patterns_with_single": _metric("patterns:patterns_with_single"),
        "patterns_by_trip": _metric("patterns:patterns_by_trip"),
        "cell_sets": _metric("cell_sets:cell_sets"),
        "adatrace_query": _metric("adatrace:adatrace_query"),
        "adatrace_kendall": _metric("adatrace:adatrace_kendall"),
        "adatrace_patterns": _metric("adatrace:adatrace_patterns"),
        "adatrace_trip": _metric("adatrace:adatrace_trip"),
        "adatrace_diameter": _metric("adatrace:adatrace_diameter"),
        "adatrace_length": _metric("adatrace:adatrace_length"),
        "dpmobility_visits": _metric("dpmobility:dpmobility_visits"),
        "dpmobility_od": _metric("dpmobility:dpmobility_od"),
        "day_visits": _metric("semantics:day_visits", "time"),
        "day_time_allocation": _metric("semantics:day_time_allocation", "time"),
        "day_mobility": _metric("semantics:day_mobility", "time"),
        "day_semantics": _metric("semantics:day_semantics", "time"),
        "network_length": _metric("networks:network_length", reads="network"),
        "network_links": _metric("networks:network_links", reads="network"),
        "network_counts": _metric("networks:network_counts", reads="network"),
        "network_classes": _metric("networks:network_classes", reads="network"),
        "network_hours": _metric("networks:network_hours", reads="network"),
        "network_connectivity": _metric("networks:network_connectivity", reads="network"),
        "network_speeds": _metric("networks:network_speeds", reads="network"),
        "zone_totals": _metric("zone_flows:zone_totals", reads="flows"),
        "zone_pairs": _metric("zone_flows:zone_pairs", reads="flows"),
        "flow_intervals": _metric("zone_flows:flow_intervals", reads="flows"),
        "flow_sums": _metric("zone_flows:flow_sums", reads="flows"),
    },
)
"""Name -> where it is and what it needs. One line a metric, one entry each in docs/metrics.md."""


def measure(name: str, comparison: Comparable, *, workers: int | Engine = 1, **parameters: object) -> list[Score]:
    """Return the scores of one metric; `NotMeasurable` where the data lack what it needs."""
    from murmurate.metrics.comparison import NotMeasurable  # here, so that listing the names loads no kernels

    found = METRICS[name]
    missing = comparison.missing()
    lacks = [missing[need] for need in sorted(found.needs) if need in missing]
    if lacks:
        raise NotMeasurable("; ".join(dict.fromkeys(lacks)))
    if found.parallel:
        parameters["workers"] = workers
    scores: list[Score] = found.load()(comparison, **parameters)
    return scores


def metrics_of(kind: str) -> tuple[str, ...]:
    """Return the names of the metrics that read this kind of release."""
    return tuple(name for name, found in METRICS.items() if found.reads == kind)
