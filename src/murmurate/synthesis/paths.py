"""Sample paths between given ends step by step towards the destination, and keep the one nearest to its wanted length."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.synthesis.draws import State, start_state, uniform
from murmurate.synthesis.moves import MoveWeights, Neighbourhood
from murmurate.synthesis.sequences import CellTrips

PATH_TRIES = 16
"""Paths sampled for each trip. Chosen by hand."""

Shape = tuple[int, int, int]
"""Rows, columns, reach."""
Tables = tuple[Integers, NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
"""Bins of relative destinations, and the weights towards, visits and steps."""
Ahead = tuple[Integers, NDArray[np.float32]]
"""The wide cell of each cell, and the weights ahead by wide destination and wide cell."""


def sample_paths(
    sources: Integers,
    destinations: Integers,
    hours: Integers,
    sizes: Integers,
    *,
    weights: MoveWeights,
    around: Neighbourhood,
    generator: np.random.Generator,
    tries: int = PATH_TRIES,
    ahead: tuple[Integers, Floats] | None = None,
) -> CellTrips:
    """Sample one path for each triple; where no try arrives, take the straight line.

    Steps are drawn from the product of the three weights. Of `tries` paths the one whose number of cells is nearest to the
    wanted size is kept. Trips come out in the order they went in. `ahead` is the wide cell of each cell, and [wide destination,
    wide cell] a further weight of entering it: how good the ways are that lead on from there.
    """
    wide_of, further = ahead or (np.zeros(around.n_cells, dtype=np.int64), np.ones((1, 1)))
    order = np.argsort(destinations, kind="stable")
    longest = int(sizes.max(initial=2)) * 2 + 2 * max(around.rows, around.columns)
    cells, lengths = _sample(
        sources[order],
        destinations[order],
        sizes[order],
        (around.rows, around.columns, around.reach),
        (
            around.relative,
            weights.towards.astype(np.float32),
            weights.visits.astype(np.float32),
            weights.steps.astype(np.float32),
        ),
        (wide_of, further.astype(np.float32)),
        (tries, longest, int(generator.integers(2**62))),
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    sorted_trips = CellTrips(cells, offsets, hours[order])
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return sorted_trips.take(back)


@njit(cache=True)
def straight(path: Integers, source: int, destination: int, columns: int, reach: int) -> int:
    """Fill in the straight line between two cells in steps within reach; equal cells visit a neighbour between."""
    path[0] = source
    if source == destination:
        path[1] = source + 1 if source % columns + 1 < columns else source - 1
        path[2] = destination
        return 3
    south, west = source // columns, source % columns
    down, right = destination // columns - south, destination % columns - west
    n = (max(abs(down), abs(right)) + reach - 1) // reach
    for k in range(1, n + 1):
        path[k] = (south + round(down * k / n)) * columns + west + round(right * k / n)
    return n + 1


@njit(cache=True)
def _fill_row(  # noqa: PLR0917
    row: NDArray[np.float32], cell: int, destination: int, shape: Shape, tables: Tables, ahead: Ahead
) -> None:
    """Fill in the cumulative weights of the offsets of one cell, given the destination."""
    rows, columns, reach = shape
    relative, towards, visits, steps = tables
    wide_of, further = ahead
    far = wide_of[destination]
    south, west = cell // columns, cell % columns
    bin_ = relative[destination // columns - south + rows - 1, destination % columns - west + columns - 1]
    total = np.float32(0.0)
    at = 0
    for i in range(south - reach, south + reach + 1):
        for j in range(west - reach, west + reach + 1):
            if 0 <= i < rows and 0 <= j < columns:
                target = i * columns + j
                if target != cell:
                    total += towards[bin_, at] * visits[target] * steps[cell, at] * further[far, wide_of[target]]
                elif cell == destination:
                    total += towards[bin_, at]
            row[at] = total
            at += 1


@njit(cache=True)
def _walk(  # noqa: PLR0917
    path: Integers,
    destination: int,
    most: int,
    cache: NDArray[np.float32],
    slot_of: Integers,
    used: Integers,
    n_used: int,
    state: State,
    shape: Shape,
    tables: Tables,
    ahead: Ahead,
) -> tuple[int, int]:
    """Sample a path from path[0] to its destination; return its cells (0 if it does not arrive) and the rows cached."""
    columns, reach = shape[1], shape[2]
    side = 2 * reach + 1
    length = 1
    while True:
        cell = path[length - 1]
        slot = slot_of[cell]
        if slot < 0:
            slot = n_used
            slot_of[cell] = slot
            used[n_used] = cell
            n_used += 1
            _fill_row(cache[slot], cell, destination, shape, tables, ahead)
        row = cache[slot]
        total = row[side * side - 1]
        if total <= 0 or (length == 1 and total <= row[side * side // 2] - row[side * side // 2 - 1]):
            return 0, n_used
        middle = side * side // 2
        stopping = row[middle] - row[middle - 1] if length == 1 else np.float32(0.0)  # a trip does not end where it begins
        drawn = np.float32(uniform(state) * (total - stopping))
        if length == 1 and drawn >= row[middle - 1]:
            drawn += stopping
        at = int(np.searchsorted(row, drawn, side="right"))
        if at == side * side:  # rounding put the draw on the total itself
            at -= 1
        while at > 0 and row[at] == row[at - 1]:
            at -= 1
        if at == side * side // 2 and cell == destination:
            return length if length > 1 else 0, n_used
        if length >= most:
            return 0, n_used
        path[length] = (cell // columns + at // side - reach) * columns + cell % columns + at % side - reach
        length += 1


@njit(cache=True)
def _copy(cells: Integers, n: int, into: Integers, at: int) -> None:
    """Copy the first `n` cells. Slices would make numba compile its messages about shapes, for seconds."""
    for k in range(n):
        into[at + k] = cells[k]


@njit(cache=True)
def _sample(  # noqa: PLR0917
    sources: Integers,
    destinations: Integers,
    sizes: Integers,
    shape: Shape,
    tables: Tables,
    ahead: Ahead,
    how: tuple[int, int, int],
) -> tuple[Integers, Integers]:
    """Return cells and sizes of one path a trip; trips to one destination stand together and share rows of weights."""
    tries, longest, seed = how
    n_cells = shape[0] * shape[1]
    cache = np.empty((n_cells, (2 * shape[2] + 1) ** 2), dtype=np.float32)
    slot_of = np.full(n_cells, -1, dtype=np.int64)
    used = np.empty(n_cells, dtype=np.int64)
    n_used = np.int64(0)  # a plain 0 is a type of its own to numba, for which `_walk` would be compiled again
    state = start_state(seed)
    lengths = np.empty(len(sources), dtype=np.int64)
    cells = np.empty(max(16, 12 * len(sources)), dtype=np.int64)
    path = np.empty(longest + 3, dtype=np.int64)
    best = np.empty(longest + 3, dtype=np.int64)
    filled = 0
    before = -1
    for trip in range(len(sources)):
        destination = destinations[trip]
        if destination != before:
            for k in range(n_used):
                slot_of[used[k]] = -1
            n_used = np.int64(0)
            before = destination
        best_length = 0
        gap = longest
        for _ in range(tries):
            path[0] = sources[trip]
            most = min(longest, sizes[trip] + gap - 1)  # a longer walk could not be nearer to the wanted size
            length, n_used = _walk(path, destination, most, cache, slot_of, used, n_used, state, shape, tables, ahead)
            if length > 1 and abs(length - sizes[trip]) < gap:
                gap = abs(length - sizes[trip])
                _copy(path, length, best, np.int64(0))
                best_length = length
                if gap == 0:
                    break
        if best_length == 0:
            best_length = straight(best, sources[trip], destination, shape[1], shape[2])
        if filled + best_length > len(cells):
            grown = np.empty(2 * len(cells) + best_length, dtype=np.int64)
            _copy(cells, filled, grown, np.int64(0))
            cells = grown
        _copy(best, best_length, cells, filled)
        lengths[trip] = best_length
        filled += best_length
    return cells[:filled].copy(), lengths
