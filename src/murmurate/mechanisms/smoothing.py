"""Smoothing of noisy traces by public numbers alone: free post-processing of any geo-indistinguishable report.

The prior: velocity is an Ornstein-Uhlenbeck process of a public root mean square (the speed) that forgets its direction in
`MEMORY_S` seconds. Over gaps longer than that it is a random walk of step speed x interval, over shorter ones a straight line.
The reports are taken as Gaussian of the variance that planar Laplace noise has, 3 scale^2 on each axis. Both passes (Kalman
forward, Rauch-Tung-Striebel backward) run in one kernel; points without a report are interpolated by the same formulas.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.spaces.sphere import METRES_PER_DEGREE

MEMORY_S = 90.0
"""How long a course is kept; chosen on the demo city, where 60 to 300 s do equally well within 3 %."""

_UNKNOWN = 1e15
"""Variance, in square metres, of a start that nothing is known of."""

_SHORTEST_S = 1e-3
"""Shortest gap between reports in seconds: equal times would make the backward pass divide by zero."""


def smooth(
    offsets: Integers, time_s: Floats, lat: Floats, lng: Floats, scale_m: Floats, *, speed_kmh: float
) -> tuple[Floats, Floats]:
    """Estimate the likeliest trace behind noisy reports, trip by trip, in degrees; `scale_m`: noise scale of each point.

    >>> lat, lng = np.array([60.0, 60.02, 60.0]), np.full(3, 25.0)
    >>> smoothed, _ = smooth(np.array([0, 3]), np.arange(3) * 15.0, lat, lng, np.full(3, 500.0), speed_kmh=30.0)
    >>> bool(np.ptp(smoothed) < 0.005)
    True
    """
    out_lat, out_lng = np.empty(len(lat)), np.empty(len(lng))
    _smooth_trips(offsets, time_s, lat, lng, scale_m, speed_kmh / 3.6, out_lat, out_lng)
    return out_lat, out_lng


@njit(cache=True, nogil=True)
def _smooth_trips(offsets, time_s, lat, lng, scale_m, speed, out_lat, out_lng):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    longest = 0
    for trip in range(len(offsets) - 1):
        longest = max(longest, offsets[trip + 1] - offsets[trip])
    x, y = np.empty(longest), np.empty(longest)
    before, after = np.empty((longest, 7)), np.empty((longest, 7))
    for trip in range(len(offsets) - 1):
        first, last = offsets[trip], offsets[trip + 1]
        start = first  # degrees become metres around the first report
        while start < last - 1 and not math.isfinite(scale_m[start]):
            start += 1
        lat_0, lng_0 = lat[start], lng[start]
        east = METRES_PER_DEGREE * max(math.cos(lat_0 * math.pi / 180), 1e-3)
        n = last - first
        for i in range(n):
            turn = lng[first + i] - lng_0
            turn = turn - 360.0 if turn > 180.0 else turn + 360.0 if turn < -180.0 else turn
            x[i], y[i] = turn * east, (lat[first + i] - lat_0) * METRES_PER_DEGREE
        _smooth_trip(time_s[first:last], scale_m[first:last], speed, x[:n], y[:n], before, after)
        for i in range(n):
            out_lat[first + i] = min(max(lat_0 + y[i] / METRES_PER_DEGREE, -90.0), 90.0)
            turned = lng_0 + min(max(x[i] / east, -180.0), 180.0)
            out_lng[first + i] = turned - 360.0 if turned >= 180.0 else turned + 360.0 if turned < -180.0 else turned


@njit(cache=True, nogil=True)
def _smooth_trip(time_s, scale_m, speed, x, y, before, after):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    """Overwrite x and y by the smoothed place.

    Rows of `before` and `after` hold means (px, vx, py, vy) and covariances (pp, pv, vv) of each point, before and after its
    own report is used; both axes share their covariances.
    """
    n = len(x)
    drift = speed * speed / 2.0
    px, vx, py, vy = 0.0, 0.0, 0.0, 0.0
    pp, pv, vv = _UNKNOWN, 0.0, drift
    for i in range(n):
        if i > 0:
            keep, carry, add_pp, add_pv, add_vv = _between(time_s[i] - time_s[i - 1], drift)
            px, py = px + carry * vx, py + carry * vy
            vx, vy = keep * vx, keep * vy
            pp, pv, vv = (
                pp + 2 * carry * pv + carry * carry * vv + add_pp,
                keep * (pv + carry * vv) + add_pv,
                keep * keep * vv + add_vv,
            )
        _put(before[i], px, vx, py, vy, pp, pv, vv)
        if math.isfinite(scale_m[i]):
            total = pp + max(3.0 * scale_m[i] * scale_m[i], 1e-6)
            off_x, off_y = (x[i] - px) / total, (y[i] - py) / total
            px, vx, py, vy = px + pp * off_x, vx + pv * off_x, py + pp * off_y, vy + pv * off_y
            pp, pv, vv = pp * (1.0 - pp / total), pv * (1.0 - pp / total), vv - pv * pv / total
        _put(after[i], px, vx, py, vy, pp, pv, vv)
    x[n - 1], y[n - 1] = px, py
    for i in range(n - 2, -1, -1):
        keep, carry, _, _, _ = _between(time_s[i + 1] - time_s[i], drift)
        a, b = after[i], before[i + 1]
        c_pp, c_pv = a[4] + carry * a[5], keep * a[5]
        c_vp, c_vv = a[5] + carry * a[6], keep * a[6]
        det = b[4] * b[6] - b[5] * b[5]
        g_pp, g_pv = (c_pp * b[6] - c_pv * b[5]) / det, (c_pv * b[4] - c_pp * b[5]) / det
        g_vp, g_vv = (c_vp * b[6] - c_vv * b[5]) / det, (c_vv * b[4] - c_vp * b[5]) / det
        px, vx = a[0] + g_pp * (px - b[0]) + g_pv * (vx - b[1]), a[1] + g_vp * (px - b[0]) + g_vv * (vx - b[1])
        py, vy = a[2] + g_pp * (py - b[2]) + g_pv * (vy - b[3]), a[3] + g_vp * (py - b[2]) + g_vv * (vy - b[3])
        x[i], y[i] = px, py


@njit(cache=True, nogil=True)
def _put(row, px, vx, py, vy, pp, pv, vv):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    """Write one row. Assigning a tuple to it would bring numba's messages about shapes along, seconds of compilation."""
    row[0], row[1], row[2], row[3], row[4], row[5], row[6] = px, vx, py, vy, pp, pv, vv


@njit(cache=True, nogil=True)
def _between(seconds, drift):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return what a gap changes: share of velocity kept, seconds of it that add to the place, and variances added."""
    gap = max(seconds, _SHORTEST_S) / MEMORY_S
    lost = -math.expm1(-gap)
    keep = 1.0 - lost
    # 2 gap - 2 lost - lost^2 cancels for short gaps, where it is 2/3 gap^3
    add_pp = 2.0 * gap - 2.0 * lost - lost * lost if gap > 1e-2 else gap**3 * (2.0 / 3.0 - gap / 2.0)
    return (
        keep,
        MEMORY_S * lost,
        drift * MEMORY_S * MEMORY_S * add_pp,
        drift * MEMORY_S * lost * lost,
        drift * (1.0 - keep * keep),
    )
