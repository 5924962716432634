"""Compare rhythms: how likely a trace's stays and departures are for real people, against for fakes."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.attacks.localise_hmm import Places
from murmurate.core.space import Floats
from murmurate.mechanisms.plausible.patterns import OTHER, ROLES, Labels, label_day, label_days, role

Rhythms = tuple[Floats, Floats, Floats]
"""Log probabilities of leaving, of destinations and of first places."""

_HOURS = 12
"""Blocks of the day, of two hours each, that departures are counted in. Set by hand."""
_AGES = 4
"""Classes of how many queries a stay has lasted: 1, 2, 3, and 4 or more. Set by hand."""
_TO = 4
"""Classes of where a departure leads: the three roles of places, and an other place that was visited before."""


def rhythm_ratio(linked: Places, real: Places, fakes: Places) -> Floats:
    """Return [person, trace]: log likelihood ratio of each trace under the rhythms learned from real days and from fakes.

    Both are given at the query steps. A rhythm is when people leave a place by its role, by how long they have been there
    and by the time of day, and where they head; no place is looked at.
    """
    return _score(linked, *_learn(real)) - _score(linked, *_learn(fakes))


def library_distance(linked: Places, library: Labels) -> Floats:
    """Return [person, trace]: the share of queries at which a trace's rhythm differs from the nearest day of a library."""
    return _nearest(linked, label_days(library.astype(np.int32))[0])


@njit(cache=True)
def _nearest(linked: Places, library: Labels) -> Floats:
    people, size, queries = linked.shape
    out = np.ones((people, size))
    label = np.empty(queries, dtype=np.int16)
    cells = np.empty(queries, dtype=np.int32)
    for person in range(people):
        for trace in range(size):
            label_day(linked[person, trace], label, cells)
            least = queries
            for day in range(len(library)):
                apart = 0
                for query in range(queries):
                    apart += label[query] != library[day, query]
                    if apart >= least:
                        break
                least = min(least, apart)
            out[person, trace] = least / queries
    return out


@njit(cache=True)
def _learn(days: Places) -> Rhythms:
    """Return log probabilities of leaving [role, age, block, left or not], of heading [role, to] and of starting [role]."""
    queries = days.shape[1]
    leave = np.full((ROLES, _AGES, _HOURS, 2), 0.5)
    head = np.full((ROLES, _TO), 0.5)
    start = np.full(ROLES, 0.5)
    label = np.empty(queries, dtype=np.int16)
    cells = np.empty(queries, dtype=np.int32)
    seen = np.zeros(queries, dtype=np.bool_)
    for row in range(len(days)):
        label_day(days[row], label, cells)
        seen[:] = False
        start[role(label[0])] += 1.0
        age = 0
        for query in range(queries - 1):
            age = age + 1 if query and label[query] == label[query - 1] else 1
            seen[label[query]] = True
            now, left = role(label[query]), label[query + 1] != label[query]
            leave[now, min(age, _AGES) - 1, query * _HOURS // queries, 1 if left else 0] += 1.0
            if left:
                to = role(label[query + 1])
                head[now, to + (1 if to == OTHER and seen[label[query + 1]] else 0)] += 1.0
    for now in range(ROLES):
        head[now] /= head[now].sum()
        for age in range(_AGES):
            for block in range(_HOURS):
                leave[now, age, block] /= leave[now, age, block].sum()
    return np.log(leave), np.log(head), np.log(start / start.sum())


@njit(cache=True)
def _score(linked: Places, leave: Floats, head: Floats, start: Floats) -> Floats:
    people, size, queries = linked.shape
    out = np.zeros((people, size))
    label = np.empty(queries, dtype=np.int16)
    cells = np.empty(queries, dtype=np.int32)
    seen = np.zeros(queries, dtype=np.bool_)
    for person in range(people):
        for trace in range(size):
            label_day(linked[person, trace], label, cells)
            seen[:] = False
            total = start[role(label[0])]
            age = 0
            for query in range(queries - 1):
                age = age + 1 if query and label[query] == label[query - 1] else 1
                seen[label[query]] = True
                now, left = role(label[query]), label[query + 1] != label[query]
                total += leave[now, min(age, _AGES) - 1, query * _HOURS // queries, 1 if left else 0]
                if left:
                    to = role(label[query + 1])
                    total += head[now, to + (1 if to == OTHER and seen[label[query + 1]] else 0)]
            out[person, trace] = total
    return out
