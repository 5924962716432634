"""Similarity of two profiles: geographic (the same places) and semantic (under some mapping of places).

All are asymmetric: the first profile says how much each place, period and move matters. Identical profiles give 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats
from murmurate.profiles.mobility import Profiles


@njit(cache=True, nogil=True)
def geographic(one: Profiles, two: Profiles) -> Floats:
    """Return [u, v], eq. (7): the share of u's moves that v would make too (Hamming distance, closed form)."""
    n, m = len(one.place_at) - 1, len(two.place_at) - 1
    pairs = one.periods * one.periods
    out = np.zeros((n, m))
    for u in range(n):
        place = one.place[one.place_at[u] : one.place_at[u + 1]]
        for v in range(m):
            other_place = two.place[two.place_at[v] : two.place_at[v + 1]]
            total = 0.0
            row, other = one.row_at[u], two.row_at[v]
            while row < one.row_at[u + 1] and other < two.row_at[v + 1]:
                key = place[one.row_key[row] // pairs] * pairs + one.row_key[row] % pairs
                its = other_place[two.row_key[other] // pairs] * pairs + two.row_key[other] % pairs
                if key < its:
                    row += 1
                elif its < key:
                    other += 1
                else:
                    j, k = one.entry_at[row], two.entry_at[other]
                    common = 0.0
                    while j < one.entry_at[row + 1] and k < two.entry_at[other + 1]:
                        to, where = place[one.entry_to[j]], other_place[two.entry_to[k]]
                        if to == where:
                            common += min(one.entry[j], two.entry[k])
                        if to <= where:
                            j += 1
                        if where <= to:
                            k += 1
                    total += one.row_weight[row] * common
                    row += 1
                    other += 1
            out[u, v] = total
    return out


@njit(cache=True, nogil=True)
def semantic_visits(one: Profiles, two: Profiles) -> Floats:
    """Return [u, v], eq. (10) exactly, with the best mapping of each period: sorted visits paired in order need no solver."""
    n, m, periods = len(one.place_at) - 1, len(two.place_at) - 1, one.periods
    at, values, other_at, other_values = one.sorted_at, one.sorted_visit, two.sorted_at, two.sorted_visit
    out = np.zeros((n, m))
    for u in range(n):
        for v in range(m):
            total = 0.0
            for period in range(periods):
                mine, its = at[u * periods + period], other_at[v * periods + period]
                size = min(at[u * periods + period + 1] - mine, other_at[v * periods + period + 1] - its)
                common = 0.0
                for k in range(size):
                    common += min(values[mine + k], other_values[its + k])
                total += one.period_share[u, period] * common
            out[u, v] = total
    return out
