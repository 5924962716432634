"""List the figures of a report by name: each kind of release names those that fit it.

A figure is a function of `Shown` that returns values for the page's template: `atlas`, `traffic`, `charts` (a list),
`lives`, `counts`. It must do with what `Shown` holds: in the public edition that is the release alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from murmurate.core.registry import Entry, Registry
from murmurate.core.space import Integers, Places
from murmurate.core.trips import Trips
from murmurate.judging.scoring import Evaluation
from murmurate.metrics.comparison import Side
from murmurate.releases.folder import Release
from murmurate.report.charts import distributions
from murmurate.report.lives import lives
from murmurate.report.maps import Base, atlas, grid_around
from murmurate.report.traffic_maps import traffic_atlas
from murmurate.report.zone_maps import zone_atlas
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

ORIGINAL, RELEASED = "Original", "Released"
"""Titles of the two sides on maps."""

FIGURES: Registry[Entry] = Registry(
    "figure",
    {
        "maps": Entry("murmurate.report.figures:maps"),
        "distributions": Entry("murmurate.report.figures:trip_distributions"),
        "lives": Entry("murmurate.report.figures:days_of_people"),
        "traffic": Entry("murmurate.report.figures:traffic"),
        "zone_flows": Entry("murmurate.report.figures:zone_flows"),
    },
)
"""Name -> module:function. One line a figure."""


@dataclass(frozen=True)
class Shown:
    """Hold what a figure may look at; in the public edition there are no originals, no pairing and no scores."""

    release: Release
    base: Base = None
    original: Trips | None = None
    pairing: Integers | None = None
    evaluation: Evaluation | None = None

    @property
    def grid(self) -> Places | None:
        """Return the places of the page: those of the evaluation inside, the release's own, or cells around it, in public."""
        if not self.release.trips.n_trips:
            return None
        if self.original is None:
            own = self.release.space
            return own if isinstance(own, Places) else grid_around(self.release.trips)
        return None if self.evaluation is None else self.evaluation.places


def drawn(shown: Shown) -> dict[str, Any]:
    """Draw every figure that fits the kind of the release; charts add up."""
    values: dict[str, Any] = {"charts": []}
    for name in shown.release.kind.figures:
        made: Mapping[str, Any] = FIGURES.load(name)(shown)
        values |= {**made, "charts": [*values["charts"], *made.get("charts", ())]}
    return values


def maps(shown: Shown) -> dict[str, Any]:
    """Draw where points are, where trips go, and a few trips, beside the originals where they may be seen."""
    trips, grid = shown.release.trips, shown.grid
    if grid is None or not trips.n_trips:
        return {}
    base = shown.base if shown.base is not None else _own_roads(shown.release.space)
    released = {"released_trips": trips.n_trips, "released_points": trips.n_points}
    if shown.original is None:
        return {"atlas": atlas(grid, {RELEASED: trips}, base=base), "counts": released}
    base = base if base is not None else _own_roads(shown.original.space)
    sides = {ORIGINAL: shown.original, RELEASED: trips}
    return {
        "atlas": atlas(grid, sides, base=base, original=ORIGINAL, pairing=shown.pairing),
        "counts": {"original_trips": shown.original.n_trips, "original_points": shown.original.n_points, **released},
    }


def trip_distributions(shown: Shown) -> dict[str, Any]:
    """Draw lengths, durations, speeds and hours of trips."""
    trips, grid = shown.release.trips, shown.grid
    if grid is None or not trips.n_trips:
        return {}
    before = {} if shown.original is None else {"original": Side(shown.original, grid)}
    return {"charts": distributions({**before, "released": Side(trips, grid)})}


def days_of_people(shown: Shown) -> dict[str, Any]:
    """Draw how days are spent, where the trips make up whole days."""
    trips, grid = shown.release.trips, shown.grid
    if grid is None or not trips.n_trips:
        return {}
    if shown.original is None or shown.evaluation is None:
        return {"lives": lives(trips, grid)}
    return {"lives": lives(trips, grid, original=shown.original, scores=shown.evaluation.scores)}


def traffic(shown: Shown) -> dict[str, Any]:
    """Draw the traffic of links; the originals are matched and counted on the network of the release, days together."""
    released: LinkFlows = shown.release.data
    original = None if shown.original is None else LinkFlows.of_drives(drives_of(shown.original, released.network))
    return {"traffic": traffic_atlas(released, original, base=shown.base)}


def zone_flows(shown: Shown) -> dict[str, Any]:
    """Draw released flows between zones with their intervals; the originals are not needed."""
    level = float(shown.release.manifest.parameters.get("level", 0.95))
    return {"zone_flows": zone_atlas(shown.release.data, level=level, base=shown.base)}


def _own_roads(space: object) -> RoadNetwork | None:
    return space if isinstance(space, RoadNetwork) else None
