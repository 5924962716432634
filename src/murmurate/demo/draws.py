"""Draw random numbers for the demo data: counter-based, so any person's draws come out alike in any partition, on any machine.

Nothing here is privacy noise: these data are public. Only integer arithmetic and additions are used, because
library routines (and numpy's distributions, whose streams may change between versions) would not promise the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Increment and multipliers of SplitMix64 (Steele, Lea and Flood 2014)."""

NETWORK, PLACES, PEOPLE, DAYS, DRIVES, TRACKERS, SKATERS = range(7)
"""Purposes of streams, which are part of their key."""


@njit(cache=True)
def _mix(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@njit(cache=True)
def stream(seed: int, purpose: int, index: int, part: int) -> NDArray[np.uint64]:
    """Return the state of one stream: a key hashed from its purpose, index and part, and a counter."""
    state = np.zeros(2, dtype=np.uint64)
    key = _mix(np.uint64(seed) + _STEP)
    key = _mix(key + np.uint64(purpose) * _STEP)
    key = _mix(key + np.uint64(index) * _STEP)
    state[0] = _mix(key + np.uint64(part) * _STEP)
    return state


@njit(cache=True)
def uniform(state: NDArray[np.uint64]) -> float:
    """Draw the next number of the stream in [0, 1)."""
    state[1] += np.uint64(1)
    return float(_mix(state[0] + state[1] * _STEP) >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def bell(state: NDArray[np.uint64]) -> float:
    """Draw a nearly normal number with mean 0 and standard deviation 1, within 4.25: the sum of six uniform numbers."""
    total = 0.0
    for _ in range(6):
        total += uniform(state)
    return (total - 3.0) * 1.4142135623730951


@njit(cache=True)
def uniforms(seed: int, purpose: int, part: int, n: int) -> NDArray[np.float64]:
    """Draw `n` numbers in [0, 1) for building the city itself."""
    state = stream(seed, purpose, 0, part)
    drawn = np.empty(n)
    for position in range(n):
        drawn[position] = uniform(state)
    return drawn


@njit(cache=True)
def bells(seed: int, purpose: int, part: int, n: int) -> NDArray[np.float64]:
    """Draw `n` nearly normal numbers for building the city itself."""
    state = stream(seed, purpose, 0, part)
    drawn = np.empty(n)
    for position in range(n):
        drawn[position] = bell(state)
    return drawn


@njit(cache=True)
def choose(state: NDArray[np.uint64], cumulative: NDArray[np.float64]) -> int:
    """Draw a position in proportion to weights whose running sum is given."""
    wanted = uniform(state) * cumulative[-1]
    return min(np.searchsorted(cumulative, wanted, side="right"), len(cumulative) - 1)
