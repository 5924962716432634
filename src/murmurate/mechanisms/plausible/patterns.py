"""Day patterns: a day without its geography, as labels that say only which steps share a place."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Integers

Labels = NDArray[np.int16]
"""[row, step]: 0 is the place of the most steps, 1 of the second most, then the others in order of appearance."""

MAIN, SECOND, OTHER = range(3)
"""Roles: what matters of a label for the rhythm of a day."""

ROLES = 3
"""Number of roles."""

BLOCKS = 6
"""Blocks of the day, of equal length, that departures are counted by."""

AGES = 3
"""How long somebody has been at a place: the first step, the second or third, later."""


@njit(cache=True)
def label_day(place: NDArray[np.int32], label: Labels, cells: NDArray[np.int32]) -> int:
    """Write a day's labels and the cell of each label, and return how many labels there are."""
    steps = len(place)
    n = 0
    spent = np.zeros(steps, dtype=np.int64)
    for step in range(steps):
        found = -1
        for k in range(n):
            if cells[k] == place[step]:
                found = k
                break
        if found < 0:
            found = n
            cells[n] = place[step]
            n += 1
        label[step] = found
        spent[found] += 1
    main = 0
    for k in range(n):
        if spent[k] > spent[main]:
            main = k
    second = -1
    for k in range(n):
        if k != main and (second < 0 or spent[k] > spent[second]):
            second = k
    rank = np.empty(n, dtype=np.int16)
    following = 2
    old = cells[:n].copy()
    for k in range(n):
        if k == main:
            rank[k] = 0
        elif k == second:
            rank[k] = 1
        else:
            rank[k] = following
            following += 1
        cells[rank[k]] = old[k]
    for step in range(steps):
        label[step] = rank[label[step]]
    return n


@njit(cache=True)
def label_days(place: NDArray[np.int32]) -> tuple[Labels, NDArray[np.int32], Integers]:
    """Label many days; returns labels, the cell of each label (-1 beyond) and the number of labels."""
    label = np.empty(place.shape, dtype=np.int16)
    cells = np.full(place.shape, -1, dtype=np.int32)
    n = np.empty(len(place), dtype=np.int64)
    for row in range(len(place)):
        n[row] = label_day(place[row], label[row], cells[row])
    return label, cells, n


@njit(cache=True)
def role(label: int) -> int:
    """Return the role of a label: main, second or other."""
    return label if label < OTHER else OTHER


@njit(cache=True)
def age_class(age: int) -> int:
    """Return 0 for the first step at a place, 1 for the second and third, 2 after that."""
    if age <= 1:
        return 0
    return 1 if age <= 3 else 2


# -- traits of a day --------------------------------------------------------------------------------------------------

MOVE_EDGES = np.array([0, 1, 2, 3, 4, 6, 8, 11, 15, 20])
"""Edges of the histogram of moves a day; fine where days are common. Set by hand, as all edges here."""

PLACE_EDGES = np.array([1, 2, 3, 4, 5, 7, 10, 14])
"""Edges of the histogram of different places a day."""

SHARE_BINS = 8
"""Bins of histograms of shares of a day."""

FIRST_EDGES = np.array([5.0, 7.0, 8.0, 9.0, 10.5, 13.0])
"""Edges of the histogram of the hour of the first move."""

LAST_EDGES = np.array([12.0, 15.0, 17.0, 18.0, 20.0, 22.0])
"""Edges of the histogram of the hour of the last move."""

TRAITS = (
    len(MOVE_EDGES) + 1,
    len(PLACE_EDGES) + 1,
    SHARE_BINS,
    2 * ROLES,
    SHARE_BINS,
    len(FIRST_EDGES) + 2,
    len(LAST_EDGES) + 2,
    SHARE_BINS,
)
"""Sizes of the histograms of days: moves, places, share of the main place, how the day begins and ends, longest stay out,
hour of the first and of the last move (or none), share of the second place."""

TRAIT_OFFSETS = np.cumsum(np.array([0, *TRAITS]))
"""First position of each histogram where all are laid side by side."""


@njit(cache=True)
def traits_of(label: Labels, n_labels: int, out: Integers) -> None:
    """Write the bins a day falls into, as positions in the concatenated histograms."""
    steps = len(label)
    moves, main, second, run, longest_out = 0, 0, 0, 0, 0
    first, last = -1, -1
    for step in range(steps):
        if step and label[step] != label[step - 1]:
            moves += 1
            run = 0
            first = step if first < 0 else first
            last = step
        run += 1
        if label[step] == MAIN:
            main += 1
        elif run > longest_out:
            longest_out = run
        second += label[step] == SECOND
    out[0] = np.searchsorted(MOVE_EDGES, moves)
    out[1] = TRAIT_OFFSETS[1] + np.searchsorted(PLACE_EDGES, n_labels)
    out[2] = TRAIT_OFFSETS[2] + min(SHARE_BINS - 1, main * SHARE_BINS // steps)
    closed = 1 if label[0] == label[steps - 1] else 0
    out[3] = TRAIT_OFFSETS[3] + 2 * role(label[0]) + closed
    out[4] = TRAIT_OFFSETS[4] + min(SHARE_BINS - 1, longest_out * SHARE_BINS // (steps // 2 + 1))
    out[5] = TRAIT_OFFSETS[5] + (0 if first < 0 else 1 + np.searchsorted(FIRST_EDGES, first * 24.0 / steps, side="right"))
    out[6] = TRAIT_OFFSETS[6] + (0 if last < 0 else 1 + np.searchsorted(LAST_EDGES, last * 24.0 / steps, side="right"))
    out[7] = TRAIT_OFFSETS[7] + min(SHARE_BINS - 1, 2 * second * SHARE_BINS // (steps + 1))


@njit(cache=True)
def traits_of_days(label: Labels, n_labels: Integers) -> Integers:
    """Return [row, trait], the traits of many days."""
    out = np.empty((len(label), len(TRAITS)), dtype=np.int64)
    for row in range(len(label)):
        traits_of(label[row], n_labels[row], out[row])
    return out


# -- kinds of days, coarser than traits --------------------------------------------------------------------------------

KIND_MOVES = np.array([1, 3, 6])
"""Edges of the number of moves by which kinds of days differ."""

KIND_SHARES = np.array([0.5, 0.75])
"""Edges of the share of a day at its main place by which kinds of days differ."""

KINDS = (len(KIND_MOVES) + 1) * (len(KIND_SHARES) + 1)
"""Number of kinds of days: four bins of moves times three bins of the share at the main place."""


@njit(cache=True)
def kind_of(label: Labels) -> int:
    """Return the kind of a day: by the number of moves and the share of the main place."""
    steps = len(label)
    moves, main = 0, 0
    for step in range(steps):
        moves += step > 0 and label[step] != label[step - 1]
        main += label[step] == MAIN
    often = np.searchsorted(KIND_MOVES, moves)
    return int(often * (len(KIND_SHARES) + 1) + np.searchsorted(KIND_SHARES, main / steps, side="right"))


@njit(cache=True)
def kinds_of(label: Labels) -> Integers:
    """Return the kinds of many days."""
    out = np.empty(len(label), dtype=np.int64)
    for row in range(len(label)):
        out[row] = kind_of(label[row])
    return out


MOST_SHIFT = 2
"""Largest number of steps by which a change of place moves where a known day is reused; set by hand."""


@njit(cache=True)
def jittered(place: NDArray[np.int32], most: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """Move each change of place up to `most` steps earlier or later; stays keep at least one step and their order."""
    out = np.empty_like(place)
    steps = place.shape[1]
    for row in range(len(place)):
        runs = 1
        for step in range(1, steps):
            runs += place[row, step] != place[row, step - 1]
        begin = 0
        later_runs = runs
        for step in range(1, steps + 1):
            if step < steps and place[row, step] == place[row, step - 1]:
                continue
            later_runs -= 1
            end = steps if step == steps else step + int(generator.random() * (2 * most + 1)) - most
            end = min(max(end, begin + 1), steps - later_runs)
            out[row, begin:end] = place[row, step - 1]
            begin = end
    return out
