"""Count trips from one rectangle of cells to another."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Integers


def random_spans(size: int, queries: int, generator: np.random.Generator, narrowest: float) -> tuple[Integers, Integers]:
    """Draw half-open ranges of rows or columns, `narrowest` to 1/2 of the box wide (log-uniform), anywhere inside it."""
    width = np.exp(generator.uniform(np.log(narrowest), np.log(1 / 2), queries)) * size
    width = np.maximum(1, np.rint(width)).astype(np.int64)
    low = np.floor(generator.uniform(0, 1, queries) * (size - width + 1)).astype(np.int64)
    return low, low + width


def random_rectangles(rows: int, columns: int, n: int, generator: np.random.Generator) -> Integers:
    """Draw [n, 4]: first and last row and column (half-open) of random rectangles, log-uniform in their sides."""
    spans = [random_spans(size, n, generator, narrowest=1 / 8) for size in (rows, columns)]
    return np.column_stack([*spans[0], *spans[1]])


@njit(cache=True, nogil=True)
def count_between(ends: Integers, boxes: Integers) -> Integers:
    """Count how many (row, column, row, column) of starts and ends lie in each pair of rectangles.

    Bit q of the words of a row or column says whether pair q contains it, so that 64 pairs are tested at once.
    """
    counts = np.zeros(len(boxes), dtype=np.int64)
    if not len(ends):
        return counts
    words = (len(boxes) + 63) // 64
    holds = np.zeros((4, ends.max() + 1, words), dtype=np.uint64)
    for q in range(len(boxes)):
        for axis in range(4):
            for at in range(boxes[q, 2 * axis], min(boxes[q, 2 * axis + 1], holds.shape[1])):
                holds[axis, at, q // 64] |= np.uint64(1) << np.uint64(q % 64)
    for k in range(len(ends)):
        for word in range(words):
            both = holds[0, ends[k, 0], word] & holds[1, ends[k, 1], word]
            both &= holds[2, ends[k, 2], word] & holds[3, ends[k, 3], word]
            q = word * 64
            while both:
                counts[q] += np.int64(both & np.uint64(1))
                both >>= np.uint64(1)
                q += 1
    return counts
