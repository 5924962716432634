"""The exploration tree: grams whose noisy count is worth its noise, grown level by level with an adaptive budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

from murmurate import noise as draws
from murmurate.core.space import Floats, Integers
from murmurate.noise.sparse import laplace_survivors

if TYPE_CHECKING:
    from murmurate.noise import Randomness

ROOT = 0


@dataclass(eq=False)
class Tree:
    """Nodes 0 (the root), 1, ...; a node's gram is its parent's with its symbol appended."""

    parent: Integers
    symbol: Integers
    level: Integers
    count: Floats
    suffix: Integers
    """The node of the same gram without its first symbol, or the longest shorter one that was kept."""
    start: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Children of node v are nodes start[v] ... start[v + 1] - 1, in the order of their symbols."""

    @property
    def n_nodes(self) -> int:
        return len(self.parent)


def grow_tree(
    symbols: Integers, offsets: Integers, *, n_symbols: int, n_max: int, epsilon: float, reach: float, rng: Randomness
) -> Tree:
    """Grow from sequences of symbols (the last symbol of each being the terminal one, `n_symbols` - 1).

    `reach` is by how much one unit can change all counts of a level together: the greatest length times trips per unit.

    Guarantee: epsilon-DP. A unit touches at most `reach` grams of each level, each on one path from the root, and the
    budgets along a path never add to more than epsilon, whatever the noisy counts were.
    """
    sequence_end = np.repeat(offsets[1:], np.diff(offsets))
    at = np.full(len(symbols), ROOT, dtype=np.int64)
    tree = _Growing(n_symbols)
    epsilon *= 1 - 1e-12  # what rounding could add along a path
    spent = np.zeros(1)
    frontier = np.array([ROOT], dtype=np.int64)
    for level in range(n_max):
        left = np.where(epsilon - spent[frontier] > 1e-6 * epsilon, epsilon - spent[frontier], 0.0)
        heights = tree.heights(frontier, level, n_max, left, reach)
        expand = heights > 0
        frontier, heights = frontier[expand], heights[expand]
        if len(frontier) == 0:
            break
        portion = (epsilon - spent[frontier]) / heights
        position = np.flatnonzero((at >= 0) & (np.arange(len(at)) + level < sequence_end))
        made = _children(at[position], symbols[position + level], frontier, portion, n_symbols=n_symbols, reach=reach, rng=rng)
        first = tree.add(*made, level + 1)
        spent = np.concatenate([spent, spent[made[0]] + portion[np.searchsorted(frontier, made[0])]])
        moved = tree.find(at[position], symbols[position + level], first)
        at = np.full(len(symbols), -1, dtype=np.int64)
        at[position] = moved
        # a terminal symbol ends a gram: nothing follows it
        frontier = np.arange(first, len(spent), dtype=np.int64)
        frontier = frontier[tree.symbol[frontier] != n_symbols - 1]
    return tree.finished()


def threshold_of(scale: float, n_symbols: int) -> int:
    """The noisy count from which a child is kept; it lets about one false child of each parent pass."""
    return max(1, ceil(scale * log(max(n_symbols / 2, 2.0))))


def _children(
    parents_seen: Integers,
    symbols_seen: Integers,
    frontier: Integers,
    portion: Floats,
    *,
    n_symbols: int,
    reach: float,
    rng: Randomness,
) -> tuple[Integers, Integers, Floats]:
    """(parent, symbol, noisy count) of every kept child of the frontier, sorted; absent children are noised as well."""
    key = parents_seen * n_symbols + symbols_seen
    wanted = np.zeros(int(max(frontier.max(), parents_seen.max(initial=0))) + 1, dtype=bool)
    wanted[frontier] = True
    keys, counts = np.unique(key[wanted[parents_seen]], return_counts=True)
    seen_parent = keys // n_symbols
    parents, symbols, noisy = [], [], []
    for epsilon in np.unique(portion):
        scale = reach / epsilon
        threshold = threshold_of(scale, n_symbols)
        group = frontier[portion == epsilon]
        mine = np.isin(seen_parent, group)
        values = draws.laplace_integers(counts[mine].astype(np.int64), scale=scale, rng=rng)
        kept = values >= threshold
        parents.append(seen_parent[mine][kept])
        symbols.append((keys[mine] % n_symbols)[kept])
        noisy.append(values[kept])
        present = np.searchsorted(seen_parent[mine], group, side="right") - np.searchsorted(seen_parent[mine], group)
        absent = n_symbols - present
        places, above = laplace_survivors(int(absent.sum()), scale=scale, threshold=threshold, rng=rng)
        ends = np.cumsum(absent)
        index = np.searchsorted(ends, places, side="right")
        rank = places - (ends - absent)[index]
        parents.append(group[index])
        symbols.append(_absent_symbols(group[index], rank, keys[mine], n_symbols))
        noisy.append(above)
    parent, symbol = np.concatenate(parents), np.concatenate(symbols)
    order = np.lexsort((symbol, parent))
    return parent[order], symbol[order], np.concatenate(noisy)[order].astype(np.float64)


def _absent_symbols(parent: Integers, rank: Integers, present_keys: Integers, n_symbols: int) -> Integers:
    """The symbol of the `rank`-th child of each parent that no sequence shows."""
    found = np.empty(len(parent), dtype=np.int64)
    for k, (one, at) in enumerate(zip(parent.tolist(), rank.tolist(), strict=True)):
        low, high = np.searchsorted(present_keys, [one * n_symbols, (one + 1) * n_symbols])
        shown = present_keys[low:high] - one * n_symbols
        # the rank-th absent symbol lies behind as many present ones as stand before it
        found[k] = at + np.searchsorted(shown - np.arange(len(shown)), at, side="right")
    return found


class _Growing:
    """A tree under construction."""

    def __init__(self, n_symbols: int) -> None:
        self.n_symbols = n_symbols
        self.parent = np.array([-1], dtype=np.int64)
        self.symbol = np.array([-1], dtype=np.int64)
        self.level = np.array([0], dtype=np.int64)
        self.count = np.array([np.inf])
        self.suffix = np.array([-1], dtype=np.int64)
        self.keys = np.zeros(0, dtype=np.int64)
        """parent * n_symbols + symbol of nodes 1, 2, ...: ascending, as nodes are added in the order of their parents."""

    def add(self, parent: Integers, symbol: Integers, count: Floats, level: int) -> int:
        """Append children (sorted by parent and symbol); the id of the first."""
        first = len(self.parent)
        suffix = self._suffixes(parent, symbol)
        self.parent = np.concatenate([self.parent, parent])
        self.symbol = np.concatenate([self.symbol, symbol])
        self.level = np.concatenate([self.level, np.full(len(parent), level, dtype=np.int64)])
        self.count = np.concatenate([self.count, count])
        self.suffix = np.concatenate([self.suffix, suffix])
        self.keys = np.concatenate([self.keys, parent * self.n_symbols + symbol])
        return first

    def find(self, parent: Integers, symbol: Integers, first: int = 1) -> Integers:
        """The node of each (parent, symbol); -1 where there is none (or it is older than `first`)."""
        if len(self.keys) == 0:
            return np.full(len(parent), -1, dtype=np.int64)
        key = parent * self.n_symbols + symbol
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where((self.keys[place] == key) & (parent >= 0) & (place + 1 >= first), place + 1, -1)

    def _suffixes(self, parent: Integers, symbol: Integers) -> Integers:
        """Follow the parents' suffixes until one has this symbol as a child; the root is always one."""
        found = np.zeros(len(parent), dtype=np.int64)
        open_ = np.flatnonzero(parent != ROOT)
        at = self.suffix[parent[open_]]
        while len(open_):
            child = self.find(at, symbol[open_])
            found[open_] = np.maximum(child, ROOT)
            more = (child < 0) & (at != ROOT)
            open_, at = open_[more], self.suffix[at[more]]
        return found

    def heights(self, nodes: Integers, level: int, n_max: int, left: Floats, reach: float) -> Integers:
        """How many more levels each node's subtree is expected to have (0: it is a leaf), from noisy counts alone.

        A child is expected to hold the count times the largest probability that the node's suffix gives to any symbol;
        the height is how often that can be taken before the count falls under the threshold.
        """
        if level == 0:
            return np.full(len(nodes), n_max, dtype=np.int64)
        most = n_max - level
        open_ = left > 0
        threshold = reach / (np.where(open_, left, 1.0) / most) * log(max(self.n_symbols / 2, 2.0))
        likely = np.clip(self._largest_share()[self.suffix[nodes]], 0.05, 0.95)
        room = np.log(np.maximum(self.count[nodes] / threshold, 1e-12)) / -np.log(likely)
        return np.where(~open_ | (self.count[nodes] < threshold), 0, np.clip(np.ceil(room), 1, most)).astype(np.int64)

    def _largest_share(self) -> Floats:
        """For every node the largest share of its children's counts that one child has."""
        total = np.bincount(self.parent[1:], weights=self.count[1:], minlength=len(self.parent))
        largest = np.zeros(len(self.parent))
        np.maximum.at(largest, self.parent[1:], self.count[1:])
        return np.where(total > 0, largest / np.maximum(total, 1e-9), 0.5)

    def finished(self) -> Tree:
        start = np.searchsorted(self.parent[1:], np.arange(len(self.parent) + 1)) + 1
        return Tree(self.parent, self.symbol, self.level, self.count, self.suffix, start.astype(np.int64))
