"""flock: measure a few noisy tables, fit a model to them, and draw synthetic trips that reproduce all tables together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from murmurate.asking import Budget, Facts, Round
from murmurate.asking.table import Answers
from murmurate.asking.units import COLLISION_POWER
from murmurate.core.guarantee import DP, Unit
from murmurate.core.parameters import delta_for, plain_value, positive, share, whole
from murmurate.errors import ParameterError
from murmurate.mechanisms.flock.counting import scaled
from murmurate.mechanisms.flock.fitting import fit
from murmurate.mechanisms.flock.mask import Mask, read_mask
from murmurate.mechanisms.flock.model import FlockModel, read_model
from murmurate.mechanisms.flock.road_model import fit_on_roads, read_road_model
from murmurate.mechanisms.flock.roads import grid_over
from murmurate.mechanisms.flock.rounds import REFERENCE_SHARE, NoiseLevel, Plan, min_trips
from murmurate.spaces import parse_specs
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.zones import Zones
from murmurate.synthesis.frames import TYPICAL_TRIPS, check_clip, check_hours_and_day, check_unit

if TYPE_CHECKING:
    from murmurate.noise import Randomness

JOINT_LOSS = 3.0
"""Trips for each one that counts where a unit's trips are bounded together, about: 5,972 trips of 138 cab-days counted as 2,064
on San Francisco's taxis. For warnings before the charge only."""

MAX_GRID_CELLS = 200_000
"""Largest number of grid cells; with more, a table of ends is mostly noise for the data of one city. Chosen by hand."""


@dataclass(frozen=True, kw_only=True)
class Flock:
    """Learn where, when, how far and along which routes trips go in a public box, and draw synthetic ones.

    Guarantee
        `delta=0`: epsilon-differential privacy; otherwise (epsilon, delta). For one unit, add or remove: a trip, or at most
        `max_trips` trips of a person's day or of a person. With `delta` above 0 a person's trips are bounded together, so
        that `max_trips` may be left out. Private trips are read by noisy tables alone, whose shares of the
        budget add up to the whole; drawing trips reads nothing private. The box, the cells and all parameters are public.

    >>> mechanism = Flock(epsilon=1.0, space=Grid(60.1, 24.8, 60.3, 25.1, 500))
    >>> mechanism.guarantee().epsilon, mechanism.guarantee().delta, mechanism.guarantee().unit.name
    (1.0, 0.0, 'trip')
    """

    name: ClassVar[str] = "flock"
    needs: ClassVar[frozenset[str]] = frozenset({"coordinates"})
    emits: ClassVar[tuple[str, ...]] = ("datetime", "hour", "lat", "lng", "cell", "link")
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[dict[str, Any]] = {"epsilon": 2.0, "delta": 1e-6, "unit": "user_day", "space": "grid", "n_out": 1000}

    epsilon: float
    space: Grid | RoadNetwork
    """A public box of cells, or a public road network, on whose streets trips then begin, go and end."""
    delta: float = 0.0
    """0 for pure epsilon (Laplace noise, best for few trips); 1e-6, say, for Gaussian noise, best for many trips with hours."""
    unit: str = "trip"
    max_trips: int | None = None
    """Trips read of each person or person-day; where the unit is not the trip, required with `delta=0`."""
    clip: float | None = None
    """For persons and person-days with `delta` above 0: what all trips of one may add to a table, as an L2 norm in trips. None
    takes it from a noisy table of the trips per unit."""
    people: int | None = None
    """Rough number of people in the data, if it is public: a `delta` that is not below 1 over it is refused."""
    mask: Zones | RoadNetwork | str | None = None
    """Public polygons (of land, say) or roads outside which no trip is put: `zones:FILE`, `road:FILE` or a file of either."""
    n_out: int | None = None
    """Trips to release; None releases the noisy count of what was read."""
    hours: int = 24
    """Parts of the day that are distinguished; 1 learns no time of day. Trips without times always have 1."""
    max_speed_kmh: float = 100.0
    """Public speed limit that bounds the length of a step."""
    slot_s: int = 60
    """Seconds between two places of a trip that count as one step."""
    max_cells: int = 100
    """Largest number of coarse cells of a trip that is distinguished; up to four times as many are drawn."""
    day: str = "2000-01-03"
    """Fictional day of released times."""

    def __post_init__(self) -> None:
        parse_specs(self)
        positive("epsilon", self.epsilon, at_most=100)
        share("delta", self.delta, closed=True)
        if self.delta >= 0.5:
            raise ParameterError(f"delta must be far below 1 over the number of units; got {self.delta!r}.")
        check_unit(self.unit, self.max_trips, optional=self.delta > 0)
        check_clip(self.clip, joint=self.joint)
        delta_for(self.delta, self.people)
        if self.n_out is not None:
            whole("n_out", self.n_out)
        positive("max_speed_kmh", self.max_speed_kmh)
        whole("slot_s", self.slot_s, at_most=3600)
        whole("max_cells", self.max_cells, at_least=2, at_most=1000)
        check_hours_and_day(self.hours, self.day)
        if not isinstance(self.space, Grid | RoadNetwork):
            raise ParameterError(
                "flock works in a public box or on public roads: give space=Grid(...), --space "
                f"grid:SOUTH,WEST,NORTH,EAST:CELL_M or --space road:FILE; got {self.space!r}."
            )
        if isinstance(self.mask, str):
            object.__setattr__(self, "mask", read_mask(self.mask))
        if self.mask is not None and isinstance(self.space, RoadNetwork):
            raise ParameterError("flock on roads keeps to the roads; mask is for --space grid:... only.")
        if not 2 <= self.grid.n_cells <= MAX_GRID_CELLS:
            raise ParameterError(
                f"flock takes grids of 2 to {MAX_GRID_CELLS:,} cells; this one has {self.grid.n_cells:,}. Change cell_m."
            )
        _ = self._raster  # refuses a mask that covers nothing before anything is charged

    # -- the guarantee -------------------------------------------------------------------------------------------------

    @cached_property
    def grid(self) -> Grid:
        """Return the grid on which trips are counted: the one given, or one over the box of the road network."""
        return self.space if isinstance(self.space, Grid) else grid_over(self.space, MAX_GRID_CELLS)

    @cached_property
    def _raster(self) -> Mask | None:
        """Return where in the grid trips may be; None without a mask."""
        if self.mask is not None and not isinstance(self.mask, Zones | RoadNetwork):
            raise ParameterError(f"mask takes zones:FILE, road:FILE or a file of polygons or roads; got {self.mask!r}.")
        return None if self.mask is None else Mask.over(self.mask, self.grid)

    def budget(self) -> Budget:
        """Return the whole budget; every table gets a share of it."""
        return Budget(epsilon=self.epsilon, delta=self.delta)

    @property
    def joint(self) -> bool:
        """Return whether a unit's trips are bounded together: persons and person-days under Gaussian noise."""
        return self.unit != "trip" and self.delta > 0

    def _noise(self) -> NoiseLevel:
        """Return the noise of a table with a share of the whole budget, as far as public parameters tell."""
        trips = self.max_trips or TYPICAL_TRIPS[self.unit]
        limit = (self.clip or trips**COLLISION_POWER) if self.joint else trips
        return NoiseLevel(self.budget(), limit=float(limit))

    def bounds(self) -> Unit:
        """Return the unit and its public bound."""
        return Unit(name=self.unit, max_trips=self.max_trips)  # type: ignore[arg-type]

    def guarantee(self) -> DP:
        """Return (epsilon, delta) for the unit; all tables are one event, because their shares add up to it exactly."""
        return DP(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.bounds(),
            assumptions=(
                "the box, the cells and all parameters are public and were not chosen by looking at these data",
                "noise is drawn from a secure stream",
            ),
            events=self.budget().events,
        )

    def statement(self) -> tuple[str, ...]:
        """Describe the released trips in sentences for their readers."""
        roads = () if isinstance(self.space, Grid) else (f"They follow a public road network ({self.space.spec()}).",)
        mask = () if self.mask is None else (f"They lie within a public mask ({plain_value(self.mask)}).",)
        return (
            f"These are synthetic trips in a public box ({self.grid.describe().rstrip('.')}): no row belongs to a person.",
            *roads,
            *mask,
            "They were drawn from noisy tables of ends, distances, visits, pairs and, where trips had times, hours and speeds.",
            f"Times are plausible only: hours and speeds were learned, the day ({self.day}) is fictional.",
            "Single routes and rare places are made up. What many trips share is meant to be kept and is not hidden.",
        )

    def expected_error(self) -> str:
        """Describe the error to expect, from public parameters alone."""
        deviation = self._noise().deviation(REFERENCE_SHARE)
        each = ""
        if self.joint and self.clip is None:
            one = "person" if self.unit == "user" else "person's day"
            each = f" where each {one} has one trip; the number grows in proportion to the trips of each {one}"
        return (
            f"A table with a fifth of the budget carries noise of about {deviation:.0f} trips a bin: places that fewer than "
            f"{2 * deviation:.0f} trips visit are not distinguished from their surroundings. Nothing is released below about "
            f"{self.fewest_trips(1):,.0f} trips in the box{each}."
        )

    def fewest_trips(self, trips_per_unit: float) -> float:
        """Return below about how many trips in the box nothing is released, where a unit has so many trips on average."""
        if not self.joint:
            return min_trips(self._noise())
        noise = NoiseLevel(
            self.budget(), limit=float(self.clip or max(1.0, min(trips_per_unit, self.max_trips or trips_per_unit)))
        )
        return JOINT_LOSS * min_trips(noise)

    # -- measuring and fitting -----------------------------------------------------------------------------------------

    def ask(self, answers: Answers, facts: Facts) -> Round | None:
        """Return the next round of tables, from public parameters and earlier noisy tables; None when all are measured."""
        return self._plan(answers, facts).ask()

    def model(self, answers: Answers, facts: Facts, rng: Randomness) -> FlockModel:
        """Fit the model to the noisy tables; it can be sampled at no further cost."""
        plan = self._plan(answers, facts)
        cells = FlockModel(fit(plan, rng), facts.time_zone, self.day)
        return cells if self._network is None else fit_on_roads(cells, plan, rng, self.slot_s)

    @property
    def _network(self) -> RoadNetwork | None:
        """Return the road network; None on a grid."""
        return self.space if isinstance(self.space, RoadNetwork) else None

    def _plan(self, answers: Answers, facts: Facts) -> Plan:
        """Return the plan of rounds, given earlier noisy tables and public facts about the input."""
        timed = facts.has_time or "hour" in facts.carries
        return Plan(
            grid=self.grid, network=self._network, hours=self.hours if timed else 1, timed=facts.has_time,
            max_cells=self.max_cells, slot_s=self.slot_s, max_speed_kmh=self.max_speed_kmh, budget=self.budget(),
            max_trips=self.max_trips, joint=self.joint, clip=self.clip, answers=scaled(answers),
            mask=self._raster,
        )  # fmt: skip

    def load(self, path: Path) -> FlockModel:
        """Load a saved model."""
        model = FlockModel(*read_model(path))
        return read_road_model(path, model) if isinstance(self.space, RoadNetwork) else model
