"""Fitting: tables are measured once, laws are made of them, and pulls take up what the laws do not show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.flock.base_law import BaseLaw
from murmurate.mechanisms.flock.beliefs import believed, between_middles, settled
from murmurate.mechanisms.flock.ends_pool import EndsPool, gravity_pool, independent_pool
from murmurate.mechanisms.flock.frame import Frame
from murmurate.mechanisms.flock.pace import Pace, fit_pace, pace_bins
from murmurate.mechanisms.flock.reading import read
from murmurate.mechanisms.flock.rules import (
    COUNT_SHARE,
    block_of,
    depths,
    shapes_weighed,
    shares,
    steps_counted,
    stride_of,
    trips_needed,
)
from murmurate.mechanisms.flock.shapes import Shapes, believed_shapes
from murmurate.mechanisms.flock.tables import Zones, parts
from murmurate.mechanisms.flock.tilt import Answer, fit_pulls
from murmurate.mechanisms.flock.tracks import Tracks
from murmurate.spaces.grid import Grid
from murmurate.synthesis.calibrate import correction, relative_middles, starting_weights
from murmurate.synthesis.ends import Ends, believed_zone_hour, coarsen, filled, joint_of
from murmurate.synthesis.measure import ONE, Noise, measure, once_per_trip
from murmurate.synthesis.moves import MoveWeights, Neighbourhood, Norm, reach_of
from murmurate.synthesis.shrink import nonnegative, shrink
from murmurate.synthesis.sizes import n_rings_of, rings, sizes_from_tables
from murmurate.synthesis.zones import zones_of_equal_mass

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
UNTIMED_REACH = 7
UNTIMED_STRIDE = 0.5
DRAWN_ENDS = 200_000
AT_ONCE = 100_000
"""Trips counted at a time; more at once take memory and change nothing."""
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


class Counting:
    """Measures tables of private tracks, each once, with its share of the noise; keeps the noisy answers."""

    def __init__(self, noise: Noise, rng: Randomness) -> None:
        self.noise, self.rng = noise, rng
        self.shares: Mapping[str, float] = {"n": COUNT_SHARE}
        self.norm: Norm = "l2" if noise.kind == "gaussian" else "l1"
        self.answers: dict[str, Answer] = {}

    def count(self, n_trips: int) -> float:
        """How many trips there are, for the rules."""
        return max(float(self._measured("n", np.array([n_trips * ONE]))[0]), 1.0)

    def tables(self, names: tuple[str, ...], tracks: Tracks, frame: Frame, zones: Zones | None = None) -> None:
        """Measure those of the named tables that get a share."""
        wanted = [name for name in names if name in self.shares]
        sums: dict[str, Integers] = {}
        for some in tracks.runs(AT_ONCE):
            for name, part in parts(wanted, some, frame, zones, self.norm).items():
                sums[name] = sums[name] + part.table() if name in sums else part.table()
        for name, fixed in sums.items():
            self._measured(name, fixed)

    def bins(self, tables: Mapping[str, tuple[Integers, int]]) -> None:
        """Measure tables that a trip enters once, given by bins."""
        for name, (at, n_bins) in tables.items():
            if name in self.shares:
                self._measured(name, once_per_trip(at, n_bins))

    def refined_n(self) -> float:
        """The number of trips from every table that each trip enters once, by inverse variance."""
        total = weight = 0.0
        for name in ("n", "pairs", "diameter", "source_hour", "destination_hour"):
            if name in self.answers:
                answer = self.answers[name]
                precision = 1.0 / (answer.noisy.size * answer.deviation**2)
                total, weight = total + precision * float(answer.noisy.sum()), weight + precision
        return max(total / weight, 1.0)

    def _measured(self, name: str, fixed: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
        part = self.noise.part(self.shares[name])
        self.answers[name] = Answer(measure(fixed, noise=part, rng=self.rng), part.deviation)
        return self.answers[name].noisy


def fit(
    inside: Trips, *, grid: Grid, hours: int, max_cells: int, slot_s: int, max_speed_kmh: float, noise: Noise, rng: Randomness
) -> Fitted:
    """Spend the whole of `noise`'s budget, split by the rules, and make a law of the answers.

    Guarantee: one trip changes each table by at most 1 in the norm of the noise; the frame and the zones of later tables
    follow from public parameters and from answers already given.
    """
    counting = Counting(noise, rng)
    n = counting.count(inside.n_trips)
    _refuse_too_few(n, noise)
    block = block_of(grid, n, noise)
    counting.shares = shares(hours=hours, counted=steps_counted(n, block, noise), timed=inside.has_time)
    reach = (
        reach_of(cell_m=grid.cell_m * block, max_speed_kmh=max_speed_kmh, slot_s=slot_s) if inside.has_time else UNTIMED_REACH
    )
    stride = stride_of(grid.cell_m * block, slot_s) if inside.has_time else UNTIMED_STRIDE
    frame = Frame(grid=grid, block=block, reach=reach, hours=hours, max_cells=max_cells, stride=stride)
    tracks = read(inside, frame, slot_s=slot_s)
    counting.tables(
        ("ends", "places", "visits", "apart", "diameter", "shape", "sizes", "sizes_hour", "towards", "steps"), tracks, frame
    )
    cells = _believed_ends(counting.answers, frame)
    depth = depths(n, hours, counting.shares, noise)
    zone = zones_of_equal_mass(cells, rows=grid.rows, columns=grid.columns, depth=depth["fine"])
    zones = Zones(zone, **depth)
    counting.tables(("source_hour", "destination_hour", "pairs", "pairs_hour"), tracks, frame, zones)
    pace = _pace(counting, inside, tracks, hours) if inside.has_time else None
    n = counting.refined_n()
    generator = rng.generator()
    answers = counting.answers if "steps" in counting.answers else settled(counting.answers, frame)
    law = _base_law(answers, frame, zones, cells * (n / max(cells.sum(), 1e-9)), n, counting.norm, generator)
    pool = int(np.clip(2 * n, *POOL))
    law = _calibrated(law, answers, counting.norm, n, pool if law.counted else min(pool, COARSE_POOL), generator)
    tilted: tuple[str, ...] = TILTED
    if law.counted:
        tilted = COUNTED_TILTED + (SHAPES if shapes_weighed(n, frame.n_walked, noise) else ())
    names = [name for name in tilted if name in answers]
    shown = parts(names, law.draw(pool, generator), frame, zones, counting.norm)
    pulls = fit_pulls(shown, answers, n, pool)
    return Fitted(law, zones, pulls, counting.norm, n, pace)


def _refuse_too_few(n: float, noise: Noise) -> None:
    """Decided by the charged count and public numbers alone, so that the refusal itself tells nothing else."""
    needed = trips_needed(noise)
    if n < needed:
        raise InputError(
            f"a noisy count found about {max(n, 0):,.0f} trips in the box, and with this budget a release shows more than its "
            f"noise from about {needed:,.0f} on.",
            f"Give about {needed / max(n, 1.0):.1f} times the epsilon, more trips, a smaller max_trips, or check the box. What "
            "the ledger was charged stays charged.",
        )


def _pace(counting: Counting, inside: Trips, tracks: Tracks, hours: int) -> Pace:
    first, last = inside.offsets[:-1], inside.offsets[1:] - 1
    counting.bins(pace_bins(tracks, (inside.time_us[last] - inside.time_us[first]) / 1e6, hours))
    return fit_pace(counting.answers["pace"], counting.answers.get("pace_hour"), hours)


def _base_law(  # noqa: PLR0917
    answers: dict[str, Answer], frame: Frame, zones: Zones, cells: Floats, n: float, norm: Norm, generator: np.random.Generator
) -> BaseLaw:
    shapes = believed_shapes(answers["diameter"], answers["shape"])
    ends = _pool(answers, frame, zones, shapes, cells, n, norm, generator)
    drawn_ends = ends.sample(DRAWN_ENDS, generator)
    source, destination, hour = drawn_ends.source, drawn_ends.destination, drawn_ends.hour
    n_rings = n_rings_of(frame.rows, frame.columns)
    ring = rings(frame.walked_of(source), frame.walked_of(destination), frame.columns)
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
    visits = believed(answers["visits"], frame.rows, frame.columns) if "steps" in answers else answers["visits"].noisy
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


def _believed_ends(answers: dict[str, Answer], frame: Frame) -> Floats:
    """[fine cell] ends: walked cells first (as visits lie where ends have no table), then fine cells within them."""
    walked = believed(answers["visits"], frame.rows, frame.columns)
    if "ends" in answers:
        walked = believed(answers["ends"], frame.rows, frame.columns, walked)
    if frame.block == 1:
        return walked
    fine = between_middles(walked, frame)
    if "places" in answers:
        fine = believed(answers["places"], frame.grid.rows, frame.grid.columns, fine)
    of_fine = frame.walked_of(np.arange(frame.grid.n_cells))
    within = np.bincount(of_fine, weights=fine, minlength=frame.n_walked)
    return np.asarray(fine * (walked / np.maximum(within, 1e-12))[of_fine])


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
            expected: Floats = np.asarray(shown[name].table() * (n / (pool * ONE)), dtype=np.float64)
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
