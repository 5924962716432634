"""DP-Loc: synthetic trips with destination and hour, under (epsilon, delta)-differential privacy."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from murmurate.asking import Budget, Facts, Round
from murmurate.asking.table import Answers
from murmurate.asking.units import COLLISION_POWER, TripsPerUnit
from murmurate.core.guarantee import DP, Unit
from murmurate.core.parameters import one_of, positive, share, whole
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.dp_loc.ends_counts import ends_of, noisy_trips, zones_of
from murmurate.mechanisms.dp_loc.model import DPLocModel, load_model
from murmurate.mechanisms.dp_loc.moves_counts import counted_moves
from murmurate.mechanisms.dp_loc.settings import VARIANTS, Settings, variant_of
from murmurate.mechanisms.dp_loc.tables import (
    BY_CELL,
    BY_ZONE,
    MOVE_SHARES,
    ReadTrips,
    Tables,
    joint_shares_of,
    scaled,
    shares_of,
)
from murmurate.papers import require_jax
from murmurate.spaces import parse_specs
from murmurate.spaces.grid import Grid
from murmurate.synthesis.frames import TYPICAL_TRIPS, check_hours_and_day, check_unit
from murmurate.synthesis.moves import Neighbourhood, reach_of

if TYPE_CHECKING:
    from murmurate.noise import Randomness
    from murmurate.papers.dp_loc.network_budget import NetworkBudget

MOST_BINS = 10_000_000
"""Cells times neighbours a table may have; of more, nearly all noisy counts would be noise, and 80 MB each."""

CLEAR_SDS = 2.0
"""Noise standard deviations from which on a noisy number of trips says that there are some."""

COUNTED_QUANTILE = 0.9
"""Where units are clipped jointly, each adds up to this quantile of the trips per unit to the number of trips. Chosen by hand:
higher ones add noise, lower ones leave trips out."""


@dataclass(frozen=True, kw_only=True)
class DPLoc:
    """Learns where, when and how trips go on a public grid, and draws new ones.

    Guarantee
        (epsilon, delta)-differential privacy for one unit, add or remove: a trip, or all trips of a person's day or of a
        person, bounded together (at most `max_trips` of them, where that is given). Every table and every training step
        that reads private trips is an event of `guarantee()`; drawing trips reads nothing private. The grid, the hours, all
        sizes and the fictional day are public parameters; the number of trips is `n_out` or a noisy count.

    >>> mechanism = DPLoc(epsilon=1.0, space=Grid(60.1, 24.8, 60.3, 25.1, 1000))
    >>> mechanism.guarantee().epsilon, mechanism.guarantee().unit.name
    (1.0, 'trip')
    """

    name: ClassVar[str] = "dp_loc"
    needs: ClassVar[frozenset[str]] = frozenset({"time", "coordinates"})
    emits: ClassVar[tuple[str, ...]] = ("datetime", "hour", "lat", "lng", "cell")
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    resumable: ClassVar[bool] = True
    """`fit` takes a checkpoint folder, so that an interrupted training goes on under its charge."""
    example: ClassVar[dict[str, Any]] = {"epsilon": 2.0, "space": "grid", "n_out": 1000}

    epsilon: float
    """The budget of one unit; smaller protects more."""
    space: Grid
    """The public grid on which trips are read and made."""
    delta: float = 1e-6
    """Should stay below one over ten times the number of units; that number being private, you choose it."""
    unit: str = "trip"
    """Whose presence is protected: "trip", "user_day" or "user"."""
    max_trips: int | None = None
    """Trips read of each person or person-day; needed for networks where the unit is not the trip."""
    n_out: int | None = None
    """Trips to release; None: a noisy count of what was read."""
    variant: str = "own"
    """"own" (noisy counts) or "as_published" (networks)."""
    initialiser: str | None = None
    """"counts" or "vae"; None: what the variant uses."""
    next_cell: str | None = None
    """"counts" or "net"; None: what the variant uses."""
    route: str | None = None
    """"sampled" or "most_probable"; None: what the variant uses."""
    max_speed_kmh: float = 100.0
    """Public speed limit that says how far a step may go."""
    reach: int | None = None
    """Cells a step may cross; None: 5 as published, from the speed limit otherwise."""
    slot_s: int = 60
    """Seconds of a time slot; trips visit one cell in each."""
    hours: int = 24
    """Spans into which the day is divided; a divisor of 24."""
    max_cells: int = 100
    """The longest trip that is made, in cells."""
    ends_share: float = 0.5
    """Share of the budget for where and when trips start and end; the rest is for the moves."""
    epochs: float | None = None
    """Passes of each network's training; None: what the variant uses."""
    day: str = "2000-01-03"
    """The fictional day that released times carry."""

    def __post_init__(self) -> None:
        parse_specs(self)
        positive("epsilon", self.epsilon, at_most=100)
        share("delta", self.delta)
        one_of("variant", self.variant, VARIANTS)
        for name, words in (
            ("initialiser", ("counts", "vae")),
            ("next_cell", ("counts", "net")),
            ("route", ("sampled", "most_probable")),
        ):
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), words)
        check_unit(self.unit, self.max_trips, optional=not self.settings().uses_networks)
        for name in ("n_out", "reach"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))
        positive("max_speed_kmh", self.max_speed_kmh)
        whole("slot_s", self.slot_s, at_most=3600)
        whole("max_cells", self.max_cells, at_least=2, at_most=10_000)
        share("ends_share", self.ends_share)
        if self.epochs is not None:
            positive("epochs", self.epochs, at_most=1000)
        check_hours_and_day(self.hours, self.day)
        self._check_space()
        if self.settings().uses_networks:
            require_jax(f"dp_loc with a network (variant {self.variant!r})")

    def _check_space(self) -> None:
        if not isinstance(self.space, Grid):
            raise ParameterError(
                f"dp_loc works on a public grid: give space=Grid(...) or --space grid:SOUTH,WEST,NORTH,EAST:CELL_M; "
                f"got {self.space!r}."
            )
        if self.space.n_cells < 2:
            raise ParameterError("dp_loc needs a grid of at least two cells; give smaller cells or a larger box.")
        bins = self.space.n_cells * self.around().n_offsets
        if bins > MOST_BINS:
            raise ParameterError(
                f"a grid of {self.space.n_cells:,} cells with {self.around().n_offsets} neighbours each has {bins:,} steps; "
                f"at most {MOST_BINS:,} are taken, as nothing could be learned about more. Give larger cells, a smaller box "
                "or a smaller reach."
            )

    # -- what the parameters mean --------------------------------------------------------------------------------------

    def settings(self) -> Settings:
        """Return the variant with the user's own choices put in."""
        chosen = variant_of(self.variant, self.epsilon)
        own = {name: getattr(self, name) for name in ("initialiser", "next_cell", "route", "reach") if getattr(self, name)}
        if self.epochs is not None:
            for name in ("ends_training", "moves_training"):
                own[name] = replace(getattr(chosen, name), epochs=float(self.epochs))
        return replace(chosen, **own)

    def around(self) -> Neighbourhood:
        """Return the public neighbourhood of a cell."""
        reach = self.settings().reach or reach_of(
            cell_m=self.space.cell_m, max_speed_kmh=self.max_speed_kmh, slot_s=self.slot_s
        )
        return Neighbourhood(rows=self.space.rows, columns=self.space.columns, reach=reach)

    @property
    def joint(self) -> bool:
        """Return whether a unit's trips are bounded together: persons and person-days, where all is counted."""
        return self.unit != "trip" and not self.settings().uses_networks

    def tables(self, answers: Answers | None = None) -> Tables:
        """Return all tables of the counted variant, with their shares of the budget."""
        limit = counted = float(self.max_trips or TYPICAL_TRIPS[self.unit])
        if self.joint:
            limit **= COLLISION_POWER
            if answers and "units" in answers:
                per_unit = TripsPerUnit(answers["units"])
                limit, counted = per_unit.clip(), float(per_unit.quantile(COUNTED_QUANTILE))
        return Tables(
            around=self.around(), max_cells=self.max_cells, limit=limit, joint=self.joint, counted=counted,
            reading=ReadTrips(grid=self.space, slot_s=self.slot_s, hours=self.hours),
            shares=(joint_shares_of if self.joint else shares_of)(self.ends_share),
        )  # fmt: skip

    def bounds(self) -> Unit:
        """Return the unit and its public bound."""
        return Unit(name=self.unit, max_trips=self.max_trips)  # type: ignore[arg-type]

    def guarantee(self) -> DP:
        """Return (epsilon, delta) for the unit, with the event of every noisy step."""
        counted = self.budget()
        sampled = "batches are true Poisson samples and every unit's gradient is clipped before noise is added"
        return DP(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.bounds(),
            assumptions=(
                "the grid, the hours and all parameters are public and were not chosen by looking at these data",
                *(() if counted else (sampled,)),
                "noise is drawn from a secure stream",
            ),
            events=counted.events if counted else self.network_budget().events,
        )

    def statement(self) -> tuple[str, ...]:
        settings = self.settings()
        return (
            f"These are synthetic trips on a public grid ({self.space.describe()}): no row belongs to a person.",
            f"Ends and hours were learned by {_LEARNED_BY[settings.initialiser]}, moves by {_LEARNED_BY[settings.next_cell]}; "
            f"paths are {'drawn at random' if settings.route == 'sampled' else 'the most probable ones'} between the ends.",
            f"Times are plausible only: a trip's hour was learned, its day ({self.day}) is fictional, and its minutes follow "
            f"one visited cell each {self.slot_s} s.",
            "What many trips share (busy places, hours and streets) is meant to be kept and is not hidden.",
        )

    def expected_error(self) -> str:
        deviation = self._noise().scale(self.ends_share, self.tables().limit)
        return (
            f"Counts behind the model carry Gaussian noise of about {deviation:.0f} trips or more. Zones and hours with less "
            "than a few times as many trips are poorly distinguished, and rare streets are not learned."
        )

    # -- measuring ---------------------------------------------------------------------------------------------------

    def budget(self) -> Budget | None:
        """Return Gaussian noise for the whole promise; None where a network is trained, which reads whole data."""
        settings = self.settings()
        return self._noise() if settings.initialiser == settings.next_cell == "counts" else None

    def ask(self, answers: Answers, facts: Facts) -> Round | None:
        """Ask for ends by cell and all moves first, then for ends by zones that follow from the noisy counts."""
        answers, tables = scaled(answers), self.tables(answers)
        if self.joint and "units" not in answers:
            return tables.unit_sizes()
        if "n" not in answers:
            return tables.round((*BY_CELL, *MOVE_SHARES))
        if "pairs" not in answers:
            return tables.round(BY_ZONE, zones_of(answers, tables, self._noise()))
        return None

    def model(self, answers: Answers, facts: Facts, rng: Randomness) -> DPLocModel:
        """Fit both models to the noisy counts; what they draw then is free."""
        answers, tables = scaled(answers), self.tables(answers)
        n = noisy_trips(answers)
        self._warn(answers)
        ends = ends_of(answers, tables, zones_of(answers, tables, self._noise()))
        router = counted_moves(answers, ends=ends, n=n, tables=tables, route=self.settings().route, rng=rng)
        return DPLocModel(ends, router, self.space, facts.time_zone, self.day, self.slot_s, self.hours, n, ("counts", "counts"))

    def _noise(self) -> Budget:
        return Budget(epsilon=self.epsilon, delta=self.delta)

    def _warn(self, answers: Answers) -> None:
        """Warn of an input that cannot be learned from, as far as the noisy number of trips shows it."""
        n = float(answers["n"].noisy[0])
        if n < CLEAR_SDS * answers["n"].deviation:
            warnings.warn(
                f"the noisy number of trips, {n:,.0f}, is not clear of its noise: there is hardly anything to learn. Check "
                "that the box of the grid holds the trips, or give smaller cells or a larger epsilon.",
                stacklevel=2,
            )
        units = n / (TripsPerUnit(answers["units"]).quantile(0.5) if self.joint else self.max_trips or 1)
        if units * self.delta > 0.5:
            warnings.warn(
                f"delta = {self.delta:g} is large for about {units:,.0f} units (a noisy count): well below 1 / units is "
                "customary.",
                stacklevel=2,
            )

    # -- training ----------------------------------------------------------------------------------------------------

    def network_budget(self) -> NetworkBudget:
        """Return the noise of the trainings, where a network is trained."""
        from murmurate.papers.dp_loc.network_budget import budget_of

        return budget_of(epsilon=self.epsilon, delta=self.delta, ends_share=self.ends_share, settings=self.settings())

    def fit(self, private: Trips, rng: Randomness, *, checkpoint: Path | None = None) -> DPLocModel:
        """Train the networks of this variant and spend the guarantee once; the model can then be sampled for free.

        With a `checkpoint` folder (private, on the custodian's side) an interrupted fit goes on: what was drawn is kept,
        a step that had begun counts as taken, and no noise is drawn twice, so the guarantee is that of one fit.
        """
        if self.budget() is not None:
            raise ParameterError(
                "dp_loc trains no network with these settings and reads trips through noisy tables alone.",
                "Use murmurate.fit or murmurate.release; asking.rounds.fitted runs it without a ledger.",
            )
        from murmurate.papers.dp_loc.network_fitting import fit_networks

        return fit_networks(self, private, rng, checkpoint)

    def apply(self, private: Trips, rng: Randomness) -> Trips:
        """Fit networks, then draw `n_out` trips (or as many as the noisy count says)."""
        model = self.fit(private, rng)
        return model.sample(self.n_out or max(1, round(model.n)), rng)

    def load(self, path: Path) -> DPLocModel:
        """Read back a saved model."""
        return load_model(path, self.around(), self.settings().route)


_LEARNED_BY = {
    "counts": "noisy counts over zones, hours and steps",
    "vae": "a variational autoencoder trained with noisy clipped gradients",
    "net": "a neural network trained with noisy clipped gradients",
}
"""Words of the statement for what a model was learned by."""
