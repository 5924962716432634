"""RoadCounts: how many drive each road in each hour, and how fast, under differential privacy of trips, days or people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from murmurate.asking import Budget, Facts, Round, Table
from murmurate.asking.table import Answers
from murmurate.asking.units import TripsPerUnit, units_table
from murmurate.core.accounting import several_words
from murmurate.core.guarantee import DP, Unit
from murmurate.core.parameters import delta_for, one_of, positive, share, whole
from murmurate.errors import ParameterError
from murmurate.mechanisms.road_counts.assemble import SIGMAS, assemble, traffic_of
from murmurate.mechanisms.road_counts.corridors import successions
from murmurate.mechanisms.road_counts.counting import CountLinks, CountZones, MatchDrives, UnitDrives, count_unit_sizes
from murmurate.mechanisms.road_counts.protected import public_zones
from murmurate.mechanisms.road_counts.settings import (
    N_BLOCKS,
    N_CLASSES,
    N_ZONES,
    TYPICAL_LINKS,
    UNITS_SHARE,
    Bounds,
    bounds_of,
    shares_of,
)
from murmurate.mechanisms.road_counts.zones import HEADINGS, zones_of_links
from murmurate.spaces import parse_specs
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.route_table import prepare

if TYPE_CHECKING:
    from murmurate.noise import Randomness

COUNTED_QUANTILE = 0.9
"""Persons and person-days add up to twice this quantile of the links per unit to the total that counts are rescaled to: more
adds noise, less leaves driving out (4 % of the built-in city's at the quantile itself)."""

CLEAR_MEAN_SDS = 8.0
"""Mean count of a link, in standard deviations of its noise, from which on the clip widens (with its root, to twice at most):
where noise is small, scaling down those who drive much is the larger error. Built-in city: at 4 narrow clips are better, at 25
wide ones."""

LINKS_PER_TRIP = 20
"""Links that a trip drives in a city, for expected errors; trips of the built-in city have 24, taxis 40."""

LEAST_MEAN_SDS = 0.1
"""Smallest mean count of a link, in standard deviations of its noise, at which main roads are published. Built-in city of 300
and 3,000 people, persons and person-days, epsilon .025 to 1: at .11 and more some 200 links were published, at .09 none."""


@dataclass(frozen=True, kw_only=True)
class RoadCounts:
    """Releases noisy counts of every link of a public network, made consistent: an aggregated mobility network.

    Guarantee
        (epsilon, delta)-differential privacy for one unit, add or remove. In every table each unit's vector is scaled down
        to a public norm and cut to fixed point before noise, and noise is added to every public link, zone and hour, driven
        or not. Everything after that reads only noisy tables and the public network.

    >>> from murmurate.spaces.road import RoadNetwork
    >>> town = RoadNetwork.from_arrays(node_lat=[0, 0], node_lng=[0, 0.001], link_from=[0], link_to=[1], road_class=[5])
    >>> RoadCounts(epsilon=1.0, space=town).guarantee().unit.name
    'user_day'
    """

    name: ClassVar[str] = "road_counts"
    needs: ClassVar[frozenset[str]] = frozenset({"time", "coordinates"})
    emits: ClassVar[tuple[str, ...]] = ()
    makes: ClassVar[str] = "network"
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"epsilon": 2.0, "space": "road", "unit": "user_day"}

    epsilon: float
    """The budget of one unit; smaller protects more."""
    space: RoadNetwork
    """The public road network whose links are counted."""
    delta: float = 1e-6
    """At most 1 over ten times the number of people."""
    people: int | None = None
    """Rough number of people in the data, if it is public: a `delta` that is not below 1 over it is refused."""
    trips: int | None = None
    """Rough number of trips in the data, if it is public: a release that would be empty is refused before it is charged."""
    unit: Literal["trip", "user_day", "user"] = "user_day"
    """Whose presence is protected."""
    max_trips: int | None = None
    """Trips read of each person or person-day; not needed for the promise, which the clip keeps."""
    clip: float | None = None
    """Norm that the links a unit drove are scaled down to (L2; L1 with Laplace noise). Without it, a public value by unit."""
    max_links: int | None = None
    """Links counted of each unit in the one total that counts are rescaled to. Without it, a public value by unit."""
    noise: Literal["gaussian", "laplace"] = "gaussian"
    """Laplace noise needs no delta and is far larger here: a trip has some forty links."""
    protect_links: int = 2
    """Ends are cut back to where the trip leaves a public zone with this many links (2: the street of the end); 0 cuts nothing.
    The promise rests on the noise, not on this."""
    zones: int | None = None
    """Zones that have their own hourly profiles, one by heading; a power of two, made from noisy counts; 16, 4 or 1 by unit."""
    threshold_sigmas: float | None = None
    """Links whose estimated count is below this multiple of their own remaining standard error are not published; below 1 many
    published roads are empty. Without it 2."""
    speeds: bool | None = None
    """Whether speeds are released. Without it they are, unless the unit is a person: there the counts need the budget."""
    turns: bool | None = None
    """Whether turns at junctions are released; the same."""
    od: bool = False
    """Also trips by origin and destination zone."""

    def __post_init__(self) -> None:
        parse_specs(self)
        positive("epsilon", self.epsilon)
        one_of("unit", self.unit, ("trip", "user_day", "user"))
        one_of("noise", self.noise, ("gaussian", "laplace"))
        share("delta", self.delta, closed=self.noise == "laplace")
        delta_for(self.delta if self.noise == "gaussian" else 0.0, self.people)
        for name in ("max_trips", "max_links", "trips"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))
        if self.max_trips is not None and self.unit == "trip":
            raise ParameterError("max_trips bounds the trips of a day or a person; with unit='trip' there is one.")
        if self.clip is not None:
            positive("clip", self.clip, at_most=1e6)
        whole("protect_links", self.protect_links, at_least=0, at_most=500)
        if self.zones is not None:
            whole("zones", self.zones, at_most=1024)
            if self.zones & (self.zones - 1):
                raise ParameterError(f"zones must be a power of two (1, 2, 4, ... 1024); got {self.zones}.")
        if self.threshold_sigmas is not None:
            positive("threshold_sigmas", self.threshold_sigmas)
        for name in ("speeds", "turns", "od"):
            if not isinstance(getattr(self, name), bool) and (name == "od" or getattr(self, name) is not None):
                raise ParameterError(f"{name} must be true or false; got {getattr(self, name)!r}.")
        if not isinstance(self.space, RoadNetwork):
            raise ParameterError(f"space must be a road network, road:FILE; got {type(self.space).__name__}.")
        self._refuse_empty()

    def _refuse_empty(self) -> None:
        """Refuse settings under which the declared number of trips would show no link; reads public numbers alone."""
        if self.trips is not None and self.trips < self._least_trips / 2:
            raise ParameterError(
                f"the release would be empty: about {self._least_trips:,.0f} trips are needed to show the main roads of these "
                f"{self.space.n_links:,} links, and {self.trips:,} were declared. Nothing was charged.",
                "Give a larger epsilon, a smaller network (main roads, or a smaller area), more days, or a finer unit.",
            )

    @property
    def _least_trips(self) -> float:
        """Return the trips from which on main roads are published, as far as public parameters tell."""
        return self._trips_for(self._link_deviation)

    def _trips_for(self, deviation: float) -> float:
        """Return the trips from which on main roads are published, if links have noise of this deviation."""
        return LEAST_MEAN_SDS * deviation * self.space.n_links / LINKS_PER_TRIP

    def fewest_trips(self, trips_per_unit: float) -> float:
        """Return below about how many trips no link is published, where a unit has so many trips on average."""
        if not self._measures_units:
            return self._least_trips / 2
        links = max(round(LINKS_PER_TRIP * trips_per_unit), 1)
        bounds = bounds_of(self.unit, self.noise, self.clip, self.max_links, (links, 2 * links))
        return self._trips_for(self.budget().deviation(self._shares["links"], bounds.clip)) / 2

    # -- the promise -----------------------------------------------------------------------------------------------

    def budget(self) -> Budget:
        """Return a new budget of the whole promise."""
        return Budget(epsilon=self.epsilon, delta=self.delta if self.noise == "gaussian" else 0.0)

    @cached_property
    def _shares(self) -> Mapping[str, float]:
        """Return the share of the budget of every table that is made."""
        extras = [*(("speeds", "paces") if self._made(self.speeds) else ()), *(("turns",) if self._made(self.turns) else ())]
        left = 1 - UNITS_SHARE[self.unit] if self._measures_units else 1.0
        return shares_of(self.unit, (*extras, *(("od",) if self.od else ())), total=left)

    @property
    def _joint(self) -> bool:
        """Return whether a unit is clipped over all tables of a round together, which Gaussian noise allows."""
        return self.noise == "gaussian"

    @property
    def _measures_units(self) -> bool:
        """Return whether bounds follow from noisy numbers of links per unit: they do for persons and person-days."""
        return self._joint and self.unit != "trip"

    def _made(self, asked: bool | None) -> bool:
        return self.unit != "user" if asked is None else asked

    def _bounds(self, answers: Answers) -> Bounds:
        """Return the bounds of what a unit adds, from public parameters and, where there are some, noisy links per unit."""
        typical = TYPICAL_LINKS[self.unit] if self._measures_units else None
        if "units" not in answers:
            return bounds_of(self.unit, self.noise, self.clip, self.max_links, typical)
        per_unit = TripsPerUnit(answers["units"])
        typical = per_unit.quantile(0.5), 2 * per_unit.quantile(COUNTED_QUANTILE)
        bounds = bounds_of(self.unit, self.noise, self.clip, self.max_links, typical)
        if self.clip is not None:
            return bounds
        mean = per_unit.trips(typical[1]) / self.space.n_links
        clear = mean / self.budget().deviation(self._shares["links"], bounds.clip)
        wider = bounds.clip * float(np.clip(sqrt(clear / CLEAR_MEAN_SDS), 1.0, 2.0))
        return bounds_of(self.unit, self.noise, wider, self.max_links, typical)

    @property
    def _link_deviation(self) -> float:
        """Return the standard deviation of the noise of a link's count, in trips, as far as public parameters tell."""
        return self.budget().deviation(self._shares["links"], self._bounds({}).clip)

    @property
    def threshold(self) -> float:
        """Clipped trips a link would have to carry to be published, did smoothing not help; network.json has the real one."""
        return (self.threshold_sigmas or SIGMAS) * self._link_deviation

    def guarantee(self) -> DP:
        """Return the promise of all noisy tables together."""
        return DP(
            epsilon=float(self.epsilon),
            delta=float(self.delta) if self.noise == "gaussian" else 0.0,
            unit=Unit(name=self.unit, max_trips=self.max_trips),
            assumptions=(
                "The road network, its zones' number, the clip and all other parameters are public: none was chosen by "
                "looking at these trips.",
            ),
            events=self.budget().events,
        )

    def statement(self) -> tuple[str, ...]:
        """Say what is and is not protected."""
        bounds, deviation = self._bounds({}), self._link_deviation
        norm = "root of the sum of squares" if self.noise == "gaussian" else "sum"
        about = "about " if self._measures_units else ""
        clipped = " The tables of a round were clipped together, so that one weight holds for all that a unit drove."
        clipped = clipped if self._joint else ""
        cut = (
            f"Both ends of every trip were cut back to where it leaves a public zone that holds {self.protect_links} links."
            if self.protect_links
            else "The ends of trips were not cut back; the noise alone hides them."
        )
        sentences = [
            f"The links that {Unit(name=self.unit).words()} drove count for at most {about}{bounds.clip:.3g} together "
            f"({norm}); more is scaled down.{clipped}",
            cut,
            f"Noise with a standard deviation of {about}{deviation:,.4g} trips was added to the count of every link of the "
            "public network, driven or not; zones by heading and hour and the other tables have noise of their own.",
            f"Links whose estimated count is below {self.threshold_sigmas or SIGMAS:g} times the standard error that remains "
            f"of it after smoothing were left out. Without smoothing these would be {self.threshold:,.4g} trips before "
            "rescaling; network.json holds what is usual for busy links. A link that is missing need not be empty.",
            "Counts were smoothed along streets, at junctions and towards what roads of their class carry nearby, made "
            "non-negative and made to add up over hours; this uses noisy tables alone.",
            f"Counts were rescaled by a noisy total of links driven, at most {about}{bounds.links:,} of each unit, so that "
            "they stand for all trips. low and high are 95 % intervals for the noise and the pooling of profiles.",
        ]
        if self._made(self.speeds):
            sentences.append(
                "Speeds are means of noisy sums; links with little traffic are shrunk towards the mean of their road class."
            )
        if self._made(self.turns):
            sentences.append("turns.parquet holds how the traffic of a link divides at its end, from noisy counts of turns.")
        if self.unit != "user":
            parts = "trips" if self.unit == "trip" else "days"
            promise = self.guarantee()
            sentences.append(several_words(promise.events, parts, delta=promise.delta))
        return tuple(sentences)

    def expected_error(self) -> str:
        """Say how far off the count of a link is."""
        deviation = self._link_deviation
        return (
            f"The count of each link is off by about {deviation:,.4g} trips (more where trips had to be scaled down to the "
            f"clip of {self._bounds({}).clip:.3g}); links below {self.threshold:,.4g} trips may be left out, and with fewer "
            f"than about {self._least_trips:,.0f} trips hardly any link is published."
        )

    # -- what it measures ------------------------------------------------------------------------------------------

    def ask(self, answers: Answers, facts: Facts) -> Round | None:
        """Ask for counts of links; then, in zones made from their noisy counts, for hours; None when done.

        For persons and person-days the numbers of links per unit come first: the bounds follow from them.
        """
        if self._measures_units and "units" not in answers:
            prepare(self.space)
            return Round(
                tables=(units_table(UNITS_SHARE[self.unit]),),
                prepare=self._prepare,
                contribute=count_unit_sizes,
                keep="drives",
                cut=UnitDrives.pieces,
            )
        if "links" not in answers:
            prepare(self.space)  # public; once here, so that processes find the routes on disk
            return self._links_round(answers)
        return self._zones_round(answers) if "hours" not in answers else None

    def model(self, answers: Answers, facts: Facts, rng: Randomness) -> LinkFlows:
        """Estimate the network from noisy answers; nothing private is read."""
        return assemble(answers, self.space, n_zones=self._n_zones, threshold_sigmas=self.threshold_sigmas)

    @property
    def _n_zones(self) -> int:
        return self.zones or N_ZONES[self.unit]

    @cached_property
    def _prepare(self) -> MatchDrives:
        zones = public_zones(self.space, links=self.protect_links) if self.protect_links else None
        return MatchDrives(self.space, zones)

    def _links_round(self, answers: Answers) -> Round:
        n = self.space.n_links
        into, out = successions(self.space)
        bins = {
            "links": n,
            "blocks": N_BLOCKS * n,
            "day": 24,
            "size": 1,
            "speeds": n,
            "paces": 2 * N_CLASSES * 24,
            "turns": len(out),
        }
        names = frozenset(bins) & frozenset(self._shares)
        onward = np.searchsorted(into, np.arange(n + 1)).astype(np.int64), out
        count = CountLinks(self.space.road_class, self._bounds(answers), names, self._joint, onward)
        return Round(
            tables=self._tables(bins, answers), prepare=self._prepare, contribute=count, keep="drives", cut=UnitDrives.pieces
        )

    def _zones_round(self, answers: Answers) -> Round:
        zone = zones_of_links(self.space, traffic_of(answers, self.space).count, self._n_zones)
        groups = self._n_zones * HEADINGS
        count = CountZones(zone * HEADINGS + self.space.heading, groups, zone, self._n_zones, self.od)
        tables = self._tables({"hours": groups * 24, "od": self._n_zones**2}, answers)
        return Round(tables=tables, prepare=self._prepare, contribute=count, keep="drives", cut=UnitDrives.pieces)

    def _tables(self, bins: Mapping[str, int], answers: Answers) -> tuple[Table, ...]:
        """Return those of these tables that are made."""
        shares, limits = self._shares, self._bounds(answers).limits()
        return tuple(
            Table(name=name, n_bins=n, share=shares[name], limit=limits[name], joint=self._joint and name != "size")
            for name, n in bins.items()
            if name in shares
        )
