"""Fitting both models of DP-Loc: the ends first, because the moves are calibrated on trips drawn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from murmurate.errors import InputError
from murmurate.mechanisms.dp_loc.budget import Budget
from murmurate.mechanisms.dp_loc.model import DPLocModel
from murmurate.mechanisms.dp_loc.moves_counts import fit_counted_moves
from murmurate.mechanisms.dp_loc.protocols import Arrays, Ends, Router
from murmurate.mechanisms.dp_loc.reading import Read
from murmurate.mechanisms.dp_loc.routes import CountRouter
from murmurate.mechanisms.dp_loc.settings import Route, Settings
from murmurate.spaces.grid import Grid
from murmurate.synthesis.ends import Ends as CountedEnds
from murmurate.synthesis.ends import fit_ends
from murmurate.synthesis.measure import Noise
from murmurate.synthesis.moves import Neighbourhood

if TYPE_CHECKING:
    from murmurate.noise import Randomness


def fit_model(
    found: Read,
    *,
    grid: Grid,
    time_zone: str,
    day: str,
    slot_s: int,
    hours: int,
    max_cells: int,
    trips_per_unit: int,
    around: Neighbourhood,
    settings: Settings,
    budget: Budget,
    rng: Randomness,
) -> DPLocModel:
    """Spend the budget's events on the trips, one after another, and keep what came out."""
    ends_noise = Noise(scale=budget.ends_scale, trips_per_unit=trips_per_unit)
    moves_noise = Noise(scale=budget.moves_scale, trips_per_unit=trips_per_unit)
    ends = fit_ends(found.trips, rows=around.rows, columns=around.columns, hours=hours, noise=ends_noise, rng=rng)
    router = fit_counted_moves(
        found.trips, ends=ends, n=ends.n, around=around, hours=hours, max_cells=max_cells, route=settings.route,
        noise=moves_noise, rng=rng,
    )  # fmt: skip
    return DPLocModel(ends, router, grid, time_zone, day, slot_s, hours, ends.n, (settings.initialiser, settings.next_cell))


def ends_from_arrays(kind: str, arrays: Arrays) -> Ends:
    """The law of the ends that `arrays()` came from."""
    if kind == "counts":
        return CountedEnds(**{**arrays, "n": float(arrays["n"])})  # type: ignore[arg-type]
    raise InputError(f"the model's ends were learned by {kind!r}, which this version does not know.")


def router_from_arrays(kind: str, arrays: Arrays, around: Neighbourhood, route: Route) -> Router:
    """The router that `arrays()` came from."""
    if kind == "counts":
        return CountRouter.from_arrays(arrays, around, route)
    raise InputError(f"the model's moves were learned by {kind!r}, which this version does not know.")
