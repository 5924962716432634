"""Add up what units contribute to a table, each unit scaled down to the table's limit: exact integers in fixed point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from murmurate.asking.table import Contributions, Norm, Table, TreeTable
from murmurate.core.space import Integers
from murmurate.errors import ContractBroken

INSIDE = 1 - 1e-12
"""Factor on every contribution that is scaled down, so that floating-point error cannot push its norm above the limit."""

Sums = tuple[Integers, Integers]
"""Bins that somebody has, ascending, and their sums in fixed-point steps."""


def clipped_sums(table: Table, rows: Contributions, norm: Norm) -> Sums:
    """Sum the contributions of a part bin by bin after clipping each unit to the table's limit in `norm`.

    A unit's rows of one bin are added first. A unit whose norm passes the limit is scaled down to it and rounded towards
    zero. In a `TreeTable` the limit must hold already: scaling levels apart would break the sum along a path.

    >>> table = Table(name="t", n_bins=3, share=1.0, limit=2.0, steps=100)
    >>> rows = Contributions(np.array([0, 0, 0, 0, 1]), np.array([2, 2, 0, 2, 0]), np.full(5, 100))
    >>> clipped_sums(table, rows, "l1")
    (array([0, 2]), array([149, 149]))
    """
    given = [np.asarray(part) for part in (rows.unit, rows.bin, rows.weight)]
    if len({part.shape for part in given}) > 1 or given[0].ndim != 1:
        raise ContractBroken("weights are integers", f"{table.name}: rows of unit, bin and weight differ in length.")
    if any(part.dtype.kind not in "iu" for part in given):
        raise ContractBroken("weights are integers", f"{table.name}: units, bins and weights must be integers.")
    unit, bins, weight = (np.ascontiguousarray(part, dtype=np.int64) for part in given)
    if len(bins) and not 0 <= int(bins.min()) <= int(bins.max()) < table.n_bins:
        raise ContractBroken("a table fits its bins", f"{table.name} has the bins 0 to {table.n_bins - 1:,}.")
    if not _sorted(unit, bins):
        order = np.lexsort((bins, unit))
        unit, bins, weight = unit[order], bins[order], weight[order]
    over = _clip(unit, bins, weight, table.limit * table.steps, norm == "l2") if len(bins) else (bins, weight, 0)
    if over[2] and isinstance(table, TreeTable):
        raise ContractBroken("a unit adds no more than its limit", f"{table.name}: units add more than {table.limit:g}.")
    return _summed(over[0], over[1], table.n_bins)


def add(sums: list[Sums], n_bins: int) -> Sums:
    """Add the sums of several parts."""
    return _summed(np.concatenate([one[0] for one in sums]), np.concatenate([one[1] for one in sums]), n_bins)


def dense(sums: Sums, n_bins: int) -> Integers:
    """Return every bin's sum, zeros included."""
    full = np.zeros(n_bins, dtype=np.int64)
    full[sums[0]] = sums[1]
    return full


DENSE_BINS = 1 << 22
"""Tables of up to this many bins are added up in a full array of 32 MB, larger ones by sorting the bins that occur."""


def _summed(bins: Integers, weight: Integers, n_bins: int) -> Sums:
    if n_bins <= DENSE_BINS:
        full = np.zeros(n_bins, dtype=np.int64)
        _add(full, bins, weight)
        found = np.flatnonzero(full)
        return found, full[found]
    order = np.argsort(bins, kind="stable")
    bins, weight = bins[order], weight[order]
    starts = np.flatnonzero(np.r_[True, bins[1:] != bins[:-1]]) if len(bins) else np.zeros(0, dtype=np.int64)
    return (bins[starts], np.add.reduceat(weight, starts)) if len(bins) else (bins, weight)


@njit(cache=True, nogil=True)
def _add(full: Integers, bins: Integers, weight: Integers) -> None:
    for k in range(len(bins)):
        full[bins[k]] += weight[k]


@njit(cache=True, nogil=True)
def _sorted(unit: Integers, bins: Integers) -> bool:
    k = 1
    while k < len(unit) and (unit[k] > unit[k - 1] or (unit[k] == unit[k - 1] and bins[k] >= bins[k - 1])):
        k += 1
    return k >= len(unit)


@njit(cache=True, nogil=True)
def _clip(unit: Integers, bins: Integers, weight: Integers, limit: float, squared: bool) -> tuple[Any, Any, int]:
    """Rows sorted by unit and bin, equal ones merged, each unit within the limit; and how many units had to be scaled."""
    n = len(unit)
    out_bins, out_weight = np.empty(n, np.int64), np.empty(n, np.int64)
    size, low, scaled = 0, 0, 0
    while low < n:
        first, high = size, low
        while high < n and unit[high] == unit[low]:
            if size > first and out_bins[size - 1] == bins[high]:
                out_weight[size - 1] += weight[high]
            else:
                out_bins[size], out_weight[size] = bins[high], weight[high]
                size += 1
            high += 1
        norm = 0.0
        for k in range(first, size):
            value = float(out_weight[k])
            norm += value * value if squared else abs(value)
        norm = np.sqrt(norm) if squared else norm
        if norm > limit:
            scaled += 1
            for k in range(first, size):
                out_weight[k] = np.int64(out_weight[k] * (limit / norm * INSIDE))
        low = high
    return out_bins[:size], out_weight[:size], scaled


FEW_BINS = 64
"""Owners of up to this many bins are sorted by insertion, longer ones by numpy: insertion takes time in their square."""


def spread(bins: Integers, owner: Integers, steps: int, squared: bool) -> tuple[Integers, Integers, Integers]:
    """Share one count of each owner among its distinct bins: weight 1/sqrt(m) (squared) or 1/m for m of them, rounded down.

    `owner` is ascending; bins of -1 are left out. Returns owner, bin and weight in steps, sorted by owner and bin.

    >>> spread(np.array([5, 3, 5, -1, 2]), np.array([0, 0, 0, 0, 1]), 100, False)
    (array([0, 0, 1]), array([3, 5, 2]), array([ 50,  50, 100]))
    """
    starts = np.flatnonzero(np.diff(owner, prepend=-1)) if len(owner) else np.zeros(0, dtype=np.int64)
    if len(starts) and int(np.diff(np.append(starts, len(owner))).max()) > FEW_BINS:
        keep = np.flatnonzero(bins >= 0)
        order = keep[np.lexsort((bins[keep], owner[keep]))]
        bins, owner = bins[order], owner[order]
    out_owner, out_bin, out_weight = (np.empty(len(bins), np.int64) for _ in range(3))
    size = _spread(bins, owner, steps, squared, out_owner, out_bin, out_weight)
    return out_owner[:size].copy(), out_bin[:size].copy(), out_weight[:size].copy()


@njit(cache=True, nogil=True)
def _spread(  # noqa: PLR0917
    bins: Integers, owner: Integers, steps: int, squared: bool, out_owner: Integers, out_bin: Integers, out_weight: Integers
) -> int:
    n = len(bins)
    size, low = 0, 0
    while low < n:
        high, first = low, size
        while high < n and owner[high] == owner[low]:
            value = bins[high]
            high += 1
            at = size
            while at > first and out_bin[at - 1] > value:  # bins that come in order take one look
                at -= 1
            if value < 0 or (at > first and out_bin[at - 1] == value):
                continue
            for k in range(size, at, -1):
                out_bin[k] = out_bin[k - 1]
            out_bin[at] = value
            size += 1
        distinct = max(size - first, 1)
        weight = np.int64(steps / np.sqrt(distinct)) if squared else np.int64(steps // distinct)
        for k in range(first, size):
            out_owner[k], out_weight[k] = owner[low], weight
        low = high
    return size
