"""Predict visits from the noisy tables of ends and shapes, and divide trips among the cells they visit accordingly.

A trip has one count for all its visits. Divided evenly, most of it would go to cells whose visits are known well enough anyway.
So a visit weighs more the fewer trips are expected there. Synthetic trips are counted in the same way, so nothing is biased.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from murmurate.asking import Norm
from murmurate.asking.table import Answers
from murmurate.core.space import Floats
from murmurate.mechanisms.flock.base_model import CLOSED_WEIGHT, BaseModel, straight_weights
from murmurate.mechanisms.flock.ends import EndsPool, gravity_ends, gravity_frame
from murmurate.mechanisms.flock.shapes import estimate_shapes
from murmurate.mechanisms.flock.tables import N_DIAMETERS, divide_among_bins
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.synthesis.moves import MoveWeights

RARITY_POWER = 2.0
"""Power of the predicted visits by which a visit weighs less, where steps have no tables; it falls to 0 as detail grows to 1.
Chosen at epsilon 1 on two other samples of San Francisco than are scored and one of Geolife, six releases each: from 1.5 to
2.2, ranks of places (Kendall) rose by .01 on San Francisco and fell by .004 on Geolife."""
SIMULATED_TRIPS = 12_000
"""Trips simulated to predict visits. Chosen by hand."""
LEAST_VISITS = 0.05
"""Visits added to every cell, as a fraction of the mean, so that no cell is taken for empty. Chosen by hand."""
ATTRACTION_POWER = 0.5
"""Power of the ends in a cell by which routes are drawn to it. Chosen by hand."""
LEAST_ENDS = 0.1
"""Ends added to every cell for that, as a fraction of the mean. Chosen by hand."""
LEAST_SHARE = 1e-4
"""Least predicted visits of a cell, over those of the most visited one, so that weights stay within bounds. Chosen by hand."""
SEED = 0
"""Seed of the simulation. It reads noisy tables only, and must give the same each time it is run."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Visits that ends and shapes alone suggest."""

    visits: Floats
    """[coarse cell] visits, relative to each other."""
    favour: Floats
    """[coarse cell] weight of a visit among the visits of a trip."""
    counted: Floats
    """[coarse cell] counts with these weights, relative to each other."""


def predict_visits(cells: Floats, answers: Answers, frame: Frame, norm: Norm, power: float) -> Prediction:
    """Simulate trips between estimated ends ([grid cell] `cells`), and count their visits, rare ones by the given power."""
    generator = np.random.default_rng(SEED)
    wide = gravity_frame(frame)
    wider = wide.block / frame.block
    wide = replace(wide, reach=max(1, ceil(frame.reach / wider)), stride=frame.stride / wider)
    shapes = estimate_shapes(answers["diameter"], answers["shape"])
    source, destination, outlines = gravity_ends(shapes, cells, wide, SIMULATED_TRIPS, generator)
    hour = np.zeros(SIMULATED_TRIPS, dtype=np.int64)
    pool = EndsPool(source, destination, hour, np.arange(1.0, SIMULATED_TRIPS + 1), outlines)
    of_fine, around = wide.coarse_of(np.arange(len(cells))), wide.around
    by_cell: Floats = np.bincount(of_fine, weights=cells, minlength=wide.n_coarse).astype(np.float64)
    ends = _above(by_cell, LEAST_ENDS, wide)
    weights = MoveWeights(
        straight_weights(around, wide.stride),
        np.maximum(ends, CLOSED_WEIGHT) ** ATTRACTION_POWER,
        np.ones((around.n_cells, around.n_offsets)),
    )
    base = BaseModel(wide, pool, weights, None, ends, cells, np.zeros(N_DIAMETERS), 0.0)
    walks = base.draw(SIMULATED_TRIPS, generator).walks

    def counts(favour: Floats) -> Floats:
        """Return [cell] counts of the simulated trips."""
        shown = divide_among_bins(walks.cells, walks.trip_of_cell, wide.n_coarse, norm, favour).table()
        return _above(shown.astype(np.float64), LEAST_VISITS, wide)

    seen = np.unique(walks.trip_of_cell * wide.n_coarse + walks.cells) % wide.n_coarse
    visits = _above(np.bincount(seen, minlength=wide.n_coarse).astype(np.float64), LEAST_VISITS, wide)
    land = wide.coarse_area > 0
    favour = np.where(land, np.maximum(visits / visits.max(), LEAST_SHARE) ** -power, 1.0)
    return Prediction(*(_narrowed(values, wide, frame) for values in (visits, favour, counts(favour))))


def _above(values: Floats, least: float, frame: Frame) -> Floats:
    """Return [cell] values relative to their mean, a least one added by area."""
    return np.asarray(values / max(float(values.mean()), 1e-12) + least * frame.coarse_area / frame.block**2)


def _narrowed(values: Floats, wide: Frame, frame: Frame) -> Floats:
    """Return the values of wide cells at the cells of the frame: the mean over their grid cells."""
    fine = np.arange(frame.grid.n_cells)
    of_fine, whole = frame.coarse_of(fine), np.bincount(frame.coarse_of(fine), minlength=frame.n_coarse)
    return np.asarray(np.bincount(of_fine, weights=values[wide.coarse_of(fine)], minlength=frame.n_coarse) / whole)
