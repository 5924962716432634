"""dp_ani: adaptive noise injection at the ends of trips, as published, kept for comparison; it carries no guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from murmurate.core.guarantee import NoGuarantee, Unit
from murmurate.core.parameters import one_of, positive, whole
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.papers.dp_ani.ends import moved_ends
from murmurate.papers.dp_ani.ranges import adaptive_radii, fixed_radii, links_within, radii_of
from murmurate.papers.dp_ani.rejoin import rejoined
from murmurate.spaces import parse_specs
from murmurate.spaces.drives import Drives, drives_of_matching
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork, match

if TYPE_CHECKING:
    from murmurate.noise import Randomness

WHY = (
    "the range of the noise is chosen from the private end of a trip without a valid bound on how much another end would "
    "change it, the new link always lies within that range of the true end, what lies between the ends is not perturbed and "
    "counts carry no noise. Use road_counts for a network with a guarantee."
)
"""Why the published proof does not hold; part of `NoGuarantee`."""


@dataclass(frozen=True, eq=False)
class Perturbed:
    """Holds true and new ends of all trips; for the custodian alone."""

    drives: Drives
    trips: Integers
    """Numbers of the trips that drove something."""
    radius_m: Floats
    """[2, trip]: noise ranges of origins and of destinations."""
    true_link: Integers
    """[2, trip]"""
    new_link: Integers
    """[2, trip]"""

    @property
    def moved(self) -> float:
        """Return the share of ends that moved to another street."""
        twin = self.drives.network.twin
        same = (self.true_link == self.new_link) | (twin[self.true_link] == self.new_link)
        return float(1 - same.mean()) if same.size else 0.0


@dataclass(frozen=True, kw_only=True)
class DPANI:
    """Moves both ends of every trip to a link of the same class nearby and counts links by hour, as published.

    Guarantee
        None: the published proof does not hold (see `guarantee()`).
    """

    name: ClassVar[str] = "dp_ani"
    needs: ClassVar[frozenset[str]] = frozenset({"time", "coordinates"})
    emits: ClassVar[tuple[str, ...]] = ()
    makes: ClassVar[str] = "network"
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"epsilon": 1.0, "space": "road"}

    epsilon: float
    """Privacy parameter of the planar noise at the chosen range; it carries no guarantee."""
    space: RoadNetwork
    """The public road network."""
    variant: Literal["as_published", "own"] = "as_published"
    """Only as_published; `own` is refused, since no sound variant exists."""
    radius_rule: Literal["adaptive", "fix", "max"] = "adaptive"
    """adaptive: the range is chosen by AboveThreshold; fix: without noise; max: the largest range any end needs."""
    epsilon_radius: float | None = None
    """Privacy parameter of AboveThreshold; `epsilon` where None."""
    sensitivity: float = 2.0
    """What AboveThreshold takes the counts to change by; the paper's value, which does not hold."""
    threshold: int = 25
    """Directed links that a range should hold."""
    initial_m: float = 75.0
    """Smallest range tested, z_init, in metres; the paper gives no value, and 75 fits its printed figures best."""
    max_m: float = 500.0
    """Largest range tested, in metres."""
    by_day: bool = False
    """Hours of every date apart, instead of hours of the day."""

    def __post_init__(self) -> None:
        parse_specs(self)
        positive("epsilon", self.epsilon)
        one_of("variant", self.variant, ("as_published", "own"))
        if self.variant == "own":
            raise ParameterError(
                "dp_ani has no sound variant: ranges and links that depend on the private end cannot be repaired. Use "
                "road_counts, which releases the same network under differential privacy."
            )
        one_of("radius_rule", self.radius_rule, ("adaptive", "fix", "max"))
        if self.epsilon_radius is not None:
            positive("epsilon_radius", self.epsilon_radius)
        for name in ("sensitivity", "initial_m", "max_m"):
            positive(name, getattr(self, name))
        if self.max_m < self.initial_m or self.max_m > 5_000:
            raise ParameterError(f"max_m must lie between initial_m and 5,000; got {self.max_m!r}.")
        whole("threshold", self.threshold)
        if not isinstance(self.by_day, bool):
            raise ParameterError(f"by_day must be true or false; got {self.by_day!r}.")
        if not isinstance(self.space, RoadNetwork):
            raise ParameterError(f"space must be a road network, road:FILE; got {type(self.space).__name__}.")

    def guarantee(self) -> NoGuarantee:
        """Return that nothing is promised, and why."""
        return NoGuarantee(why=WHY, unit=Unit(name="trip"))

    def statement(self) -> tuple[str, ...]:
        """Say what was perturbed and what was not."""
        return (
            "The first and the last link of every trip were replaced by a link of the same road class nearby, drawn with "
            f"planar noise (epsilon {self.epsilon:g} at a range that holds about {self.threshold} links); trips were joined "
            "again and links counted by hour.",
            "The intent is to hide where trips begin and end. Everything between the ends is as it was: on real taxi data four "
            "trips in five still contain a link that nobody else drove in that hour.",
            "Counts carry no noise. Comparing what enters and leaves each junction finds many of the ends again.",
        )

    def expected_error(self) -> str:
        """Say how much the length of the network changes."""
        return "The length of the network stays within about 10 % of the original; the ends of trips move by a block or two."

    def apply(self, private: Trips, rng: Randomness) -> LinkFlows:
        """Count links by hour in the perturbed trips."""
        return LinkFlows.of_drives(self.perturb(private, rng).drives, by_day=self.by_day)

    def perturb(self, private: Trips, rng: Randomness) -> Perturbed:
        """Perturb both ends of every trip."""
        network = self.space
        found = match(private, network)
        drives = drives_of_matching(private, network, found)
        trips, first_point, last_point = _end_points(drives, found.link, found.offsets)
        points = np.concatenate([first_point, last_point])
        lat, lng, link = private.lat[points], private.lng[points], found.link[points]
        radius = self._radii(network, lat, lng, rng)
        new = moved_ends(network, lat, lng, link, radius, epsilon=self.epsilon, rng=rng).reshape(2, -1)
        return Perturbed(rejoined(drives, found, trips, *new), trips, radius.reshape(2, -1), link.reshape(2, -1), new)

    def _radii(self, network: RoadNetwork, lat: Floats, lng: Floats, rng: Randomness) -> Floats:
        """Choose the noise range of each end by `radius_rule`."""
        radii = radii_of(self.initial_m, self.max_m)
        counts = links_within(network, lat, lng, radii)
        if self.radius_rule == "adaptive":
            epsilon = self.epsilon if self.epsilon_radius is None else self.epsilon_radius
            return adaptive_radii(
                counts, radii, threshold=self.threshold, epsilon=epsilon, sensitivity=self.sensitivity, rng=rng
            )
        fixed = fixed_radii(counts, radii, threshold=self.threshold)
        return fixed if self.radius_rule == "fix" else np.full(len(fixed), fixed.max(initial=radii[0]))


def _end_points(drives: Drives, link: Integers, offsets: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the trips that drove something, and their first and last matched points."""
    matched_points = np.flatnonzero(link >= 0)
    low = np.searchsorted(matched_points, offsets[:-1])
    high = np.searchsorted(matched_points, offsets[1:])
    trips = drives.driven[high[drives.driven] > low[drives.driven]]
    return trips, matched_points[low[trips]], matched_points[high[trips] - 1]
