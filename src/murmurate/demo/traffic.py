"""Compute travel times that change with the hour, and the quickest routes."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.demo.draws import NETWORK, uniforms
from murmurate.spaces.road.routing import Graph, settle, workspace

FREE, MORNING, DAYTIME, EVENING = range(4)
"""States of the streets."""

SLOWER = np.array(
    [
        [1.0, 1.00, 1.00, 1.00, 1.00, 1.00],
        [1.0, 1.75, 1.85, 1.65, 1.35, 1.15],
        [1.0, 1.10, 1.30, 1.25, 1.15, 1.05],
        [1.0, 1.90, 1.80, 1.70, 1.40, 1.15],
    ]
)
"""[state, functional class] factor on the driving time in free traffic. Set by hand."""

WAIT_S = np.array([0.0, 1.0, 5.0, 5.0, 4.0, 3.0])
"""[functional class] mean wait at the end of a link in free traffic, in seconds. Set by hand."""

QUICK, DIRECT = range(2)
"""Tastes in routes: the quickest one, and the one that avoids detours."""

DETOUR_AVERSION = 0.35
"""Seconds that a driver who avoids detours spends to save ten metres. Set by hand."""


@njit(cache=True)
def state_of(second_of_day: int, weekday: int) -> int:
    """Return the state of the streets at a local time; weekday 0 is Monday."""
    hour = second_of_day / 3600.0
    if hour < 6.25 or hour >= 21.0:
        return FREE
    if weekday >= 5:
        return DAYTIME if 10.5 <= hour < 18.5 else FREE
    if 7.0 <= hour < 9.25:
        return MORNING
    if 15.75 <= hour < 18.25:
        return EVENING
    return DAYTIME


def link_times(
    length_m: NDArray[np.float64], speed_kmh: NDArray[np.float64], road_class: NDArray[np.int8], *, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], Integers]:
    """Return drive and mean wait in seconds by state and link, and costs in whole milliseconds by state and taste.

    Every link has a random factor of its own, so that class and speed alone do not give the times exactly.
    """
    own = 0.9 + 0.25 * uniforms(seed, NETWORK, 70, len(length_m))
    free = length_m * 3.6 / speed_kmh * own
    drive = free[None, :] * SLOWER[:, road_class]
    wait = np.repeat(WAIT_S[road_class][None, :], 4, axis=0) * np.sqrt(SLOWER[:, road_class])
    quick = drive + wait
    direct = quick + DETOUR_AVERSION * length_m[None, :] / 10
    # Whole numbers, so that two machines never disagree about which of two routes is shorter.
    return drive, wait, np.rint(np.stack([quick, direct], axis=1) * 1000).astype(np.int64)


def towards(link_from: Integers, link_to: Integers, n_nodes: int, time_ms: Integers) -> Graph:
    """Return the reversed graph: a shortest-path tree from a destination gives the routes towards it."""
    order = np.argsort(link_to, kind="stable").astype(np.int64)
    offsets = np.r_[0, np.cumsum(np.bincount(link_to, minlength=n_nodes))].astype(np.int64)
    return Graph(offsets, order, np.array(link_from), time_ms.astype(np.float64), np.zeros(len(link_from)))


_workspace = njit(cache=True)(workspace)


@njit(cache=True, nogil=True)
def tree_towards(streets: Graph, target: int) -> tuple[Integers, NDArray[np.float64]]:
    """Return, for every node, the link to take next towards the target (-1 at it), and the remaining milliseconds."""
    arrays = _workspace(len(streets.offsets) - 1)
    settle(streets, target, np.int64(-1), np.inf, *arrays)
    return arrays[2], arrays[0]
