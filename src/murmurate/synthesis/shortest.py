"""Find most probable paths: one reverse shortest-path tree a destination, grown only until it reaches every source.

Costs are computed for a window of cells around the ends, as trips are short compared with a city. A tree that would leave its
window before it has reached every source is grown again in a larger one, so a window never changes a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.paths import Shape, Weights, straight
from murmurate.synthesis.sequences import CellTrips

WINDOW_MARGIN_CELLS = 2
"""Cells by which a window extends beyond the farthest source and one step. Chosen by hand; it only affects speed."""

Singles = NDArray[np.float32]
"""Array of 32-bit numbers."""
Tables = tuple[Integers, Weights, Weights, Weights]
"""Bins of relative destinations, and the weights towards, visits and steps."""
Box = tuple[int, int, int, int]
"""Row and column of the first cell, rows, columns."""


@dataclass(frozen=True)
class Window:
    """A rectangle of cells of a grid."""

    box: Box
    grid_columns: int

    @property
    def n_cells(self) -> int:
        """Return the number of cells."""
        return self.box[2] * self.box[3]

    @property
    def cells(self) -> Integers:
        """Return the cells, row by row."""
        south, west, rows, columns = self.box
        down, right = np.divmod(np.arange(rows * columns), columns)
        return (south + down) * self.grid_columns + west + right


Costs = tuple[Singles, Singles, Singles]
"""[offset, cell] logarithms of step weights; [cell] the logarithm of their sum, and that of the largest."""
StepCosts = Callable[[Window], Costs]
"""Function that returns the costs of the steps from the cells of a window."""


def most_probable_paths(
    sources: Integers, destinations: Integers, hours: Integers, *, weights: MoveWeights, around: Neighbourhood
) -> CellTrips:
    """Return for each triple the path with the largest product of step probabilities; equal ends give equal paths."""
    tables = _tables(weights, around)

    def costs(destination: int) -> StepCosts:
        """Return the step costs towards one destination."""
        return lambda window: _window_costs(destination, window, tables, around)

    order, groups = grouped(destinations)
    found = [cheapest_paths(costs(int(destinations[g[0]])), sources[g], int(destinations[g[0]]), around) for g in groups]
    return in_order(found, order, hours)


def grouped(key: Integers) -> tuple[Integers, Iterator[Integers]]:
    """Return the order that puts equal keys together, and the positions of each key."""
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0]) if len(order) else np.zeros(0, np.int64)
    return order, (order[low:high] for low, high in pairwise([*starts.tolist(), len(order)]))


def in_order(found: list[tuple[Integers, Integers]], order: Integers, hours: Integers) -> CellTrips:
    """Put the cells and sizes of paths made group by group back into the order of their triples."""
    empty = np.zeros(0, dtype=np.int64)
    sizes = np.concatenate([empty, *(sizes for _, sizes in found)])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return CellTrips(np.concatenate([empty, *(cells for cells, _ in found)]), offsets, hours[order]).take(back)


def step_costs(destination: int, weights: MoveWeights, around: Neighbourhood) -> Floats:
    """Return [cell, offset] minus the logarithm of the probability of each step, given the destination."""
    everything = Window((0, 0, around.rows, around.columns), around.columns)
    logs, totals, _ = _window_costs(destination, everything, _tables(weights, around), around)
    return np.asarray((totals - logs).T)


def cheapest_paths(costs: StepCosts, sources: Integers, destination: int, around: Neighbourhood) -> tuple[Integers, Integers]:
    """Return cells and sizes of the cheapest paths from each source to the destination.

    A source that is the destination leaves it and comes back by the cheapest pair of steps. A source from which no step of
    positive probability continues takes the straight line, as no cell of a public grid is declared closed.
    """
    row, column = divmod(destination, around.columns)
    apart = np.maximum(np.abs(sources // around.columns - row), np.abs(sources % around.columns - column))
    margin = int(apart.max()) + around.reach + WINDOW_MARGIN_CELLS
    while True:
        south, west = max(row - margin, 0), max(column - margin, 0)
        north, east = min(row + margin + 1, around.rows), min(column + margin + 1, around.columns)
        window = Window((south, west, north - south, east - west), around.columns)
        shape = (around.rows, around.columns, around.reach)
        left_window, cells, sizes = _tree_paths(costs(window), sources, destination, shape, window.box)
        if not left_window:
            return cells, sizes
        margin *= 2


def close_outside(logs: NDArray[Any], window: Window, around: Neighbourhood) -> None:
    """Forbid steps that leave the grid, and staying."""
    _close(logs, (around.rows, around.columns, around.reach), window.box)


def _tables(weights: MoveWeights, around: Neighbourhood) -> Tables:
    """Return the bins of relative destinations and the weights in single precision."""
    return (
        around.relative,
        weights.towards.astype(np.float32),
        weights.visits.astype(np.float32),
        weights.steps.astype(np.float32),
    )


def _window_costs(destination: int, window: Window, tables: Tables, around: Neighbourhood) -> Costs:
    """Return the step costs in a window, given the destination."""
    logs, totals, largest = _logs(destination, (around.rows, around.columns, around.reach), window.box, tables)
    return logs, totals, largest


@njit(cache=True)
def _close(logs: NDArray[Any], shape: Shape, box: Box) -> None:
    """Set the logarithms of forbidden steps to minus infinity."""
    rows, columns, reach = shape
    south, west, high, wide = box
    side = 2 * reach + 1
    for at in range(side * side):
        down, right = at // side - reach, at % side - reach
        for i in range(high):
            if down == 0 == right or not 0 <= south + i + down < rows:
                logs[at, i * wide : (i + 1) * wide] = -np.inf
                continue
            for j in range(min(max(-right - west, 0), wide)):
                logs[at, i * wide + j] = -np.inf
            for j in range(max(columns - right - west, 0), wide):
                logs[at, i * wide + j] = -np.inf


@njit(cache=True)
def _logs(destination: int, shape: Shape, box: Box, tables: Tables) -> Costs:
    """Compute the costs of the steps in a window, given the destination."""
    rows, columns, reach = shape
    south, west, high, wide = box
    relative, towards, visits, steps = tables
    side = 2 * reach + 1
    logs = np.full((side * side, high * wide), -np.inf, dtype=np.float32)
    totals, largest = np.full(high * wide, np.inf, dtype=np.float32), np.zeros(high * wide, dtype=np.float32)
    for place in range(high * wide):
        row, column = south + place // wide, west + place % wide
        cell = row * columns + column
        bin_ = relative[destination // columns - row + rows - 1, destination % columns - column + columns - 1]
        total, most = 0.0, 0.0
        for at in range(side * side):
            i, j = row + at // side - reach, column + at % side - reach
            if 0 <= i < rows and 0 <= j < columns and at != side * side // 2:
                weight = towards[bin_, at] * visits[i * columns + j] * steps[cell, at]
                if weight > 0:
                    logs[at, place] = np.log(weight)
                    total += weight
                    most = max(most, weight)
        if total > 0:
            totals[place], largest[place] = np.log(total), np.log(most)
    return logs, totals, largest


@njit(cache=True)
def _tree_paths(costs: Costs, sources: Integers, destination: int, shape: Shape, box: Box) -> tuple[bool, Integers, Integers]:
    """Return whether the tree had to leave the window and, if not, the cells and sizes of the paths."""
    logs, totals, largest = costs
    rows, columns, reach = shape
    south, west, high, wide = box
    side = 2 * reach + 1
    n = high * wide
    root = (destination // columns - south) * wide + destination % columns - west
    wanted = np.zeros(n, dtype=np.bool_)
    unreached = 0
    loop = False
    for source in sources:
        place = (source // columns - south) * wide + source % columns - west
        loop = loop or place == root
        if not wanted[place]:
            wanted[place] = True
            unreached += 1
    # rows and columns whose neighbours all lie in the window or outside the grid
    safe = (
        0 if south == 0 else reach,
        0 if west == 0 else reach,
        high if south + high == rows else high - reach,
        wide if west + wide == columns else wide - reach,
    )
    best = np.full(n, np.inf)
    # the cost of a place from which even its cheapest step is no gain: most steps need no further look
    enough = np.full(n, np.inf)
    following = np.full(n, -1, dtype=np.int32)
    heap = np.empty(n + 1, dtype=np.int32)
    where = np.full(n, -1, dtype=np.int32)
    size = _lower(heap, where, best, 0, root, 0.0)
    back, back_cost = -1, np.inf  # the neighbour by which a loop from the destination comes back
    while size > 0 and (unreached > 0 or loop):
        place, size = _pop(heap, where, best, size)
        at_cost = best[place]
        if wanted[place]:
            unreached -= 1
        loop = loop and at_cost < back_cost
        i0, j0 = place // wide, place % wide
        if loop and place != root:
            down, right = i0 - root // wide, j0 - root % wide
            if abs(down) <= reach and abs(right) <= reach:
                through = at_cost + max(totals[root] - logs[(down + reach) * side + right + reach, root], 0.0)
                if through < back_cost:
                    back_cost, back = through, place
        if unreached == 0 and not loop:
            break
        if i0 < safe[0] or j0 < safe[1] or i0 >= safe[2] or j0 >= safe[3]:
            return True, sources, sources
        for down in range(max(-reach, i0 - high + 1), min(reach, i0) + 1):
            for right in range(max(-reach, j0 - wide + 1), min(reach, j0) + 1):
                before = (i0 - down) * wide + j0 - right
                if at_cost >= enough[before]:
                    continue
                through = at_cost + max(totals[before] - logs[(down + reach) * side + right + reach, before], 0.0)
                if through < best[before]:
                    following[before] = place
                    enough[before] = through - max(totals[before] - largest[before], 0.0)
                    size = _lower(heap, where, best, size, before, through)
    cells = np.empty(16 + 12 * len(sources), dtype=np.int64)
    sizes = np.empty(len(sources), dtype=np.int64)
    filled = 0
    for index in range(len(sources)):
        source = sources[index]
        if filled + n + 2 > len(cells):
            grown = np.empty(2 * len(cells) + n + 2, dtype=np.int64)
            grown[:filled] = cells[:filled]
            cells = grown
        start = filled
        cells[filled] = source
        filled += 1
        place = (source // columns - south) * wide + source % columns - west
        if place == root and back >= 0:
            place = back
            cells[filled] = (south + place // wide) * columns + west + place % wide
            filled += 1
        if following[place] < 0:
            filled = start + straight(cells[start:], source, destination, columns, reach)
            place = root
        while place != root:
            place = following[place]
            cells[filled] = (south + place // wide) * columns + west + place % wide
            filled += 1
        sizes[index] = filled - start
    return False, cells[:filled].copy(), sizes


@njit(cache=True, inline="always")
def _lower(  # noqa: PLR0917
    heap: Any, where: Any, best: Any, size: int, place: int, cost: float
) -> int:
    """Lower the cost of a place, add it to the heap (of `size` places) if it is not in it, and return the new size."""
    best[place] = cost
    at = where[place]
    if at < 0:
        at = size
        size += 1
    while at > 0:
        parent = (at - 1) >> 1
        other = heap[parent]
        if best[other] <= cost:
            break
        heap[at] = other
        where[other] = at
        at = parent
    heap[at] = place
    where[place] = at
    return size


@njit(cache=True, inline="always")
def _pop(heap: Any, where: Any, best: Any, size: int) -> tuple[int, int]:
    """Take the cheapest place out of the heap; return it and the new size."""
    top = heap[0]
    size -= 1
    last = heap[size]
    cost = best[last]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and best[heap[child + 1]] < best[heap[child]]:
            child += 1
        if best[heap[child]] >= cost:
            break
        heap[at] = heap[child]
        where[heap[at]] = at
        at = child
    heap[at] = last
    where[last] = at
    return top, size
