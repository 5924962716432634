"""Next cells from a privately trained network, calibrated by tables where the variant asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from murmurate.asking import Answer, Round
from murmurate.core.space import Integers
from murmurate.mechanisms.dp_loc.moves_counts import LEAST_SIMULATED, sizes_of
from murmurate.mechanisms.dp_loc.routes import Ends
from murmurate.mechanisms.dp_loc.settings import Route, Training
from murmurate.mechanisms.dp_loc.tables import Read, Tables
from murmurate.papers.dp_loc.net_router import PublishedRouter, RelativeRouter
from murmurate.papers.dp_loc.network_budget import CALIBRATED_SHARES
from murmurate.papers.dp_loc.networks import PublishedNet, RelativeNet
from murmurate.papers.training.ghost import Arrays
from murmurate.papers.training.stages import Stages
from murmurate.papers.training.train import Plan, train_from_start
from murmurate.synthesis.calibrate import calibrate
from murmurate.synthesis.ends import Ends as CountedEnds
from murmurate.synthesis.moves import MoveWeights, Neighbourhood, grams
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.zones import zones_of_equal_mass

if TYPE_CHECKING:
    from murmurate.noise import Randomness

MOST_SIMULATED = 20_000
"""Trips of a round of calibration at most; fewer than for counted moves, because a network's walks are slower."""

ZONE_DEPTH = 7
"""Halvings of the grid into zones for the network where no noisy ends are counted: 128 zones. Set by hand."""


def plan_of(training: Training, noise_multiplier: float | None) -> Plan:
    """Return the training as the accountant counts it."""
    return Plan(
        sampling=training.sampling, steps=training.steps, noise_multiplier=float(noise_multiplier or 0.0), clip=training.clip,
        learning_rate=training.learning_rate, optimiser=training.optimiser, one_gram=training.one_gram,
    )  # fmt: skip


def fit_published_moves(
    found: Read,
    *,
    around: Neighbourhood,
    hours: int,
    n_units: float,
    route: Route,
    plan: Plan,
    rng: Randomness,
    checkpoint: Path | None = None,
) -> PublishedRouter:
    """Train the published network; steps out of reach and arrivals are no grams of it."""
    net = PublishedNet(around.n_cells, around.n_offsets, hours)
    steps = grams(found.trips, around)
    kept = (steps.offset >= 0) & (steps.offset != around.stop)
    trip = steps.trip[kept]
    columns = {
        "cell": steps.cell[kept],
        "destination": found.trips.destinations[trip],
        "hour": found.trips.hours[trip],
        "offset": steps.offset[kept],
    }
    params = train_from_start(net, columns, found.unit[trip], plan=plan, n_expected=n_units, rng=rng, checkpoint=checkpoint)
    return PublishedRouter(params, around, hours, route)


def fit_relative_moves(
    found: Read,
    *,
    ends: Ends,
    n: float,
    tables: Tables,
    measured: Callable[[Round], Mapping[str, Answer]],
    route: Route,
    plan: Plan,
    rng: Randomness,
    stages: Stages,
) -> RelativeRouter:
    """Train the network that sees where the destination lies, measure what calibrates it, and calibrate."""
    around, hours = tables.around, tables.hours
    zone = ends.zone if isinstance(ends, CountedEnds) else _even_zones(around)
    params = _train_relative(found, zone, around, hours, n / tables.limit, plan, rng, stages.training("moves"))

    def calibrated() -> Mapping[str, Any]:
        answers = measured(tables.round(tuple(CALIBRATED_SHARES)))
        noisy = {"visits": answers["visits"].noisy, "steps": answers["steps"].noisy.reshape(-1, around.n_offsets)}
        generator = rng.generator()
        sizes = sizes_of(answers, ends=ends, n=n, tables=tables, generator=generator)
        n_simulated = int(np.clip(n, LEAST_SIMULATED, MOST_SIMULATED))

        def router(weights: MoveWeights) -> RelativeRouter:
            return RelativeRouter(params, weights.visits, weights.steps, zone, sizes, around, hours, "sampled")

        def simulate(weights: MoveWeights) -> CellTrips:
            source, destination, hour = ends.sample(n_simulated, generator)
            return router(weights).paths(source, destination, hour, generator)

        start = MoveWeights(np.ones((1, 1)), np.ones(around.n_cells), np.ones((around.n_cells, around.n_offsets)))
        deviations = {name: answers[name].deviation for name in noisy}
        weights = calibrate(start, noisy=noisy, deviations=deviations, n=n, around=around, simulate=simulate)
        return router(weights).arrays()

    return RelativeRouter.from_arrays(stages.once("tables", calibrated), around, hours, route)


def _train_relative(  # noqa: PLR0917
    found: Read,
    zone: Integers,
    around: Neighbourhood,
    hours: int,
    n_units: float,
    plan: Plan,
    rng: Randomness,
    checkpoint: Path | None,
) -> Arrays:
    net = RelativeNet(int(zone.max()) + 1, around.n_relative, around.n_offsets, hours)
    steps = grams(found.trips, around)
    kept = steps.offset >= 0
    trip = steps.trip[kept]
    columns = {
        "from": zone[steps.cell[kept]],
        "to": zone[found.trips.destinations[trip]],
        "hour": found.trips.hours[trip],
        "way": steps.relative[kept],
        "offset": steps.offset[kept],
    }
    return train_from_start(net, columns, found.unit[trip], plan=plan, n_expected=n_units, rng=rng, checkpoint=checkpoint)


def _even_zones(around: Neighbourhood) -> Integers:
    return zones_of_equal_mass(np.ones(around.n_cells), rows=around.rows, columns=around.columns, depth=ZONE_DEPTH)
