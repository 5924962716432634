"""Fitting: tables are measured once, laws are made of them, and pulls take up what the laws do not show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking import STEPS, Answer, Norm
from murmurate.core.space import Floats
from murmurate.mechanisms.flock.base_model import BaseLaw
from murmurate.mechanisms.flock.ends import EndsPool, gravity_pool, independent_pool
from murmurate.mechanisms.flock.estimates import estimate_cells, fit_pulls, with_estimated_cells
from murmurate.mechanisms.flock.rounds import Plan, shapes_weighed
from murmurate.mechanisms.flock.shapes import Pace, Shapes, estimate_shapes, fit_pace
from murmurate.mechanisms.flock.tables import Zones, parts
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.synthesis.calibrate import correction, relative_middles, starting_weights
from murmurate.synthesis.ends import Ends, believed_zone_hour, coarsen, filled, joint_of
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.shrink import nonnegative, shrink
from murmurate.synthesis.sizes import n_rings_of, rings, sizes_from_tables

if TYPE_CHECKING:
    from murmurate.noise import Randomness

TILTED = ("pairs", "source_hour", "destination_hour", "visits", "ends", "diameter", "shape")
COUNTED_TILTED = ("sizes", "sizes_hour")
"""Where steps are counted: all else is in the law itself, and a second look at its noise would only add to it."""
SHAPES = ("diameter", "shape")
"""What such trips are weighed by as well, where `rules.shapes_weighed`."""
CALIBRATED = ("towards", "visits", "steps")
CALIBRATIONS = 5
COARSE_CALIBRATIONS = 3
"""Where visits alone are there to turn to."""
ENDS_POOL = (100_000, 300_000)
GRAVITY_POOL = (80_000, 120_000)
POOL = (12_000, 60_000)
COARSE_POOL = 12_000
DRAWN_ENDS = 200_000
DETOUR = 0.4
"""Cells of detour that make a step less likely by a factor of e, where moves are not counted."""
LONG_STEP = 0.1
LITTLE = 0.02
"""Of the mean of the cells: what every cell draws a way by, so that none is closed."""
LITTLE_NOISE = 0.7
TURNED = 0.7
"""Power of a correction by the noisy visits of a cell, which depend on the ways through all others as well."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The base law, the zones of its tables, and the pulls on them."""

    law: BaseLaw
    zones: Zones
    pulls: dict[str, Floats]
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
    law = _base_law(answers, frame, zones, cells * (n / max(cells.sum(), 1e-9)), n, plan.norm, generator)
    pool = int(np.clip(2 * n, *POOL))
    law = _calibrated(law, answers, plan.norm, n, pool if law.counted else min(pool, COARSE_POOL), generator)
    tilted: tuple[str, ...] = TILTED
    if law.counted:
        tilted = COUNTED_TILTED + (SHAPES if shapes_weighed(n, frame.n_coarse, plan.noise) else ())
    names = [name for name in tilted if name in answers]
    shown = parts(names, law.draw(pool, generator), frame, zones, plan.norm)
    pulls = fit_pulls(shown, answers, n, pool)
    return Fitted(law, zones, pulls, plan.norm, n, pace)


def _base_law(  # noqa: PLR0917
    answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats, n: float, norm: Norm, generator: np.random.Generator
) -> BaseLaw:
    shapes = estimate_shapes(answers["diameter"], answers["shape"])
    ends = _pool(answers, frame, zones, shapes, cells, n, norm, generator)
    drawn_ends = ends.sample(DRAWN_ENDS, generator)
    source, destination, hour = drawn_ends.source, drawn_ends.destination, drawn_ends.hour
    n_rings = n_rings_of(frame.rows, frame.columns)
    ring = rings(frame.coarse_of(source), frame.coarse_of(destination), frame.columns)
    drawn = np.bincount(ring * frame.hours + hour, minlength=n_rings * frame.hours)
    sizes = None
    if "sizes" in answers:
        sizes = sizes_from_tables(
            answers["sizes"].noisy.reshape(n_rings, -1),
            answers["sizes_hour"].noisy.reshape(frame.hours, -1) if "sizes_hour" in answers else None,
            ring_hour=np.asarray(drawn.reshape(n_rings, -1) * (n / DRAWN_ENDS), dtype=np.float64),
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
            ((visits + LITTLE * mean) / mean),
            np.ones((around.n_cells, around.n_offsets)),
        )
    by_diameter = answers["diameter"].noisy.reshape(-1, 2)
    alike = nonnegative(by_diameter.sum(axis=0))
    share = alike[1] / max(alike.sum(), 1e-9)
    repeated = shrink(
        by_diameter[:, 1], np.maximum(by_diameter.sum(axis=1), 0) * share + 1e-6, deviation=answers["diameter"].deviation
    )
    repeats = np.clip(repeated / np.maximum(by_diameter.sum(axis=1), answers["diameter"].deviation), 0.0, 1.0)
    return BaseLaw(frame, ends, weights, sizes, visits, cells, shapes, repeats)


def _pool(  # noqa: PLR0917
    answers: dict[str, Answer],
    frame: Frame,
    zones: Zones,
    shapes: Shapes,
    cells: Floats,
    n: float,
    norm: Norm,
    generator: np.random.Generator,
) -> EndsPool:
    size = int(np.clip(10 * n, *(ENDS_POOL if "apart" in answers else GRAVITY_POOL)))
    if "apart" in answers:
        return independent_pool(_ends(answers, frame, zones, cells, n), answers, frame, zones, n, size, generator)
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


def _ends(answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats, n: float) -> Ends:
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


def _calibrated(  # noqa: PLR0917
    law: BaseLaw, answers: dict[str, Answer], norm: Norm, n: float, pool: int, generator: np.random.Generator
) -> BaseLaw:
    """Weights of the walk turned towards the noisy tables of moves, by drawing and counting."""
    around = law.frame.around
    names = [name for name in CALIBRATED if name in answers]
    for _ in range(CALIBRATIONS if law.counted else COARSE_CALIBRATIONS):
        shown = parts(names, law.draw(pool, generator), law.frame, None, norm)
        turned: dict[str, Floats] = {"towards": np.ones(1), "steps": np.ones(1)}
        for name in names:
            expected: Floats = np.asarray(shown[name].table() * (n / (pool * STEPS)), dtype=np.float64)
            turned[name] = correction(answers[name].noisy, expected, answers[name].deviation)
        if "steps" not in answers:
            little = answers["visits"].deviation * LITTLE_NOISE
            turned["visits"] = ((law.visits + little) / (expected + little)) ** TURNED
        law = replace(
            law,
            weights=MoveWeights(
                law.weights.towards * _table(turned["towards"], around),
                law.weights.visits * turned["visits"],
                law.weights.steps * _table(turned["steps"], around),
            ),
        )
    return law


def _table(values: Floats, around: Neighbourhood) -> Floats:
    return values.reshape(-1, around.n_offsets) if values.size > 1 else values


def straight_weights(around: Neighbourhood, stride: float) -> Floats:
    """[relative destination, offset] a public law of steps: those that make no detour, short ones first, few over corners."""
    down, right = np.divmod(np.arange(around.n_offsets), around.side)
    step = np.stack([down - around.reach, right - around.reach]).astype(np.float64)
    far = np.hypot(*step)
    middle = relative_middles(around)
    before = np.hypot(*middle)[:, None]
    after = np.hypot(middle[0][:, None] - step[0], middle[1][:, None] - step[1])
    over = np.where(far > 1.5, LONG_STEP, np.where(far > 1, min(stride, 1.0), 1.0))
    return np.exp(-(far + after - before) / DETOUR) * over
