"""Predict visits from the noisy tables of ends and shapes, before visits are counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.asking import STEPS, Norm
from murmurate.asking.table import Answers
from murmurate.core.space import Floats
from murmurate.mechanisms.flock.base_model import BaseModel
from murmurate.mechanisms.flock.ends import EndsPool, gravity_ends
from murmurate.mechanisms.flock.shapes import estimate_shapes
from murmurate.mechanisms.flock.tables import N_DIAMETERS, divide_among_bins
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.synthesis.calibrate import straight_weights
from murmurate.synthesis.moves import MoveWeights

SIMULATED_TRIPS = 12_000
"""Trips simulated to predict visits. Chosen by hand."""
RARITY_POWER = 1.5
FLOOR = 0.05
ROUTING_POWER = 0.5
MIX = 0.1

@dataclass(frozen=True, eq=False)
class Prediction:
    """Visits that ends and shapes alone suggest."""

    visits: Floats
    """[coarse cell] share of trips that visit it."""
    favour: Floats
    """[coarse cell] weight of a visit among the visits of a trip."""
    counted: Floats
    """[coarse cell] count a trip adds on average, with these weights."""


def predict_visits(cells: Floats, answers: Answers, frame: Frame, norm: Norm, power: float) -> Prediction:
    """Simulate trips between estimated ends, and count their visits."""
    generator = np.random.default_rng(0)
    shapes = estimate_shapes(answers["diameter"], answers["shape"])
    source, destination, outlines = gravity_ends(shapes, cells, frame, SIMULATED_TRIPS, generator)
    hour = np.zeros(SIMULATED_TRIPS, dtype=np.int64)
    pool = EndsPool(source, destination, hour, np.arange(1.0, SIMULATED_TRIPS + 1), outlines)
    around = frame.around
    coarse = np.bincount(frame.coarse_of(np.arange(len(cells))), weights=cells, minlength=frame.n_coarse)
    attraction = ((coarse + MIX * coarse.mean()) / coarse.mean()) ** ROUTING_POWER
    weights = MoveWeights(straight_weights(around, frame.stride), attraction, np.ones((around.n_cells, around.n_offsets)))
    base = BaseModel(frame, pool, weights, None, coarse, cells, np.zeros(N_DIAMETERS), 0.0)
    walks = base.draw(SIMULATED_TRIPS, generator).walks
    each = STEPS * SIMULATED_TRIPS
    seen = np.unique(walks.trip_of_cell * frame.n_coarse + walks.cells) % frame.n_coarse
    visits = np.bincount(seen, minlength=frame.n_coarse) / SIMULATED_TRIPS
    visits = visits + FLOOR * visits.mean()*frame.coarse_area/frame.block**2
    favour = (visits / visits.max()) ** -power
    counted = divide_among_bins(walks.cells, walks.trip_of_cell, frame.n_coarse, norm, favour).table() / each
    counted += FLOOR * counted.mean()*frame.coarse_area/frame.block**2
    return Prediction(visits, favour, counted)
