"""Similarity of two profiles: geographic (the same places) and semantic (under some mapping of places).

All are asymmetric: the first profile says how much each place, period and move matters. Identical profiles give 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
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


def geographic_emd(one: Profiles, two: Profiles, pairs: Integers, metres: Floats) -> Floats:
    """Return eq. (5) for each row (u, v) of `pairs`: 1 - the expected earth mover's distance of u's and v's next places.

    `metres` is [place, place]; its largest entry makes a similarity of 0. Where v is never at a place and time of u, nothing
    is known of v's next place and the distance counts as the largest.
    """
    widest = float(metres.max())
    if widest <= 0:
        raise InputError("earth mover's similarity needs at least two places that lie apart.")
    return np.array([1 - _expected_distance(_rows(one, u), _rows(two, v), metres) / widest for u, v in pairs.tolist()])


Row = tuple[float, Integers, Floats]
"""Weight of a place and pair of periods, the next places, and their probabilities."""


def _rows(profiles: Profiles, person: int) -> dict[tuple[int, int], Row]:
    """Return a person's rows by (place, pair of periods)."""
    pairs = profiles.periods**2
    own = profiles.place[profiles.place_at[person] : profiles.place_at[person + 1]]
    found: dict[tuple[int, int], Row] = {}
    for row in range(profiles.row_at[person], profiles.row_at[person + 1]):
        entries = slice(profiles.entry_at[row], profiles.entry_at[row + 1])
        local, key = divmod(int(profiles.row_key[row]), pairs)
        found[int(own[local]), key] = profiles.row_weight[row], own[profiles.entry_to[entries]], profiles.entry[entries]
    return found


def _expected_distance(mine: dict[tuple[int, int], Row], its: dict[tuple[int, int], Row], metres: Floats) -> float:
    widest, total = float(metres.max()), 0.0
    for key, (weight, to, chance) in mine.items():
        if key in its:
            _, other_to, other_chance = its[key]
            total += weight * transport_cost(chance, other_chance, metres[np.ix_(to, other_to)])
        else:
            total += weight * widest
    return total


def transport_cost(supply: Floats, demand: Floats, cost: Floats) -> float:
    """Return the least mean cost of moving one distribution onto another (earth mover's or Mallows distance).

    >>> transport_cost(np.array([0.5, 0.5]), np.array([1.0]), np.array([[0.0], [10.0]]))
    5.0
    """
    from scipy.optimize import linprog

    n, m = cost.shape
    if n == 1 or m == 1:  # only one plan
        return float(np.sum(np.outer(supply, demand) * cost))
    plan = np.arange(n * m).reshape(n, m)
    sums = np.zeros((n + m, n * m))
    for k in range(n):
        sums[k, plan[k]] = 1
    for k in range(m):
        sums[n + k, plan[:, k]] = 1
    found = linprog(cost.ravel(), A_eq=sums[:-1], b_eq=np.r_[supply, demand][:-1], method="highs")  # the last sum follows
    return float(found.fun)
