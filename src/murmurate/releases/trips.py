"""Trips: points with times and places, one row each; uid and tid are pseudonyms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.metrics import Comparable
from murmurate.releases.folder import Release
from murmurate.releases.kind import Kind


class TripsKind(Kind):
    """Trips in `data.parquet`."""

    name = "trips"
    title = "Trips"
    identifiers = True
    figures = ("maps", "distributions", "lives")
    headline: ClassVar[Mapping[str, str]] = {
        "visits.jsd": "Difference of the maps of visits",
        "od_emd": "Flows misplaced by, hour by hour",
        "od_emd_whole": "Flows misplaced by, whole day",
        "length.relative_mean_change": "Change of the mean length",
        "duration.relative_mean_change": "Change of the mean duration",
        "trip_size": "Difference in cells per trip",
        "time_of_day.departures_jsd": "Difference of departure times",
        "top_places.coverage_50": "Kept of the 50 busiest cells",
        "range_queries": "Mean error of counts in areas",
        "patterns.f1_100": "Kept of the 100 most frequent routes",
        "hausdorff_nearest.mean": "Mean distance to the nearest original trip",
        "point_displacement.average.mean": "Points moved by, on average",
    }

    def read(self, release: Release) -> Trips:
        return release.trips

    def n_trips(self, data: Trips) -> int:
        return data.n_trips

    def unprotected(self, trips: Trips, released: Any) -> Trips:
        return trips

    def compare(
        self, released: Any, original: Trips, *, grid: Places | None = None, pairing: ArrayLike | None = None, seed: int = 0
    ) -> Comparable:
        from murmurate.metrics.compare import compare  # loads kernels, which naming the kind does not need

        return compare(released, original, grid=grid, pairing=pairing, seed=seed)
