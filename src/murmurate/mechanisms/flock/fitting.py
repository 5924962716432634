"""Fit flock to its noisy tables: base model first, calibration by simulation, then log-weights for what is still different."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking import STEPS, Answer, Norm
from murmurate.core.space import Floats
from murmurate.mechanisms.flock.base_model import BaseModel
from murmurate.mechanisms.flock.ends import EndsPool, gravity_pool, independent_pool
from murmurate.mechanisms.flock.estimates import estimate_cells, fit_log_weights, with_estimated_cells
from murmurate.mechanisms.flock.rounds import Plan, use_shape_weights
from murmurate.mechanisms.flock.shapes import Pace, Shapes, estimate_shapes, fit_pace
from murmurate.mechanisms.flock.tables import Zones, trip_contributions
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.synthesis.calibrate import correction, relative_middles, starting_weights
from murmurate.synthesis.ends import Ends, coarsen, filled, joint_of, shrink_zone_hour
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.shrink import nonnegative, shrink
from murmurate.synthesis.sizes import Sizes, n_rings_of, rings, sizes_from_tables

if TYPE_CHECKING:
    from murmurate.noise import Randomness

WEIGHTED_TABLES = ("pairs", "source_hour", "destination_hour", "visits", "ends", "diameter", "shape")
"""Tables that weight candidates where there are no step tables."""
SIZE_TABLES = ("sizes", "sizes_hour")
"""Tables that weight candidates where there are step tables: the base model reproduces the others, and fitting their noise
twice would add to it. Chosen on a built-in city of 87,000 trips."""
SHAPE_TABLES = ("diameter", "shape")
"""Tables that weight candidates as well where `rounds.use_shape_weights` says so."""
CALIBRATED_TABLES = ("towards", "visits", "steps")
"""Tables towards which step weights are corrected by simulation."""
CALIBRATION_ROUNDS = 5
"""Rounds of calibration with step tables. Chosen by hand."""
COARSE_CALIBRATION_ROUNDS = 3
"""Rounds of calibration where visits are the only table to correct towards. Chosen by hand."""
ENDS_POOL_TRIPS = (100_000, 300_000)
"""Smallest and largest pool of independent ends, in trips; between them ten times the number of trips. Chosen by hand."""
GRAVITY_POOL_TRIPS = (80_000, 120_000)
"""The same for ends drawn from the gravity model. Chosen by hand."""
POOL_TRIPS = (12_000, 60_000)
"""Smallest and largest number of simulated trips for calibration and log-weights; between them twice the trips. Chosen by
hand."""
COARSE_POOL_TRIPS = 12_000
"""Largest number of simulated trips for calibration without step tables. Chosen by hand."""
SIMULATED_ENDS = 200_000
"""Ends drawn to compute the distribution of distance rings by hour. Chosen by hand."""
DETOUR_SCALE_CELLS = 0.4
"""Detour, in coarse cells, that makes a step less likely by a factor of e where steps have no table. Chosen by hand."""
LONG_STEP_WEIGHT = 0.1
"""Weight of a step over more than 1.5 cells, relative to a step to the next cell, in the public base model. Chosen by hand."""
MIN_ROUTING_WEIGHT = 0.02
"""Minimum routing weight of a cell, as a fraction of the mean weight. Keeps every cell reachable. Chosen by hand."""
CORRECTION_OFFSET_SDS = 0.7
"""Offset added to both sides of a visit correction, in standard errors, so that noise alone corrects little. Chosen by hand."""
VISIT_CORRECTION_POWER = 0.7
"""Power of a visit correction; below 1, because visits of a cell depend on routes through all other cells. Chosen by hand."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The base model, the zones of its tables, and the log-weights of their bins."""

    base: BaseModel
    zones: Zones
    log_weights: dict[str, Floats]
    """[table name][bin]"""
    norm: Norm
    n: float
    """Noisy number of trips."""
    pace: Pace | None
    """Speeds; None where trips have no times."""


def fit(plan: Plan, rng: Randomness) -> Fitted:
    """Fit a model to the noisy tables; reads nothing private."""
    n, frame, zones = plan.refined_n(), plan.frame, plan.zones
    generator = rng.generator()
    pace = fit_pace(plan.answers["pace"], plan.answers.get("pace_hour"), frame.hours) if plan.timed else None
    answers = dict(plan.answers) if "steps" in plan.answers else with_estimated_cells(plan.answers, frame)
    cells = plan.end_cells
    base = _fit_base_model(answers, frame, zones, cells * (n / max(cells.sum(), 1e-9)), n, plan.norm, generator)
    pool = int(np.clip(2 * n, *POOL_TRIPS))
    base = _calibrate(base, answers, plan.norm, n, pool if base.has_step_tables else min(pool, COARSE_POOL_TRIPS), generator)
    weighted: tuple[str, ...] = WEIGHTED_TABLES
    if base.has_step_tables:
        weighted = SIZE_TABLES + (SHAPE_TABLES if use_shape_weights(n, frame.n_coarse, plan.noise) else ())
    names = [name for name in weighted if name in answers]
    shown = trip_contributions(names, base.draw(pool, generator), frame, zones, plan.norm)
    log_weights = fit_log_weights(shown, answers, n, pool)
    return Fitted(base, zones, log_weights, plan.norm, n, pace)


def _fit_base_model(  # noqa: PLR0917
    answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats, n: float, norm: Norm, generator: np.random.Generator
) -> BaseModel:
    """Fit the base model before calibration."""
    shapes = estimate_shapes(answers["diameter"], answers["shape"])
    ends = _ends_pool(answers, frame, zones, shapes, cells, n, norm, generator)
    sizes = _fit_sizes(answers, frame, ends, n, generator)
    visits = estimate_cells(answers["visits"], frame.rows, frame.columns) if "steps" in answers else answers["visits"].noisy
    weights = _starting_weights(answers, frame, visits)
    return BaseModel(frame, ends, weights, sizes, visits, cells, shapes, _repeat_shares(answers["diameter"]))


def _fit_sizes(
    answers: dict[str, Answer], frame: Frame, ends: EndsPool, n: float, generator: np.random.Generator
) -> Sizes | None:
    """Fit numbers of cells by distance and hour; None without step tables."""
    drawn = ends.sample(SIMULATED_ENDS, generator)  # before the check, so that seeded releases do not change
    if "sizes" not in answers:
        return None
    n_rings = n_rings_of(frame.rows, frame.columns)
    ring = rings(frame.coarse_of(drawn.source), frame.coarse_of(drawn.destination), frame.columns)
    counts = np.bincount(ring * frame.hours + drawn.hour, minlength=n_rings * frame.hours)
    return sizes_from_tables(
        answers["sizes"].noisy.reshape(n_rings, -1),
        answers["sizes_hour"].noisy.reshape(frame.hours, -1) if "sizes_hour" in answers else None,
        ring_hour=np.asarray(counts.reshape(n_rings, -1) * (n / SIMULATED_ENDS), dtype=np.float64),
        deviation=answers["sizes"].deviation,
        columns=frame.columns,
        least=1,
    )


def _starting_weights(answers: dict[str, Answer], frame: Frame, visits: Floats) -> MoveWeights:
    """Return step weights before calibration: from the table of directions, or the public base model times visits."""
    around = frame.around
    if "towards" in answers:
        towards = answers["towards"]
        return starting_weights(towards.noisy.reshape(-1, around.n_offsets), towards.deviation, around)
    mean = max(visits.mean(), 1e-9)
    return MoveWeights(
        straight_weights(around, frame.stride),
        ((visits + MIN_ROUTING_WEIGHT * mean) / mean),
        np.ones((around.n_cells, around.n_offsets)),
    )


def _repeat_shares(diameter: Answer) -> Floats:
    """Estimate [diameter bin] the share of trips that repeat a point, shrunk towards that of all trips."""
    by_diameter = diameter.noisy.reshape(-1, 2)
    trips, pooled = by_diameter.sum(axis=1), nonnegative(by_diameter.sum(axis=0))
    share = pooled[1] / max(pooled.sum(), 1e-9)
    repeated = shrink(by_diameter[:, 1], np.maximum(trips, 0) * share + 1e-6, deviation=diameter.deviation)
    return np.clip(repeated / np.maximum(trips, diameter.deviation), 0.0, 1.0)


def _ends_pool(  # noqa: PLR0917
    answers: dict[str, Answer],
    frame: Frame,
    zones: Zones,
    shapes: Shapes,
    cells: Floats,
    n: float,
    norm: Norm,
    generator: np.random.Generator,
) -> EndsPool:
    """Fit the pool of ends: independent ends with fine tables, otherwise the gravity model."""
    size = int(np.clip(10 * n, *(ENDS_POOL_TRIPS if "apart" in answers else GRAVITY_POOL_TRIPS)))
    if "apart" in answers:
        return independent_pool(_joint_ends(answers, frame, zones, cells, n), answers, frame, zones, n, size, generator)
    hours = _zone_hours(answers, frame, zones, cells)
    return gravity_pool(shapes, cells, hours, answers, frame, zones, norm, n, size, generator)


def _zone_hours(answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats) -> tuple[Floats, Floats]:
    """Estimate [zone, hour] counts of both ends."""
    at = zones.at(np.arange(len(cells)), zones.by_hour)
    by_zone: Floats = np.bincount(at, weights=cells, minlength=2**zones.by_hour).astype(np.float64)
    both = []
    for name in ("source_hour", "destination_hour"):
        if name not in answers:
            both.append(filled(by_zone[:, None].copy(), by_zone))
            continue
        noisy = answers[name].noisy.reshape(-1, frame.hours)
        both.append(filled(shrink_zone_hour(noisy, by_zone, answers[name].deviation), by_zone))
    return both[0], both[1]


def _joint_ends(answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats, n: float) -> Ends:
    """Fit the joint distribution of both ends and the hour."""
    pairs = answers["pairs"].noisy.reshape(2**zones.pairs, -1)
    both = _zone_hours(answers, frame, zones, cells)
    if frame.hours == 1:
        coarse = coarsen(both[0], zones.pairs)[:, 0]
        prior = np.outer(coarse, coarse) / max(coarse.sum(), 1e-9)
        return Ends(prior[:, :, None], *both, cells, cells, zones.zone, n)
    joint = joint_of(
        coarsen(both[0], zones.pairs),
        coarsen(both[1], zones.pairs),
        pairs,
        answers["pairs_hour"].noisy.reshape(2**zones.pairs_hour, 2**zones.pairs_hour, frame.hours),
        (answers["pairs"].deviation, answers["pairs_hour"].deviation),
    )
    return Ends(joint, both[0], both[1], cells, cells, zones.zone, n)


def _calibrate(  # noqa: PLR0917
    base: BaseModel, answers: dict[str, Answer], norm: Norm, n: float, pool: int, generator: np.random.Generator
) -> BaseModel:
    """Correct step weights towards the noisy tables by simulation: draw trips, count the same tables, compare."""
    around = base.frame.around
    names = [name for name in CALIBRATED_TABLES if name in answers]
    for _ in range(CALIBRATION_ROUNDS if base.has_step_tables else COARSE_CALIBRATION_ROUNDS):
        shown = trip_contributions(names, base.draw(pool, generator), base.frame, None, norm)
        factor: dict[str, Floats] = {"towards": np.ones(1), "steps": np.ones(1)}
        for name in names:
            expected: Floats = np.asarray(shown[name].table() * (n / (pool * STEPS)), dtype=np.float64)
            factor[name] = correction(answers[name].noisy, expected, answers[name].deviation)
        if "steps" not in answers:
            offset = answers["visits"].deviation * CORRECTION_OFFSET_SDS
            factor["visits"] = ((base.visits + offset) / (expected + offset)) ** VISIT_CORRECTION_POWER
        base = replace(
            base,
            weights=MoveWeights(
                base.weights.towards * _by_offset(factor["towards"], around),
                base.weights.visits * factor["visits"],
                base.weights.steps * _by_offset(factor["steps"], around),
            ),
        )
    return base


def _by_offset(values: Floats, around: Neighbourhood) -> Floats:
    """Reshape a table to [row, offset]; a single value stays as it is."""
    return values.reshape(-1, around.n_offsets) if values.size > 1 else values


def straight_weights(around: Neighbourhood, stride: float) -> Floats:
    """Return [relative destination, offset] public step weights: less for detours, long steps and corners."""
    down, right = np.divmod(np.arange(around.n_offsets), around.side)
    step = np.stack([down - around.reach, right - around.reach]).astype(np.float64)
    far = np.hypot(*step)
    middle = relative_middles(around)
    before = np.hypot(*middle)[:, None]
    after = np.hypot(middle[0][:, None] - step[0], middle[1][:, None] - step[1])
    over = np.where(far > 1.5, LONG_STEP_WEIGHT, np.where(far > 1, min(stride, 1.0), 1.0))
    return np.exp(-(far + after - before) / DETOUR_SCALE_CELLS) * over
