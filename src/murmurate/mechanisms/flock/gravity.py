"""Distance first: how far a trip goes, then two cells that lie that far apart, by a gravity law over noisy masses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tables import DIAMETERS, diameter_bin
from murmurate.mechanisms.flock.tracks import Frame

ROUNDS = 15
PAIRS = 12
"""Places along a side of each of two cells, between which distances are taken."""
TRIES = 8
NEAR_ENOUGH = 0.2
"""Of the logarithm of a distance: about half of a bin's width, within which one try is as good as another."""


@dataclass(frozen=True, eq=False)
class Gravity:
    """Cells c and d lie in bin b of distance with weight pull[c] * pull[d] * near[b, d - c], scaled to the bin's share."""

    frame: Frame
    pull: Floats
    """[walked cell]"""
    near: Floats
    """[bin of distance, rows between, columns between] share of places in two such cells that lie that far apart."""

    def sample(self, apart_m: Floats, generator: np.random.Generator) -> tuple[Integers, Integers]:
        """Two walked cells for each distance."""
        bins = diameter_bin(apart_m)
        reached = Lying(self.near).around(self.pull, self.frame)
        cumulative = np.cumsum(reached * self.pull, axis=1)
        possible = np.flatnonzero(cumulative[:, -1] > 0)
        bins = possible[np.abs(bins[:, None] - possible).argmin(axis=1)] if len(possible) < DIAMETERS else bins
        first = np.empty(len(bins), dtype=np.int64)
        for b in possible:
            which = np.flatnonzero(bins == b)
            at = generator.random(len(which)) * cumulative[b, -1]
            first[which] = np.minimum(np.searchsorted(cumulative[b], at, side="right"), len(self.pull) - 1)
        order = np.argsort(bins * len(self.pull) + first, kind="stable")
        last = np.empty(len(bins), dtype=np.int64)
        last[order] = _seconds(
            bins[order], first[order], self.pull, self.near, (self.frame.rows, self.frame.columns), generator.random(len(bins))
        )
        return first, last


def fit_gravity(frame: Frame, mass: Floats, apart: Floats) -> Gravity:
    """Pulls under which ends lie as `mass` says [walked cell] when distances are as `apart` says [bin]."""
    near = nearness(frame)
    wanted = np.maximum(mass, 0.0) / max(float(mass.sum()), 1e-12)
    share = np.maximum(apart, 0.0) / max(float(apart.sum()), 1e-12)
    pull = wanted + 1e-9
    lying = Lying(near)
    for _ in range(ROUNDS):
        reached = lying.around(pull, frame)
        whole = np.maximum((reached * pull).sum(axis=1), 1e-300)
        shown = pull * ((share / whole) @ reached)
        pull *= np.sqrt(wanted / np.maximum(shown, 1e-300))
        pull /= pull.sum()
    return Gravity(frame, pull, near)


def nearness(frame: Frame) -> Floats:
    """[bin, rows between, columns between]; public."""
    half = (np.arange(PAIRS) + 0.5) / PAIRS
    aside = (half[:, None] - half[None, :]).ravel()
    values, counts = np.unique(np.round(aside, 9), return_counts=True)
    near = np.zeros((DIAMETERS, 2 * frame.rows - 1, 2 * frame.columns - 1))
    down = np.arange(1 - frame.rows, frame.rows)[:, None] + values
    right = np.arange(1 - frame.columns, frame.columns)[:, None] + values
    weight = np.outer(counts, counts) / counts.sum() ** 2
    for row in range(len(down)):
        bins = diameter_bin(np.hypot(down[row][:, None, None], right.T[None, :, :]).ravel() * frame.walked_m)
        flat = bins * len(right) + np.tile(np.arange(len(right)), len(values) ** 2)
        near[:, row] = np.bincount(
            flat, weights=np.repeat(weight.ravel(), len(right)), minlength=DIAMETERS * len(right)
        ).reshape(DIAMETERS, -1)
    return near


class Lying:
    """What lies at each distance of each cell: the same sum of masses again and again, by fast Fourier transform."""

    def __init__(self, near: Floats) -> None:
        rows, columns = near.shape[1:]
        self.shape = rows + rows // 2, columns + columns // 2
        self.near = np.fft.rfft2(near, self.shape)

    def around(self, mass: Floats, frame: Frame) -> Floats:
        """[bin, cell]; the law of distances is the same both ways, so correlation and convolution agree."""
        spread = np.fft.irfft2(self.near * np.fft.rfft2(mass.reshape(frame.rows, -1), self.shape), self.shape)
        rows, columns = frame.rows, frame.columns
        found = np.maximum(spread[:, rows - 1 : 2 * rows - 1, columns - 1 : 2 * columns - 1], 0.0)
        return found.reshape(len(found), -1)


@njit(cache=True, nogil=True)
def _seconds(  # noqa: PLR0917
    bins: Integers, first: Integers, pull: Floats, near: Floats, shape: tuple[int, int], draws: Floats
) -> Integers:
    """The second cell of each pair; equal bins and first cells stand together and share their weights."""
    rows, columns = shape
    chosen = np.empty(len(bins), dtype=np.int64)
    cumulative = np.empty(rows * columns)
    for at in range(len(bins)):
        if at == 0 or bins[at] != bins[at - 1] or first[at] != first[at - 1]:
            row, column = first[at] // columns, first[at] % columns
            total = 0.0
            for i in range(rows):
                for j in range(columns):
                    total += pull[i * columns + j] * near[bins[at], i - row + rows - 1, j - column + columns - 1]
                    cumulative[i * columns + j] = total
        total = cumulative[-1]
        found = np.searchsorted(cumulative, draws[at] * total, side="right")
        chosen[at] = first[at] if total <= 0.0 else min(found, rows * columns - 1)
    return chosen


def placed(  # noqa: PLR0917
    frame: Frame, inside: Floats, first: Integers, last: Integers, apart_m: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Places in two walked cells, about as far apart as wanted: by fine density, or around the first where both are near."""
    apart = apart_m / frame.grid.cell_m
    y, x = within(frame, fine_in(frame, inside, first, generator), generator)
    end_y, end_x = y.copy(), x.copy()
    best = np.full(len(first), np.inf)
    open_ = np.arange(len(first))
    for _ in range(TRIES):
        far, near = apart[open_], apart[open_] < frame.block
        to_y, to_x = within(frame, fine_in(frame, inside, last[open_], generator), generator)
        turn = 2 * np.pi * generator.random(len(open_))
        to_y = np.where(near, y[open_] + far * np.sin(turn), to_y)
        to_x = np.where(near, x[open_] + far * np.cos(turn), to_x)
        outside = (to_y < 0) | (to_y > frame.top[0]) | (to_x < 0) | (to_x > frame.top[1])
        to_y, to_x = np.clip(to_y, 0.0, frame.top[0]), np.clip(to_x, 0.0, frame.top[1])
        have = np.hypot(to_y - y[open_], to_x - x[open_])
        off = np.abs(np.log(np.maximum(have, 1e-6) / np.maximum(far, 1e-6)))
        off += np.where(outside, 10.0, 0.0) + np.where(frame.walked_at(to_y, to_x) != last[open_], 5.0, 0.0)
        better = off < best[open_]
        which = open_[better]
        end_y[which], end_x[which], best[which] = to_y[better], to_x[better], off[better]
        open_ = open_[best[open_] > NEAR_ENOUGH]
        if len(open_) == 0:
            break
    return y, x, end_y, end_x


def within(frame: Frame, fine: Integers, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """A place in each fine cell, the last row and column of which are cut at the edge of the box."""
    row, column = np.divmod(fine, frame.grid.columns)
    height, width = np.minimum(frame.top[0] - row, 1.0), np.minimum(frame.top[1] - column, 1.0)
    return row + height * generator.random(len(fine)), column + width * generator.random(len(fine))


def fine_in(frame: Frame, inside: Floats, walked: Integers, generator: np.random.Generator) -> Integers:
    """A fine cell of each walked cell, by what the noisy ends say about the fine cells."""
    if frame.block == 1:
        return walked
    of_fine = frame.walked_of(np.arange(frame.grid.n_cells))
    order = np.argsort(of_fine, kind="stable")
    mass = np.cumsum(inside[order])
    bounds = np.searchsorted(of_fine[order], np.arange(frame.n_walked + 1))
    before = np.concatenate([[0.0], mass])[bounds]
    at = before[walked] + generator.random(len(walked)) * (before[walked + 1] - before[walked])
    return order[np.clip(np.searchsorted(mass, at, side="right"), bounds[walked], bounds[walked + 1] - 1)]
