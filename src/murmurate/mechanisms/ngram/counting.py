"""What trips contribute to the tables of the tree: each occurrence of a gram follows one path from the root."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from murmurate.asking.table import Contributions, Part
from murmurate.core.space import Integers, Places
from murmurate.ingest.discretise import visited_cells
from murmurate.mechanisms.ngram.tree import Growing, level_name


@dataclass(frozen=True, eq=False)
class Sequences:
    """Trip k is symbols[offsets[k]:offsets[k + 1]], the last of them the terminal one, and belongs to unit[k]."""

    symbols: Integers
    offsets: Integers
    unit: Integers


@dataclass(frozen=True, kw_only=True)
class ReadSequences:
    """Turn trips into sequences of public places, each trip by itself."""

    places: Places
    slot_s: int
    l_max: int

    def __call__(self, part: Part) -> Sequences:
        """Visited cells, cut to `l_max` symbols with the end; trips that stay in one cell (or outside) are left out."""
        visits = visited_cells(part.trips, self.places, slot_s=self.slot_s)
        symbols, offsets = ended(visits.cells, visits.offsets, end=self.places.n_cells, l_max=self.l_max)
        return Sequences(symbols, offsets, part.unit[visits.trip])


@dataclass(frozen=True, eq=False)
class CountLevel:
    """Count the children of the expanded nodes of one level."""

    level: int
    n_symbols: int
    start: Integers
    """Children of node v are nodes start[v] ... start[v + 1] - 1."""
    symbol: Integers
    row: Integers
    """[node] its row in the table; -1 where it is not expanded."""

    @classmethod
    def of(cls, tree: Growing, level: int) -> CountLevel:
        """Count the next table of a tree, all of which is made of noisy counts."""
        finished = tree.finished()
        return cls(level, tree.n_symbols, finished.start, finished.symbol, tree.row)

    def __call__(self, found: Sequences) -> dict[str, Contributions]:
        """Count each occurrence of a gram; those of a trip come sorted, equal ones merged."""
        trip, bins, weight = _occurrences(
            found.symbols, found.offsets, self.start, self.symbol, self.row, self.level, self.n_symbols
        )
        return {level_name(self.level): Contributions(found.unit[trip], bins, weight)}


def ended(cells: Integers, offsets: Integers, *, end: int, l_max: int) -> tuple[Integers, Integers]:
    """Cut sequences to `l_max` symbols of which the last is the terminal one.

    >>> ended(np.array([3, 4, 5, 6, 1]), np.array([0, 4, 5]), end=9, l_max=3)
    (array([3, 4, 9, 1, 9]), array([0, 3, 5]))
    """
    sizes = np.minimum(np.diff(offsets), l_max - 1)
    out = np.concatenate([[0], np.cumsum(sizes + 1)]).astype(np.int64)
    symbols = np.full(int(out[-1]), end, dtype=np.int64)
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    symbols[np.repeat(out[:-1], sizes) + within] = cells[np.repeat(offsets[:-1], sizes) + within]
    return symbols, out


@njit(cache=True, nogil=True)
def _occurrences(  # noqa: PLR0917
    symbols: Integers, offsets: Integers, start: Integers, symbol: Integers, row: Integers, level: int, n_symbols: int
) -> tuple[Integers, Integers, Integers]:
    """Return trip, bin and number of occurrences of every gram of `level` + 1 symbols that begins with an expanded node."""
    child_of_root = np.full(n_symbols, -1, np.int64)  # the root has most children: looked up, not searched
    for node in range(start[0], start[1]):
        child_of_root[symbol[node]] = node
    owner, bins, weight = np.empty(len(symbols), np.int64), np.empty(len(symbols), np.int64), np.empty(len(symbols), np.int64)
    found = np.empty(len(symbols), np.int64)
    size = 0
    for trip in range(len(offsets) - 1):
        n = 0
        for first in range(offsets[trip], offsets[trip + 1] - level):
            node = 0
            for k in range(level):
                wanted = symbols[first + k]
                if k == 0:
                    node = child_of_root[wanted]
                else:
                    low, high = start[node], start[node + 1]
                    place = low + np.searchsorted(symbol[low:high], wanted)
                    node = place if place < high and symbol[place] == wanted else -1
                if node < 0:
                    break
            if node >= 0 and row[node] >= 0:
                found[n] = row[node] * n_symbols + symbols[first + level]
                n += 1
        before = size
        for value in np.sort(found[:n]):
            if size > before and bins[size - 1] == value:
                weight[size - 1] += 1
            else:
                owner[size], bins[size], weight[size] = trip, value, 1
                size += 1
    return owner[:size].copy(), bins[:size].copy(), weight[:size].copy()
