"""Draw where trips start and end: a gravity model, and a weighted pool of (source, destination, hour) triples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import ceil, sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.asking import Answer, Norm
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.estimates import REMAINING_ERROR, candidate_log_weights, fit_log_weights
from murmurate.mechanisms.flock.shapes import Shapes
from murmurate.mechanisms.flock.tables import (
    N_DIAMETERS,
    Zones,
    diameter_bin,
    divide_among_bins,
    end_bins,
    one_bin_each,
)
from murmurate.mechanisms.flock.tracks import End, Frame
from murmurate.synthesis.ends import draw_within

GRAVITY_ROUNDS = 15
"""Rounds of fitting the attraction of cells. Chosen by hand."""
MAX_GRAVITY_CELLS = 1_600
"""Largest number of cells of the gravity model, which compares all pairs of them. Chosen by hand for its time."""
POINTS_PER_SIDE = 12
"""Points along a side of each of two cells, between which distances are computed. Chosen by hand."""
PLACE_TRIES = 8
"""Points tried for the second end of a trip. Chosen by hand."""
MAX_END_LOG_WEIGHT = 6.0
"""Largest absolute log-weight of a pair of ends in the pool. Chosen by hand."""
HOURS_AT_ONCE = 20_000
"""Pairs of ends whose hours are drawn at once, to bound memory: each needs a row of all hours."""
LOG_DISTANCE_TOLERANCE = 0.2
"""Difference of the logarithms of drawn and wanted distance below which no further point is tried: half the width of a bin of
distance."""
HOUR_TABLES = ("source_hour", "destination_hour")
"""Tables of either end by zone and hour."""
END_TABLES = ("pairs", "pairs_hour", *HOUR_TABLES)
"""Tables over zones of the ends that the weights of the pool reproduce."""
SEPARATE_TABLES = ("origins", "destinations")
"""Tables of either end by coarse cell."""


@dataclass(frozen=True, eq=False)
class Gravity:
    """Gravity model of pairs of coarse cells at a given distance.

    Cells c and d in distance bin b have the weight attraction[c] * attraction[d] * near[b, d - c], scaled to the bin's share.
    """

    frame: Frame
    attraction: Floats
    """[coarse cell]"""
    near: Floats
    """[distance bin, rows between, columns between] share of point pairs of two such cells that lie that far apart."""

    def sample(self, apart_m: Floats, generator: np.random.Generator) -> tuple[Integers, Integers]:
        """Draw two coarse cells for each distance in metres."""
        bins = diameter_bin(apart_m)
        reached = DistanceSums(self.near).around(self.attraction, self.frame)
        cumulative = np.cumsum(reached * self.attraction, axis=1)
        possible = np.flatnonzero(cumulative[:, -1] > 0)
        bins = possible[np.abs(bins[:, None] - possible).argmin(axis=1)] if len(possible) < N_DIAMETERS else bins
        first = np.empty(len(bins), dtype=np.int64)
        for b in possible:
            which = np.flatnonzero(bins == b)
            at = generator.random(len(which)) * cumulative[b, -1]
            first[which] = np.minimum(np.searchsorted(cumulative[b], at, side="right"), len(self.attraction) - 1)
        order = np.argsort(bins * len(self.attraction) + first, kind="stable")
        last = np.empty(len(bins), dtype=np.int64)
        last[order] = _second_cells(
            bins[order],
            first[order],
            self.attraction,
            self.near,
            (self.frame.rows, self.frame.columns),
            generator.random(len(bins)),
        )
        return first, last


def fit_gravity(frame: Frame, mass: Floats, apart: Floats) -> Gravity:
    """Fit attractions so that ends follow `mass` [coarse cell] when distances follow `apart` [distance bin]."""
    near = distance_shares(frame)
    wanted = np.maximum(mass, 0.0) / max(float(mass.sum()), 1e-12)
    share = np.maximum(apart, 0.0) / max(float(apart.sum()), 1e-12)
    attraction = wanted + 1e-9
    sums = DistanceSums(near)
    for _ in range(GRAVITY_ROUNDS):
        reached = sums.around(attraction, frame)
        whole = np.maximum((reached * attraction).sum(axis=1), 1e-300)
        shown = attraction * ((share / whole) @ reached)
        attraction *= np.sqrt(wanted / np.maximum(shown, 1e-300))
        attraction /= attraction.sum()
    return Gravity(frame, attraction, near)


def gravity_frame(frame: Frame) -> Frame:
    """Return the cells of the gravity model: the coarse cells, or larger ones where there are more than MAX_GRAVITY_CELLS."""
    return replace(frame, block=max(ceil(sqrt(frame.grid.n_cells / MAX_GRAVITY_CELLS)), frame.block))


def distance_shares(frame: Frame) -> Floats:
    """Return [bin, rows between, columns between] the share of point pairs of two cells in each distance bin; public."""
    half = (np.arange(POINTS_PER_SIDE) + 0.5) / POINTS_PER_SIDE
    aside = (half[:, None] - half[None, :]).ravel()
    values, counts = np.unique(np.round(aside, 9), return_counts=True)
    near = np.zeros((N_DIAMETERS, 2 * frame.rows - 1, 2 * frame.columns - 1))
    down = np.arange(1 - frame.rows, frame.rows)[:, None] + values
    right = np.arange(1 - frame.columns, frame.columns)[:, None] + values
    weight = np.outer(counts, counts) / counts.sum() ** 2
    for row in range(len(down)):
        bins = diameter_bin(np.hypot(down[row][:, None, None], right.T[None, :, :]).ravel() * frame.coarse_m)
        flat = bins * len(right) + np.tile(np.arange(len(right)), len(values) ** 2)
        near[:, row] = np.bincount(
            flat, weights=np.repeat(weight.ravel(), len(right)), minlength=N_DIAMETERS * len(right)
        ).reshape(N_DIAMETERS, -1)
    return near


class DistanceSums:
    """Sum masses at each distance of each cell, by fast Fourier transform."""

    def __init__(self, near: Floats) -> None:
        rows, columns = near.shape[1:]
        self.shape = rows + rows // 2, columns + columns // 2
        self.near = np.fft.rfft2(near, self.shape)

    def around(self, mass: Floats, frame: Frame) -> Floats:
        """Return [bin, cell] sums; distances are symmetric, so correlation and convolution agree."""
        spread = np.fft.irfft2(self.near * np.fft.rfft2(mass.reshape(frame.rows, -1), self.shape), self.shape)
        rows, columns = frame.rows, frame.columns
        found = np.maximum(spread[:, rows - 1 : 2 * rows - 1, columns - 1 : 2 * columns - 1], 0.0)
        return found.reshape(len(found), -1)


@njit(cache=True, nogil=True)
def _second_cells(  # noqa: PLR0917
    bins: Integers, first: Integers, attraction: Floats, near: Floats, shape: tuple[int, int], draws: Floats
) -> Integers:
    """Draw the second cell of each pair; equal bins and first cells stand together and share their weights."""
    rows, columns = shape
    chosen = np.empty(len(bins), dtype=np.int64)
    cumulative = np.empty(rows * columns)
    for at in range(len(bins)):
        if at == 0 or bins[at] != bins[at - 1] or first[at] != first[at - 1]:
            row, column = first[at] // columns, first[at] % columns
            total = 0.0
            for i in range(rows):
                for j in range(columns):
                    total += attraction[i * columns + j] * near[bins[at], i - row + rows - 1, j - column + columns - 1]
                    cumulative[i * columns + j] = total
        total = cumulative[-1]
        low, high = 0, rows * columns - 1
        while low < high:  # the first cell whose sum is above the draw
            middle = (low + high) // 2
            if cumulative[middle] <= draws[at] * total:
                low = middle + 1
            else:
                high = middle
        chosen[at] = first[at] if total <= 0.0 else low
    return chosen


def place_ends(  # noqa: PLR0917
    frame: Frame, inside: Floats, first: Integers, last: Integers, apart_m: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Draw points in two coarse cells, about as far apart as wanted.

    The second point follows the estimated density of ends, or lies around the first one where the wanted distance is within a
    coarse cell.
    """
    apart = apart_m / frame.grid.cell_m
    y, x = draw_points(frame, draw_fine_cells(frame, inside, first, generator), generator)
    end_y, end_x = y.copy(), x.copy()
    best = np.full(len(first), np.inf)
    open_ = np.arange(len(first))
    for _ in range(PLACE_TRIES):
        far, near = apart[open_], apart[open_] < frame.block
        to_y, to_x = draw_points(frame, draw_fine_cells(frame, inside, last[open_], generator), generator)
        turn = 2 * np.pi * generator.random(len(open_))
        to_y = np.where(near, y[open_] + far * np.sin(turn), to_y)
        to_x = np.where(near, x[open_] + far * np.cos(turn), to_x)
        outside = (to_y < 0) | (to_y > frame.top[0]) | (to_x < 0) | (to_x > frame.top[1])
        if frame.mask is not None:
            outside |= frame.mask.closed(to_y, to_x)
        to_y, to_x = frame.settled(to_y, to_x)
        have = np.hypot(to_y - y[open_], to_x - x[open_])
        off = np.abs(np.log(np.maximum(have, 1e-6) / np.maximum(far, 1e-6)))
        off += np.where(outside, 10.0, 0.0) + np.where(frame.coarse_at(to_y, to_x) != last[open_], 5.0, 0.0)
        better = off < best[open_]
        which = open_[better]
        end_y[which], end_x[which], best[which] = to_y[better], to_x[better], off[better]
        open_ = open_[best[open_] > LOG_DISTANCE_TOLERANCE]
        if len(open_) == 0:
            break
    return y, x, end_y, end_x


def draw_points(frame: Frame, fine: Integers, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw a point in each grid cell; the last row and column are cut at the edge of the box."""
    row, column = np.divmod(fine, frame.grid.columns)
    height, width = np.minimum(frame.top[0] - row, 1.0), np.minimum(frame.top[1] - column, 1.0)
    return frame.settled(row + height * generator.random(len(fine)), column + width * generator.random(len(fine)))


def draw_fine_cells(frame: Frame, inside: Floats, coarse: Integers, generator: np.random.Generator) -> Integers:
    """Draw a grid cell in each coarse cell, by the estimated density of ends."""
    if frame.block == 1:
        return coarse
    of_fine = frame.coarse_of(np.arange(frame.grid.n_cells))
    order = np.argsort(of_fine, kind="stable")
    mass = np.cumsum(inside[order])
    bounds = np.searchsorted(of_fine[order], np.arange(frame.n_coarse + 1))
    before = np.concatenate([[0.0], mass])[bounds]
    at = before[coarse] + generator.random(len(coarse)) * (before[coarse + 1] - before[coarse])
    return order[np.clip(np.searchsorted(mass, at, side="right"), bounds[coarse], bounds[coarse + 1] - 1)]


@dataclass(frozen=True, eq=False)
class Outlines:
    """Points of both ends in grid cells, and diameter and length of the trip between them."""

    first_y: Floats
    first_x: Floats
    last_y: Floats
    last_x: Floats
    diameter_m: Floats
    length_m: Floats

    def take(self, at: Integers | NDArray[np.bool_]) -> Outlines:
        """Return the chosen outlines."""
        return Outlines(*(getattr(self, field.name)[at] for field in fields(self)))

    def shifted(self, top: tuple[float, float], generator: np.random.Generator) -> Outlines:
        """Shift both ends by the same random amount, each within its grid cell and the box, so that no two draws are equal."""
        places = []
        for one, other, edge in ((self.first_y, self.last_y, top[0]), (self.first_x, self.last_x, top[1])):
            least = np.maximum(np.floor(one) - one, np.floor(other) - other)
            most = np.minimum(np.minimum(np.floor(one) + 1, edge) - one, np.minimum(np.floor(other) + 1, edge) - other)
            by = least + np.maximum(most - least, 0.0) * generator.random(len(one))
            places.append((one + by, other + by))
        (first_y, last_y), (first_x, last_x) = places
        return Outlines(first_y, first_x, last_y, last_x, self.diameter_m, self.length_m)


@dataclass(frozen=True, eq=False)
class DrawnEnds:
    """Grid cells of both ends and hours of drawn trips, and their outlines where these were drawn first."""

    source: Integers
    destination: Integers
    hour: Integers
    outlines: Outlines


@dataclass(frozen=True, eq=False)
class EndsPool:
    """Pool of ends and hours with cumulative weights, sorted so that similar ones stand together; sampling costs no budget."""

    source: Integers
    destination: Integers
    hour: Integers
    cumulative: Floats
    outlines: Outlines

    def sample(self, n: int, generator: np.random.Generator) -> DrawnEnds:
        """Draw `n` members by weight with systematic sampling, in the order of the pool."""
        even = (np.arange(n) + generator.random()) / n
        at = np.searchsorted(self.cumulative, even * self.cumulative[-1], side="right")
        at = np.minimum(at, len(self.cumulative) - 1)
        return DrawnEnds(self.source[at], self.destination[at], self.hour[at], self.outlines.take(at))

    def where(self, keep: NDArray[np.bool_]) -> EndsPool:
        """Return the members that meet a condition."""
        weight = np.diff(self.cumulative, prepend=0.0)[keep]
        return EndsPool(self.source[keep], self.destination[keep], self.hour[keep], np.cumsum(weight), self.outlines.take(keep))


def gravity_ends(
    shapes: Shapes, inside: Floats, frame: Frame, size: int, generator: np.random.Generator
) -> tuple[Integers, Integers, Outlines]:
    """Draw shapes, then ends that far apart: grid cells of both ends, and outlines."""
    wide = gravity_frame(frame)
    mass: Floats = np.bincount(wide.coarse_of(np.arange(frame.grid.n_cells)), weights=inside, minlength=wide.n_coarse).astype(
        float
    )
    gravity = fit_gravity(wide, mass, shapes.apart(generator))
    diameter_m, apart_m, length_m = shapes.draw(size, generator)
    first, last = gravity.sample(apart_m, generator)
    first_y, first_x, last_y, last_x = place_ends(wide, inside, first, last, apart_m, generator)
    outlines = Outlines(first_y, first_x, last_y, last_x, diameter_m, length_m)
    return frame.fine_at(first_y, first_x), frame.fine_at(last_y, last_x), outlines


@dataclass(frozen=True, eq=False)
class EndEstimates:
    """Estimated ends, from noisy tables alone."""

    inside: Floats
    """[grid cell] ends of either kind."""
    hours: tuple[Floats, Floats]
    """[zone, hour] origins, and destinations."""
    separate: tuple[Floats, Floats] | None
    """[coarse cell] origins, and destinations; None where only both together were counted."""


def gravity_pool(  # noqa: PLR0917
    shapes: Shapes,
    estimates: EndEstimates,
    answers: Mapping[str, Answer],
    frame: Frame,
    zones: Zones,
    norm: Norm,
    n: float,
    size: int,
    generator: np.random.Generator,
) -> EndsPool:
    """Draw shapes, then ends that far apart, then an hour, and weight them until pairs, ends and hours match the tables."""
    source, destination, outlines = gravity_ends(shapes, estimates.inside, frame, size, generator)
    hour = np.zeros(size, dtype=np.int64)
    hours = estimates.hours
    if frame.hours > 1:
        by_hour = [table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12) for table in hours]
        whole = np.maximum((hours[0] + hours[1]).sum(axis=0), 1e-9)
        at = zones.at(source, zones.by_hour), zones.at(destination, zones.by_hour)
        for low in range(0, size, HOURS_AT_ONCE):
            first, last = (zone[low : low + HOURS_AT_ONCE] for zone in at)
            given = by_hour[0][first] * by_hour[1][last] / (whole / whole.sum()) + 1e-12
            hour[low : low + HOURS_AT_ONCE] = draw_within(given, np.arange(len(given), dtype=np.int64), generator)
    drawn = End(source, destination, hour)
    weight = _pool_weights(drawn, answers, frame, zones, norm, n)
    order = np.lexsort((outlines.diameter_m, hour, zones.at(destination, zones.pairs), zones.at(source, zones.pairs)))
    return EndsPool(source[order], destination[order], hour[order], np.cumsum(weight[order]), outlines.take(order))


def _pool_weights(  # noqa: PLR0917
    drawn: End,
    answers: Mapping[str, Answer],
    frame: Frame,
    zones: Zones,
    norm: Norm,
    n: float,
) -> Floats:
    """Return weights of drawn ends that reproduce the tables over ends."""
    size = len(drawn.source)
    measured = {name: answers[name] for name in (*END_TABLES, *SEPARATE_TABLES) if name in answers}
    bins = end_bins(drawn, frame, zones, set(measured))
    shown = {name: one_bin_each(at, n_bins) for name, (at, n_bins) in bins.items()}
    both, owner = np.column_stack([drawn.source, drawn.destination]).ravel(), np.repeat(np.arange(size, dtype=np.int64), 2)
    shown["ends"], measured["ends"] = divide_among_bins(frame.coarse_of(both), owner, frame.n_coarse, norm), answers["ends"]
    log_weights = fit_log_weights(shown, measured, n, size)
    return np.exp(candidate_log_weights(shown, log_weights, size, max_log_weight=MAX_END_LOG_WEIGHT))


def with_estimated_ends(answers: Mapping[str, Answer], estimates: EndEstimates) -> dict[str, Answer]:
    """Replace the noisy tables of either end by estimates with their remaining standard errors."""
    found = dict(answers)
    for names, tables in ((HOUR_TABLES, estimates.hours), (SEPARATE_TABLES, estimates.separate or ())):
        for name, table in zip(names, tables, strict=False):
            if name in answers:
                scaled = table.ravel() * (answers[name].noisy.sum() / max(float(table.sum()), 1e-9))
                found[name] = Answer(scaled, answers[name].deviation * REMAINING_ERROR)
    return found
