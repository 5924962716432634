"""Flows: trips between zones and totals of zones, with intervals; the zones lie in the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.errors import InputError, VerifyError
from murmurate.metrics import Comparable
from murmurate.releases.folder import Release
from murmurate.releases.kind import Kind
from murmurate.spaces.zone_flows import ZoneFlows


class Flows(Kind):
    """`zones.parquet`, `od.parquet` and `classes.parquet`, with the outlines of the zones in `places.geojson`."""

    name = "flows"
    figures = ("zone_flows",)
    headline: ClassVar[Mapping[str, str]] = {
        "zone_totals.relative_error_median": "Error of busy zones, hour by hour",
        "zone_totals.published": "Busy zones and hours that are published",
        "zone_pairs.relative_error_median": "Error of busy pairs of zones",
        "zone_pairs.listed": "Busy pairs that are listed",
        "flow_intervals.zones": "Intervals of zones that hold the true count",
        "flow_intervals.pairs": "Intervals of pairs that hold the true count",
        "flow_sums.disagreeing": "Sums that do not agree",
    }

    def read(self, release: Release) -> ZoneFlows:
        places = release.space or self.space(release.folder, release.manifest)
        if not isinstance(places, Places):
            raise VerifyError(f"{release.folder} holds flows, but its manifest names no zones.")
        return ZoneFlows.read(release.folder, places)

    def compare(
        self, released: Any, original: Trips, *, grid: Places | None = None, pairing: ArrayLike | None = None, seed: int = 0
    ) -> Comparable:
        """The originals are counted plainly in the same zones; grid and pairing mean nothing here."""
        from murmurate.metrics.zone_flows import Truth

        if not (original.has_time and original.has_coordinates):
            raise InputError("flows are compared with trips that have times and coordinates; these lack one of them.")
        return Truth(released, original)
