"""Similarity of two profiles: geographic (the same places) and semantic (under some mapping of places).

All are asymmetric: the first profile says how much each place, period and move matters. Identical profiles give 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.profiles.mobility import Profiles


def geographic(one: Profiles, two: Profiles) -> Floats:
    """Return [u, v], eq. (7): the share of u's moves that v would make too (Hamming distance, closed form)."""
    return _geographic(
        one.place_at, one.place, one.row_at, one.row_key, one.row_weight, one.entry_at, one.entry_to, one.entry,
        two.place_at, two.place, two.row_at, two.row_key, two.entry_at, two.entry_to, two.entry, one.periods,
    )  # fmt: skip


def semantic_visits(one: Profiles, two: Profiles) -> Floats:
    """Return [u, v], eq. (10) exactly, with the best mapping of each period: sorted visits paired in order need no solver."""
    return _semantic_visits(one.sorted_at, one.sorted_visit, one.period_share, two.sorted_at, two.sorted_visit, one.periods)


@njit(cache=True, nogil=True)
def _semantic_visits(  # noqa: PLR0917
    at: Integers, values: Floats, share: Floats, other_at: Integers, other_values: Floats, periods: int
) -> Floats:
    n, m = (len(at) - 1) // periods, (len(other_at) - 1) // periods
    out = np.zeros((n, m))
    for u in range(n):
        for v in range(m):
            total = 0.0
            for period in range(periods):
                one, two = at[u * periods + period], other_at[v * periods + period]
                size = min(at[u * periods + period + 1] - one, other_at[v * periods + period + 1] - two)
                common = 0.0
                for k in range(size):
                    common += min(values[one + k], other_values[two + k])
                total += share[u, period] * common
            out[u, v] = total
    return out


@njit(cache=True, nogil=True)
def _geographic(  # noqa: PLR0917
    place_at: Integers,
    place: Integers,
    row_at: Integers,
    row_key: Integers,
    row_weight: Floats,
    entry_at: Integers,
    entry_to: Integers,
    entry: Floats,
    other_place_at: Integers,
    other_place: Integers,
    other_row_at: Integers,
    other_row_key: Integers,
    other_entry_at: Integers,
    other_entry_to: Integers,
    other_entry: Floats,
    periods: int,
) -> Floats:
    n, m = len(place_at) - 1, len(other_place_at) - 1
    pairs = periods * periods
    out = np.zeros((n, m))
    for u in range(n):
        for v in range(m):
            total = 0.0
            row, other = row_at[u], other_row_at[v]
            while row < row_at[u + 1] and other < other_row_at[v + 1]:
                key = place[place_at[u] + row_key[row] // pairs] * pairs + row_key[row] % pairs
                its = other_place[other_place_at[v] + other_row_key[other] // pairs] * pairs + other_row_key[other] % pairs
                if key < its:
                    row += 1
                elif its < key:
                    other += 1
                else:
                    j, k = entry_at[row], other_entry_at[other]
                    common = 0.0
                    while j < entry_at[row + 1] and k < other_entry_at[other + 1]:
                        to = place[place_at[u] + entry_to[j]]
                        where = other_place[other_place_at[v] + other_entry_to[k]]
                        if to == where:
                            common += min(entry[j], other_entry[k])
                        if to <= where:
                            j += 1
                        if where <= to:
                            k += 1
                    total += row_weight[row] * common
                    row += 1
                    other += 1
            out[u, v] = total
    return out
