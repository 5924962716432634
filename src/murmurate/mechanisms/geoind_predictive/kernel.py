"""The kernel: a loop over the points of all traces; the online session runs the very same loop over one point."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from murmurate.mechanisms.geoind_predictive.budgets import (
    DECISIONS,
    DUE,
    HISTORY,
    LAST_TEST,
    PASSES,
    REMAINING,
    REPORTS,
    SEEN,
    TESTS,
    decide,
)
from murmurate.mechanisms.geoind_predictive.predictors import MOST, weight
from murmurate.noise.steps import passes, step_on_plane, step_on_sphere
from murmurate.spaces.sphere import EARTH_RADIUS_M

STATE = HISTORY + 3 * MOST
"""Numbers in a state: the account, then (point number, x, y) of the latest reports."""

_POLE, _HALF_TURN, _TURN = 90_000_000, 180_000_000, 360_000_000
"""Latitude of a pole, half a turn and a whole turn of longitude, in microdegrees."""

_HALF_UDEG = math.pi / 360e6
"""Half a microdegree in radians: haversines take half angles."""


@njit(cache=True, nogil=True, error_model="numpy")
def start(state, budget):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Begin a trace with this many grains."""
    state[:] = 0.0
    state[REMAINING] = budget


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def distance_m(place, other_lng, other_lat):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return great-circle metres from a place (lng, lat, sine and cosine of lat) in microdegrees; by series if near."""
    lng, lat, sin_lat, cos_lat = place
    up, right = (other_lat - lat) * _HALF_UDEG, (other_lng - lng) * _HALF_UDEG
    if abs(up) < 0.01 and abs(right) < 0.01:
        # sin^2(up) + cos(lat) cos(lat + 2 up) sin^2(right), the squares of sines by their series
        across = up * up * (1.0 - up * up * (1 / 3) * (1.0 - up * up * (2 / 15)))
        along = right * right * (1.0 - right * right * (1 / 3) * (1.0 - right * right * (2 / 15)))
        sin_twice = 2.0 * up * (1.0 - up * up * (2 / 3) * (1.0 - up * up * (1 / 5) * (1.0 - up * up * (2 / 21))))
        half = across + cos_lat * (cos_lat * (1.0 - 2.0 * across) - sin_lat * sin_twice) * along
        chord = math.sqrt(max(half, 0.0))
        return 2.0 * EARTH_RADIUS_M * chord * (1.0 + half * (1 / 6) * (1.0 + half * (9 / 20)))
    across, along = math.sin(up) ** 2, math.sin(right) ** 2
    half = across + (math.cos((lat + other_lat) * _HALF_UDEG) ** 2 - across) * along
    return 2.0 * EARTH_RADIUS_M * math.asin(math.sqrt(min(max(half, 0.0), 1.0)))


@njit(cache=True, nogil=True, error_model="numpy")
def _predicted(state, predictor_rule, window, on_sphere):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return where the next point probably is, on the lattice."""
    x, y = state[HISTORY + 1], state[HISTORY + 2]
    if predictor_rule == 0:
        return np.int64(x), np.int64(y)
    reports = min(state[REPORTS], float(window))
    east, north = 0.0, 0.0
    for k in range(1, int(reports)):
        at = HISTORY + 3 * k
        share = weight(predictor_rule, k, reports, state[SEEN], state[HISTORY], state[HISTORY + 3])
        turn = state[at + 1] - x
        if on_sphere:
            turn = turn - _TURN if turn > _HALF_TURN else turn + _TURN if turn < -_HALF_TURN else turn
        east += share * turn
        north += share * (state[at + 2] - y)
    if on_sphere:
        far_x = np.int64(math.floor(x + min(max(east, -1.0 * _HALF_TURN), 1.0 * _HALF_TURN) + 0.5))
        far_x = far_x - _TURN if far_x >= _HALF_TURN else far_x + _TURN if far_x < -_HALF_TURN else far_x
        return far_x, np.int64(min(max(math.floor(y + north + 0.5), -1.0 * _POLE), 1.0 * _POLE))
    return np.int64(math.floor(x + east + 0.5)), np.int64(math.floor(y + north + 0.5))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _remember(state, window, x, y):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for k in range(window - 1, 0, -1):
        at = HISTORY + 3 * k
        state[at], state[at + 1], state[at + 2] = state[at - 3], state[at - 2], state[at - 1]
    state[HISTORY], state[HISTORY + 1], state[HISTORY + 2] = state[SEEN], x, y
    state[REPORTS] += 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def run(traces, rule, terms, randomness, marks, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, PLR0917
    """Report the points from `place` (trip, point) on, until all are done (True) or randomness runs out (False).

    A trip has `points` planned points, of which x and y hold some or all, and as many `decisions` to test or draw; between them
    reports are repeated for free. `terms` are (metres x grains of a noise scale, lattice step in metres or 0 on the sphere,
    predictor's rule, window). All debits of a step are in `state` before anything that follows from them is written; a draw
    that is paid for and not yet made is `DUE`. A trip that begins takes its grains from `budgets`, and what one has spent
    when its points are done is left there. One long function, because calls that hand arrays on would cost more than the work.
    """
    grain_m, step_m, predictor_rule, window = terms
    offsets, x, y, sines_of_y, points, decisions, tests, budgets = traces
    sin_y, cos_y = sines_of_y[0], sines_of_y[1]
    per_grain_m = 1.0 / grain_m
    words, u, v, radius, other, used = randomness
    place, state = marks
    out_x, out_y, out_scale = out
    on_sphere = step_m == 0.0
    word, direction = used[0], used[1]
    trip, at = place[0], place[1]
    while trip < offsets.size - 1:
        first, last = offsets[trip], offsets[trip + 1]
        n_points, n_decisions, testing = points[trip], decisions[trip], tests[trip]
        gap = (n_points - 1.0) / max(n_decisions - 1.0, 1.0)
        if at == first and state[SEEN] == 0.0 and state[DUE] == 0.0:
            start(state, budgets[trip])
        upcoming = math.floor(state[DECISIONS] * gap + 0.5) if state[DECISIONS] < n_decisions else math.inf
        while at < last:
            if state[DUE] == 0.0:
                ahead_x, ahead_y = np.int64(state[HISTORY + 1]), np.int64(state[HISTORY + 2])
                if predictor_rule != 0:
                    ahead_x, ahead_y = _predicted(state, predictor_rule, window, on_sphere)
                noise = 0.0
                if state[SEEN] == upcoming and upcoming < n_points:
                    if word >= words.size:
                        used[0], used[1], place[0], place[1] = word, direction, trip, at
                        return False
                    test, noise, limit = decide(
                        rule,
                        n_points - state[SEEN],
                        n_decisions - state[DECISIONS],
                        testing,
                        state[REMAINING],
                        state[REPORTS] == 0.0,
                        state[LAST_TEST],
                        state[PASSES] / max(state[TESTS], 1.0) if rule.running_rate else 0.0,
                    )
                    state[LAST_TEST] = test if state[REPORTS] > 0.0 else rule.published_test
                    state[DECISIONS] += 1.0
                    upcoming = math.floor(state[DECISIONS] * gap + 0.5) if state[DECISIONS] < n_decisions else math.inf
                    if test > 0.0:
                        state[REMAINING] -= test
                        state[TESTS] += 1.0
                        if on_sphere:
                            apart = distance_m((x[at], y[at], sin_y[at], cos_y[at]), ahead_x, ahead_y)
                        else:
                            apart = math.hypot(float(x[at] - ahead_x), float(y[at] - ahead_y)) * step_m
                        if passes(words[word], apart * per_grain_m * test - limit * test / noise):
                            noise = 0.0
                            state[PASSES] += 1.0
                            _remember(state, window, ahead_x, ahead_y)
                        word += 1
                if noise == 0.0:
                    out_x[at], out_y[at], out_scale[at] = ahead_x, ahead_y, math.inf
                else:
                    state[REMAINING] -= noise
                    state[DUE] = noise
            if state[DUE] > 0.0:
                scale_m = grain_m / state[DUE]
                kept = False
                while not kept:
                    if direction >= u.size:
                        used[0], used[1], place[0], place[1] = word, direction, trip, at
                        return False
                    kept, new_x, new_y = True, x[at], y[at]
                    if on_sphere:
                        place_here = (x[at], y[at], sin_y[at], cos_y[at])
                        kept, new_x, new_y = step_on_sphere(
                            place_here, scale_m, u[direction], v[direction], radius[direction], other[direction]
                        )
                    else:
                        new_x, new_y = step_on_plane(
                            x[at], y[at], scale_m / step_m, u[direction], v[direction], radius[direction]
                        )
                    direction += 1
                state[DUE] = 0.0
                _remember(state, window, new_x, new_y)
                out_x[at], out_y[at], out_scale[at] = new_x, new_y, scale_m
            state[SEEN] += 1.0
            at += 1
        budgets[trip] -= state[REMAINING]
        trip += 1
        if trip < offsets.size - 1:
            state[SEEN] = 0.0
    used[0], used[1], place[0], place[1] = word, direction, trip, at
    return True
