"""The exploration tree: grams whose noisy count is clear of its noise, grown level by level with an adaptive budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log

import numpy as np

from murmurate.asking.table import Answers, TreeTable
from murmurate.core.space import Floats, Integers

ROOT = 0
"""Node of the empty gram."""

SPENT_SHARE = 1e-6
"""Share of the budget below which a path counts as spent, so that rounding opens no further level."""


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


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Public parameters of a tree: symbols (the last ends a trip), greatest depth, epsilon, and what one unit may add."""

    n_symbols: int
    n_max: int
    epsilon: float
    limit: float
    """Occurrences of grams that one unit adds to a level at most: the greatest length times trips per unit."""

    def grow(self, answers: Answers) -> Growing:
        """Rebuild the tree from the noisy counts of its levels so far, and find which nodes the next level expands.

        A pure function of noisy counts. The shares of the nodes on any path add up to the budget at most: a node spends what
        its path has left over the number of levels its subtree is expected to have.
        """
        tree = Growing(self.n_symbols)
        spent = np.zeros(1)
        frontier, bins = np.array([ROOT], dtype=np.int64), None
        for level in range(self.n_max):
            left = np.where(1 - spent[frontier] > SPENT_SHARE, 1 - spent[frontier], 0.0)
            heights = tree.heights(frontier, level, self.n_max, left * self.epsilon, self.limit)
            expand = heights > 0
            frontier, share = frontier[expand], left[expand] / heights[expand]
            name = level_name(level)
            if len(frontier) == 0:
                break
            if name not in answers:
                tree.next_table = self._table(level, frontier, share, None if bins is None else bins[expand])
                tree.row = np.full(len(tree.parent), -1, dtype=np.int64)
                tree.row[frontier] = np.arange(len(frontier))
                break
            row, symbol = np.divmod(_bins_of(answers, name), self.n_symbols)
            first = tree.add(frontier[row], symbol, answers[name].noisy, level + 1)
            spent = np.concatenate([spent, spent[frontier[row]] + share[row]])
            # a terminal symbol ends a gram: nothing follows it
            going_on = symbol != self.n_symbols - 1
            frontier, bins = first + np.flatnonzero(going_on), _bins_of(answers, name)[going_on]
        return tree

    def _table(self, level: int, frontier: Integers, share: Floats, parent: Integers | None) -> TreeTable:
        scale = self.limit / (self.epsilon * share)
        return TreeTable(
            name=level_name(level), n_bins=len(frontier) * self.n_symbols, share=float(share.max()), limit=self.limit, steps=1,
            n_columns=self.n_symbols, row_share=share, threshold=threshold_of(scale, self.n_symbols),
            after=None if parent is None else level_name(level - 1), parent=parent,
        )  # fmt: skip


def level_name(level: int) -> str:
    """Return the name of the table that counts the children of nodes at this level (0: of the root)."""
    return f"level-{level + 1}"


def threshold_of(scale: Floats, n_symbols: int) -> Integers:
    """Return the noisy counts from which a child is kept; they let about one child of each parent pass that nobody has."""
    return np.maximum(1, np.ceil(scale * log(max(n_symbols / 2, 2.0)))).astype(np.int64)


def _bins_of(answers: Answers, name: str) -> Integers:
    bins = answers[name].bins
    return np.zeros(0, dtype=np.int64) if bins is None else bins


class Growing:
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
        self.next_table: TreeTable | None = None
        """The level to be measured next; None where the tree is complete."""
        self.row = np.zeros(0, dtype=np.int64)
        """[node] its row in `next_table`; -1 for a node that is not expanded."""

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

    def find(self, parent: Integers, symbol: Integers) -> Integers:
        """Return the node of each (parent, symbol); -1 where there is none."""
        if len(self.keys) == 0:
            return np.full(len(parent), -1, dtype=np.int64)
        key = parent * self.n_symbols + symbol
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(self.keys[place] == key, place + 1, -1)

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

    def heights(self, nodes: Integers, level: int, n_max: int, left: Floats, limit: float) -> Integers:
        """Estimate how many more levels the subtree of each node has (0: it is a leaf), from noisy counts alone.

        A child is expected to hold the count times the largest probability that the node's suffix gives to any symbol;
        the height is how often that can be taken before the count falls under the threshold.
        """
        if level == 0:
            return np.full(len(nodes), n_max, dtype=np.int64)
        most = n_max - level
        open_ = left > 0
        threshold = limit / (np.where(open_, left, 1.0) / most) * log(max(self.n_symbols / 2, 2.0))
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
