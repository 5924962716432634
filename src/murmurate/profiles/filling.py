"""Draw missing steps by Gibbs sampling from how the same person moved where they were seen."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import whole
from murmurate.core.space import Floats, Integers
from murmurate.profiles import Places

SWEEPS = 20
"""Times all missing steps are drawn again; set by hand."""

PRIOR_STAYS = 2.0
"""Prior count of a person's transitions from each place to itself; set by hand, high because people stay."""

PRIOR_MOVES = 0.02
"""Prior count of transitions from each place to any other of the person's places; set by hand."""


def gibbs_fill(place: Places, known: NDArray[np.bool_], person: Integers, *, sweeps: int = SWEEPS, seed: int = 0) -> Places:
    """Draw each step of the days [row, step] that is not `known`, given its neighbours and the person's own moves.

    Moves are counted again after every sweep, drawn steps included, as in Shokri et al. 2011. Nobody's days are used for
    anybody else's, so that the bound on what one person adds to a statistic stays as it was.
    """
    whole("sweeps", sweeps)
    bounds = np.r_[np.flatnonzero(np.r_[True, person[1:] != person[:-1]]), len(person)] if len(person) else np.zeros(1)
    filled = place.copy()
    _fill(filled, known, bounds.astype(np.int64), sweeps, np.random.default_rng(seed))
    return filled


@njit(cache=True)
def _fill(place: Places, known: NDArray[np.bool_], bounds: Integers, sweeps: int, generator: np.random.Generator) -> None:  # noqa: C901  a kernel
    """Fill in place, person by person."""
    steps = place.shape[1]
    for person in range(len(bounds) - 1):
        first, last = bounds[person], bounds[person + 1]
        if known[first:last].all():
            continue
        own = np.unique(place[first:last])
        size = len(own)
        at = np.empty((last - first, steps), dtype=np.int64)
        for row in range(last - first):
            for step in range(steps):
                at[row, step] = np.searchsorted(own, place[first + row, step])
        weight: Floats = np.empty(size)
        for _ in range(sweeps):
            moves = np.full((size, size), PRIOR_MOVES)
            for k in range(size):
                moves[k, k] = PRIOR_STAYS
            for row in range(last - first):
                for step in range(1, steps):
                    moves[at[row, step - 1], at[row, step]] += 1.0
            for k in range(size):
                moves[k] /= moves[k].sum()
            for row in range(last - first):
                for step in range(steps):
                    if known[first + row, step]:
                        continue
                    for k in range(size):
                        weight[k] = 1.0
                        if step:
                            weight[k] *= moves[at[row, step - 1], k]
                        if step + 1 < steps:
                            weight[k] *= moves[k, at[row, step + 1]]
                    u = generator.random() * weight.sum()
                    chosen = 0
                    for k in range(size):
                        u -= weight[k]
                        chosen = k
                        if u <= 0.0:
                            break
                    at[row, step] = chosen
        for row in range(last - first):
            for step in range(steps):
                if not known[first + row, step]:
                    place[first + row, step] = own[at[row, step]]
