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
Weights = NDArray[np.float32]
"""Weights in single precision."""
Tables = tuple[Integers, Weights, Weights]
"""Bins of relative destinations, and the weights towards and those of steps, times visits. Offsets go from near to far: most
steps are short, and are then found at once."""
Ahead = tuple[Integers, Weights]
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
    shape = (around.rows, around.columns, around.reach)
    down, right = np.divmod(np.arange(around.n_offsets), around.side) - np.array(around.reach)
    near = np.argsort(down**2 + right**2, kind="stable")
    reached = _reached(weights.visits.astype(np.float32), weights.steps.astype(np.float32), shape, near)
    order = np.argsort(destinations, kind="stable")
    longest = int(sizes.max(initial=2)) * 2 + 2 * max(around.rows, around.columns)
    cells, lengths = _sample(
        sources[order],
        destinations[order],
        sizes[order],
        shape,
        (around.relative, np.take(weights.towards.astype(np.float32), near, axis=1), reached),
        (wide_of, further.astype(np.float32)),
        near,
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
def _reached(visits: Weights, steps: Weights, shape: Shape, near: Integers) -> Weights:
    """Return [cell, offset from near to far] the weight of a step times that of the cell it leads to; 0 outside the grid."""
    rows, columns, reach = shape
    side = 2 * reach + 1
    found = np.zeros(steps.shape, dtype=np.float32)
    for k in range(len(near)):
        down, right = near[k] // side - reach, near[k] % side - reach
        for i in range(max(0, -down), min(rows, rows - down)):
            for j in range(max(0, -right), min(columns, columns - right)):
                cell = i * columns + j
                found[cell, k] = visits[cell + down * columns + right] * steps[cell, near[k]]
    return found


@njit(cache=True)
def _fill_ahead(into: Weights, destination: int, shape: Shape, ahead: Ahead) -> None:
    """Fill in the weights ahead of all cells of a grid that is wider by the reach on each side, given the destination."""
    rows, columns, reach = shape
    wide_of, further = ahead
    far = wide_of[destination]
    for i in range(rows):
        at = (i + reach) * (columns + 2 * reach) + reach
        for j in range(columns):
            into[at + j] = further[far, wide_of[i * columns + j]]


@njit(cache=True)
def _fill_row(  # noqa: PLR0917
    row: Weights, cell: int, destination: int, shape: Shape, tables: Tables, further: Weights, moves: Integers
) -> None:
    """Fill in the cumulative weights of the offsets of one cell, given the destination; the first is that of stopping."""
    rows, columns, reach = shape
    relative, towards, reached = tables
    south, west = cell // columns, cell % columns
    bin_ = relative[destination // columns - south + rows - 1, destination % columns - west + columns - 1]
    middle = (south + reach) * (columns + 2 * reach) + west + reach
    total = towards[bin_, 0] if cell == destination else np.float32(0.0)
    row[0] = total
    for k in range(1, len(row)):
        total += towards[bin_, k] * reached[cell, k] * further[middle + moves[k]]
        row[k] = total


@njit(cache=True, forceinline=True)
def _walk(  # noqa: PLR0917
    path: Integers,
    destination: int,
    most: int,
    cache: Weights,
    slot_of: Integers,
    used: Integers,
    n_used: int,
    state: State,
    shape: Shape,
    tables: Tables,
    further: Weights,
    moves: Integers,
) -> tuple[int, int]:
    """Sample a path from path[0] to its destination; return its cells (0 if it does not arrive) and the rows cached.

    `moves` [0, offset] are differences of cells of the grid, [1, offset] those of the wider grid of `further`.
    """
    length = 1
    while True:
        cell = path[length - 1]
        slot = slot_of[cell]
        if slot < 0:
            slot = n_used
            slot_of[cell] = slot
            used[n_used] = cell
            n_used += 1
            _fill_row(cache[slot], cell, destination, shape, tables, further, moves[1])
        row = cache[slot]
        last = len(row) - 1
        stopping = row[0] if length == 1 else np.float32(0.0)  # a trip does not end where it begins
        if row[last] <= stopping:
            return 0, n_used
        drawn = np.float32(stopping + uniform(state) * (row[last] - stopping))
        at = 0
        while at < last and row[at] <= drawn:
            at += 1
        while at > 0 and row[at] == row[at - 1]:  # rounding put the draw on the total itself
            at -= 1
        if at == 0:
            return length, n_used
        if length >= most:
            return 0, n_used
        path[length] = cell + moves[0, at]
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
    near: Integers,
    how: tuple[int, int, int],
) -> tuple[Integers, Integers]:
    """Return cells and sizes of one path a trip; trips to one destination stand together and share rows of weights."""
    tries, longest, seed = how
    rows, columns, reach = shape
    n_cells, side = rows * columns, 2 * reach + 1
    moves = np.empty((2, len(near)), dtype=np.int64)
    for k in range(len(near)):
        down, right = near[k] // side - reach, near[k] % side - reach
        moves[0, k], moves[1, k] = down * columns + right, down * (columns + 2 * reach) + right
    further = np.zeros((rows + 2 * reach) * (columns + 2 * reach), dtype=np.float32)
    cache = np.empty((n_cells, len(near)), dtype=np.float32)
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
            if before < 0 or ahead[0][destination] != ahead[0][before]:
                _fill_ahead(further, destination, shape, ahead)
            before = destination
        best_length = 0
        gap = longest
        for _ in range(tries):
            path[0] = sources[trip]
            most = min(longest, sizes[trip] + gap - 1)  # a longer walk could not be nearer to the wanted size
            length, n_used = _walk(path, destination, most, cache, slot_of, used, n_used, state, shape, tables, further, moves)
            if length > 1 and abs(length - sizes[trip]) < gap:
                gap = abs(length - sizes[trip])
                _copy(path, length, best, np.int64(0))
                best_length = length
                if gap == 0:
                    break
        if best_length == 0:
            best_length = straight(best, sources[trip], destination, columns, reach)
        if filled + best_length > len(cells):
            grown = np.empty(2 * len(cells) + best_length, dtype=np.int64)
            _copy(cells, filled, grown, np.int64(0))
            cells = grown
        _copy(best, best_length, cells, filled)
        lengths[trip] = best_length
        filled += best_length
    return cells[:filled].copy(), lengths
