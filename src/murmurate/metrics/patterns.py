"""Compare the most frequent contiguous strings of cells, exact, by hashing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.metrics.comparison import Comparison, NotMeasurable

TOP = (10, 20, 50, 100)
"""Numbers of most frequent patterns that are compared."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """Hold strings of cells found on two sides, and how often each occurs there."""

    cells: Integers
    """One row a pattern, filled up with -1."""
    counts: Integers
    """One row a side, one column a pattern."""
    found: Integers
    """How many different patterns each side has."""


def patterns(comparison: Comparison) -> list[Score]:
    """Compare strings of 2 to 4 cells, by occurrence."""
    return top_patterns(comparison, "patterns", shortest=2, longest=4)


def patterns_with_single(comparison: Comparison) -> list[Score]:
    """Compare strings of 1 to 4 cells, by occurrence."""
    return top_patterns(comparison, "patterns_with_single", shortest=1, longest=4)


def patterns_by_trip(comparison: Comparison) -> list[Score]:
    """Compare strings of 2 to 4 cells, by the number of trips that have them."""
    return top_patterns(comparison, "patterns_by_trip", shortest=2, longest=4, by_trip=True)


def top_patterns(
    comparison: Comparison,
    name: str = "patterns",
    *,
    shortest: int = 2,
    longest: int = 4,
    by_trip: bool = False,
    top: tuple[int, ...] = TOP,
) -> list[Score]:
    """Measure true-positive ratio, F1 and support error of the K most frequent patterns."""
    strings = [side.merged for side in comparison.sides]
    found = mine(strings, shortest=shortest, longest=longest, by_trip=by_trip, most=max(top))
    if not found.found.all():
        raise NotMeasurable(f"one of the sides has no string of {shortest} to {longest} cells inside the grid")
    support = found.counts / np.array([[comparison.original.n], [comparison.released.n]])
    ranks = [rank(found, side, max(top)) for side in (0, 1)]
    scores: list[Score] = []
    for k in top:
        values = agreement(ranks[0][:k], ranks[1][:k], support)
        scores += [
            Score(
                name=f"{name}.{word}_{k}",
                value=value,
                better="lower" if word == "support_error" else "higher",
                family="patterns",
                n=min(k, int(found.found[0])),
                note=f"strings of {shortest} to {longest} cells, {'trips that have them' if by_trip else 'occurrences'}",
            )
            for word, value in values.items()
        ]
    return scores


def agreement(known: Integers, found: Integers, support: Floats) -> dict[str, float]:
    """Compare the most frequent patterns of the second side with those of the first."""
    hits = len(np.intersect1d(known, found))
    precision, recall = hits / len(found), hits / len(known)
    return {
        "true_positives": hits / len(known),
        "f1": 2 * precision * recall / (precision + recall) if hits else 0.0,
        "support_error": float(np.mean(np.abs(support[0, known] - support[1, known]) / support[0, known])),
    }


def rank(found: Patterns, side: int, most: int = 100) -> Integers:
    """Return the positions of the `most` frequent patterns of one side in order; on a tie the shorter, then by its cells."""
    candidates = np.flatnonzero(_at_least_kth(found.counts[side], most))
    cells = found.cells[candidates]
    order = np.lexsort((*cells.T[::-1], (cells >= 0).sum(axis=1), -found.counts[side, candidates]))
    return candidates[order][:most]


def mine(
    strings: list[tuple[Integers, Integers]], *, shortest: int = 2, longest: int = 4, by_trip: bool = False, most: int = 100
) -> Patterns:
    """Find the patterns that are among the `most` frequent of any side, exactly, with their counts on every side.

    A string is cut where its trip leaves the grid (-1). Each side is (cells, offsets).

    >>> found = mine([(np.array([1, 2, 1, 2]), np.array([0, 4]))], shortest=2, longest=2)
    >>> found.cells[rank(found, 0)].tolist(), found.counts[0, rank(found, 0)].tolist()
    ([[1, 2], [2, 1]], [2, 1])
    """
    cells = np.concatenate([part for part, _ in strings])
    ends = _ends([offsets for _, offsets in strings])
    borders = np.cumsum([0, *[len(part) for part, _ in strings]])
    trip = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    identity, n = number_keys(cells)
    symbols = identity
    rows, counts, found = [], [], np.zeros(len(strings), dtype=np.int64)
    for size in range(1, longest + 1):
        if size > 1:
            # the string of `size` cells that begins here: the shorter one that begins here, and one more cell
            identity, n = number_keys(_extend(identity, symbols, trip, size))
        if size < shortest:
            continue
        count = np.zeros((len(strings), n), dtype=np.int64)
        for side in range(len(strings)):
            part = slice(borders[side], borders[side + 1])
            count[side] = count_numbers(identity[part], trip[part], n, by_trip)
        found += (count > 0).sum(axis=1)
        keep = np.flatnonzero(np.any([_at_least_kth(row, most) for row in count], axis=0))
        table = np.full((len(keep), longest), -1, dtype=np.int64)
        table[:, :size] = cells[_first(identity, n)[keep][:, None] + np.arange(size)]
        rows.append(table)
        counts.append(count[:, keep])
    return Patterns(np.concatenate(rows), np.concatenate(counts, axis=1), found)


def _at_least_kth(count: Integers, k: int) -> NDArray[np.bool_]:
    """Return which occur at least as often as the k-th most frequent; ties at the border are all kept."""
    if len(count) <= k:
        return np.asarray(count > 0)
    return np.asarray(count >= max(1, int(np.partition(count, len(count) - k)[len(count) - k])))


def _ends(offsets: list[Integers]) -> Integers:
    joined = [np.zeros(1, dtype=np.int64)]
    for part in offsets:
        joined.append(part[1:] + joined[-1][-1])
    return np.concatenate(joined)


@njit(cache=True, nogil=True)
def number_keys(keys: Integers) -> tuple[Integers, int]:
    """Return 0, 1, 2, ... for each different key in the order of appearance (-1 stays -1), and how many there are."""
    size = 1024
    while size < 2 * len(keys):
        size *= 2
    slots = np.full((size, 2), -1, dtype=np.int64)  # key and number side by side: one look into memory
    result = np.empty(len(keys), dtype=np.int64)
    known = 0
    mask = np.uint64(size - 1)
    for at in range(len(keys)):
        key = keys[at]
        if key < 0:
            result[at] = -1
            continue
        word = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((word ^ (word >> np.uint64(29))) & mask)
        while slots[slot, 0] != -1 and slots[slot, 0] != key:
            slot = (slot + 1) & np.int64(size - 1)
        if slots[slot, 0] == -1:
            slots[slot, 0] = key
            slots[slot, 1] = known
            known += 1
        result[at] = slots[slot, 1]
    return result, known


@njit(cache=True, nogil=True)
def _extend(identity: Integers, symbols: Integers, trip: Integers, size: int) -> Integers:
    """Return the key of each string one cell longer; both numbers are below 2^31, so a pair is one exact 62-bit key."""
    keys = np.full(len(identity), -1, dtype=np.int64)
    for at in range(len(identity) - size + 1):
        last = at + size - 1
        if identity[at] >= 0 and symbols[last] >= 0 and trip[at] == trip[last]:
            keys[at] = (identity[at] << 31) | symbols[last]
    return keys


@njit(cache=True, nogil=True)
def count_numbers(identity: Integers, trip: Integers, n: int, by_trip: bool) -> Integers:
    """Count how often each number occurs, or in how many trips."""
    count = np.zeros(n, dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int64)
    for at in range(len(identity)):
        which = identity[at]
        if which >= 0 and not (by_trip and seen[which] == trip[at]):
            count[which] += 1
            seen[which] = trip[at]
    return count


@njit(cache=True, nogil=True)
def _first(identity: Integers, n: int) -> Integers:
    """Return where each number appears first."""
    first = np.full(n, -1, dtype=np.int64)
    for at in range(len(identity)):
        if identity[at] >= 0 and first[identity[at]] < 0:
            first[identity[at]] = at
    return first
