"""The base law: ends, turning points, walks and places, drawn trip by trip; what the tables add to it is left to pulls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.ends_pool import EndsPool
from murmurate.mechanisms.flock.frame import Frame
from murmurate.mechanisms.flock.places import Flags, lengthened, scattered, smoothed
from murmurate.mechanisms.flock.tables import (
    APART_EDGES,
    DIAMETERS,
    GROWTH,
    LENGTH_EDGES,
    SHAPE_STEP,
    SHORTEST_M,
    diameter_bin,
    diameter_middle_m,
)
from murmurate.mechanisms.flock.tracks import Tracks, measured, taken
from murmurate.synthesis.ends import draw_within
from murmurate.synthesis.moves import MoveWeights
from murmurate.synthesis.paths import sample_paths
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.sizes import Sizes

TRIES = 16
COARSE_TRIES = 6
TURNING_TRIES = 24
ROWS = -(-DIAMETERS // SHAPE_STEP)
LONGEST_RATIO = 8.0
CELLS_LONG = 1.15
"""Widths of a cell that a path goes for each cell it visits."""

Draw = Callable[[int, np.random.Generator], tuple[Integers, Integers, Integers]]


@dataclass(frozen=True, eq=False)
class BaseLaw:
    """Laws over plain arrays, all from noisy tables."""

    frame: Frame
    ends: EndsPool
    weights: MoveWeights
    sizes: Sizes | None
    """None where sizes follow from lengths."""
    visits: Floats
    """[walked cell]"""
    inside: Floats
    """[fine cell] where in a walked cell a trip passes."""
    shape: Floats
    """[diameter row, distance of ends over diameter, length over diameter]"""
    repeats: Floats
    """[diameter bin] share of trips that repeat a point."""

    def draw(self, n: int, generator: np.random.Generator, ends: Draw | None = None) -> Tracks:
        """`n` candidates; `ends` draws triples of another law of the same cells, such as one with a condition."""
        frame = self.frame
        source, destination, hour = (ends or self.ends.sample)(n, generator)
        first, last = self._within(source, generator), self._within(destination, generator)
        apart_m = np.hypot(last[0] - first[0], last[1] - first[1]) * frame.grid.cell_m
        diameter_m, length_m = self._wanted(apart_m, generator)
        start, stop = frame.walked_of(source), frame.walked_of(destination)
        size = self._size(start, stop, hour, length_m, generator)
        # with sizes counted, detours are walked until the size is right; without them they need somewhere to turn
        turns = (diameter_m > np.maximum(1.3 * apart_m, 1.5 * frame.walked_m)) & (self.sizes is None)
        turning = self._turning(first, last, diameter_m, turns, generator)
        stays = (start == stop) & ~turns & ((size == 1) if frame.block == 1 else True)
        walks = self._walk(start, stop, turning, turns, stays, size, hour, generator)
        y, x = self._points(walks, first, last, generator)
        y, x = smoothed(walks.cells, walks.offsets, y, x, generator.random(n), (frame.columns, frame.block))
        offsets = walks.offsets
        if stays.any():
            last, diameter_m, length_m = self._near(stays, first, last, diameter_m, length_m, generator)
            wide, ratio = diameter_m / frame.grid.cell_m, length_m / diameter_m
            y, x, offsets = scattered(y, x, offsets, stays, (*first, *last), wide, ratio, generator)
            destination = np.where(stays, frame.fine_at(*last), destination)
        if frame.block > 1:
            y, x, offsets = lengthened(y, x, offsets, length_m / frame.grid.cell_m, ~stays, generator)
        y, x = np.clip(y, 0.0, frame.top[0]), np.clip(x, 0.0, frame.top[1])
        y, x, offsets = self._repeat(y, x, offsets, diameter_m, generator)
        return measured(walks, y, x, offsets, source=source, destination=destination, cell_m=frame.grid.cell_m)

    def _size(
        self, start: Integers, stop: Integers, hour: Integers, length_m: Floats, generator: np.random.Generator
    ) -> Integers:
        """Cells a trip should visit."""
        if self.sizes is not None:
            return self.sizes.sample(start, stop, hour, generator)
        cells = np.floor(length_m / (CELLS_LONG * self.frame.walked_m) + generator.random(len(start)))
        return 1 + np.minimum(cells.astype(np.int64), self.frame.max_cells)

    def _within(self, cell: Integers, generator: np.random.Generator) -> tuple[Floats, Floats]:
        row, column = np.divmod(cell, self.frame.grid.columns)
        # the last row and column are cut at the edge of the box
        height, width = np.minimum(self.frame.top[0] - row, 1.0), np.minimum(self.frame.top[1] - column, 1.0)
        return row + height * generator.random(len(cell)), column + width * generator.random(len(cell))

    def _wanted(self, apart_m: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """A diameter and a length for each distance of the ends."""
        edges = row_edges_m()
        middle = np.sqrt(edges[1:] * edges[:-1])
        ratio_width = np.diff([0.0, *APART_EDGES, 1.0])
        law = self.shape.sum(axis=2) / np.maximum(self.shape.sum(), 1e-9)
        weights = np.zeros((DIAMETERS, ROWS))
        for at, apart in enumerate(diameter_middle_m()):
            ratio = np.minimum(apart / middle, 1.0)
            column = np.searchsorted(APART_EDGES, ratio)
            possible = edges[1:] > apart
            weights[at] = possible * (law[np.arange(ROWS), column] / (ratio_width[column] * middle) + 1e-15)
            weights[at, min(at // SHAPE_STEP, ROWS - 1)] += 1e-15
        row = draw_within(weights, diameter_bin(apart_m), generator)
        diameter = np.maximum(edges[row] * (edges[row + 1] / edges[row]) ** generator.random(len(row)), apart_m)
        column = np.searchsorted(APART_EDGES, np.minimum(apart_m / diameter, 1.0))
        return diameter, diameter * self._ratio(row, column, generator)

    def _near(  # noqa: PLR0917
        self,
        stays: Flags,
        first: tuple[Floats, Floats],
        last: tuple[Floats, Floats],
        diameter_m: Floats,
        length_m: Floats,
        generator: np.random.Generator,
    ) -> tuple[tuple[Floats, Floats], Floats, Floats]:
        """For trips that stay: a diameter first, then their second end as near as that says, then a length."""
        which = np.flatnonzero(stays)
        edges, apart_edges = row_edges_m(), np.array([0.0, *APART_EDGES, 1.0])
        law = (
            self.shape.sum(axis=2) * (edges[:-1] < 1.2 * self.frame.walked_m)[:, None] + 1e-9 * (np.arange(ROWS) == 0)[:, None]
        )
        row, column = np.divmod(
            draw_within(law.reshape(1, -1), np.zeros(len(which), dtype=np.int64), generator), len(APART_EDGES) + 1
        )
        wide = edges[row] * (edges[row + 1] / edges[row]) ** generator.random(len(which))
        ratio = apart_edges[column] + np.diff(apart_edges)[column] * generator.random(len(which))
        ratio = np.where(column == len(APART_EDGES), np.where(generator.random(len(which)) < 0.7, 1.0, ratio), ratio)
        north, east = last[0][which] - first[0][which], last[1][which] - first[1][which]
        scale = wide * ratio / self.frame.grid.cell_m / np.maximum(np.hypot(north, east), 1e-9)
        moved = last[0].copy(), last[1].copy()
        moved[0][which] = np.clip(first[0][which] + north * scale, 0.0, self.frame.top[0])
        moved[1][which] = np.clip(first[1][which] + east * scale, 0.0, self.frame.top[1])
        diameter_m, length_m = diameter_m.copy(), length_m.copy()
        diameter_m[which] = wide
        length_m[which] = wide * self._ratio(row, column, generator)
        return moved, diameter_m, length_m

    def _ratio(self, row: Integers, column: Integers, generator: np.random.Generator) -> Floats:
        """Length over diameter."""
        edges = np.array([1.0, *LENGTH_EDGES, LONGEST_RATIO])
        flat = self.shape.reshape(-1, len(LENGTH_EDGES) + 1) + 1e-9
        bin_ = draw_within(flat, row * (len(APART_EDGES) + 1) + column, generator)
        return np.asarray(edges[bin_] + np.diff(edges)[bin_] * generator.random(len(row)))

    def _turning(
        self,
        first: tuple[Floats, Floats],
        last: tuple[Floats, Floats],
        diameter_m: Floats,
        turns: Flags,
        generator: np.random.Generator,
    ) -> Integers:
        """A walked cell about the wanted diameter away, for trips that go further than their ends lie apart."""
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
        """Cells of every trip: none but its own for one that stays, two legs for one that turns."""
        turns = turns & (turning != start) & (turning != stop)
        aim = np.where(turns, turning, stop)
        legs = [self._legs(start, aim, ~stays & ((start != aim) | ~turns), size, turns, hour, generator)]
        back = self._legs(turning, stop, turns, size, turns, hour, generator)
        return _joined(start, hour, legs[0], back, stays)

    def _legs(  # noqa: PLR0917
        self,
        start: Integers,
        stop: Integers,
        which: Flags,
        size: Integers,
        turns: Flags,
        hour: Integers,
        generator: np.random.Generator,
    ) -> tuple[Integers, CellTrips]:
        at = np.flatnonzero(which)
        wanted = size[at]
        if self.sizes is not None:
            wanted = np.where(turns[at], self.sizes.sample(start[at], stop[at], hour[at], generator), wanted)
        else:
            wanted = np.where(turns[at], (wanted + 1) // 2, wanted)
        wanted = np.maximum(wanted, 2)
        legs = sample_paths(
            start[at], stop[at], hour[at], wanted, weights=self.weights, around=self.frame.around, generator=generator,
            tries=TRIES if self.sizes is not None else COARSE_TRIES,
        )  # fmt: skip
        return at, legs

    def _points(
        self, walks: CellTrips, first: tuple[Floats, Floats], last: tuple[Floats, Floats], generator: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """A place in every visited cell; the ends at theirs."""
        fine = self._fine_in(walks.cells, generator)
        y, x = self._within(fine, generator)
        for at, (end_y, end_x) in ((walks.offsets[:-1], first), (walks.offsets[1:] - 1, last)):
            y[at], x[at] = end_y, end_x
        return y, x

    def _fine_in(self, walked: Integers, generator: np.random.Generator) -> Integers:
        """A fine cell of each walked cell, by what the noisy ends say about the fine cells."""
        if self.frame.block == 1:
            return walked
        of_fine = self.frame.walked_of(np.arange(self.frame.grid.n_cells))
        order = np.argsort(of_fine, kind="stable")
        mass = np.cumsum(self.inside[order])
        bounds = np.searchsorted(of_fine[order], np.arange(self.frame.n_walked + 1))
        before = np.concatenate([[0.0], mass])[bounds]
        at = before[walked] + generator.random(len(walked)) * (before[walked + 1] - before[walked])
        return order[np.clip(np.searchsorted(mass, at, side="right"), bounds[walked], bounds[walked + 1] - 1)]

    def _repeat(
        self, y: Floats, x: Floats, offsets: Integers, diameter_m: Floats, generator: np.random.Generator
    ) -> tuple[Floats, Floats, Integers]:
        """A point written twice, in as many trips as the tables say; a trip of one point is always completed to two."""
        sizes = np.diff(offsets)
        twice = (generator.random(len(sizes)) < self.repeats[diameter_bin(diameter_m)]) | (sizes == 1)
        which = offsets[:-1] + (generator.random(len(sizes)) * sizes).astype(np.int64)
        copies = np.ones(len(y), dtype=np.int64)
        copies[which[twice]] = 2
        index = np.repeat(np.arange(len(y)), copies)
        return y[index], x[index], offsets + np.concatenate([[0], np.cumsum(twice)])


def row_edges_m() -> Floats:
    """Edges of the rows of the shape table."""
    upper = SHORTEST_M * GROWTH ** (np.arange(1, ROWS + 1) * SHAPE_STEP - 1)
    return np.concatenate([[0.2 * SHORTEST_M], upper])


def _joined(
    start: Integers,
    hour: Integers,
    out: tuple[Integers, CellTrips],
    back: tuple[Integers, CellTrips],
    stays: Flags,
) -> CellTrips:
    """Legs put together, trip by trip; the second leg's first cell is the first leg's last."""
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
