"""Links: counts and speeds of the links of a road network, hour by hour; the network lies in the folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.metrics import Comparable
from murmurate.releases.folder import Release
from murmurate.releases.kind import Kind
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import GEOPACKAGE, LinkFlows
from murmurate.spaces.road import RoadNetwork


class Links(Kind):
    """`links.parquet` and its network as `network.gpkg` and `network.geojson`."""

    name = "network"
    title = "Road traffic"
    figures = ("traffic",)
    headline: ClassVar[Mapping[str, str]] = {
        "network_length.lost": "Roads lost, by length",
        "network_length.invented": "Roads invented, by length",
        "network_links.correlation": "Correlation of the traffic of links",
        "network_links.shown": "Shown of the busiest links",
        "network_links.relative_error": "Error of the busiest links that are shown",
        "network_links.top_100": "Kept of the 100 busiest links",
        "network_hours.profile": "Traffic at other hours",
        "network_connectivity.ratio": "Connectivity (1 is the original)",
        "network_speeds.relative_error": "Error of speeds",
    }

    def read(self, release: Release) -> LinkFlows:
        return LinkFlows.read(release.folder)

    def carried_space(self, folder: Path) -> RoadNetwork | None:
        return LinkFlows.read(folder).network if (folder / GEOPACKAGE).is_file() else None

    def unprotected(self, trips: Trips, released: LinkFlows) -> LinkFlows:
        return LinkFlows.of_drives(drives_of(trips, released.network), by_day="day" in released.table.columns)

    def compare(
        self, released: Any, original: Trips, *, grid: Places | None = None, pairing: ArrayLike | None = None, seed: int = 0
    ) -> Comparable:
        """The originals are matched to the same network and counted plainly; grid and pairing mean nothing here."""
        from murmurate.metrics.networks import Networks

        if not (original.has_time and original.has_coordinates):
            raise InputError("a network is compared with trips that have times and coordinates; these lack one of them.")
        by_day = "day" in released.table.columns
        return Networks(released, LinkFlows.of_drives(drives_of(original, released.network), by_day=by_day))
