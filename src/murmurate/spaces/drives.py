"""Drives: the links of a road network that trips drove, in order, with the hour and the seconds of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.core.trips import TIME, Trips
from murmurate.spaces.road import Matching, RoadNetwork, match

KEPT = "_drives"
"""Attribute of trips under which their last drives are kept, beside their other derived columns."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Drives:
    """Holds the directed links of every trip in order; trip k drove link[offsets[k]:offsets[k + 1]], perhaps nothing."""

    network: RoadNetwork
    offsets: Integers
    link: Integers
    part: Integers
    """Between two parts of a trip nothing is known to have been driven."""
    hour: Integers
    """Local hour at which the link was entered."""
    day: Integers
    """Days since 1970, local, at which the link was entered."""
    seconds: Floats
    """From entering the link to entering the next one; NaN at the ends of parts, where links are driven in part."""

    @property
    def n_trips(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def trip(self) -> Integers:
        """Return the trip of every driven link."""
        return np.repeat(np.arange(self.n_trips, dtype=np.int64), np.diff(self.offsets))

    @cached_property
    def driven(self) -> Integers:
        """Return trips that drove something."""
        return np.flatnonzero(np.diff(self.offsets) > 0)

    @property
    def ends(self) -> tuple[Integers, Integers]:
        """Return first and last link of the trips in `driven`."""
        return self.link[self.offsets[self.driven]], self.link[self.offsets[self.driven + 1] - 1]

    @property
    def end_nodes(self) -> tuple[Integers, Integers]:
        """Return the node each trip in `driven` came from and the one it went to."""
        first, last = self.ends
        return self.network.link_from[first], self.network.link_to[last]

    def take(self, keep: NDArray[np.bool_]) -> Drives:
        """Keep the driven links where the mask holds; trips may become empty."""
        before = np.concatenate([[0], np.cumsum(keep)])
        kept = {name: getattr(self, name)[keep] for name in ("link", "part", "hour", "day", "seconds")}
        return replace(self, offsets=before[self.offsets].astype(np.int64), **kept)

    def counts(self) -> Integers:
        """Count [hour, link], how often each link was entered, all days together."""
        keys = self.hour * self.network.n_links + self.link
        return np.bincount(keys, minlength=24 * self.network.n_links).reshape(24, -1)


def drives_of(trips: Trips, network: RoadNetwork) -> Drives:
    """Match trips and return what each drove; a trip's drive follows from its own points, rounding included.

    The last drives stay with the trips, which never change: whoever judges a release asks for them several times.
    """
    kept: Drives | None = trips.__dict__.get(KEPT)
    if kept is None or kept.network.fingerprint != network.fingerprint:
        kept = drives_of_matching(trips, network, match(trips, network))
        trips.__dict__[KEPT] = kept
    return replace(kept, network=network)


def drives_of_matching(trips: Trips, network: RoadNetwork, found: Matching) -> Drives:
    """Return what `match` found for these trips, with local hours and days."""
    start_us = trips.time_us[trips.offsets[:-1]] if trips.n_trips else np.zeros(0, dtype=np.int64)
    entered_us = start_us[found.path_trip] + np.floor(found.path_elapsed_s * 1e6).astype(np.int64)
    local = pl.Series(entered_us, dtype=pl.Int64).cast(TIME).dt.convert_time_zone(trips.time_zone)
    seconds = np.full(len(found.path_link), np.nan)
    if len(seconds) > 1:
        whole = (found.path_trip[1:] == found.path_trip[:-1]) & (found.path_part[1:] == found.path_part[:-1])
        seconds[:-1] = np.where(whole, np.diff(found.path_elapsed_s), np.nan)
        first = np.concatenate([[True], ~whole])
        seconds[first] = np.nan
    return Drives(
        network=network,
        offsets=found.path_offsets,
        link=found.path_link,
        part=found.path_part,
        hour=local.dt.hour().cast(pl.Int64).to_numpy(),
        day=local.dt.date().to_physical().cast(pl.Int64).to_numpy(),
        seconds=seconds,
    )
