"""Map the places of one person onto those of another: by visits exactly, by visits and moves through local search."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.profiles.mobility import Profiles

STARTS = 3
"""Random starts of the local search beside the mapping by visits; set by hand."""


@njit(cache=True, nogil=True)
def gains(visit: Floats, share: Floats, other: Floats) -> Floats:
    """Return [place of u, place of v], what mapping one to the other adds to eq. (10)."""
    out = np.zeros((len(visit), len(other)))
    for r in range(len(visit)):
        for s in range(len(other)):
            for period in range(len(share)):
                out[r, s] += share[period] * min(visit[r, period], other[s, period])
    return out


@njit(cache=True, nogil=True)
def assign(gain: Floats) -> Integers:
    """Find the assignment of the highest total gain: for each row its column, -1 where rows outnumber columns.

    Shortest augmenting paths with potentials, as in the Hungarian method.
    """
    n, m = gain.shape
    if n > m:
        back = assign(np.ascontiguousarray(gain.T))
        rows = np.full(n, -1, dtype=np.int64)
        for column in range(m):
            rows[back[column]] = column
        return rows
    row_price, column_price = np.zeros(n + 1), np.zeros(m + 1)
    holder = np.zeros(m + 1, dtype=np.int64)
    came = np.zeros(m + 1, dtype=np.int64)
    for row in range(1, n + 1):
        holder[0] = row
        column = 0
        least = np.full(m + 1, np.inf)
        used = np.zeros(m + 1, dtype=np.bool_)
        while True:
            used[column] = True
            current, delta, following = holder[column], np.inf, 0
            for j in range(1, m + 1):
                if not used[j]:
                    reduced = -gain[current - 1, j - 1] - row_price[current] - column_price[j]
                    if reduced < least[j]:
                        least[j], came[j] = reduced, column
                    if least[j] < delta:
                        delta, following = least[j], j
            for j in range(m + 1):
                if used[j]:
                    row_price[holder[j]] += delta
                    column_price[j] -= delta
                else:
                    least[j] -= delta
            column = following
            if holder[column] == 0:
                break
        while column:
            before = came[column]
            holder[column] = holder[before]
            column = before
    rows = np.full(n, -1, dtype=np.int64)
    for j in range(1, m + 1):
        if holder[j]:
            rows[holder[j] - 1] = j - 1
    return rows


@njit(cache=True, nogil=True)
def search(  # noqa: C901, PLR0917
    people: Profiles, u: int, v: int, gain: Floats, starts: int, generator: np.random.Generator
) -> tuple[float, Integers]:
    """Maximise eq. (11) over mappings of u's places onto v's by swaps; returns the similarity and the image of each place.

    Starts from the mapping of the highest `gain` by visits, and from `starts` random ones.
    """
    n = len(gain)
    slots = max(gain.shape)
    pairs = people.periods * people.periods
    theirs = np.zeros((pairs, slots, slots))
    for row in range(people.row_at[v], people.row_at[v + 1]):
        key = people.row_key[row]
        for k in range(people.entry_at[row], people.entry_at[row + 1]):
            theirs[key % pairs, key // pairs, people.entry_to[k]] = people.entry[k]
    # u's moves as a list, and for each place the moves it takes part in
    begin, end = people.entry_at[people.row_at[u]], people.entry_at[people.row_at[u + 1]]
    moves = end - begin
    entry_to, entry = people.entry_to[begin:end], people.entry[begin:end]
    origin, group, mass = np.empty(moves, dtype=np.int64), np.empty(moves, dtype=np.int64), np.empty(moves)
    for row in range(people.row_at[u], people.row_at[u + 1]):
        key = people.row_key[row]
        for k in range(people.entry_at[row] - begin, people.entry_at[row + 1] - begin):
            origin[k], group[k], mass[k] = key // pairs, key % pairs, people.row_weight[row]
    touch_at = np.zeros(slots + 1, dtype=np.int64)
    for k in range(moves):
        touch_at[origin[k] + 1] += 1
        if entry_to[k] != origin[k]:
            touch_at[entry_to[k] + 1] += 1
    touch_at = np.cumsum(touch_at)
    filled = touch_at[:-1].copy()
    touch = np.empty(touch_at[-1], dtype=np.int64)
    for k in range(moves):
        touch[filled[origin[k]]] = k
        filled[origin[k]] += 1
        if entry_to[k] != origin[k]:
            touch[filled[entry_to[k]]] = k
            filled[entry_to[k]] += 1
    to = np.full(slots, -1, dtype=np.int64)
    first = assign(gain)
    taken = np.zeros(slots, dtype=np.bool_)
    for r in range(n):
        if first[r] >= 0:
            to[r] = first[r]
            taken[first[r]] = True
    spare = 0
    for r in range(slots):
        if to[r] < 0:
            while taken[spare]:
                spare += 1
            to[r] = spare
            taken[spare] = True
    best, best_to = -1.0, to.copy()
    for start in range(starts + 1):
        if start:
            to = np.argsort(generator.random(slots))
        value = 0.0
        for k in range(moves):
            value += mass[k] * min(entry[k], theirs[group[k], to[origin[k]], to[entry_to[k]]])
        better = True
        while better:
            better = False
            for one in range(n):
                for two in range(one + 1, slots):
                    change = _swap(one, two, to, touch_at, touch, origin, entry_to, group, mass, entry, theirs)
                    if change > 1e-12:
                        value += change
                        better = True
                    else:
                        to[one], to[two] = to[two], to[one]
        if value > best:
            best, best_to = value, to.copy()
    return best, best_to[:n]


@njit(cache=True, nogil=True)
def _swap(  # noqa: PLR0917
    one: int,
    two: int,
    to: Integers,
    touch_at: Integers,
    touch: Integers,
    origin: Integers,
    entry_to: Integers,
    group: Integers,
    mass: Floats,
    entry: Floats,
    theirs: NDArray[np.float64],
) -> float:
    """Swap the images of two places and return the change of the similarity, over the moves they take part in."""
    change = 0.0
    for sign in (-1.0, 1.0):
        for place in (one, two):
            for j in range(touch_at[place], touch_at[place + 1]):
                k = touch[j]
                if place == two and one in (origin[k], entry_to[k]):
                    continue  # counted with the other place
                change += sign * mass[k] * min(entry[k], theirs[group[k], to[origin[k]], to[entry_to[k]]])
        if sign < 0:
            to[one], to[two] = to[two], to[one]
    return change
