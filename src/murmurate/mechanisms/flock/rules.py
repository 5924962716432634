"""How fine the tables are and what each gets of the budget: rules of the noisy size and of the noise, never of the data."""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np

from murmurate.spaces.grid import Grid
from murmurate.synthesis.ends import depth_of
from murmurate.synthesis.measure import Noise

COARSE = {
    "n": 0.02,
    "ends": 0.23,
    "places": 0.02,
    "visits": 0.45,
    "pairs": 0.06,
    "diameter": 0.11,
    "shape": 0.11,
}
"""Shares of the budget where trips are few for the noise: routes are walked on blocks of cells."""

FINE = {
    "n": 0.02,
    "ends": 0.09,
    "visits": 0.16,
    "pairs": 0.22,
    "towards": 0.12,
    "steps": 0.22,
    "sizes": 0.09,
    "apart": 0.02,
    "diameter": 0.03,
    "shape": 0.03,
}
"""Shares where they are many: every cell is walked on, and steps are counted one by one."""

COARSE_HOURS = {
    "n": 0.02,
    "ends": 0.21,
    "places": 0.02,
    "source_hour": 0.04,
    "destination_hour": 0.04,
    "visits": 0.43,
    "pairs": 0.05,
    "diameter": 0.10,
    "shape": 0.09,
}

FINE_HOURS = {
    "n": 0.02,
    "ends": 0.05,
    "source_hour": 0.14,
    "destination_hour": 0.14,
    "pairs": 0.08,
    "pairs_hour": 0.06,
    "visits": 0.09,
    "towards": 0.11,
    "steps": 0.18,
    "sizes": 0.05,
    "sizes_hour": 0.05,
    "apart": 0.01,
    "diameter": 0.01,
    "shape": 0.01,
}

COUNT_SHARE = 0.02
"""Of the number of trips: it is asked first, because it decides which of these applies."""

PACE = {"pace": 0.02, "pace_hour": 0.01}
"""Shares of speeds, where trips have times; the other tables but the count leave room for them."""

NEEDED = 3.0
"""Trips that make sense of a release, in deviations of their noisy count; tables then have some bins clear of their noise."""

WORTH = 2.5
"""Walked cells are as small as their mean count stays this many deviations of a table with a fifth of the budget."""

STEPS_WORTH = 3_000.0
"""Steps and sizes are counted one by one from this many deviations (of a table with a fifth of the budget) of trips on."""

SHAPES_WORTH = 10_000.0
"""Up to this many deviations of trips, trips made of counted steps are weighed by how far and how long they go as well: the
fewer trips, the more their steps err together. Beyond it a second look at noisy lengths takes more than it gives."""

USUAL_KMH = 25.0
"""How fast trips in cities are known to go, anywhere: it tells corners crossed from edges crossed, nothing else."""

FINER = 4.0
"""Pairs are told apart this much finer than tables that stand alone: pulls are shrunk bin by bin."""

CANDIDATES = {"coarse": 3, "fine": 2}
"""Candidates drawn for each trip that is kept: fewer where moves are counted, as their law is nearer to the tables."""


def shares(*, hours: int, counted: bool, timed: bool) -> dict[str, float]:
    """What each table gets; they add up to one."""
    if hours == 1:
        parts = FINE if counted else COARSE
    else:
        parts = FINE_HOURS if counted else COARSE_HOURS
    if not timed:
        return dict(parts)
    pace = {name: value for name, value in PACE.items() if name == "pace" or hours > 1}
    left = (1 - COUNT_SHARE - sum(pace.values())) / (1 - COUNT_SHARE)
    return {name: value if name == "n" else value * left for name, value in parts.items()} | pace


def trips_needed(noise: Noise) -> float:
    """How many trips a release needs to show more than its noise."""
    return NEEDED * noise.part(COUNT_SHARE).deviation


def block_of(grid: Grid, n: float, noise: Noise) -> int:
    """Fine cells along a side of a walked cell: more trips or less noise, smaller cells."""
    worth = max(n, 1.0) / (WORTH * noise.part(0.2).deviation)
    return int(np.clip(round(sqrt(grid.n_cells / worth)), 1, max(1, ceil(min(grid.rows, grid.columns) / 2))))


def steps_counted(n: float, block: int, noise: Noise) -> bool:
    """Whether steps and sizes get tables; few trips are better told by how far and how long they go."""
    return block == 1 and n > STEPS_WORTH * noise.part(0.2).deviation


def shapes_weighed(n: float, n_cells: int, noise: Noise) -> bool:
    """Whether trips of counted steps are weighed by their shapes too: where trips are few for the noise or for the cells."""
    return n < SHAPES_WORTH * noise.part(0.2).deviation or n < n_cells


def stride_of(frame_m: float, slot_s: float) -> float:
    """Walked cells between two points of a usual trip."""
    return USUAL_KMH / 3.6 * slot_s / frame_m


def depths(n: float, hours: int, part: dict[str, float], noise: Noise) -> dict[str, int]:
    """How often the box is halved for the zones of each table."""

    def halved(name: str, trips: float, ends: int) -> int:
        return depth_of(trips, noise.part(part[name]).deviation, ends) if name in part else 0

    pairs, by_hour = halved("pairs", n * FINER, 2), halved("source_hour", n / hours, 1)
    pairs_hour = halved("pairs_hour", n / hours, 2)
    fine = max(pairs, by_hour)
    by_hour = by_hour if "source_hour" in part else fine
    if "pairs_hour" in part:  # a law over pairs and hours is made of zones that all its tables tell apart
        fine, pairs = by_hour, min(pairs, by_hour)
        pairs_hour = min(pairs_hour, pairs)
    return {"fine": fine, "by_hour": by_hour, "pairs": pairs, "pairs_hour": pairs_hour}
