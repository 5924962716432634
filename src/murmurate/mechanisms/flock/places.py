"""Where exactly the points of a synthetic trip lie: smooth within their cells, and as long as the trip should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tracks import Frame, Tracks

MARGIN = 0.02
"""Points stay this far (in fine cells) inside the cell they visit."""
MOST_LONGER = 1.8
MOST_SCATTERED = 6

Flags = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def smoothed(  # noqa: PLR0917
    cells: Integers, offsets: Integers, y: Floats, x: Floats, strength: Floats, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Inner points drawn towards the line between their neighbours, by each trip's strength, within their cells."""
    columns, block = shape
    y, x = y.copy(), x.copy()
    for trip in range(len(offsets) - 1):
        for _ in range(4):
            for at in range(offsets[trip] + 1, offsets[trip + 1] - 1):
                low_y, low_x = cells[at] // columns * block + MARGIN, cells[at] % columns * block + MARGIN
                to_y = y[at] + strength[trip] * ((y[at - 1] + y[at + 1]) / 2 - y[at])
                to_x = x[at] + strength[trip] * ((x[at - 1] + x[at + 1]) / 2 - x[at])
                y[at] = min(max(to_y, low_y), low_y + block - 2 * MARGIN)
                x[at] = min(max(to_x, low_x), low_x + block - 2 * MARGIN)
    return y, x


def scattered(  # noqa: PLR0917
    y: Floats,
    x: Floats,
    offsets: Integers,
    stays: Flags,
    ends: tuple[Floats, Floats, Floats, Floats],
    diameter: Floats,
    ratio: Floats,
    generator: np.random.Generator,
) -> tuple[Floats, Floats, Integers]:
    """Trips that stay in one cell: their ends, and points about them as far apart and as long as they should be."""
    return _scattered(y, x, offsets, stays, ends, diameter, ratio, generator.random((len(stays), MOST_SCATTERED + 1)))


@njit(cache=True, nogil=True)
def _scattered(  # noqa: PLR0917
    y: Floats,
    x: Floats,
    offsets: Integers,
    stays: Flags,
    ends: tuple[Floats, Floats, Floats, Floats],
    diameter: Floats,
    ratio: Floats,
    draws: Floats,
) -> tuple[Floats, Floats, Integers]:
    first_y, first_x, last_y, last_x = ends
    n = len(stays)
    out = np.zeros(n + 1, dtype=np.int64)
    inner = np.zeros(n, dtype=np.int64)
    for trip in range(n):
        size = offsets[trip + 1] - offsets[trip]
        if stays[trip]:
            apart = np.hypot(last_y[trip] - first_y[trip], last_x[trip] - first_x[trip])
            if apart < 0.97 * diameter[trip] or ratio[trip] > 1.1:
                inner[trip] = min(MOST_SCATTERED, 1 + int(max(ratio[trip] - 1.0, 0.0) * (0.5 + draws[trip, MOST_SCATTERED])))
            size = 2 + inner[trip]
        out[trip + 1] = out[trip] + size
    new_y, new_x = np.empty(out[n]), np.empty(out[n])
    for trip in range(n):
        low, high, at = offsets[trip], offsets[trip + 1], out[trip]
        if not stays[trip]:
            for k in range(low, high):  # no slices: numba would compile its messages about shapes, for seconds
                new_y[at + k - low], new_x[at + k - low] = y[k], x[k]
            continue
        new_y[at], new_x[at] = first_y[trip], first_x[trip]
        for k in range(inner[trip]):
            turn = 2 * np.pi * draws[trip, k]
            new_y[at + 1 + k] = (first_y[trip] + last_y[trip]) / 2 + diameter[trip] / 2 * np.sin(turn)
            new_x[at + 1 + k] = (first_x[trip] + last_x[trip]) / 2 + diameter[trip] / 2 * np.cos(turn)
        new_y[out[trip + 1] - 1], new_x[out[trip + 1] - 1] = last_y[trip], last_x[trip]
    return new_y, new_x, out


def apart_again(tracks: Tracks, again: Flags, frame: Frame, generator: np.random.Generator) -> Tracks:
    """Copies of a trip moved within their fine cells, point by point, so that no two released trips are the same."""
    if not again.any():
        return tracks
    point = np.repeat(again, np.diff(tracks.offsets))
    same = np.concatenate([[False], (np.diff(tracks.y) == 0) & (np.diff(tracks.x) == 0)])
    same[tracks.offsets[:-1]] = False
    y, x = tracks.y.copy(), tracks.x.copy()
    for values, top in ((y, frame.top[0]), (x, frame.top[1])):
        low = np.minimum(np.floor(values), np.ceil(top) - 1)
        moved = np.where(point, low + np.minimum(top - low, 1.0) * generator.random(len(values)), values)
        index = np.maximum.accumulate(np.where(same & point, 0, np.arange(len(values))))
        values[:] = moved[index]
    return replace(tracks, y=y, x=x)


def lengthened(  # noqa: PLR0917
    y: Floats, x: Floats, offsets: Integers, length: Floats, which: Flags, generator: np.random.Generator
) -> tuple[Floats, Floats, Integers]:
    """Trips that are too short get a bend in the middle of every stretch; those that are long enough stay as they are."""
    return _lengthened(y, x, offsets, length, which, generator.random(len(y)) < 0.5)


@njit(cache=True, nogil=True)
def _lengthened(  # noqa: PLR0917
    y: Floats, x: Floats, offsets: Integers, length: Floats, which: Flags, left: Flags
) -> tuple[Floats, Floats, Integers]:
    n = len(offsets) - 1
    factor = np.ones(n)
    out = np.zeros(n + 1, dtype=np.int64)
    for trip in range(n):
        size = offsets[trip + 1] - offsets[trip]
        have = 0.0
        for at in range(offsets[trip] + 1, offsets[trip + 1]):
            have += np.hypot(y[at] - y[at - 1], x[at] - x[at - 1])
        if which[trip] and have > 0 and length[trip] > 1.03 * have:
            factor[trip] = min(length[trip] / have, MOST_LONGER)
            size = 2 * size - 1
        out[trip + 1] = out[trip] + size
    new_y, new_x = np.empty(out[n]), np.empty(out[n])
    for trip in range(n):
        low, high = offsets[trip], offsets[trip + 1]
        if factor[trip] == 1.0:
            for k in range(low, high):  # no slices, as above
                new_y[out[trip] + k - low], new_x[out[trip] + k - low] = y[k], x[k]
            continue
        aside = np.sqrt(factor[trip] ** 2 - 1.0) / 2
        for at in range(low, high):
            place = out[trip] + 2 * (at - low)
            new_y[place], new_x[place] = y[at], x[at]
            if at + 1 < high:
                side = aside if left[at] else -aside
                new_y[place + 1] = (y[at] + y[at + 1]) / 2 + side * (x[at + 1] - x[at])
                new_x[place + 1] = (x[at] + x[at + 1]) / 2 - side * (y[at + 1] - y[at])
    return new_y, new_x, out
