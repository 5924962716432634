"""Decode unordered sets by a hidden Markov model: the states at a query are the places that were sent, and only these."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats

Places = NDArray[np.int32]
"""Cells, with the axes that each use names: person, fake or trace, step or query."""


@njit(cache=True, nogil=True)
def decode_marginals(sent: Places, log_step: Floats, log_visit: Floats) -> Places:
    """Return the place of the highest posterior probability at every query: forward and backward over the sets.

    A place that was sent twice is one place: each copy carries its share.
    """
    people, queries, size = sent.shape
    guess = np.empty((people, queries), dtype=np.int32)
    forward = np.empty((queries, size))
    for person in range(people):
        row = sent[person]
        copies = np.zeros((queries, size))
        for query in range(queries):
            for k in range(size):
                for j in range(size):
                    copies[query, k] += row[query, j] == row[query, k]
        for k in range(size):
            forward[0, k] = np.exp(log_visit[row[0, k]]) / copies[0, k]
        forward[0] /= forward[0].sum()
        for query in range(1, queries):
            for k in range(size):
                total = 0.0
                for j in range(size):
                    total += forward[query - 1, j] * np.exp(log_step[row[query - 1, j], row[query, k]])
                forward[query, k] = total / copies[query, k]
            forward[query] /= forward[query].sum()
        backward = np.ones(size)
        for query in range(queries - 1, -1, -1):
            best, at = -1.0, 0
            for k in range(size):
                mass = forward[query, k] * backward[k] * copies[query, k]
                if mass > best:
                    best, at = mass, k
            guess[person, query] = row[query, at]
            if query:
                before = np.zeros(size)
                for j in range(size):
                    for k in range(size):
                        before[j] += np.exp(log_step[row[query - 1, j], row[query, k]]) * backward[k] / copies[query, k]
                backward = before / before.sum()
    return guess


@njit(cache=True, nogil=True)
def decode_viterbi(sent: Places, log_step: Floats, log_visit: Floats) -> Places:
    """Return the likeliest path through the sets."""
    people, queries, size = sent.shape
    guess = np.empty((people, queries), dtype=np.int32)
    came = np.empty((queries, size), dtype=np.int64)
    for person in range(people):
        row = sent[person]
        best = np.array([log_visit[row[0, k]] for k in range(size)])
        for query in range(1, queries):
            following = np.full(size, -np.inf)
            for k in range(size):
                for j in range(size):
                    value = best[j] + log_step[row[query - 1, j], row[query, k]]
                    if value > following[k]:
                        following[k], came[query, k] = value, j
            best = following
        at = int(np.argmax(best))
        for query in range(queries - 1, -1, -1):
            guess[person, query] = row[query, at]
            if query:
                at = came[query, at]
    return guess
