"""Place days on the map: popularity estimated from noisy counts, and places that lie apart as people's moves do."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.asking.table import Answers
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.plausible.library import LibraryRhythm
from murmurate.mechanisms.plausible.patterns import Labels
from murmurate.mechanisms.plausible.rhythm import Rhythm, shrunk
from murmurate.mechanisms.plausible.statistics import JUMP_BINS, jump_bin, laplace_scale, regions_of
from murmurate.spaces.grid import Grid

MOST_PLACES = 3000
"""Places that fakes may visit: the most popular ones, so that a grid of any size is sampled in the same time."""

JUMP_PRIOR = np.array([.06, .18, .15, .14, .12, .10, .09, .07, .05, .02, .01, .01])  # fmt: skip
"""Moves per person by distance before anything is measured: most are short."""

SHAPES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Shapes of gamma priors of popularity that are tried, from a few places that have it all to an even city."""

SWEEPS = 2
"""Times each place of a day is drawn again, given all the others; set by hand."""

CALIBRATIONS = 6
"""Times the weights of distances are corrected by the distances that days drawn with them have; set by hand."""

CALIBRATION_DAYS = 600
"""Days drawn for each correction; with five moves a day a distance bin gets about 250 of them."""


@dataclass(frozen=True, eq=False)
class Map:
    """Where days may take place; a function of noisy statistics and the public grid only."""

    cells: NDArray[np.int32]
    """The grid's cells that are visited."""
    main: Floats
    """Popularity of each as the main place of a day."""
    other: Floats
    """Popularity of each as any other place."""
    distance_weight: Floats
    """[distance bin]: factor on the probability of a move over such a distance."""
    apart: NDArray[np.uint8]
    """[place, place]: the distance bin."""

    def place(
        self, label: Labels, n_labels: Integers, generator: np.random.Generator, shunned: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Choose a cell for every label of every day, no cell twice in a day; cells in the day's row of `shunned` never."""
        if shunned is None:
            shunned = np.empty((len(label), 0), dtype=np.int32)
        position = np.full(int(self.cells.max()) + 2, -1, dtype=np.int64)
        position[self.cells] = np.arange(len(self.cells))
        known = np.where((shunned >= 0) & (shunned < len(position)), position[shunned], -1)
        at = _place_days(label, n_labels, self.main, self.other, self.distance_weight, self.apart, known, SWEEPS, generator)
        return self.cells[np.take_along_axis(at, label.astype(np.int64), axis=1)]


def fit_map(
    noisy: Answers, grid: Grid, rhythm: Rhythm | LibraryRhythm, *, people: float, generator: np.random.Generator
) -> Map:
    """Estimate popularity and weights of distances from noisy statistics."""
    main, other = popularity(noisy, grid, people=people)
    jumps = shrunk(noisy["jumps"].noisy, JUMP_PRIOR * 0.6, scale=laplace_scale(noisy["jumps"]), people=people)
    label, n_labels = rhythm.draw(CALIBRATION_DAYS, generator)
    return calibrated(grid, label, n_labels, main, other, jumps / jumps.sum(), generator=generator)


def popularity(noisy: Answers, grid: Grid, *, people: float) -> tuple[Floats, Floats]:
    """Estimate main and other popularity of each cell: posterior means given noisy counts of it and of its region.

    Where many have their main place, many go for other things too, so that both kinds together are the prior of each. Counts
    of regions are spread smoothly, so that edges of regions do not show.
    """
    region, n_regions = regions_of(grid)
    inside = np.bincount(region, minlength=n_regions)
    coarse = noisy["regions"].noisy.reshape(2, n_regions)
    fine = noisy["cells"].noisy.reshape(2, grid.n_cells)
    coarse_scale, fine_scale = laplace_scale(noisy["regions"]), laplace_scale(noisy["cells"])
    of_two = np.sqrt(2.0)  # the noise of a sum of two counts is as wide as this
    mass = expected_counts(coarse.sum(axis=0), of_two * coarse_scale, people * inside / grid.n_cells)
    both = expected_counts(fine.sum(axis=0), of_two * fine_scale, _smoothed((mass / inside)[region], grid))
    of_region = np.maximum(np.bincount(region, both, minlength=n_regions), 1e-9)
    result = []
    for half in range(2):
        own_mass = expected_counts(coarse[half], coarse_scale, of_region / 2)
        each = expected_counts(fine[half], fine_scale, both / of_region[region] * own_mass[region])
        result.append(each / each.sum())
    return result[0], result[1]


def _smoothed(values: Floats, grid: Grid) -> Floats:
    """Replace each cell by the mean of the nine around it, twice."""
    rows, columns = grid.rows, grid.columns
    area: Floats = values.reshape(rows, columns)
    for _ in range(2):
        padded = np.pad(area, 1, mode="edge")
        area = np.mean([padded[i : i + rows, j : j + columns] for i in range(3) for j in range(3)], axis=0)
    return area.ravel()


def calibrated(  # noqa: PLR0917
    grid: Grid,
    label: Labels,
    n_labels: Integers,
    main: Floats,
    other: Floats,
    jumps: Floats,
    *,
    generator: np.random.Generator,
) -> Map:
    """Return the map on which days of these patterns move as far as `jumps` says."""
    both = main + other
    cells = np.sort(np.argsort(both)[::-1][:MOST_PLACES])
    cells = cells[both[cells] > both.sum() * 1e-7]
    apart = distances_between(grid, cells)
    factor = np.ones(JUMP_BINS)
    chosen = Map(cells.astype(np.int32), main[cells] / main[cells].sum(), other[cells] / other[cells].sum(), factor, apart)
    position = np.zeros(grid.n_cells, dtype=np.int64)
    position[cells] = np.arange(len(cells))
    for _ in range(CALIBRATIONS):
        made = position[chosen.place(label, n_labels, generator)]
        moved = made[:, 1:] != made[:, :-1]
        found = np.bincount(apart[made[:, :-1][moved], made[:, 1:][moved]], minlength=JUMP_BINS) + 1.0
        there = np.bincount(apart.ravel(), minlength=JUMP_BINS) > 0
        ratio = np.where(there, jumps / (found / found.sum()), 1.0)
        factor = np.clip(factor * ratio**0.8, 1e-4, 1e4)
        chosen = Map(chosen.cells, chosen.main, chosen.other, factor, apart)
    return chosen


def distances_between(grid: Grid, cells: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Return [cell, cell] distance bins."""
    lat, lng = grid.centre(cells)
    return _distances(lat, lng)


def expected_counts(noisy: Floats, scale: float, prior: Floats) -> Floats:
    """Return the posterior mean of each count, given a gamma prior of this mean and Laplace noise.

    How uneven the counts are, the shape of the prior, is weighed by how likely each makes the noisy counts themselves.
    """
    found = [_expected_counts(noisy, scale, np.maximum(prior, 1e-9), shape, lgamma(shape)) for shape in SHAPES]
    evidence = np.array([log_probability for _, log_probability in found])
    weight = np.exp(evidence - evidence.max())
    return np.average([means for means, _ in found], axis=0, weights=weight)


@njit(cache=True)
def _expected_counts(noisy: Floats, scale: float, prior: Floats, shape: float, log_gamma: float) -> tuple[Floats, float]:
    """Return the means, on a fine logarithmic grid, and the log probability of the noisy counts."""
    points = 120
    out = np.empty(len(noisy))
    evidence = 0.0
    for k in range(len(noisy)):
        low = prior[k] * 1e-7
        high = max(noisy[k], 0.0) + 10 * scale + 10 * prior[k]
        ratio = (high / low) ** (1.0 / (points - 1))
        log_low, log_ratio = np.log(low), np.log(ratio)
        top = -np.inf
        for j in range(points):
            x = low * np.exp(j * log_ratio)
            top = max(top, shape * (log_low + j * log_ratio - x / prior[k]) - abs(noisy[k] - x) / scale)
        mass, mean = 0.0, 0.0
        for j in range(points):
            x = low * np.exp(j * log_ratio)
            # on a logarithmic grid the density is multiplied by x
            density = np.exp(shape * (log_low + j * log_ratio - x / prior[k]) - abs(noisy[k] - x) / scale - top)
            mass += density
            mean += density * x
        # below the grid lies what is nearly zero
        below = np.exp(shape * log_low - abs(noisy[k]) / scale - top) / (shape * log_ratio)
        out[k] = mean / (mass + below)
        evidence += top + np.log((mass + below) * log_ratio) + shape * np.log(shape / prior[k]) - log_gamma
    return out, evidence


@njit(cache=True)
def _distances(lat: Floats, lng: Floats) -> NDArray[np.uint8]:
    n = len(lat)
    apart = np.zeros((n, n), dtype=np.uint8)
    for one in range(n):
        for two in range(one):
            apart[one, two] = apart[two, one] = jump_bin(lat[one], lng[one], lat[two], lng[two])
    return apart


@njit(cache=True, nogil=True)
def _place_days(  # noqa: PLR0917
    label: Labels,
    n_labels: Integers,
    main: Floats,
    other: Floats,
    distance_weight: Floats,
    apart: NDArray[np.uint8],
    shunned: Integers,
    sweeps: int,
    generator: np.random.Generator,
) -> Integers:
    steps = label.shape[1]
    result = np.zeros(label.shape, dtype=np.int64)
    n_places = len(main)
    weight = np.empty(n_places)
    joined = np.zeros((steps, steps), dtype=np.bool_)
    for row in range(len(label)):
        n = n_labels[row]
        joined[:n, :n] = False
        for step in range(1, steps):
            one, two = label[row, step - 1], label[row, step]
            joined[one, two] = joined[two, one] = one != two
        at = result[row]
        at[:n] = -1
        for _sweep in range(sweeps + 1):
            for mine in range(n):
                base = main if mine == 0 else other
                for place in range(n_places):
                    weight[place] = base[place]
                for its in range(n):
                    if its == mine or at[its] < 0:
                        continue
                    if joined[mine, its]:
                        distances = apart[at[its]]
                        for place in range(n_places):
                            weight[place] *= distance_weight[distances[place]]
                    weight[at[its]] = 0.0
                for place in shunned[row]:
                    if place >= 0:
                        weight[place] = 0.0
                total = weight.sum()
                if total <= 0.0:
                    if at[mine] < 0:  # every place is shunned or taken: fewer places than labels, so one is shared
                        at[mine] = int(generator.random() * n_places)
                    continue
                u = generator.random() * total
                chosen = 0
                for place in range(n_places):
                    u -= weight[place]
                    if weight[place] > 0.0:
                        chosen = place
                        if u <= 0.0:
                            break
                at[mine] = chosen
    return result
