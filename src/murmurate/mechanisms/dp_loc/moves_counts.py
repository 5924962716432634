"""Next cells from noisy tables: towards the destination, into cells, along steps; calibrated, with a size for each trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking.table import Answers
from murmurate.core.space import Floats
from murmurate.mechanisms.dp_loc.routes import CountRouter, Ends
from murmurate.mechanisms.dp_loc.settings import Route
from murmurate.mechanisms.dp_loc.tables import Tables
from murmurate.synthesis.calibrate import calibrate, starting_weights
from murmurate.synthesis.moves import MoveWeights
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.sizes import Sizes, n_rings_of, rings, sizes_from_tables

if TYPE_CHECKING:
    from murmurate.noise import Randomness

DRAWN_ENDS = 200_000
"""Trips drawn from the noisy ends to find which distances occur in which hours; their own error is well below the noise."""

MOST_SIMULATED = 60_000
"""Trips of a round of calibration at most: more take longer and change no release visibly."""

LEAST_SIMULATED = 2_000
"""Trips of a round of calibration at least, so that small data sets are not calibrated on chance."""


def counted_moves(answers: Answers, *, ends: Ends, n: float, tables: Tables, route: Route, rng: Randomness) -> CountRouter:
    """Make a router from the noisy tables of the moves and calibrate it on them; nothing private is read."""
    around = tables.around
    names = ("towards", "visits", "steps")
    noisy = {name: answers[name].noisy.reshape(-1, around.n_offsets) for name in names if name != "visits"}
    noisy["visits"] = answers["visits"].noisy
    deviations = {name: answers[name].deviation for name in names}
    generator = rng.generator()
    sizes = sizes_of(answers, ends=ends, n=n, tables=tables, generator=generator)
    n_simulated = int(np.clip(n, LEAST_SIMULATED, MOST_SIMULATED))

    def simulate(weights: MoveWeights) -> CellTrips:
        source, destination, hour = ends.sample(n_simulated, generator)
        return CountRouter(weights, sizes, around, "sampled").paths(source, destination, hour, generator)

    start = starting_weights(noisy["towards"], deviations["towards"], around)
    weights = calibrate(start, noisy=noisy, deviations=deviations, n=n, around=around, simulate=simulate)
    # as it is stored, so that a model that was saved draws the same trips
    return CountRouter.from_arrays(CountRouter(weights, sizes, around, route).arrays(), around, route)


def sizes_of(answers: Answers, *, ends: Ends, n: float, tables: Tables, generator: np.random.Generator) -> Sizes:
    """Estimate sizes by distance and hour, over the distances and hours that the (noisy) ends give."""
    around, hours = tables.around, tables.hours
    source, destination, hour = ends.sample(DRAWN_ENDS, generator)
    n_rings = n_rings_of(around.rows, around.columns)
    drawn = np.bincount(rings(source, destination, around.columns) * hours + hour, minlength=n_rings * hours)
    ring_hour: Floats = drawn.reshape(n_rings, hours).astype(np.float64) * (n / DRAWN_ENDS)
    return sizes_from_tables(
        answers["sizes_by_ring"].noisy.reshape(n_rings, -1),
        answers["sizes_by_hour"].noisy.reshape(hours, -1),
        ring_hour=ring_hour,
        deviation=answers["sizes_by_ring"].deviation,
        columns=around.columns,
    )
