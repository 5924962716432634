"""Sequences from a tree of noisy grams: the longest matching context decides, shorter ones where it knows no more."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.ngram.tree import Tree
from murmurate.synthesis.draws import State, start_state, uniform


def consistent_shares(tree: Tree) -> Floats:
    """For each node the probability of being taken from its parent's context; what is missing to 1 goes to back-off.

    Children may not hold more than their parent: where their noisy counts do, they are scaled down to it.
    """
    total = np.bincount(tree.parent[1:], weights=tree.count[1:], minlength=tree.n_nodes)
    held = np.where(np.isfinite(tree.count), np.maximum(tree.count, total), total)
    return np.concatenate([[0.0], tree.count[1:] / np.maximum(held, 1e-9)[tree.parent[1:]]])


def walk_sequences(
    tree: Tree, *, n: int, n_symbols: int, longest: int, generator: np.random.Generator
) -> tuple[Integers, Integers]:
    """Draw `n` sequences of at least two cells (symbols and offsets), ended by the terminal symbol or at `longest` cells."""
    shares = consistent_shares(tree)
    return _walk(tree.start, tree.symbol, tree.suffix, shares, (n, n_symbols, longest, int(generator.integers(2**62))))


@njit(cache=True)
def _child(start: Integers, symbol: Integers, node: int, wanted: int) -> int:
    low, high = start[node], start[node + 1]
    while low < high:
        middle = (low + high) // 2
        if symbol[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < start[node + 1] and symbol[low] == wanted else -1


@njit(cache=True)
def _draw(start: Integers, shares: Floats, suffix: Integers, context: int, state: State) -> int:
    """Draw a node from the children of the context, or of a shorter one; 0 where no context has a child."""
    node = context
    while True:
        at = uniform(state)
        for child in range(start[node], start[node + 1]):
            at -= shares[child]
            if at < 0:
                return child
        if node == 0:
            return start[1] - 1 if start[1] > start[0] else 0  # rounding at the root: its last child
        node = suffix[node]


@njit(cache=True)
def _walk(
    start: Integers, symbol: Integers, suffix: Integers, shares: Floats, how: tuple[int, int, int, int]
) -> tuple[Integers, Integers]:
    n, n_symbols, longest, seed = how
    state = start_state(seed)
    cells = np.empty(n * longest, dtype=np.int64)
    offsets = np.zeros(n + 1, dtype=np.int64)
    filled = 0
    for sequence in range(n):
        first = filled
        context = 0
        without_gain = 0  # draws in a row that added nothing, so that a poor tree cannot hold the walk up
        while filled - first < longest:
            taken = _draw(start, shares, suffix, context, state)
            drawn = symbol[taken] if taken > 0 else int(uniform(state) * (n_symbols - 1))
            without_gain += 1
            if without_gain > 50:
                drawn = int(uniform(state) * (n_symbols - 1))
            if drawn == n_symbols - 1:
                if filled - first >= 2:
                    break
                continue  # a trip of fewer than two cells is none
            if filled > first and cells[filled - 1] == drawn:
                continue
            cells[filled] = drawn
            filled += 1
            without_gain = 0
            # the new context: the longest kept gram that ends here and is known to go on
            node = context
            found = _child(start, symbol, node, drawn)
            while found < 0 and node != 0:
                node = suffix[node]
                found = _child(start, symbol, node, drawn)
            context = max(found, 0)
            while context != 0 and start[context] == start[context + 1]:
                context = suffix[context]
        offsets[sequence + 1] = filled
    return cells[:filled].copy(), offsets
