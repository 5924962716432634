"""Draw candidate trips from the base model: ends, turning points, walks over cells, and points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import pi

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.ahead import DETOUR_SCALE_CELLS, look_ahead
from murmurate.mechanisms.flock.ends import EndsPool, draw_fine_cells, draw_points
from murmurate.mechanisms.flock.tables import diameter_bin
from murmurate.mechanisms.flock.tracks import Frame, Tracks, measured, taken
from murmurate.synthesis.calibrate import relative_middles
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.paths import sample_paths
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.sizes import CoupledSizes

PATH_TRIES = 16
"""Paths sampled for a leg of a trip; the one nearest to the wanted number of cells is kept. Chosen by hand."""
TURNING_TRIES = 24
"""Cells drawn as candidates for the turning point of a trip. Chosen by hand."""
MIN_TURNING_RATIO = 1.3
"""Smallest diameter over distance of the ends from which a trip gets a turning point. Chosen by hand."""
LOOP_RATIO = 2.5
"""The same, for trips whose detours follow the tables of steps: these know no way there and back. Chosen by hand; without it,
lengths of other Geolife trips than are scored had nearly four times the error at epsilon 100 (two releases)."""
LONGEST = 4
"""Most cells of a drawn trip, over the largest number that the tables distinguish. Chosen by hand."""
CELL_MARGIN = 0.02
"""Distance that smoothed points keep from the edge of their coarse cell, in grid cells. Chosen by hand."""
SMOOTHING_STRENGTHS = 6
"""Strengths of smoothing, from none to full, of which each trip takes the one that brings it nearest to its length."""
SMOOTHING_ROUNDS = 4
"""Times that the points of a trip are moved. Chosen by hand."""
MAX_LENGTHENING = 1.8
"""Largest factor by which bends lengthen a path. Chosen by hand."""
MAX_INNER_POINTS = 6
"""Largest number of points between the ends of a trip that stays in one cell. Chosen by hand."""
LONG_STEP_WEIGHT = 0.1
"""Weight of a step over more than 1.5 cells, relative to a step to the next cell, in the public base model. Chosen by hand."""
CLOSED_WEIGHT = 1e-3
"""Routing weight of a cell outside the mask, where the mean is 1: bridges are crossed where there is no other way. Chosen by
hand."""
Flags = NDArray[np.bool_]
"""Array of truth values."""


@dataclass(frozen=True, eq=False)
class BaseModel:
    """Distributions of ends, shapes, steps and points, all from noisy tables, from which candidate trips are drawn."""

    frame: Frame
    ends: EndsPool
    weights: MoveWeights
    sizes: CoupledSizes | None
    """Number of cells by distance and hour; None where it follows from the length alone."""
    visits: Floats
    """[coarse cell] estimated visits."""
    inside: Floats
    """[grid cell] density by which points are placed within coarse cells."""
    repeats: Floats
    """[diameter bin] share of trips that repeat a point."""
    detail: float
    """Share of trips whose detours follow the tables of steps and of numbers of cells; the others turn at a drawn cell."""

    def draw(self, n: int, generator: np.random.Generator, pool: EndsPool | None = None) -> Tracks:
        """Draw `n` candidate trips; `pool` holds other ends in the same cells, such as those that meet a condition."""
        frame = self.frame
        drawn = (pool or self.ends).sample(n, generator)
        source, destination, hour = drawn.source, drawn.destination, drawn.hour
        outlines = drawn.outlines.shifted(frame.top, generator)
        first, last = (outlines.first_y, outlines.first_x), (outlines.last_y, outlines.last_x)
        apart_m = np.hypot(last[0] - first[0], last[1] - first[1]) * frame.grid.cell_m
        diameter_m, length_m = outlines.diameter_m, outlines.length_m
        start, stop = frame.coarse_of(source), frame.coarse_of(destination)
        detailed = generator.random(n) < self.detail
        size = self._size(start, stop, hour, length_m, generator)
        turns = diameter_m > np.maximum(np.where(detailed, LOOP_RATIO, MIN_TURNING_RATIO) * apart_m, 1.5 * frame.coarse_m)
        turning = self._turning_cells(first, last, diameter_m, turns, generator)
        stays = (start == stop) & ~turns & ((size == 1) | ~detailed)
        walks = self._walk(start, stop, turning, turns, stays, size, hour, generator)
        y, x = self._points(walks, first, last, generator)
        wanted = length_m / frame.grid.cell_m
        y, x = smooth_points(walks.cells, walks.offsets, y, x, wanted, (frame.columns, frame.block))
        offsets = walks.offsets
        if stays.any():
            wide, ratio = diameter_m / frame.grid.cell_m, length_m / diameter_m
            y, x, offsets = scatter_points(y, x, offsets, stays, (*first, *last), wide, ratio, generator)
        y, x, offsets = lengthen_paths(y, x, offsets, wanted, ~stays, frame.block, generator)
        y, x = frame.settled(y, x)
        y, x, offsets = self._repeat(y, x, offsets, diameter_m, generator)
        return measured(walks, y, x, offsets, source=source, destination=destination, cell_m=frame.grid.cell_m)

    @cached_property
    def _ahead(self) -> tuple[Integers, Floats]:
        """Return how good the ways are that lead on from each cell, by destination."""
        return look_ahead(self.frame, self.weights.visits)

    def _size(
        self, start: Integers, stop: Integers, hour: Integers, length_m: Floats, generator: np.random.Generator
    ) -> Integers:
        """Draw the number of coarse cells of each trip: from its length, corrected by the tables of sizes where measured."""
        size = size_of_length(length_m, self.frame, generator)
        if self.sizes is None:
            return size
        found = self.sizes.corrected(size, start, stop, hour, generator)
        return np.where(found >= self.frame.max_cells, np.maximum(found, size), found)

    def _turning_cells(
        self,
        first: tuple[Floats, Floats],
        last: tuple[Floats, Floats],
        diameter_m: Floats,
        turns: Flags,
        generator: np.random.Generator,
    ) -> Integers:
        """Draw a coarse cell about one diameter away, for trips that go farther than their ends lie apart; otherwise -1."""
        chosen = np.full(len(turns), -1, dtype=np.int64)
        which = np.flatnonzero(turns)
        if len(which):
            cumulative = np.cumsum(self.visits)
            at = generator.random((len(which), TURNING_TRIES)) * cumulative[-1]
            cell = np.minimum(np.searchsorted(cumulative, at), len(cumulative) - 1)
            row, column = np.divmod(cell, self.frame.columns)
            y, x = (row + 0.5) * self.frame.block, (column + 0.5) * self.frame.block
            far = np.maximum(
                np.hypot(y - first[0][which, None], x - first[1][which, None]),
                np.hypot(y - last[0][which, None], x - last[1][which, None]),
            )
            off = np.abs(np.log((far + 0.1) * self.frame.grid.cell_m / diameter_m[which, None]))
            best = off.argmin(axis=1)
            chosen[which] = cell[np.arange(len(which)), best]
        return chosen

    def _walk(  # noqa: PLR0917
        self,
        start: Integers,
        stop: Integers,
        turning: Integers,
        turns: Flags,
        stays: Flags,
        size: Integers,
        hour: Integers,
        generator: np.random.Generator,
    ) -> CellTrips:
        """Sample the coarse cells of every trip: one for a trip that stays, two legs for one that turns."""
        turns = turns & (turning != start) & (turning != stop)
        aim = np.where(turns, turning, stop)
        size = np.where(turns, (size + 1) // 2, size)
        out = self._legs(start, aim, ~stays & ((start != aim) | ~turns), size, hour, generator)
        back = self._legs(turning, stop, turns, size, hour, generator)
        return _join_legs(start, hour, out, back)

    def _legs(  # noqa: PLR0917
        self, start: Integers, stop: Integers, which: Flags, size: Integers, hour: Integers, generator: np.random.Generator
    ) -> tuple[Integers, CellTrips]:
        """Sample paths for the chosen trips; return these trips and their paths."""
        at = np.flatnonzero(which)
        legs = sample_paths(
            start[at], stop[at], hour[at], np.maximum(size[at], 2), weights=self.weights, around=self.frame.around,
            generator=generator, tries=PATH_TRIES, ahead=self._ahead,
        )  # fmt: skip
        return at, legs

    def _points(
        self, walks: CellTrips, first: tuple[Floats, Floats], last: tuple[Floats, Floats], generator: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw a point in every visited cell; the first and last points are the given ends."""
        y, x = draw_points(self.frame, draw_fine_cells(self.frame, self.inside, walks.cells, generator), generator)
        for at, (end_y, end_x) in ((walks.offsets[:-1], first), (walks.offsets[1:] - 1, last)):
            y[at], x[at] = end_y, end_x
        return y, x

    def _repeat(
        self, y: Floats, x: Floats, offsets: Integers, diameter_m: Floats, generator: np.random.Generator
    ) -> tuple[Floats, Floats, Integers]:
        """Write a point twice in as many trips as the tables say; a trip of one point always gets a second."""
        sizes = np.diff(offsets)
        twice = (generator.random(len(sizes)) < self.repeats[diameter_bin(diameter_m)]) | (sizes == 1)
        which = offsets[:-1] + (generator.random(len(sizes)) * sizes).astype(np.int64)
        copies = np.ones(len(y), dtype=np.int64)
        copies[which[twice]] = 2
        index = np.repeat(np.arange(len(y)), copies)
        return y[index], x[index], offsets + np.concatenate([[0], np.cumsum(twice)])


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


def size_of_length(length_m: Floats, frame: Frame, generator: np.random.Generator) -> Integers:
    """Draw the number of coarse cells of trips of given lengths, by geometry alone."""
    cells = np.floor(length_m / (widths_per_cell(frame.stride) * frame.coarse_m) + generator.random(len(length_m)))
    return 1 + np.minimum(cells.astype(np.int64), LONGEST * frame.max_cells - 1)


def widths_per_cell(stride: float) -> float:
    """Return cell widths of path for each cell entered: a line crosses 4/pi edges a width, and corners save some."""
    return pi / 4 * (1 + min(0.38 * stride, 0.3))


def _join_legs(
    start: Integers,
    hour: Integers,
    out: tuple[Integers, CellTrips],
    back: tuple[Integers, CellTrips],
) -> CellTrips:
    """Join two legs of each trip; the second leg's first cell is the first leg's last."""
    sizes = np.ones(len(start), dtype=np.int64)
    sizes[out[0]] = out[1].sizes
    whole = sizes.copy()
    whole[back[0]] += back[1].sizes - 1
    offsets = np.concatenate([[0], np.cumsum(whole)]).astype(np.int64)
    cells = np.empty(offsets[-1], dtype=np.int64)
    cells[offsets[:-1]] = start
    for at, legs, shift in ((out[0], out[1], np.zeros(len(start), np.int64)), (back[0], back[1], sizes - 1)):
        _, index = taken(legs.offsets, np.arange(len(at)))
        target = np.repeat(offsets[:-1][at] + shift[at] - legs.offsets[:-1], legs.sizes) + np.arange(len(index))
        cells[target] = legs.cells
    return CellTrips(cells, offsets, hour)


@njit(cache=True, nogil=True)
def smooth_points(  # noqa: PLR0917
    cells: Integers, offsets: Integers, y: Floats, x: Floats, length: Floats, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Move inner points towards the line between their neighbours, within their cells.

    Of several strengths each trip takes the one that brings it nearest to its length, in grid cells; the first is 0, which
    leaves points where they are. All strengths are computed at once: `to` holds for each point y by strength, then x.
    """
    columns, block = shape
    n = SMOOTHING_STRENGTHS
    wide = block - 2 * CELL_MARGIN
    longest = 0
    for trip in range(len(offsets) - 1):
        longest = max(longest, offsets[trip + 1] - offsets[trip])
    to, have = np.empty(2 * n * longest), np.empty(n)
    out_y, out_x = y.copy(), x.copy()
    for trip in range(len(offsets) - 1):
        first, size = offsets[trip], offsets[trip + 1] - offsets[trip]
        if size < 3:
            continue
        for at in range(size):
            for k in range(n):
                to[2 * n * at + k], to[2 * n * at + n + k] = y[first + at], x[first + at]
        for _ in range(SMOOTHING_ROUNDS):
            for at in range(1, size - 1):
                row = cells[first + at] // columns
                column = cells[first + at] - row * columns
                for here, corner in ((2 * n * at, row), (2 * n * at + n, column)):
                    low = corner * block + CELL_MARGIN
                    for k in range(1, n):
                        old = to[here + k]
                        new = old + k / (n - 1) * ((to[here - 2 * n + k] + to[here + 2 * n + k]) / 2 - old)
                        to[here + k] = min(max(new, low), low + wide)
        for k in range(n):
            have[k] = 0.0
        for here in range(2 * n, 2 * n * size, 2 * n):
            for k in range(here, here + n):
                have[k - here] += np.sqrt((to[k] - to[k - 2 * n]) ** 2 + (to[k + n] - to[k - n]) ** 2)
        best = 0
        for k in range(1, n):
            if abs(have[k] - length[trip]) < abs(have[best] - length[trip]):
                best = k
        for at in range(size):
            out_y[first + at], out_x[first + at] = to[2 * n * at + best], to[2 * n * at + n + best]
    return out_y, out_x


def scatter_points(  # noqa: PLR0917
    y: Floats,
    x: Floats,
    offsets: Integers,
    stays: Flags,
    ends: tuple[Floats, Floats, Floats, Floats],
    diameter: Floats,
    ratio: Floats,
    generator: np.random.Generator,
) -> tuple[Floats, Floats, Integers]:
    """Place points of trips that stay in one cell: their ends, and inner points on a circle of the wanted diameter."""
    return _scatter_points(y, x, offsets, stays, ends, diameter, ratio, generator.random((len(stays), MAX_INNER_POINTS + 1)))


@njit(cache=True, nogil=True)
def _scatter_points(  # noqa: PLR0917
    y: Floats,
    x: Floats,
    offsets: Integers,
    stays: Flags,
    ends: tuple[Floats, Floats, Floats, Floats],
    diameter: Floats,
    ratio: Floats,
    draws: Floats,
) -> tuple[Floats, Floats, Integers]:
    """Do the work of `scatter_points` with given uniform draws."""
    first_y, first_x, last_y, last_x = ends
    n = len(stays)
    out = np.zeros(n + 1, dtype=np.int64)
    inner = np.zeros(n, dtype=np.int64)
    for trip in range(n):
        size = offsets[trip + 1] - offsets[trip]
        if stays[trip]:
            apart = np.hypot(last_y[trip] - first_y[trip], last_x[trip] - first_x[trip])
            if apart < 0.97 * diameter[trip] or ratio[trip] > 1.1:
                inner[trip] = min(
                    MAX_INNER_POINTS, 1 + int(max(ratio[trip] - 1.0, 0.0) * (0.5 + draws[trip, MAX_INNER_POINTS]))
                )
            size = 2 + inner[trip]
        out[trip + 1] = out[trip] + size
    new_y, new_x = np.empty(out[n]), np.empty(out[n])
    for trip in range(n):
        low, high, at = offsets[trip], offsets[trip + 1], out[trip]
        if not stays[trip]:
            for k in range(low, high):  # no slices: numba would compile its messages about shapes, for seconds
                new_y[at + k - low], new_x[at + k - low] = y[k], x[k]
            continue
        new_y[at], new_x[at] = first_y[trip], first_x[trip]
        for k in range(inner[trip]):
            turn = 2 * np.pi * draws[trip, k]
            new_y[at + 1 + k] = (first_y[trip] + last_y[trip]) / 2 + diameter[trip] / 2 * np.sin(turn)
            new_x[at + 1 + k] = (first_x[trip] + last_x[trip]) / 2 + diameter[trip] / 2 * np.cos(turn)
        new_y[out[trip + 1] - 1], new_x[out[trip + 1] - 1] = last_y[trip], last_x[trip]
    return new_y, new_x, out


def lengthen_paths(  # noqa: PLR0917
    y: Floats, x: Floats, offsets: Integers, length: Floats, which: Flags, block: int, generator: np.random.Generator
) -> tuple[Floats, Floats, Integers]:
    """Add a bend in the middle of every stretch of trips that are too short, where it stays in the cells of that stretch."""
    return _lengthen_paths(y, x, offsets, length, which, generator.random(len(y)) < 0.5, block)


@njit(cache=True, nogil=True)
def _lengthen_paths(  # noqa: PLR0917
    y: Floats, x: Floats, offsets: Integers, length: Floats, which: Flags, left: Flags, block: int
) -> tuple[Floats, Floats, Integers]:
    """Do the work of `lengthen_paths` with given sides of the bends."""
    n = len(offsets) - 1
    out = np.zeros(n + 1, dtype=np.int64)
    new_y, new_x = np.empty(2 * len(y)), np.empty(2 * len(y))
    place = 0
    for trip in range(n):
        low, high = offsets[trip], offsets[trip + 1]
        have = 0.0
        for at in range(low + 1, high):
            have += np.sqrt((y[at] - y[at - 1]) ** 2 + (x[at] - x[at - 1]) ** 2)
        aside = 0.0
        if which[trip] and have > 0 and length[trip] > 1.03 * have:
            aside = np.sqrt(min(length[trip] / have, MAX_LENGTHENING) ** 2 - 1.0) / 2
        for at in range(low, high):
            new_y[place], new_x[place] = y[at], x[at]
            place += 1
            if aside > 0 and at + 1 < high:
                side = aside if left[at] else -aside
                for _ in range(2):  # the other side where the first one leaves the cells
                    bend_y = (y[at] + y[at + 1]) / 2 + side * (x[at + 1] - x[at])
                    bend_x = (x[at] + x[at + 1]) / 2 - side * (y[at + 1] - y[at])
                    row, column = np.floor(bend_y / block), np.floor(bend_x / block)
                    if (row == np.floor(y[at] / block) and column == np.floor(x[at] / block)) or (
                        row == np.floor(y[at + 1] / block) and column == np.floor(x[at + 1] / block)
                    ):
                        new_y[place], new_x[place] = bend_y, bend_x
                        place += 1
                        break
                    side = -side
        out[trip + 1] = place
    return new_y[:place].copy(), new_x[:place].copy(), out
