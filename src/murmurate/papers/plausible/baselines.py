"""The four simple generators of fakes that the paper compares with; none of them promises anything."""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats
from murmurate.profiles import Places
from murmurate.profiles.aggregate import Aggregate


def uniform_iid(n: int, steps: int, n_places: int, generator: np.random.Generator) -> Places:
    """Draw every step on its own, each place as likely as any."""
    return generator.integers(0, n_places, (n, steps)).astype(np.int32)


def aggregate_iid(n: int, steps: int, aggregate: Aggregate, generator: np.random.Generator) -> Places:
    """Draw every step on its own, by the popularity of places."""
    popular = np.cumsum(aggregate.visited / aggregate.visited.sum())
    drawn = np.searchsorted(popular, generator.random((n, steps)), side="right")
    return np.minimum(drawn, len(popular) - 1).astype(np.int32)


def walk_aggregate(n: int, steps: int, aggregate: Aggregate, generator: np.random.Generator) -> Places:
    """Draw random walks by the population's transitions."""
    start = aggregate_iid(n, 1, aggregate, generator)[:, 0]
    return _walk(np.cumsum(aggregate.steps, axis=1), start, steps, generator)


def walk_user(place: Places, n: int, generator: np.random.Generator) -> Places:
    """Draw [person, fake, step], random walks by each person's own transitions; never private, for comparison only."""
    people, steps = place.shape
    fakes = np.empty((people, n, steps), dtype=np.int32)
    for person in range(people):
        own, at = np.unique(place[person], return_inverse=True)
        moves = np.zeros((len(own), len(own)))
        np.add.at(moves, (at[:-1], at[1:]), 1.0)
        rows = moves.sum(axis=1, keepdims=True)
        moves = np.where(rows > 0, moves / np.maximum(rows, 1), np.eye(len(own)))
        start = at[generator.integers(0, steps, n)].astype(np.int32)
        fakes[person] = own[_walk(np.cumsum(moves, axis=1), start, steps, generator)]
    return fakes


@njit(cache=True)
def _walk(summed: Floats, start: Places, steps: int, generator: np.random.Generator) -> Places:
    """Draw walks from cumulative transition probabilities."""
    out = np.empty((len(start), steps), dtype=np.int32)
    for row in range(len(start)):
        at = start[row]
        for step in range(steps):
            out[row, step] = at
            at = min(np.searchsorted(summed[at], generator.random(), side="right"), len(summed) - 1)
    return out
