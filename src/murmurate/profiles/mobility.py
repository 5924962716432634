"""Mobility profiles: where a person is in each period of the day and where they go next, sparse, over their own places."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import whole
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.profiles.days import DailyTraces


class Profiles(NamedTuple):
    """Holds profiles of many people; person u owns places `place_at[u]:place_at[u + 1]`, rows `row_at[u]:row_at[u + 1]`.

    A named tuple, so that kernels take it as it is.
    """

    n_places: int
    periods: int
    place_at: Integers
    place: Integers
    """Ascending for each person."""
    visit: Floats
    """[own place, period]: share of the period spent there; columns sum to 1 where the person has steps in the period."""
    period_share: Floats
    """[person, period]"""
    sorted_at: Integers
    """[person, period] starts of `sorted_visit`; the last entry is its length."""
    sorted_visit: Floats
    """The positive visits of each person and period, falling."""
    row_at: Integers
    row_key: Integers
    """Ascending for each person: (own place number * periods + period) * periods + next period."""
    row_weight: Floats
    """Joint probability of being there then and of that next period; sums to 1 for each person."""
    entry_at: Integers
    entry_to: Integers
    """Own place number moved to, ascending for each row."""
    entry: Floats
    """Probability of moving there, given the row."""

    @property
    def n_people(self) -> int:
        return len(self.place_at) - 1


def profiles_of(days: DailyTraces, *, periods: int = 4) -> Profiles:
    """Make one profile for each person, over all their days."""
    bounds = np.r_[np.searchsorted(days.person, days.people), days.n_days]
    return profiles_of_rows(days.place, bounds, days.n_places, periods=periods)


def profiles_of_rows(place: NDArray[np.int32], bounds: Integers, n_places: int, *, periods: int = 4) -> Profiles:
    """Make profiles of groups of rows; group g is the rows bounds[g]:bounds[g + 1]."""
    whole("periods", periods, at_most=24)
    if len(bounds) < 2:
        raise InputError("profiles need at least one person with a daily trace; got none.")
    return Profiles(n_places, periods, *_profile_all(place, bounds, periods))


def joined(one: Profiles, two: Profiles) -> Profiles:
    """Return the people of both, one after the other, so that adding people never means starting over."""
    if (one.n_places, one.periods) != (two.n_places, two.periods):
        raise InputError("only profiles over the same places and periods can be joined.")
    shifted = {
        "place_at": np.r_[one.place_at, two.place_at[1:] + one.place_at[-1]],
        "sorted_at": np.r_[one.sorted_at[:-1], two.sorted_at + one.sorted_at[-1]],
        "row_at": np.r_[one.row_at, two.row_at[1:] + one.row_at[-1]],
        "entry_at": np.r_[one.entry_at, two.entry_at[1:] + one.entry_at[-1]],
    }
    same = ("place", "visit", "period_share", "sorted_visit", "row_key", "row_weight", "entry_to", "entry")
    return Profiles(
        one.n_places,
        one.periods,
        **shifted,
        **{name: np.concatenate([getattr(one, name), getattr(two, name)]) for name in same},
    )


@njit(cache=True)
def _profile_all(place: NDArray[np.int32], bounds: Integers, periods: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """Return the arrays of `Profiles` in their order."""
    people, steps = len(bounds) - 1, place.shape[1]
    place_at = np.zeros(people + 1, dtype=np.int64)
    size = 0
    for person in range(people):
        size += len(np.unique(place[bounds[person] : bounds[person + 1]]))
        place_at[person + 1] = size
    own_place = np.empty(size, dtype=np.int64)
    visit = np.zeros((size, periods))
    period_share = np.zeros((people, periods))
    total = place.size
    key = np.empty(total, dtype=np.int64)
    to = np.empty(total, dtype=np.int64)
    row_key = np.empty(total, dtype=np.int64)
    row_weight = np.empty(total)
    entry_at = np.zeros(total + 1, dtype=np.int64)
    entry_to = np.empty(total, dtype=np.int64)
    entry = np.empty(total)
    row_at = np.zeros(people + 1, dtype=np.int64)
    sorted_at = np.zeros(people * periods + 1, dtype=np.int64)
    sorted_visit = np.empty(size * periods)
    rows, entries, ordered = 0, 0, 0
    for person in range(people):
        days = place[bounds[person] : bounds[person + 1]]
        support = np.unique(days)
        first = place_at[person]
        for k in range(len(support)):  # a slice would bring numba's messages about shapes along, seconds of compilation
            own_place[first + k] = support[k]
        n = 0
        for row in range(len(days)):
            for step in range(steps):
                here, now = np.searchsorted(support, days[row, step]), step * periods // steps
                visit[first + here, now] += 1.0
                period_share[person, now] += 1.0
                if step + 1 < steps:
                    key[n] = (here * periods + now) * periods + (step + 1) * periods // steps
                    to[n] = np.searchsorted(support, days[row, step + 1])
                    n += 1
        for now in range(periods):
            if period_share[person, now] > 0:
                visit[first : first + len(support), now] /= period_share[person, now]
            falling = np.sort(visit[first : first + len(support), now])[::-1]
            for value in falling:
                if value > 0:
                    sorted_visit[ordered] = value
                    ordered += 1
            sorted_at[person * periods + now + 1] = ordered
        period_share[person] /= period_share[person].sum()
        order = np.argsort(key[:n] * (len(support) + 1) + to[:n], kind="mergesort")
        begins = 0
        for j in range(n):
            mine, where = key[order[j]], to[order[j]]
            fresh_row = j == 0 or key[order[j - 1]] != mine
            if fresh_row:
                if j:
                    _close(entry, entry_at[rows], entries)
                    row_weight[rows] = (j - begins) / n
                    rows += 1
                    entry_at[rows] = entries
                row_key[rows] = mine
                begins = j
            if fresh_row or to[order[j - 1]] != where:
                entry_to[entries] = where
                entry[entries] = 0.0
                entries += 1
            entry[entries - 1] += 1.0
        if n:
            _close(entry, entry_at[rows], entries)
            row_weight[rows] = (n - begins) / n
            rows += 1
            entry_at[rows] = entries
        row_at[person + 1] = rows
    return (
        place_at,
        own_place,
        visit,
        period_share,
        sorted_at,
        sorted_visit[:ordered].copy(),
        row_at,
        row_key[:rows].copy(),
        row_weight[:rows].copy(),
        entry_at[: rows + 1].copy(),
        entry_to[:entries].copy(),
        entry[:entries].copy(),
    )


@njit(cache=True)
def _close(entry: Floats, first: int, last: int) -> None:
    """Make the entries of a finished row a distribution."""
    entry[first:last] /= entry[first:last].sum()
