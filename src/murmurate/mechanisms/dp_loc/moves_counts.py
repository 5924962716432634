"""Next cells from noisy tables: towards the destination, into cells, along steps; calibrated, with a size for each trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from murmurate.core.space import Floats
from murmurate.mechanisms.dp_loc.budget import MOVE_SHARES
from murmurate.mechanisms.dp_loc.protocols import Ends
from murmurate.mechanisms.dp_loc.routes import CountRouter, Route
from murmurate.synthesis.calibrate import calibrate, starting_weights
from murmurate.synthesis.measure import Noise, measure
from murmurate.synthesis.moves import MoveWeights, Neighbourhood, move_histograms
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.sizes import Sizes, fit_sizes, n_rings_of, rings

if TYPE_CHECKING:
    from murmurate.noise import Randomness

DRAWN_ENDS = 200_000
MOST_SIMULATED = 60_000
LEAST_SIMULATED = 2_000


def fit_counted_moves(
    trips: CellTrips,
    *,
    ends: Ends,
    n: float,
    around: Neighbourhood,
    hours: int,
    max_cells: int,
    route: Route,
    noise: Noise,
    rng: Randomness,
) -> CountRouter:
    """Measure the moves under `noise` (the whole of their budget, split by MOVE_SHARES) and calibrate on the answers.

    Guarantee: each table is changed by one trip by at most 1 in L2; `ends` and `n` are noisy already.
    """
    fixed = move_histograms(trips, around)
    parts = {name: noise.part(MOVE_SHARES[name]) for name in fixed}
    noisy = {name: measure(table, noise=parts[name], rng=rng) for name, table in fixed.items()}
    deviations = {name: part.deviation for name, part in parts.items()}
    generator = rng.generator()
    sizes = measured_sizes(
        trips, ends=ends, n=n, around=around, hours=hours, max_cells=max_cells,
        noise=noise.part(MOVE_SHARES["sizes"]), rng=rng, generator=generator,
    )  # fmt: skip
    n_simulated = int(np.clip(n, LEAST_SIMULATED, MOST_SIMULATED))

    def simulate(weights: MoveWeights) -> CellTrips:
        source, destination, hour = ends.sample(n_simulated, generator)
        return CountRouter(weights, sizes, around, "sampled").paths(source, destination, hour, generator)

    start = starting_weights(noisy["towards"], deviations["towards"], around)
    weights = calibrate(start, noisy=noisy, deviations=deviations, n=n, around=around, simulate=simulate)
    return CountRouter(weights, sizes, around, route)


def measured_sizes(
    trips: CellTrips,
    *,
    ends: Ends,
    n: float,
    around: Neighbourhood,
    hours: int,
    max_cells: int,
    noise: Noise,
    rng: Randomness,
    generator: np.random.Generator,
) -> Sizes:
    """Sizes by distance and hour, over the distances and hours that the (noisy) ends give."""
    source, destination, hour = ends.sample(DRAWN_ENDS, generator)
    n_rings = n_rings_of(around.rows, around.columns)
    drawn = np.bincount(rings(source, destination, around.columns) * hours + hour, minlength=n_rings * hours)
    ring_hour: Floats = drawn.reshape(n_rings, hours).astype(np.float64) * (n / DRAWN_ENDS)
    return fit_sizes(
        trips, rows=around.rows, columns=around.columns, hours=hours, max_cells=max_cells, ring_hour=ring_hour,
        noise=noise, rng=rng,
    )  # fmt: skip
