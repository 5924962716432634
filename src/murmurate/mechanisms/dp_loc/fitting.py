"""Fitting both models of DP-Loc: the ends first, because the moves are calibrated on trips drawn from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from murmurate.errors import InputError
from murmurate.mechanisms.dp_loc.budget import COUNT_SHARE, Budget
from murmurate.mechanisms.dp_loc.initialiser_vae import EndsVAE, VAEEnds
from murmurate.mechanisms.dp_loc.model import DPLocModel
from murmurate.mechanisms.dp_loc.moves_counts import fit_counted_moves
from murmurate.mechanisms.dp_loc.moves_net import fit_published_moves, fit_relative_moves, plan_of
from murmurate.mechanisms.dp_loc.net_router import PublishedRouter, RelativeRouter
from murmurate.mechanisms.dp_loc.protocols import Arrays, Ends, Router
from murmurate.mechanisms.dp_loc.reading import Read
from murmurate.mechanisms.dp_loc.routes import CountRouter
from murmurate.mechanisms.dp_loc.settings import Route, Settings
from murmurate.spaces.grid import Grid
from murmurate.synthesis.ends import Ends as CountedEnds
from murmurate.synthesis.ends import fit_ends
from murmurate.synthesis.measure import Noise, measure, once_per_trip
from murmurate.synthesis.moves import Neighbourhood
from murmurate.training.sampling import group_by_unit
from murmurate.training.stages import Stages
from murmurate.training.train import Plan, train

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
    stages: Stages,
    rng: Randomness,
) -> DPLocModel:
    """Spend the budget's events on the trips, one after another, each once, and keep what came out."""
    ends_noise = Noise(scale=budget.ends_scale, trips_per_unit=trips_per_unit)
    moves_noise = Noise(scale=budget.moves_scale, trips_per_unit=trips_per_unit)
    ends: Ends
    if settings.initialiser == "counts":
        counted = stages.once(
            "ends",
            lambda: fit_ends(
                found.trips, rows=around.rows, columns=around.columns, hours=hours, noise=ends_noise, rng=rng
            ).arrays(),
        )
        ends, n = ends_from_arrays("counts", counted), float(counted["n"])
    else:
        everyone = once_per_trip(np.zeros(found.trips.n, dtype=np.int64), 1)
        counted = stages.once("n", lambda: {"n": measure(everyone, noise=ends_noise.part(COUNT_SHARE), rng=rng)})
        n = max(float(counted["n"][0]), 1.0)
        plan = plan_of(settings.ends_training, budget.ends_noise_multiplier)
        ends = _fit_vae(found, EndsVAE(around.n_cells, hours), n / trips_per_unit, plan, rng, stages.training("ends"))
    router: Router
    if settings.next_cell == "counts":
        moves = stages.once(
            "moves",
            lambda: fit_counted_moves(
                found.trips, ends=ends, n=n, around=around, hours=hours, max_cells=max_cells, route=settings.route,
                noise=moves_noise, rng=rng,
            ).arrays(),
        )  # fmt: skip
        router = router_from_arrays("counts", moves, around, hours, settings.route)
    else:
        plan = plan_of(settings.moves_training, budget.moves_noise_multiplier)
        if settings.relative:
            router = fit_relative_moves(
                found, ends=ends, n=n, around=around, hours=hours, max_cells=max_cells, route=settings.route,
                noise=moves_noise, plan=plan, rng=rng, stages=stages,
            )  # fmt: skip
        else:
            router = fit_published_moves(
                found, around=around, hours=hours, n_units=n / trips_per_unit, route=settings.route, plan=plan, rng=rng,
                checkpoint=stages.training("moves"),
            )  # fmt: skip
    kinds = (settings.initialiser, "counts" if settings.next_cell == "counts" else _net_kind(settings))
    return DPLocModel(ends, router, grid, time_zone, day, slot_s, hours, n, kinds)


def _fit_vae(  # noqa: PLR0917
    found: Read, network: EndsVAE, n_units: float, plan: Plan, rng: Randomness, checkpoint: Path | None
) -> VAEEnds:
    columns = {"source": found.trips.sources, "destination": found.trips.destinations, "hour": found.trips.hours}
    grouped = group_by_unit({name: values.astype(np.int32) for name, values in columns.items()}, found.unit)
    start = network.start(rng.generator())
    params, _ = train(network, start, grouped, plan=plan, n_expected=n_units, rng=rng, checkpoint=checkpoint)
    return VAEEnds.of(params)


def _net_kind(settings: Settings) -> str:
    return "relative_net" if settings.relative else "published_net"


def ends_from_arrays(kind: str, arrays: Arrays) -> Ends:
    """The law of the ends that `arrays()` came from."""
    if kind == "counts":
        return CountedEnds(**{**arrays, "n": float(arrays["n"])})  # type: ignore[arg-type]
    if kind == "vae":
        return VAEEnds(dict(arrays))
    raise InputError(f"the model's ends were learned by {kind!r}, which this version does not know.")


def router_from_arrays(kind: str, arrays: Arrays, around: Neighbourhood, hours: int, route: Route) -> Router:
    """The router that `arrays()` came from."""
    if kind == "counts":
        return CountRouter.from_arrays(arrays, around, route)
    if kind == "relative_net":
        return RelativeRouter.from_arrays(arrays, around, hours, route)
    if kind == "published_net":
        return PublishedRouter.from_arrays(arrays, around, hours, route)
    raise InputError(f"the model's moves were learned by {kind!r}, which this version does not know.")
