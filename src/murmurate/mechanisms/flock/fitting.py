"""Fitting: tables are measured once, laws are made of them, and log_weights take up what the laws do not show."""

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
from murmurate.synthesis.ends import Ends, believed_zone_hour, coarsen, filled, joint_of
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.shrink import nonnegative, shrink
from murmurate.synthesis.sizes import n_rings_of, rings, sizes_from_tables

if TYPE_CHECKING:
    from murmurate.noise import Randomness

WEIGHTED_TABLES = ("pairs", "source_hour", "destination_hour", "visits", "ends", "diameter", "shape")
SIZE_TABLES = ("sizes", "sizes_hour")
"""Where steps are step_tables: all else is in the law itself, and a second look at its noise would only add to it."""
SHAPE_TABLES = ("diameter", "shape")
"""What such trips are weighed by as well, where `rules.use_shape_weights`."""
CALIBRATED_TABLES = ("towards", "visits", "steps")
CALIBRATION_ROUNDS = 5
COARSE_CALIBRATION_ROUNDS = 3
"""Where visits alone are there to turn to."""
ENDS_POOL_TRIPS = (100_000, 300_000)
GRAVITY_POOL_TRIPS = (80_000, 120_000)
POOL_TRIPS = (12_000, 60_000)
COARSE_POOL_TRIPS = 12_000
SIMULATED_ENDS = 200_000
DETOUR_SCALE_CELLS = 0.4
"""Cells of detour that make a step less likely by a factor of e, where moves are not counted."""
LONG_STEP_WEIGHT = 0.1
MIN_ROUTING_WEIGHT = 0.02
"""Of the mean of the cells: what every cell draws a way by, so that none is closed."""
CORRECTION_OFFSET_SDS = 0.7
VISIT_CORRECTION_POWER = 0.7
"""Power of a correction by the noisy visits of a cell, which depend on the ways through all others as well."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The base base, the zones of its tables, and the log_weights on them."""

    base: BaseModel
    zones: Zones
    log_weights: dict[str, Floats]
    norm: Norm
    n: float
    """Noisy number of trips."""
    pace: Pace | None
    """None where trips have no times."""


def fit(plan: Plan, rng: Randomness) -> Fitted:
    """Make a model of the answers: reads nothing private."""
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
    shapes = estimate_shapes(answers["diameter"], answers["shape"])
    ends = _ends_pool(answers, frame, zones, shapes, cells, n, norm, generator)
    drawn_ends = ends.sample(SIMULATED_ENDS, generator)
    source, destination, hour = drawn_ends.source, drawn_ends.destination, drawn_ends.hour
    n_rings = n_rings_of(frame.rows, frame.columns)
    ring = rings(frame.coarse_of(source), frame.coarse_of(destination), frame.columns)
    drawn = np.bincount(ring * frame.hours + hour, minlength=n_rings * frame.hours)
    sizes = None
    if "sizes" in answers:
        sizes = sizes_from_tables(
            answers["sizes"].noisy.reshape(n_rings, -1),
            answers["sizes_hour"].noisy.reshape(frame.hours, -1) if "sizes_hour" in answers else None,
            ring_hour=np.asarray(drawn.reshape(n_rings, -1) * (n / SIMULATED_ENDS), dtype=np.float64),
            deviation=answers["sizes"].deviation,
            columns=frame.columns,
            least=1,
        )
    around = frame.around
    visits = estimate_cells(answers["visits"], frame.rows, frame.columns) if "steps" in answers else answers["visits"].noisy
    if "towards" in answers:
        asked = answers["towards"]
        weights = starting_weights(asked.noisy.reshape(-1, around.n_offsets), asked.deviation, around)
    else:
        mean = max(visits.mean(), 1e-9)
        weights = MoveWeights(
            straight_weights(around, frame.stride),
            ((visits + MIN_ROUTING_WEIGHT * mean) / mean),
            np.ones((around.n_cells, around.n_offsets)),
        )
    by_diameter = answers["diameter"].noisy.reshape(-1, 2)
    alike = nonnegative(by_diameter.sum(axis=0))
    share = alike[1] / max(alike.sum(), 1e-9)
    repeated = shrink(
        by_diameter[:, 1], np.maximum(by_diameter.sum(axis=1), 0) * share + 1e-6, deviation=answers["diameter"].deviation
    )
    repeats = np.clip(repeated / np.maximum(by_diameter.sum(axis=1), answers["diameter"].deviation), 0.0, 1.0)
    return BaseModel(frame, ends, weights, sizes, visits, cells, shapes, repeats)


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
    size = int(np.clip(10 * n, *(ENDS_POOL_TRIPS if "apart" in answers else GRAVITY_POOL_TRIPS)))
    if "apart" in answers:
        return independent_pool(_joint_ends(answers, frame, zones, cells, n), answers, frame, zones, n, size, generator)
    hours = _zone_hours(answers, frame, zones, cells)
    return gravity_pool(shapes, cells, hours, answers, frame, zones, norm, n, size, generator)


def _zone_hours(answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats) -> tuple[Floats, Floats]:
    """[zone, hour] of both ends."""
    at = zones.at(np.arange(len(cells)), zones.by_hour)
    by_zone: Floats = np.bincount(at, weights=cells, minlength=2**zones.by_hour).astype(np.float64)
    both = []
    for name in ("source_hour", "destination_hour"):
        if name not in answers:
            both.append(filled(by_zone[:, None].copy(), by_zone))
            continue
        noisy = answers[name].noisy.reshape(-1, frame.hours)
        both.append(filled(believed_zone_hour(noisy, by_zone, answers[name].deviation), by_zone))
    return both[0], both[1]


def _joint_ends(answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats, n: float) -> Ends:
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
    """Weights of the walk factor towards the noisy tables of moves, by drawing and counting."""
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
    return values.reshape(-1, around.n_offsets) if values.size > 1 else values


def straight_weights(around: Neighbourhood, stride: float) -> Floats:
    """[relative destination, offset] a public law of steps: those that make no detour, short ones first, few over corners."""
    down, right = np.divmod(np.arange(around.n_offsets), around.side)
    step = np.stack([down - around.reach, right - around.reach]).astype(np.float64)
    far = np.hypot(*step)
    middle = relative_middles(around)
    before = np.hypot(*middle)[:, None]
    after = np.hypot(middle[0][:, None] - step[0], middle[1][:, None] - step[1])
    over = np.where(far > 1.5, LONG_STEP_WEIGHT, np.where(far > 1, min(stride, 1.0), 1.0))
    return np.exp(-(far + after - before) / DETOUR_SCALE_CELLS) * over
