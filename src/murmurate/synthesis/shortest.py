"""Most probable paths: one reverse shortest-path tree a destination, grown only until every source of it is reached."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.paths import Shape, Tables, straight
from murmurate.synthesis.sequences import CellTrips


def most_probable_paths(
    sources: Integers, destinations: Integers, hours: Integers, *, weights: MoveWeights, around: Neighbourhood
) -> CellTrips:
    """For each triple the path of the largest product of step probabilities; the same ends always give the same path."""
    order = np.argsort(destinations, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(destinations[order]) != 0]) if len(order) else np.zeros(0, np.int64)
    bounds = np.append(starts, len(order))
    parts, lengths = [], []
    for low, high in pairwise(bounds.tolist()):
        group = order[low:high]
        cost = step_costs(int(destinations[group[0]]), weights, around)
        cells, sizes = tree_paths(cost, sources[group], int(destinations[group[0]]), around)
        parts.append(cells)
        lengths.append(sizes)
    return in_order(parts, lengths, order, hours)


def in_order(parts: list[Integers], lengths: list[Integers], order: Integers, hours: Integers) -> CellTrips:
    """Paths made group by group, put back into the order of their triples."""
    empty = np.zeros(0, dtype=np.int64)
    sizes = np.concatenate([empty, *lengths])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return CellTrips(np.concatenate([empty, *parts]), offsets, hours[order]).take(back)


def step_costs(destination: int, weights: MoveWeights, around: Neighbourhood) -> Floats:
    """[cell, offset] minus the logarithm of the probability of each step, the destination being given."""
    return np.asarray(
        _costs(
            destination,
            (around.rows, around.columns, around.reach),
            (
                around.relative,
                weights.towards.astype(np.float32),
                weights.visits.astype(np.float32),
                weights.steps.astype(np.float32),
            ),
        )
    )


def tree_paths(cost: NDArray[Any], sources: Integers, destination: int, around: Neighbourhood) -> tuple[Integers, Integers]:
    """Cells and sizes of the cheapest paths from each source to the destination.

    A source that is the destination leaves it and comes back by the cheapest pair of steps. A source from which no
    step of positive probability leads on takes the straight line, as no cell of a public grid is declared closed.
    """
    cells, sizes = _tree_paths(cost, sources, destination, (around.rows, around.columns, around.reach))
    return cells, sizes


@njit(cache=True)
def _costs(destination: int, shape: Shape, tables: Tables) -> Floats:
    rows, columns, reach = shape
    relative, towards, visits, steps = tables
    side = 2 * reach + 1
    out = np.full((rows * columns, side * side), np.inf)
    for cell in range(rows * columns):
        south, west = cell // columns, cell % columns
        bin_ = relative[destination // columns - south + rows - 1, destination % columns - west + columns - 1]
        total = 0.0
        for at in range(side * side):
            i, j = south + at // side - reach, west + at % side - reach
            if 0 <= i < rows and 0 <= j < columns and at != side * side // 2:
                weight = towards[bin_, at] * visits[i * columns + j] * steps[cell, at]
                if weight > 0:
                    out[cell, at] = weight
                    total += weight
        for at in range(side * side):
            if out[cell, at] < np.inf:
                out[cell, at] = np.log(total / out[cell, at])
    return out


@njit(cache=True)
def _tree_paths(cost: NDArray[Any], sources: Integers, destination: int, shape: Shape) -> tuple[Integers, Integers]:
    rows, columns, reach = shape
    side = 2 * reach + 1
    n_cells = rows * columns
    wanted = np.zeros(n_cells, dtype=np.bool_)
    left = 0
    loop = False
    for source in sources:
        if source == destination:
            loop = True
        if not wanted[source]:
            wanted[source] = True
            left += 1
    best = np.full(n_cells, np.inf)
    following = np.full(n_cells, -1, dtype=np.int64)
    done = np.zeros(n_cells, dtype=np.bool_)
    heap = [(0.0, destination)]
    best[destination] = 0.0
    back, back_cost = np.int64(-1), np.inf  # the neighbour by which a loop from the destination comes back
    while len(heap) > 0 and (left > 0 or loop):
        at_cost, cell = _pop(heap)
        if done[cell]:
            continue
        done[cell] = True
        if wanted[cell]:
            left -= 1
        if loop and at_cost >= back_cost:
            loop = False
        south, west = cell // columns, cell % columns
        if loop and cell != destination:
            down, right = south - destination // columns, west - destination % columns
            if abs(down) <= reach and abs(right) <= reach:
                through = at_cost + cost[destination, (down + reach) * side + right + reach]
                if through < back_cost:
                    back_cost, back = through, np.int64(cell)
        for at in range(side * side):
            i, j = south - (at // side - reach), west - (at % side - reach)
            if 0 <= i < rows and 0 <= j < columns:
                before = i * columns + j
                through = at_cost + cost[before, at]
                if not done[before] and through < best[before]:
                    best[before] = through
                    following[before] = cell
                    _push(heap, (through, before))
    cells = np.empty(16 + 12 * len(sources), dtype=np.int64)
    sizes = np.empty(len(sources), dtype=np.int64)
    filled = 0
    for index in range(len(sources)):
        source = sources[index]
        if filled + n_cells + 2 > len(cells):
            grown = np.empty(2 * len(cells) + n_cells + 2, dtype=np.int64)
            grown[:filled] = cells[:filled]
            cells = grown
        start = filled
        cells[filled] = source
        filled += 1
        step = source
        if source == destination:
            step = back if back >= 0 else (source + 1 if source % columns + 1 < columns else source - 1)
            cells[filled] = step
            filled += 1
            if back < 0:
                cells[filled] = destination
                filled += 1
                step = destination
        if step != destination and following[step] < 0:
            filled = start + straight(cells[start:], source, destination, columns, reach)
            step = destination
        while step != destination:
            step = following[step]
            cells[filled] = step
            filled += 1
        sizes[index] = filled - start
    return cells[:filled].copy(), sizes


@njit(cache=True)
def _push(heap: list[tuple[float, int]], item: tuple[float, int]) -> None:
    heap.append(item)
    at = len(heap) - 1
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent][0] <= item[0]:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item


@njit(cache=True)
def _pop(heap: list[tuple[float, int]]) -> tuple[float, int]:
    top = heap[0]
    last = heap.pop()
    n = len(heap)
    if n > 0:
        at = 0
        while True:
            child = 2 * at + 1
            if child >= n:
                break
            if child + 1 < n and heap[child + 1][0] < heap[child][0]:
                child += 1
            if heap[child][0] >= last[0]:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = last
    return top
