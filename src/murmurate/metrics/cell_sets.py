"""Compare frequent sets of cells, whatever their order: the patterns of frequent-itemset mining."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from murmurate.core.score import Score
from murmurate.core.space import Integers
from murmurate.metrics.comparison import Comparison, NotMeasurable
from murmurate.metrics.patterns import TOP

MIN_SUPPORT = 0.05
"""Share of the trips that must visit all cells of a set: the value in later public code of DP-Loc's authors."""


def cell_sets(comparison: Comparison, *, min_support: float = MIN_SUPPORT) -> list[Score]:
    """Measure how many of the originals' K most frequent sets of cells the release has among its K.

    Sets of one cell count too. The share is over the sets the originals have, at most K: few sets are that frequent.
    """
    known, found = (frequent_sets(*side.merged, min_support=min_support, most=max(TOP)) for side in comparison.sides)
    if not known:
        raise NotMeasurable(f"no cell is visited by {min_support:.0%} of the original trips")
    return [
        Score(
            name=f"cell_sets.true_positives_{k}",
            value=len({*known[:k]} & {*found[:k]}) / min(k, len(known)),
            better="higher",
            family="patterns",
            n=min(k, len(known)),
            note=f"sets of cells in at least {min_support:.0%} of the trips; {min(k, len(known))} compared",
        )
        for k in TOP
    ]


def frequent_sets(cells: Integers, offsets: Integers, *, min_support: float, most: int) -> list[tuple[int, ...]]:
    """Return the `most` frequent sets of cells that at least a share of `min_support` of the trips visit.

    Most frequent first, then smaller sets, then lower cell numbers.

    >>> frequent_sets(np.array([1, 2, 2, 1, 3]), np.array([0, 2, 4, 5]), min_support=0.5, most=10)
    [(1,), (2,), (1, 2)]
    """
    n_trips = len(offsets) - 1
    least = max(1, int(np.ceil(min_support * n_trips)))
    trip = np.repeat(np.arange(n_trips), np.diff(offsets))
    visits = np.unique(np.column_stack([cells, trip])[cells >= 0], axis=0)
    names, first, counts = np.unique(visits[:, 0], return_index=True, return_counts=True)
    visitors: dict[int, NDArray[np.uint8]] = {}
    for name, start, count in zip(names, first, counts, strict=True):
        if count >= least:
            there = np.zeros(n_trips, dtype=bool)
            there[visits[start : start + count, 1]] = True
            visitors[int(name)] = np.packbits(there)
    # Best first: a larger set is never more frequent than the set it extends, so sets leave the queue in their final order.
    queue: list[tuple[int, int, tuple[int, ...]]] = [
        (-int(np.bitwise_count(bits).sum()), 1, (cell,)) for cell, bits in visitors.items()
    ]
    heapify(queue)
    found: list[tuple[int, ...]] = []
    while queue and len(found) < most:
        _, size, chosen = heappop(queue)
        found.append(chosen)
        together = np.bitwise_and.reduce([visitors[cell] for cell in chosen])
        for cell, bits in visitors.items():
            if cell > chosen[-1] and (count := int(np.bitwise_count(together & bits).sum())) >= least:
                heappush(queue, (-count, size + 1, (*chosen, cell)))
    return found
