"""Draw uniform numbers inside compiled kernels: post-processing only, no privacy claim depends on them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

State = NDArray[np.uint64]
"""State of the generator, one 64-bit integer."""


@njit(cache=True)
def start_state(seed: int) -> State:
    """Return a state for `uniform`; the first draws, which still depend visibly on the seed, are discarded."""
    state = np.empty(1, dtype=np.uint64)
    state[0] = np.uint64(seed) | np.uint64(1)
    for _ in range(8):
        uniform(state)
    return state


@njit(cache=True, inline="always")
def uniform(state: State) -> float:
    """Draw a number in [0, 1) by xorshift64*."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0
