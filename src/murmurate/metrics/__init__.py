"""What a release is still good for: the metrics by name; each file is one family, imported only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from murmurate.core.parameters import closest
from murmurate.errors import ParameterError

if TYPE_CHECKING:
    from murmurate.core.score import Score
    from murmurate.metrics.comparison import Comparison


@dataclass(frozen=True)
class Metric:
    """Where a metric lives and what it cannot do without: pairing, time, or an hour of day."""

    module: str
    needs: frozenset[str] = frozenset()
    parallel: bool = False
    """Whether it takes `workers` and runs its parts on the engine."""
    by_trip: bool = False
    """Whether it is a value of every pair of trips, made into scores by `comparison.summarise`."""

    def function(self, name: str) -> Callable[..., list[Score]]:
        """The function of a comparison; its keyword options are the metric's parameters."""
        found: Callable[..., list[Score]] = getattr(import_module(f"murmurate.metrics.{self.module}"), name)
        return found


def _metric(module: str, *needs: str, parallel: bool = False, by_trip: bool = False) -> Metric:
    return Metric(module, frozenset(needs), parallel, by_trip)


METRICS: dict[str, Metric] = {
    "length": _metric("trips"),
    "duration": _metric("trips", "time"),
    "speed": _metric("trips", "time"),
    "length_change": _metric("trips", "pairing", by_trip=True),
    "duration_change": _metric("trips", "pairing", "time", by_trip=True),
    "speed_change": _metric("trips", "pairing", "time", by_trip=True),
    "point_displacement": _metric("trips", "pairing", by_trip=True),
    "centroid_displacement": _metric("trips", "pairing", by_trip=True),
    "trip_size": _metric("trips", "hour"),
    "hausdorff": _metric("hausdorff", "pairing", by_trip=True),
    "hausdorff_nearest": _metric("hausdorff"),
    "od_emd": _metric("flows", "hour", parallel=True),
    "od_emd_whole": _metric("flows"),
    "od_matrix": _metric("flows"),
    "visits": _metric("density"),
    "counting_queries": _metric("density"),
    "range_queries": _metric("density"),
    "od_queries": _metric("queries"),
    "top_places": _metric("density"),
    "hot_spots": _metric("density"),
    "gyration": _metric("density"),
    "time_of_day": _metric("density", "hour"),
    "patterns": _metric("patterns"),
    "patterns_with_single": _metric("patterns"),
    "patterns_by_trip": _metric("patterns"),
    "adatrace_query": _metric("adatrace"),
    "adatrace_kendall": _metric("adatrace"),
    "adatrace_patterns": _metric("adatrace"),
    "adatrace_trip": _metric("adatrace"),
    "adatrace_diameter": _metric("adatrace"),
    "adatrace_length": _metric("adatrace"),
    "dpmobility_visits": _metric("dpmobility"),
    "dpmobility_od": _metric("dpmobility"),
    "day_visits": _metric("semantics", "time"),
    "day_time_allocation": _metric("semantics", "time"),
    "day_mobility": _metric("semantics", "time"),
    "day_semantics": _metric("semantics", "time"),
}
"""Name -> where it lives and what it needs. One line a metric, one entry each in docs/metrics.md."""


def measure(name: str, comparison: Comparison, *, workers: int = 1, **parameters: object) -> list[Score]:
    """The scores of one metric; `NotMeasurable` where the data lack what it needs."""
    from murmurate.metrics.comparison import NotMeasurable  # here, so that listing the names loads no kernels

    found = metric(name)
    missing = comparison.missing()
    lacks = [missing[need] for need in sorted(found.needs) if need in missing]
    if lacks:
        raise NotMeasurable("; ".join(dict.fromkeys(lacks)))
    if found.parallel:
        parameters["workers"] = workers
    return found.function(name)(comparison, **parameters)


def metric(name: str) -> Metric:
    """The metric behind a name; an unknown name is answered with the nearest known one."""
    if name not in METRICS:
        raise ParameterError(f"no metric is called {name!r}; there are {', '.join(METRICS)}.{closest(name, METRICS)}")
    return METRICS[name]
