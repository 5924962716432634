"""od_successive: trips lose links from either end while fewer than k drove them; a baseline without a guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.guarantee import NoGuarantee, Unit
from murmurate.core.parameters import whole
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.spaces import parse_specs
from murmurate.spaces.drives import Drives, drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

if TYPE_CHECKING:
    from murmurate.noise import Randomness

WHY = (
    "links are removed by exact counts, so that one person's presence decides what others' links are shown; rare links inside "
    "a trip stay, and counts carry no noise. Use road_counts for a network with a guarantee."
)
"""Why nothing is promised; part of `NoGuarantee`."""


@dataclass(frozen=True, kw_only=True)
class ODSuccessive:
    """Removes links from both ends of every trip up to the first that at least k trips drove in that hour.

    Guarantee
        None: counts are exact, and a link inside a trip may be the trip's own.
    """

    name: ClassVar[str] = "od_successive"
    needs: ClassVar[frozenset[str]] = frozenset({"time", "coordinates"})
    emits: ClassVar[tuple[str, ...]] = ()
    makes: ClassVar[str] = "network"
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"space": "road", "k": 2}

    space: RoadNetwork
    """The public road network."""
    k: int = 2
    """Trips that must have driven a link in that hour for it to stay at the end of a trip."""
    by_day: bool = False
    """Hours of every date apart, instead of hours of the day."""

    def __post_init__(self) -> None:
        parse_specs(self)
        whole("k", self.k, at_least=2)
        if not isinstance(self.by_day, bool):
            raise ParameterError(f"by_day must be true or false; got {self.by_day!r}.")
        if not isinstance(self.space, RoadNetwork):
            raise ParameterError(f"space must be a road network, road:FILE; got {type(self.space).__name__}.")

    def guarantee(self) -> NoGuarantee:
        """Return that nothing is promised, and why."""
        return NoGuarantee(why=WHY, unit=Unit(name="trip"))

    def statement(self) -> tuple[str, ...]:
        """Say what was removed and what was not."""
        return (
            f"From both ends of every trip links were removed up to the first that at least {self.k} trips drove in that hour.",
            "Links further inside a trip were kept even where nobody else drove them, and all counts are exact.",
        )

    def expected_error(self) -> str:
        """Say how much of the network is removed."""
        return (
            "The network gets shorter, by about 30 % for one hour of one day of taxis at k = 2; counts are too low near ends."
        )

    def apply(self, private: Trips, rng: Randomness) -> LinkFlows:
        """Count links by hour in the shortened trips."""
        return LinkFlows.of_drives(self.shortened(drives_of(private, self.space)), by_day=self.by_day)

    def shortened(self, drives: Drives) -> Drives:
        """Remove the rare links at the ends of drives."""
        hours = drives.day * 24 + drives.hour if self.by_day else drives.hour
        _, at, count = np.unique(hours * drives.network.n_links + drives.link, return_inverse=True, return_counts=True)
        return drives.take(_frequent(drives.offsets, count[at], self.k))


@njit(cache=True, nogil=True)
def _frequent(offsets: Integers, count: Integers, k: int) -> NDArray[np.bool_]:
    """Mark the driven links from the first to the last of each trip that has a count of at least k."""
    keep = np.ones(len(count), dtype=np.bool_)
    for trip in range(len(offsets) - 1):
        low, high = offsets[trip], offsets[trip + 1] - 1
        while low <= high and count[low] < k:
            keep[low] = False
            low += 1
        while high >= low and count[high] < k:
            keep[high] = False
            high -= 1
    return keep
