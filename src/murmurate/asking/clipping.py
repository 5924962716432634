"""Sum what units contribute to a table, after scaling each unit down to the table's limit, in exact fixed-point integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Any

import numpy as np
from numba import njit

from murmurate.asking.table import Contributions, Norm, Table, TreeTable
from murmurate.core.space import Floats, Integers
from murmurate.errors import ContractBroken

INSIDE = 1 - 1e-9
"""Factor on every contribution that is scaled down, so that floating-point error cannot push its norm above the limit. A sum of
ten million squares is off by a relative 1e-9 at most."""

Sums = tuple[Integers, Integers]
"""Bins that somebody has, ascending, and their sums in fixed-point steps."""


def round_sums(tables: Sequence[Table], rows: Mapping[str, Contributions], norm: Norm) -> dict[str, Sums]:
    """Sum the contributions of a part to the tables of a round, each unit clipped: joint tables together, others alone."""
    joint = [table for table in tables if table.joint]
    sums = {table.name: clipped_sums(table, rows[table.name], norm) for table in tables if not table.joint}
    if not joint:
        return sums
    if norm != "l2":
        raise ContractBroken("joint tables need Gaussian noise", f"{joint[0].name} is joint under Laplace noise.")
    merged = {table.name: _merged(*_checked(table, rows[table.name])) for table in joint}
    weight = _joint_weights(joint, merged)
    for table in joint:
        unit, bins, value = merged[table.name]
        kept = (value * weight[unit]).astype(np.int64)  # towards zero
        sums[table.name] = _summed(bins, np.where(weight[unit] < 1, kept, value), table.n_bins)
    return sums


def _joint_weights(tables: Sequence[Table], merged: Mapping[str, tuple[Integers, Integers, Integers]]) -> Floats:
    """Return [unit] the one weight of its rows in all joint tables of a round, from its own rows and public numbers alone."""
    n_units = max(int(unit[-1]) + 1 if len(unit) else 0 for unit, _, _ in merged.values())
    cost = np.zeros(n_units)
    for table in tables:
        unit, _, value = merged[table.name]
        _add_squares(unit, value, sqrt(table.share) / (table.limit * table.steps), cost)
    allowed = fsum(table.share for table in tables) * INSIDE
    return np.where(cost > allowed, np.sqrt(allowed / np.maximum(cost, allowed)) * INSIDE, 1.0)


def clipped_sums(table: Table, rows: Contributions, norm: Norm) -> Sums:
    """Sum the contributions of a part bin by bin after clipping each unit to the table's limit in `norm`.

    A unit's rows of one bin are added first. A unit whose norm passes the limit is scaled down to it and rounded towards
    zero. In a `TreeTable` the limit must hold already: scaling levels apart would break the sum along a path.

    >>> table = Table(name="t", n_bins=3, share=1.0, limit=2.0, steps=100)
    >>> rows = Contributions(np.array([0, 0, 0, 0, 1]), np.array([2, 2, 0, 2, 0]), np.full(5, 100))
    >>> clipped_sums(table, rows, "l1")
    (array([0, 2]), array([149, 149]))
    """
    unit, bins, weight = _checked(table, rows)
    over = _clip(unit, bins, weight, table.limit * table.steps, norm == "l2") if len(bins) else (bins, weight, 0)
    if over[2] and isinstance(table, TreeTable):
        raise ContractBroken("a unit adds no more than its limit", f"{table.name}: units add more than {table.limit:g}.")
    return _summed(over[0], over[1], table.n_bins)


def _checked(table: Table, rows: Contributions) -> tuple[Integers, Integers, Integers]:
    """Return unit, bin and weight of each row, sorted by unit and bin; refuse what is not integers or does not fit."""
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
    return unit, bins, weight


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
def _merged(unit: Integers, bins: Integers, weight: Integers) -> tuple[Any, Any, Any]:
    """Rows sorted by unit and bin, equal ones added up."""
    out_unit, out_bins, out_weight = np.empty_like(unit), np.empty_like(bins), np.empty_like(weight)
    size = 0
    for k in range(len(unit)):
        if size and out_unit[size - 1] == unit[k] and out_bins[size - 1] == bins[k]:
            out_weight[size - 1] += weight[k]
        else:
            out_unit[size], out_bins[size], out_weight[size] = unit[k], bins[k], weight[k]
            size += 1
    return out_unit[:size], out_bins[:size], out_weight[:size]


@njit(cache=True, nogil=True)
def _add_squares(unit: Integers, value: Integers, factor: float, cost: Floats) -> None:
    """Add the squares of each unit's values times a factor to its cost, in the order of its own rows."""
    low = 0
    while low < len(unit):
        high, total = low, 0.0
        while high < len(unit) and unit[high] == unit[low]:
            one = value[high] * factor
            total += one * one
            high += 1
        cost[unit[low]] += total
        low = high


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


def spread(
    bins: Integers, owner: Integers, steps: int, squared: bool, favour: Floats | None = None
) -> tuple[Integers, Integers, Integers]:
    """Share one count of each owner among its distinct bins: weight 1/sqrt(m) (squared) or 1/m for m of them, rounded down.

    `owner` is ascending; bins of -1 are left out. Returns owner, bin and weight in steps, sorted by owner and bin. With
    `favour` [bin], above zero, shares are in proportion to it; their norm is the same.

    >>> spread(np.array([5, 3, 5, -1, 2]), np.array([0, 0, 0, 0, 1]), 100, False)
    (array([0, 0, 1]), array([3, 5, 2]), array([ 50,  50, 100]))
    """
    if _longest_run(owner) > FEW_BINS:
        keep = np.flatnonzero(bins >= 0)
        order = keep[np.lexsort((bins[keep], owner[keep]))]
        bins, owner = bins[order], owner[order]
    out_owner, out_bin, out_weight = (np.empty(len(bins), np.int64) for _ in range(3))
    size = _spread(bins, owner, steps, squared, out_owner, out_bin, out_weight)
    if favour is not None:
        _favour(out_owner[:size], out_bin[:size], favour, steps, squared, out_weight[:size])
    return out_owner[:size].copy(), out_bin[:size].copy(), out_weight[:size].copy()


@njit(cache=True, nogil=True)
def _longest_run(owner: Integers) -> int:
    """Return the most rows of one owner."""
    longest = run = 0
    for k in range(len(owner)):
        run = run + 1 if k and owner[k] == owner[k - 1] else 1
        longest = max(longest, run)
    return longest


@njit(cache=True, nogil=True)
def _favour(  # noqa: PLR0917
    owner: Integers, bins: Integers, favour: Floats, steps: int, squared: bool, weight: Integers
) -> None:
    """Replace equal weights by weights in proportion to `favour`, of the same norm, rounded down."""
    low = 0
    while low < len(owner):
        high, total = low, 0.0
        while high < len(owner) and owner[high] == owner[low]:
            total += favour[bins[high]] ** 2 if squared else favour[bins[high]]
            high += 1
        whole = np.sqrt(total) if squared else total
        for k in range(low, high):
            weight[k] = np.int64(steps * (favour[bins[k]] / whole))
        low = high


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
