"""Fit flock to its noisy tables: base model first, calibration by simulation, then log-weights for what is still different."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking import STEPS, Answer, Norm
from murmurate.core.space import Floats
from murmurate.mechanisms.flock.base_model import CLOSED_WEIGHT, BaseModel, size_of_length, straight_weights
from murmurate.mechanisms.flock.ends import EndEstimates, EndsPool, gravity_pool, with_estimated_ends
from murmurate.mechanisms.flock.estimates import fit_log_weights, separate_ends, with_estimated_cells
from murmurate.mechanisms.flock.rounds import Plan
from murmurate.mechanisms.flock.shapes import Pace, estimate_shapes, fit_pace
from murmurate.mechanisms.flock.tables import Zones, trip_contributions
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.synthesis.ends import filled, shrink_zone_hour
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.shrink import nonnegative, shrink
from murmurate.synthesis.sizes import CoupledSizes, n_rings_of, rings, sizes_from_tables

if TYPE_CHECKING:
    from murmurate.noise import Randomness

WEIGHTED_TABLES = (
    "pairs", "pairs_hour", "source_hour", "destination_hour", "origins", "destinations", "visits", "ends", "diameter", "shape",
    "sizes", "sizes_hour",
)  # fmt: skip
"""Tables that weight candidates."""
CALIBRATED_TABLES = ("visits", "towards", "steps")
"""Tables towards which step weights are corrected by simulation."""
CALIBRATION_ROUNDS = 5
"""Rounds of calibration. Chosen by hand."""
ENDS_POOL_TRIPS = (80_000, 300_000)
"""Smallest and largest pool of ends, in trips; between them ten times the number of trips. Chosen by hand."""
POOL_TRIPS = (12_000, 60_000)
"""Smallest and largest number of simulated trips for calibration and log-weights; between them twice the trips. Chosen by
hand."""
SIMULATED_ENDS = 200_000
"""Ends drawn to compute the distribution of distance rings by hour. Chosen by hand."""
MIN_ROUTING_WEIGHT = 0.02
"""Minimum routing weight of a cell, as a fraction of the mean weight. Keeps every cell reachable. Chosen by hand."""
ROUTING_POWER = 0.7
"""Power of estimated visits in the routing weights before calibration; below 1, because routes look ahead. Chosen with
`ahead.VISITS_POWER`."""
CORRECTIONS = {"visits": (0.3, 1.0), "towards": (0.7, 0.7), "steps": (0.7, 0.7)}
"""Offset added to both sides of a correction, in standard errors, so that noise alone corrects little, and power of the
correction. For visits chosen on the built-in city and on other samples and boxes of San Francisco and Geolife than are scored:
ranks of places (Kendall) rose by .015 to .03. For steps the same would follow the noise: of all San Francisco trips, patterns
fell from 90 to 86 %."""
DETOURS_BY_TABLE = 3.0
"""Share of trips whose detours follow the tables of steps, over the detail of the tables; at most 1. Chosen by hand."""
CLEAR_SDS = {"l1": 6.0, "l2": 3.5}
"""Difference between a noisy and a simulated count, in noise standard deviations, from which the noisy one is taken whole.
Noise alone exceeds it in two to five of ten thousand bins; Laplace noise has longer tails. Chosen by hand."""


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
    answers, visits = with_estimated_cells(plan.answers, frame, plan.prediction)
    cells = plan.end_cells(visits)
    cells *= n / max(cells.sum(), 1e-9)
    estimates = _estimate_ends(plan, answers, cells)
    answers = with_estimated_ends(answers, estimates)
    base = _fit_base_model(plan, answers, visits, estimates, n, generator)
    pool = int(np.clip(2 * n, *POOL_TRIPS))
    base = _calibrate(base, zones, answers, plan.norm, n, pool, generator)
    names = [name for name in WEIGHTED_TABLES if name in answers]
    shown = trip_contributions(names, base.draw(pool, generator), frame, zones, plan.norm)
    log_weights = fit_log_weights(shown, answers, n, pool)
    return Fitted(base, zones, log_weights, plan.norm, n, pace)


def _fit_base_model(  # noqa: PLR0917
    plan: Plan, answers: dict[str, Answer], visits: Floats, estimates: EndEstimates, n: float, generator: np.random.Generator
) -> BaseModel:
    """Fit the base model before calibration."""
    frame, zones = plan.frame, plan.zones
    shapes = estimate_shapes(answers["diameter"], answers["shape"])
    size = int(np.clip(10 * n, *ENDS_POOL_TRIPS))
    ends = gravity_pool(shapes, estimates, answers, frame, zones, plan.norm, n, size, generator)
    sizes = _fit_sizes(answers, frame, ends, n, generator) if "sizes" in answers else None
    mean = max(visits.mean(), 1e-9)
    around = frame.around
    weights = MoveWeights(
        straight_weights(around, frame.stride),
        np.where(frame.coarse_area > 0, (visits / mean + MIN_ROUTING_WEIGHT) ** ROUTING_POWER, CLOSED_WEIGHT),
        np.ones((around.n_cells, around.n_offsets)),
    )
    return BaseModel(
        frame,
        ends,
        weights,
        sizes,
        visits,
        estimates.inside,
        _repeat_shares(answers["diameter"]),
        min(1.0, DETOURS_BY_TABLE * plan.detail),
    )


def _estimate_ends(plan: Plan, answers: dict[str, Answer], cells: Floats) -> EndEstimates:
    """Estimate ends by cell, by zone and hour and, where they were counted apart, origins and destinations."""
    separate = separate_ends(answers, plan.frame, answers["ends"].noisy) if "origins" in answers else None
    return EndEstimates(cells, _zone_hours(answers, plan.frame, plan.zones, cells, separate), separate)


def _fit_sizes(
    answers: dict[str, Answer], frame: Frame, ends: EndsPool, n: float, generator: np.random.Generator
) -> CoupledSizes:
    """Fit numbers of cells by distance and hour, starting from those that lengths alone give."""
    drawn = ends.sample(SIMULATED_ENDS, generator)
    n_rings = n_rings_of(frame.rows, frame.columns)
    ring = rings(frame.coarse_of(drawn.source), frame.coarse_of(drawn.destination), frame.columns)
    counts = np.bincount(ring * frame.hours + drawn.hour, minlength=n_rings * frame.hours)
    size = np.minimum(size_of_length(drawn.outlines.length_m, frame, generator), frame.max_cells)
    each = n / SIMULATED_ENDS
    expected: Floats = np.asarray(
        np.bincount(ring * frame.max_cells + size - 1, minlength=n_rings * frame.max_cells).reshape(n_rings, -1) * each,
        dtype=np.float64,
    )
    sizes = sizes_from_tables(
        answers["sizes"].noisy.reshape(n_rings, -1),
        answers["sizes_hour"].noisy.reshape(frame.hours, -1) if "sizes_hour" in answers else None,
        ring_hour=np.asarray(counts.reshape(n_rings, -1) * each, dtype=np.float64),
        deviation=answers["sizes"].deviation,
        columns=frame.columns,
        least=1,
        hour_deviation=answers["sizes_hour"].deviation if "sizes_hour" in answers else None,
    )
    return CoupledSizes(expected + 1e-9, sizes)


def _repeat_shares(diameter: Answer) -> Floats:
    """Estimate [diameter bin] the share of trips that repeat a point, shrunk towards that of all trips."""
    by_diameter = diameter.noisy.reshape(-1, 2)
    trips, pooled = by_diameter.sum(axis=1), nonnegative(by_diameter.sum(axis=0))
    share = pooled[1] / max(pooled.sum(), 1e-9)
    repeated = shrink(by_diameter[:, 1], np.maximum(trips, 0) * share + 1e-6, deviation=diameter.deviation)
    return np.clip(repeated / np.maximum(trips, diameter.deviation), 0.0, 1.0)


def _zone_hours(
    answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats, separate: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats]:
    """Estimate [zone, hour] counts of either end, from ends by grid cell and, where counted, either end by coarse cell."""
    fine = np.arange(len(cells))
    at, of_fine = zones.at(fine, zones.by_hour), frame.coarse_of(fine)
    both = []
    for end, name in enumerate(("source_hour", "destination_hour")):
        inside = cells
        if separate is not None:
            within = np.bincount(of_fine, weights=cells, minlength=frame.n_coarse)
            inside = cells * (separate[end] / np.maximum(within, 1e-12))[of_fine]
        by_zone: Floats = np.bincount(at, weights=inside, minlength=2**zones.by_hour).astype(np.float64)
        if name not in answers:
            both.append(filled(by_zone[:, None].copy(), by_zone))
            continue
        noisy = answers[name].noisy.reshape(-1, frame.hours)
        both.append(filled(shrink_zone_hour(noisy, by_zone, answers[name].deviation), by_zone))
    return both[0], both[1]


def _calibrate(  # noqa: PLR0917
    base: BaseModel, zones: Zones, answers: dict[str, Answer], norm: Norm, n: float, pool: int, generator: np.random.Generator
) -> BaseModel:
    """Correct step weights towards the noisy tables by simulation: draw trips, count the same tables, compare."""
    around = base.frame.around
    names = [name for name in CALIBRATED_TABLES if name in answers]
    wanted: dict[str, Floats] = {"visits": answers["visits"].noisy}
    for _ in range(CALIBRATION_ROUNDS):
        shown = trip_contributions(names, base.draw(pool, generator), base.frame, zones, norm)
        factor: dict[str, Floats] = {"towards": np.ones(1), "steps": np.ones(1)}
        for name in names:
            expected: Floats = np.asarray(shown[name].table() * (n / (pool * STEPS)), dtype=np.float64)
            if name not in wanted:
                wanted[name] = plausible_counts(answers[name].noisy, expected, answers[name].deviation, norm)
            offset, power = answers[name].deviation * CORRECTIONS[name][0], CORRECTIONS[name][1]
            factor[name] = ((wanted[name] + offset) / (expected + offset)) ** power
        base = replace(
            base,
            weights=MoveWeights(
                base.weights.towards * _by_offset(factor["towards"], around),
                base.weights.visits * factor["visits"],
                base.weights.steps * _by_offset(factor["steps"], around),
            ),
        )
    return base


def plausible_counts(noisy: Floats, simulated: Floats, deviation: float, norm: Norm) -> Floats:
    """Estimate counts from noisy ones and those of a rough model: bin by bin, as far as the noise allows.

    A bin that is clearly more or less frequent than simulated takes its noisy count. Any other is the posterior mean for a
    model that may be wrong by as much as its own count.
    """
    trust = simulated**2 / (simulated**2 + deviation**2)
    clear = np.abs(noisy - simulated) > CLEAR_SDS[norm] * deviation
    return np.maximum(simulated + np.where(clear, 1.0, trust) * (noisy - simulated), 0.0)


def _by_offset(values: Floats, around: Neighbourhood) -> Floats:
    """Reshape a table to [row, offset]; a single value stays as it is."""
    return values.reshape(-1, around.n_offsets) if values.size > 1 else values
