"""Link unordered sets into whole traces, and choose the trace that is taken for the true one."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.attacks.localise_classifier import fit_choice
from murmurate.core.space import Floats, Integers

Places = NDArray[np.int32]
"""Cells of linked traces [person, trace, query], or of true ones [person, query]."""


def link_sets(sent: Places, log_step: Floats) -> Places:
    """Return [person, trace, query]: consecutive sets joined by the assignment of the highest likelihood."""
    from scipy.optimize import linear_sum_assignment

    people, queries, size = sent.shape
    linked = np.empty((people, size, queries), dtype=np.int32)
    for person in range(people):
        linked[person, :, 0] = sent[person, 0]
        for query in range(1, queries):
            now, following = linked[person, :, query - 1], sent[person, query]
            _, to = linear_sum_assignment(log_step[now[:, None], following[None, :]], maximize=True)
            linked[person, :, query] = following[to]
    return linked


def judge(
    linked: Places,
    log_step: Floats,
    log_visit: Floats,
    *,
    against: Floats | None = None,
    other_day: Places | None = None,
) -> dict[str, Integers]:
    """Return the trace each simple observer picks, for every person."""
    moves = (linked[:, :, 1:] != linked[:, :, :-1]).sum(axis=2)
    likely = log_visit[linked[:, :, 0]] + log_step[linked[:, :, :-1], linked[:, :, 1:]].sum(axis=2)
    picks = {
        "most_moves": moves.argmax(axis=1),
        "fewest_moves": moves.argmin(axis=1),
        "least_likely": likely.argmin(axis=1),
        "most_likely": likely.argmax(axis=1),
    }
    if against is not None:
        ratio = (log_step - against)[linked[:, :, :-1], linked[:, :, 1:]].sum(axis=2)
        picks["likelihood_ratio"] = ratio.argmax(axis=1)
    if other_day is not None:
        picks["another_day"] = _alike(linked, other_day).argmax(axis=1)
    return picks


@njit(cache=True)
def _alike(linked: Places, other_day: Places) -> Floats:
    """Count queries at which a trace is where the other day was, plus half of those at any place of the other day."""
    people, size, queries = linked.shape
    score = np.zeros((people, size))
    for person in range(people):
        for trace in range(size):
            for query in range(queries):
                place = linked[person, trace, query]
                if place == other_day[person, query]:
                    score[person, trace] += 1.0
                for again in range(queries):
                    if other_day[person, again] == place:
                        score[person, trace] += 0.5
                        break
    return score


def trained_choices(true: Places, linked: Places, seen: Floats, *, seed: int) -> Integers:
    """Return the trace that a classifier trained on the other half of the people takes for real, by its features `seen`."""
    truly = (linked == true[:, None, :]).mean(axis=2).argmax(axis=1)
    half = np.random.default_rng(seed).permutation(len(linked)) % 2
    picked = np.zeros(len(linked), dtype=np.int64)
    for side in (0, 1):
        train, test = half != side, half == side
        if train.any() and test.any():
            picked[test] = fit_choice(seen[train], truly[train])(seen[test]).argmax(axis=1)
    return picked
