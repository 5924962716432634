"""Flows: trips between zones and totals of zones, with intervals; the zones lie in the folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from murmurate.core.space import Places, Space
from murmurate.core.trips import Trips
from murmurate.errors import InputError, VerifyError
from murmurate.metrics import Comparable
from murmurate.releases.folder import Release
from murmurate.releases.kind import Kind
from murmurate.releases.manifest import read_manifest
from murmurate.spaces.grid import Grid
from murmurate.spaces.zone_flows import PLACES, ZoneFlows
from murmurate.spaces.zones import Zones


class Flows(Kind):
    """`zones.parquet`, `od.parquet` and `classes.parquet`, with the outlines of the zones in `places.geojson`."""

    name = "flows"
    figures = ("zone_flows",)
    no_attack = "it holds noisy counts alone; the exact meter and the audit of its mechanism bound what they reveal."
    headline: ClassVar[Mapping[str, str]] = {
        "zone_totals.relative_error_median": "Error of busy zones, hour by hour",
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

    def carried_space(self, folder: Path) -> Space | None:
        """Return zones and stops, whose outlines lie in the folder; grids and hexagons follow from the parameters."""
        kind, _, rest = str(read_manifest(folder).parameters.get("space", "")).partition(":")
        if kind not in ("zones", "stops") or not (folder / PLACES).is_file():
            return None
        return replace(Zones.read(folder / PLACES), source=rest.rpartition("#")[0])

    def compare(
        self, released: Any, original: Trips, *, grid: Grid | None = None, pairing: ArrayLike | None = None, seed: int = 0
    ) -> Comparable:
        """The originals are counted plainly in the same zones; grid and pairing mean nothing here."""
        from murmurate.metrics.zone_flows import Truth

        if not (original.has_time and original.has_coordinates):
            raise InputError("flows are compared with trips that have times and coordinates; these lack one of them.")
        return Truth(released, original)
