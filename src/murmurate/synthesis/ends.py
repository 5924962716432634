"""Estimate and draw where trips start and end, and in which hour, from noisy tables over zones of equal noisy mass."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.synthesis.shrink import above_zero, shrink

MIN_MEAN_COUNT_SDS = 4.0
"""Smallest mean count of a table's bins, in noise standard deviations; zones are made as fine as this allows. Chosen by
hand."""

ENDS_ARRAYS = ("joint", "source_hour", "destination_hour", "source_cell", "destination_cell", "zone")
"""Arrays of `Ends` that are saved."""

MAX_DEPTH = 8
"""Largest number of halvings of the box, so that there are at most 256 zones. Chosen by hand."""
FITTING_ROUNDS = 12
"""Rounds of iterative proportional fitting. Chosen by hand."""
HOUR_GROUPS = 8
"""Groups of [zone, hour] counts of similar size, each shrunk by its own relative error: quiet hours differ more from the whole
day than busy ones, which would decide for all. Chosen by hand."""
NEIGHBOUR_HOURS = (1.0, 0.5)
"""Weights of the hours one and two before and after, in what is expected of an hour. Chosen by hand."""
NEIGHBOUR_MASS = 0.01
"""Weight of the whole day beside the hours around, which may hold nothing. Chosen by hand."""


@dataclass(frozen=True, eq=False)
class Ends:
    """Distribution of (source cell, destination cell, hour) as plain arrays; drawing from it costs no budget."""

    joint: Floats
    """[zone, zone, hour] over coarse zones: estimated trips."""
    source_hour: Floats
    """[fine zone, hour]; the coarse zone of a fine one is `fine >> shift`."""
    destination_hour: Floats
    source_cell: Floats
    destination_cell: Floats
    zone: Integers
    """[cell] fine zone."""
    n: float
    """Noisy number of trips."""

    def sample(self, n: int, generator: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        """Draw `n` triples (source, destination, hour)."""
        zones, _, hours = self.joint.shape
        drawn = _draw(np.cumsum(self.joint), generator.random(n))
        coarse_source, rest = np.divmod(drawn, zones * hours)
        coarse_destination, hour = np.divmod(rest, hours)
        source = self._cell(coarse_source, hour, self.source_hour, self.source_cell, generator)
        destination = self._cell(coarse_destination, hour, self.destination_hour, self.destination_cell, generator)
        return source, destination, hour

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays; `Ends(**arrays)` is the same distribution again."""
        return {**{name: getattr(self, name) for name in ENDS_ARRAYS}, "n": np.float64(self.n)}

    def _cell(
        self, coarse: Integers, hour: Integers, zone_hour: Floats, cell: Floats, generator: np.random.Generator
    ) -> Integers:
        """Draw a cell in each coarse zone: first a fine zone by its hour, then a cell by its own count."""
        fine_zones, hours = zone_hour.shape
        per_coarse = fine_zones // self.joint.shape[0]
        by_group = zone_hour.reshape(-1, per_coarse, hours).transpose(0, 2, 1).reshape(-1, per_coarse)
        fine = coarse * per_coarse + draw_within(by_group, coarse * hours + hour, generator)
        order = np.argsort(self.zone, kind="stable")
        mass = np.cumsum(cell[order])
        bounds = np.searchsorted(self.zone[order], np.arange(fine_zones + 1))
        before = np.concatenate([[0.0], mass])[bounds]
        at = before[fine] + generator.random(len(fine)) * (before[fine + 1] - before[fine])
        place = np.searchsorted(mass, at, side="right")
        first = np.minimum(bounds[fine], len(order) - 1)  # a zone without cells takes the next cell there is
        return order[np.clip(place, first, np.maximum(bounds[fine + 1] - 1, first))]


def shrink_cells(
    noisy: Floats,
    *,
    rows: int,
    columns: int,
    n: float,
    deviation: float,
    prior: Floats | None = None,
    groups: int = 1,
    scaled: bool = False,
) -> Floats:
    """Estimate counts of cells from noisy ones by hierarchical shrinkage: each block of cells is the prior of its quarters.

    A block's count is expected to divide among its quarters by area, or in proportion to another (noisy or public) table
    `prior`. With `scaled` a sum below the total is made up in proportion, so that empty cells stay empty.
    """
    table = noisy.reshape(rows, columns)
    expected = np.ones((rows, columns)) if prior is None else prior.reshape(rows, columns) + 1e-9 * prior.max(initial=1e-9)
    levels = max(rows - 1, columns - 1, 1).bit_length()
    estimate = np.full((1, 1), n)
    for level in range(levels - 1, -1, -1):
        side = 2**level
        sums, area = _block_sums(table, side), _block_sums(expected, side)
        parents = np.repeat(np.repeat(estimate, 2, 0), 2, 1)[: len(sums), : sums.shape[1]]
        parent_area = np.repeat(np.repeat(_block_sums(expected, 2 * side), 2, 0), 2, 1)[: len(sums), : sums.shape[1]]
        estimate = shrink(sums, parents * area / parent_area, deviation=deviation * side, groups=groups, scaled=scaled)
    estimate = estimate.ravel() * (n / max(float(estimate.sum()), 1e-9))
    return np.asarray(estimate + 1e-6 * n / noisy.size)


def _block_sums(table: Floats, side: int) -> Floats:
    """Sum a table over square blocks of `side` cells."""
    rows, columns = (np.arange(0, size, side) for size in table.shape)
    return np.asarray(np.add.reduceat(np.add.reduceat(table, rows, 0), columns, 1))


def shrink_zone_hour(noisy: Floats, by_zone: Floats, deviation: float) -> Floats:
    """Estimate [zone, hour] counts from noisy ones, from large zones to small ones: each zone is the prior of its halves.

    A zone is expected to divide between its halves first as over the whole day, then as in the hours around.
    """
    depth = len(noisy).bit_length() - 1
    spread = deviation * 2 ** (depth / 2)
    by_hour = above_zero(noisy.sum(axis=0), spread)  # a quiet hour is not an empty one
    estimate = shrink(by_hour, np.ones(noisy.shape[1]), deviation=spread)[None, :]
    for level in range(1, depth + 1):
        counts, noise = coarsen(noisy, level), deviation * 2 ** ((depth - level) / 2)
        mass = np.maximum(by_zone.reshape(2**level, -1).sum(axis=1), 1e-9)
        parents, within = np.repeat(estimate, 2, axis=0), _of_halves(mass[:, None])
        prior = parents * within
        found = shrink(counts, prior, deviation=noise, groups=HOUR_GROUPS)
        if noisy.shape[1] > 2 * len(NEIGHBOUR_HOURS):
            near = _hours_around(found) + NEIGHBOUR_MASS * prior + 1e-9 * within
            found = shrink(counts, parents * _of_halves(near), deviation=noise, groups=HOUR_GROUPS)
        had, wanted = found.sum(axis=0), prior.sum(axis=0)  # [hour] small counts may have been cut to nothing
        estimate = np.where(had > 0, found * (wanted / np.maximum(had, 1e-9)), prior)
    return estimate


def _of_halves(zone_hour: Floats) -> Floats:
    """Return the share of each zone in the two halves of the larger zone that it belongs to."""
    return np.asarray(zone_hour / np.repeat(zone_hour.reshape(-1, 2, zone_hour.shape[1]).sum(axis=1), 2, axis=0))


def _hours_around(zone_hour: Floats) -> Floats:
    """Return the weighted mean over the hours before and after each hour, without the hour itself; days are round."""
    both = [
        weight * (np.roll(zone_hour, apart, axis=1) + np.roll(zone_hour, -apart, axis=1))
        for apart, weight in enumerate(NEIGHBOUR_HOURS, start=1)
    ]
    return np.asarray(sum(both) / (2 * sum(NEIGHBOUR_HOURS)))


def shrink_pairs(noisy: Floats, prior: Floats, deviation: float) -> Floats:
    """Estimate [zone, zone, ...] counts from noisy ones and a prior of the same shape, from large zones to small ones."""
    depth = len(noisy).bit_length() - 1
    estimate = prior
    for level in range(1, depth + 1):
        zones = 2**level
        coarse = shrink(_blocks(noisy, zones), _blocks(estimate, zones), deviation=deviation * 2 ** (depth - level))
        estimate = estimate * _spread(_ratio(coarse, _blocks(estimate, zones)), len(noisy))
    return estimate


def joint_of(
    source_hour: Floats, destination_hour: Floats, pairs: Floats, pairs_hour: Floats, deviations: tuple[float, float]
) -> Floats:
    """Fit [zone, zone, hour] counts to both ends by hour and both tables of pairs.

    Ends are independent within each hour, corrected by both tables of pairs, then fitted by iterative proportional fitting.
    """
    by_hour = np.maximum((source_hour.sum(axis=0) + destination_hour.sum(axis=0)) / 2, 1e-9)
    source = source_hour * (by_hour / np.maximum(source_hour.sum(axis=0), 1e-9))
    destination = destination_hour * (by_hour / np.maximum(destination_hour.sum(axis=0), 1e-9))
    joint = source[:, None, :] * destination[None, :, :] / by_hour
    total = joint.sum()
    wanted_pairs = shrink_pairs(pairs * (total / max(pairs.sum(), 1.0)), joint.sum(axis=2), deviations[0])
    joint *= _ratio(wanted_pairs, joint.sum(axis=2))[:, :, None]
    scaled = pairs_hour * (total / max(pairs_hour.sum(), 1.0))
    wanted_hour = shrink_pairs(scaled, _blocks(joint, len(pairs_hour)), deviations[1])
    for _ in range(FITTING_ROUNDS):
        joint *= _spread(_ratio(wanted_hour, _blocks(joint, len(pairs_hour))), len(joint))
        joint *= _ratio(wanted_pairs, joint.sum(axis=2))[:, :, None]
        joint *= _ratio(source, joint.sum(axis=1))[:, None, :]
        joint *= _ratio(destination, joint.sum(axis=0))[None, :, :]
    return joint


def depth_of(n: float, deviation: float, ends: int) -> int:
    """Return how often zones may be halved while the mean count of a table over `ends` of them stays clear of its noise."""
    return int(np.clip(round(log2(max(n / (MIN_MEAN_COUNT_SDS * deviation), 1.0)) / ends), 0, MAX_DEPTH))


def coarsen(zone_hour: Floats, depth: int) -> Floats:
    """Sum [zone, hour] counts over larger zones."""
    return np.asarray(zone_hour.reshape(2**depth, -1, zone_hour.shape[1]).sum(axis=1))


def _blocks(joint: Floats, zones: int) -> Floats:
    """Sum a table over pairs of larger zones."""
    per = len(joint) // zones
    return np.asarray(joint.reshape(zones, per, zones, per, *joint.shape[2:]).sum(axis=(1, 3)))


def _spread(blocks: Floats, zones: int) -> Floats:
    """Repeat the values of pairs of larger zones for all their pairs of smaller zones."""
    per = zones // len(blocks)
    return np.repeat(np.repeat(blocks, per, axis=0), per, axis=1)


def filled(zone_hour: Floats, by_zone: Floats) -> Floats:
    """Add a tiny count to every hour of every zone that has a cell, so that every drawn pair has a fine zone."""
    return zone_hour + 1e-9 * (by_zone[:, None] > 0)


def _ratio(wanted: Floats, have: Floats) -> Floats:
    """Return wanted over present values, 1 where nothing is present."""
    return np.asarray(np.where(have > 0, wanted / np.maximum(have, 1e-300), 1.0))


def _draw(cumulative: Floats, uniform: Floats) -> Integers:
    """Return the positions of uniform draws in cumulative weights."""
    found = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    return np.asarray(np.minimum(found, len(cumulative) - 1), dtype=np.int64)


def draw_within(weights: Floats, group: Integers, generator: np.random.Generator) -> Integers:
    """Draw one column of each group's row, in proportion to its weight."""
    rows, width = weights.shape
    cumulative = np.cumsum(weights.ravel())
    before = np.concatenate([[0.0], cumulative])[np.arange(rows + 1) * width]
    at = before[group] + generator.random(len(group)) * (before[group + 1] - before[group])
    found = np.searchsorted(cumulative, at, side="right")
    return np.clip(found, group * width, (group + 1) * width - 1) - group * width
