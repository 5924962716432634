"""What trips add to flock's tables, round by round; and how joint tables, which hold weighted trips, are scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from murmurate.asking import Answer, Contributions, Norm
from murmurate.asking.table import Answers, once
from murmurate.asking.units import count_units
from murmurate.core.space import Integers
from murmurate.mechanisms.flock.roads import Links
from murmurate.mechanisms.flock.shapes import pace_bins
from murmurate.mechanisms.flock.tables import Zones, one_bin_each, trip_contributions
from murmurate.mechanisms.flock.tracks import Frame, Read

TRACK_TABLES = ("ends", "origins", "destinations", "places", "diameter", "shape", "sizes", "sizes_hour", "towards", "steps")
"""Tables of the second round, over tracks; named in the order in which they are measured."""
SPEED_TABLES = ("pace", "pace_hour")
"""Tables of speeds, of the same round, where trips have times."""
ZONE_TABLES = ("visits", "source_hour", "destination_hour", "pairs", "pairs_hour")
"""Tables of the third round: visits, and tables over zones made from the noisy tables of the second."""


def count_trips(unit: Integers, names: tuple[str, ...] = ("n",)) -> dict[str, Contributions]:
    """Let each trip add one to the numbers of trips."""
    return {name: once(unit, np.zeros_like(unit)) for name in names}


def count_unit_sizes(unit: Integers) -> Mapping[str, Contributions]:
    """Let each unit add one to the number of units with as many trips."""
    return {"units": count_units(unit)}


def scaled(answers: Answers) -> Answers:
    """Scale joint tables to the number of trips: each trip entered them with its unit's weight in their round."""
    found = dict(answers)
    for total, names in (("n_tracks", (*TRACK_TABLES, *SPEED_TABLES, "links")), ("n_zones", ZONE_TABLES)):
        if total in found:
            factor = max(found["n"].noisy[0], 1.0) / max(found[total].noisy[0], 1.0)
            for name in found.keys() & set(names):
                found[name] = Answer(found[name].noisy * factor, found[name].deviation * factor)
    return found


@dataclass(frozen=True)
class CountTracks:
    """Contributions of tracks to the tables of the second round."""

    frame: Frame
    names: tuple[str, ...]
    norm: Norm
    links: Links | None
    totals: tuple[str, ...] = ()
    """Tables of the number of trips."""

    def __call__(self, prepared: Any) -> Mapping[str, Contributions]:
        """Return the contributions to every table."""
        read: Read = prepared if self.links is None else prepared.read
        found = trip_contributions(self.names, read.tracks, self.frame, None, self.norm)
        if read.seconds is not None:
            paces = pace_bins(read.tracks, read.seconds, self.frame.hours)
            found |= {name: one_bin_each(*paces[name]) for name in self.names if name in paces}
        rows = {name: part.contributions(read.unit) for name, part in found.items()}
        if self.links is not None:
            rows["links"] = self.links.contributions(prepared, self.norm)
        return rows | count_trips(read.unit, self.totals)


@dataclass(frozen=True, eq=False)
class CountZones:
    """Contributions of tracks to the tables of the third round."""

    frame: Frame
    zones: Zones
    names: tuple[str, ...]
    norm: Norm
    totals: tuple[str, ...] = ()
    """Tables of the number of trips."""

    def __call__(self, read: Read) -> Mapping[str, Contributions]:
        """Return the contributions to every table."""
        found = trip_contributions(self.names, read.tracks, self.frame, self.zones, self.norm)
        return {name: part.contributions(read.unit) for name, part in found.items()} | count_trips(read.unit, self.totals)
