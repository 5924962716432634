"""Draw normal numbers in bulk: a 256-layer ziggurat over words of the stream."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.noise.stream import Randomness

LAYERS = 256
"""Layers of the ziggurat: eight bits of a word choose one."""
_WORDS_AT_ONCE = 1 << 16
"""Random words drawn at a time (512 KiB). Set by hand."""


def _layers() -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return edges x and heights f(x) of layers of equal area under exp(-x^2/2), found by bisection on the outermost edge."""
    low, high = 3.0, 4.0
    for _ in range(200):
        edge = (low + high) / 2
        low, high = (edge, high) if _leftover(edge)[0] < 0 else (low, edge)
    _, edges = _leftover(high)
    heights = np.exp(-0.5 * edges * edges)
    return high, edges, heights


def _leftover(edge: float) -> tuple[float, NDArray[np.float64]]:
    """Return how much height is missing (negative: the stack passes the top) when the outermost edge is here."""
    tail = math.sqrt(math.pi / 2) * math.erfc(edge / math.sqrt(2))
    area = edge * math.exp(-0.5 * edge * edge) + tail
    edges = np.zeros(LAYERS + 1)
    edges[0] = area / math.exp(-0.5 * edge * edge)
    edges[1] = edge
    for layer in range(2, LAYERS):
        height = math.exp(-0.5 * edges[layer - 1] ** 2) + area / edges[layer - 1]
        if height >= 1.0:
            return -1.0, edges
        edges[layer] = math.sqrt(-2 * math.log(height))
    return 1.0 - (math.exp(-0.5 * edges[LAYERS - 1] ** 2) + area / edges[LAYERS - 1]), edges


TAIL, EDGES, HEIGHTS = _layers()
"""Outermost edge, edges and heights of the layers, in standard deviations; computed at import."""


@njit(cache=True, nogil=True)
def _unit(word: np.uint64) -> float:
    return (np.float64(word >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(cache=True, nogil=True)
def _normals(words, out, done, tail_sign, tail, edges, heights):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    """Fill `out` from `done` on until it or the words run out; returns how far it came, and a tail draw still due."""
    n = out.size
    at = 0
    last = words.size - 2  # a step takes at most two words
    while done < n and at <= last:
        if tail_sign != 0.0:
            # Marsaglia's exact sampler beyond the outermost edge; repeated until accepted, else the tail would thin
            step = -math.log(_unit(words[at])) / tail
            if -2.0 * math.log(_unit(words[at + 1])) > step * step:
                out[done] = tail_sign * (tail + step)
                done += 1
                tail_sign = 0.0
            at += 2
            continue
        word = words[at]
        at += 1
        layer = np.int64(word & np.uint64(255))
        sign = 1.0 if word & np.uint64(256) else -1.0
        x = _unit(word) * edges[layer]  # the upper 52 bits; layer and sign use the lower 9
        if x < edges[layer + 1]:
            out[done] = sign * x
            done += 1
        elif layer == 0:
            tail_sign = sign
        else:
            height = heights[layer] + _unit(words[at]) * (heights[layer + 1] - heights[layer])
            at += 1
            if height < math.exp(-0.5 * x * x):
                out[done] = sign * x
                done += 1
    return done, tail_sign


def fill_normals(n: int, rng: Randomness) -> NDArray[np.float64]:
    """Return `n` standard normal numbers."""
    out = np.empty(n)
    done, tail_sign = 0, 0.0
    while done < n:
        words = rng.words(min(_WORDS_AT_ONCE, int((n - done) * 1.03) + 32))
        done, tail_sign = _normals(words, out, done, tail_sign, TAIL, EDGES, HEIGHTS)
    return out
