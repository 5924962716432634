"""DP-Loc: synthetic trips with destination and hour, under (epsilon, delta)-differential privacy."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from murmurate.core.guarantee import DP, Unit
from murmurate.core.parameters import one_of, positive, public_parameters, share, whole
from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.dp_loc.budget import Budget, budget_of
from murmurate.mechanisms.dp_loc.fitting import fit_model
from murmurate.mechanisms.dp_loc.model import DPLocModel, read_arrays
from murmurate.mechanisms.dp_loc.protocols import Ends, Router
from murmurate.mechanisms.dp_loc.reading import read
from murmurate.mechanisms.dp_loc.settings import VARIANTS, Settings, variant_of
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid
from murmurate.synthesis.frames import check_hours_and_day, check_unit, refuse_unbounded
from murmurate.synthesis.moves import Neighbourhood, reach_of
from murmurate.training.stages import Stages

if TYPE_CHECKING:
    from murmurate.noise import Randomness

MOST_BINS = 10_000_000
"""Cells times neighbours a table may have; beyond that neither noise nor memory is worth it."""


@dataclass(frozen=True, kw_only=True)
class DPLoc:
    """Learns where, when and how trips go on a public grid, and draws new ones.

    Guarantee
        (epsilon, delta)-differential privacy for one unit, add or remove: a trip, or at most `max_trips` trips of a
        person's day or of a person. Every table and every training step that reads private trips is an event of
        `guarantee()`; drawing trips reads nothing private. The grid, the hours, all sizes and the fictional day are
        public parameters; the number of trips is `n_out` or a noisy count.

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
    """`fit` takes a checkpoint folder, so that the door can let an interrupted fit go on under its charge."""
    example: ClassVar[dict[str, Any]] = {"epsilon": 2.0, "space": "grid", "n_out": 1000}

    epsilon: float
    space: Grid
    delta: float = 1e-6
    """Should stay below one over ten times the number of units; that number being private, you choose it."""
    unit: str = "trip"
    max_trips: int | None = None
    """Trips read of each person or person-day; needed where the unit is not the trip."""
    n_out: int | None = None
    """Trips to release; None: a noisy count of what was read."""
    variant: str = "own"
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
    hours: int = 24
    max_cells: int = 100
    """The longest trip that is made, in cells."""
    ends_share: float = 0.5
    """Share of the budget for where and when trips start and end; the rest is for the moves."""
    epochs: float | None = None
    """Passes of each network's training; None: what the variant uses."""
    day: str = "2000-01-03"
    """The fictional day that released times carry."""

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, at_most=100)
        share("delta", self.delta)
        check_unit(self.unit, self.max_trips)
        one_of("variant", self.variant, VARIANTS)
        for name, words in (
            ("initialiser", ("counts", "vae")),
            ("next_cell", ("counts", "net")),
            ("route", ("sampled", "most_probable")),
        ):
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), words)
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
        """The variant with the user's own choices put in."""
        chosen = variant_of(self.variant, self.epsilon)
        own = {name: getattr(self, name) for name in ("initialiser", "next_cell", "route", "reach") if getattr(self, name)}
        if self.epochs is not None:
            for name in ("ends_training", "moves_training"):
                own[name] = replace(getattr(chosen, name), epochs=float(self.epochs))
        return replace(chosen, **own)

    def around(self) -> Neighbourhood:
        """The public neighbourhood of a cell."""
        reach = self.settings().reach or reach_of(
            cell_m=self.space.cell_m, max_speed_kmh=self.max_speed_kmh, slot_s=self.slot_s
        )
        return Neighbourhood(rows=self.space.rows, columns=self.space.columns, reach=reach)

    def budget(self) -> Budget:
        """Noise of every table and training step."""
        return budget_of(epsilon=self.epsilon, delta=self.delta, ends_share=self.ends_share, settings=self.settings())

    def bounds(self) -> Unit:
        """The unit and its public bound."""
        return Unit(name=self.unit, max_trips=self.max_trips)  # type: ignore[arg-type]

    def guarantee(self) -> DP:
        """(epsilon, delta) for the unit, with the event of every noisy step."""
        return DP(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.bounds(),
            assumptions=(
                "the grid, the hours and all parameters are public and were not chosen by looking at these data",
                "batches are true Poisson samples and every unit's gradient is clipped before noise is added",
                "noise is drawn from a secure stream",
            ),
            events=self.budget().events,
        )

    def statement(self) -> tuple[str, ...]:
        settings = self.settings()
        return (
            f"These are synthetic trips on a public grid ({self.space.describe()}): no row belongs to a person.",
            f"Ends and hours were learned by {_WAYS[settings.initialiser]}, moves by {_WAYS[settings.next_cell]}; paths are "
            f"{'drawn at random' if settings.route == 'sampled' else 'the most probable ones'} between the ends.",
            f"Times are plausible only: a trip's hour was learned, its day ({self.day}) is fictional, and its minutes follow "
            f"one visited cell each {self.slot_s} s.",
            "What many trips share (busy places, hours and streets) is meant to be kept and is not hidden.",
        )

    def expected_error(self) -> str:
        deviation = self.budget().ends_scale * (self.max_trips or 1)
        return (
            f"Counts behind the model carry Gaussian noise of about {deviation:.0f} trips and more: zones and hours with fewer "
            "trips than a few times that are told apart poorly, and rare streets are not learned."
        )

    # -- learning and drawing ------------------------------------------------------------------------------------------

    def fit(self, private: Trips, rng: Randomness, *, checkpoint: Path | None = None) -> DPLocModel:
        """Spend the guarantee once; the model can then be sampled for free.

        With a `checkpoint` folder (private, on the custodian's side) an interrupted fit goes on: what was drawn is kept,
        a step that had begun counts as taken, and no noise is drawn twice, so the guarantee is that of one fit.
        """
        found = read(private, grid=self.space, unit=self.bounds(), slot_s=self.slot_s, hours=self.hours)
        refuse_unbounded(found.unit, self.bounds())
        if found.trips.n == 0:  # told, not refused: whether anything leaves must not depend on one trip
            warnings.warn(
                "no trip visits two cells of the grid, so there is nothing to learn and what is drawn is noise: check the box "
                "of the grid, or give smaller cells. For the custodian only; do not publish this message.",
                stacklevel=2,
            )
        n_units = len(np.unique(found.unit))
        if n_units * self.delta > 0.5:
            warnings.warn(
                f"delta = {self.delta:g} is large for {n_units:,} units: well below 1 / units is customary. "
                "For the custodian only; do not publish this message.",
                stacklevel=2,
            )
        with Stages(checkpoint, public_parameters(self)) as stages:
            return fit_model(
                found, grid=self.space, time_zone=private.time_zone, day=self.day, slot_s=self.slot_s, hours=self.hours,
                max_cells=self.max_cells, trips_per_unit=self.max_trips or 1, around=self.around(), settings=self.settings(),
                budget=self.budget(), stages=stages, rng=rng,
            )  # fmt: skip

    def apply(self, private: Trips, rng: Randomness) -> Trips:
        """Fit, then draw `n_out` trips (or as many as the noisy count says)."""
        model = self.fit(private, rng)
        return model.sample(self.n_out or max(1, round(model.n)), rng)

    def load(self, path: Path) -> DPLocModel:
        """Read back a saved model."""
        from murmurate.mechanisms.dp_loc.fitting import ends_from_arrays, router_from_arrays

        schema, ends_arrays, move_arrays = read_arrays(path)
        grid = parse(schema["space"])
        if not isinstance(grid, Grid):
            raise InputError(f"{path}: the model's space {schema['space']!r} is not a grid.")
        around = replace(self.around(), rows=grid.rows, columns=grid.columns)
        ends: Ends = ends_from_arrays(schema["kinds"][0], ends_arrays)
        router: Router = router_from_arrays(schema["kinds"][1], move_arrays, around, schema["hours"], self.settings().route)
        return DPLocModel(
            ends, router, grid, schema["time_zone"], schema["day"], schema["slot_s"], schema["hours"], schema["n"],
            (schema["kinds"][0], schema["kinds"][1]),
        )  # fmt: skip


_WAYS = {
    "counts": "noisy counts over zones, hours and steps",
    "vae": "a variational autoencoder trained with noisy clipped gradients",
    "net": "a neural network trained with noisy clipped gradients",
}
