"""Estimate one consistent network from noisy tables: non-negative counts, hours that add up to links, speeds where known.

Post-processing: everything here reads noisy answers and the public network alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from murmurate.asking import Answer
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.road_counts.corridors import Corridors, Field
from murmurate.mechanisms.road_counts.counting import MAX_SLOWNESS
from murmurate.mechanisms.road_counts.settings import BLOCK_HOURS, N_BLOCKS, N_CLASSES
from murmurate.mechanisms.road_counts.zones import usual_counts
from murmurate.spaces.road import RoadNetwork
from murmurate.synthesis.shrink import nonnegative, shrink

CLASS_SLOWNESS_SD = 0.1
"""Standard deviation of the mean slowness of links around that of their class, as a fraction of `MAX_SLOWNESS`; set by hand."""

HOUR_SLOWNESS_SD = 0.2
"""Standard deviation of an hour's slowness around that of the day, relative to it; set by hand."""

SMOOTHING = np.concatenate([[0.0], np.geomspace(0.01, 1e6, 33)])
"""Penalties on differences of neighbouring hours that are tried, from none to one value for the whole day; without unit."""


@dataclass(frozen=True, eq=False)
class Totals:
    """Estimated counts of links, before they are rescaled."""

    count: Floats
    field: Field
    """What the counts were estimated by."""
    error: Floats
    """Remaining standard error of each count."""
    deviation: float
    """Standard deviation of the noise in the counts that were smoothed."""
    measured: float
    """Sum of the noisy counts, before anything was smoothed or cut at zero."""
    block_ratio: float
    """How much larger counts of links are than sums of their blocks, because the clip scales each table by itself."""


@lru_cache(maxsize=1)  # answers and networks compare by identity: what the second round was made from, the model reads again
def estimate_totals(links: Answer, blocks: Answer | None, network: RoadNetwork) -> Totals:
    """Combine all measurements of the totals by their noise and smooth them along corridors and towards their neighbourhood."""
    corridors = Corridors.of(network)
    both, combined, ratio = links.noisy, links.deviation, 1.0
    if blocks is not None:
        of_links = blocks.noisy.reshape(N_BLOCKS, -1).sum(axis=0)
        summed, total = float(of_links.sum()), float(links.noisy.sum())
        ratio = float(np.clip(total / summed, 0.5, 2.0)) if summed > 0 and total > 0 else 1.0
        second = blocks.deviation * ratio * np.sqrt(N_BLOCKS)
        precision = 1 / links.deviation**2 + 1 / second**2
        both = (links.noisy / links.deviation**2 + of_links * ratio / second**2) / precision
        combined = float(1 / np.sqrt(precision))
    rough = corridors.fit(both, combined).level
    usual = usual_counts(network, both, rough, deviation=combined)
    field = corridors.fit(both, combined, usual=usual)
    return Totals(field.level, field, field.standard_error(both, combined), combined, float(both.sum()), ratio)


def estimate_profiles(hours: Floats, deviation: float, day: Answer) -> Floats:
    """Estimate [group, hour], the share of each hour in a group's traffic: a few daily patterns, mixed by group.

    What groups have in common is the city's profile, which is counted by itself (`day`), because in the sum of all groups
    the noise of each would add up. Of the rest, patterns that noise alone would show are left out and the
    others are shrunk by what noise adds to them (the shrinkage of singular values that is best for white noise).
    """
    city = nonnegative(_smooth_day(day.noisy, day.deviation))
    traffic = nonnegative(hours.sum(axis=1))
    if city.sum() <= 0:
        return np.full(hours.shape, 1 / 24)
    shape = city / city.sum()
    left, size, right = np.linalg.svd(hours - hours.sum(axis=1, keepdims=True) * shape, full_matrices=False)
    long, short = max(hours.shape), min(hours.shape)
    unit, aspect = deviation * np.sqrt(long), short / long
    seen = (size / unit) ** 2
    spread = np.sqrt(np.maximum((seen - aspect - 1) ** 2 - 4 * aspect, 0.0) / np.maximum(seen, 1e-300))
    kept = np.where(seen > (1 + np.sqrt(aspect)) ** 2, spread, 0.0) * unit
    estimate = np.maximum(traffic[:, None] * shape + (left * kept) @ right, 0.0)
    sums = estimate.sum(axis=1, keepdims=True)
    return np.where(sums > 0, estimate / np.maximum(sums, 1e-300), shape)


def _smooth_day(noisy: Floats, deviation: float) -> Floats:
    """Smooth the hours of the city over neighbouring hours; the sum stays.

    The penalty is the one with the least expected error, estimated from the noisy hours themselves (Stein's unbiased risk
    estimate): where steps from hour to hour drown in noise, day and night still stand apart.
    """
    waves = np.fft.rfft(noisy)
    rough = 2 - 2 * np.cos(2 * np.pi * np.arange(len(waves)) / len(noisy))
    twice = np.where(np.arange(len(waves)) % (len(noisy) / 2) == 0, 1.0, 2.0)  # all waves but the first and last come in pairs
    kept = 1 / (1 + np.outer(SMOOTHING, rough))
    missed = ((1 - kept) ** 2) @ (twice * np.abs(waves) ** 2) / len(noisy)
    best = kept[np.argmin(missed + 2 * deviation**2 * (kept @ twice))]
    return np.fft.irfft(waves * best, len(noisy))


def estimate_hours(totals: Totals, blocks: Answer | None, profiles: Floats, group: Integers) -> tuple[Floats, float]:
    """Estimate [hour, link] shares of each link's traffic, and how much blocks vary around their group's profile."""
    if blocks is None:
        return profiles[group].T, 0.0
    by_block = profiles.reshape(len(profiles), N_BLOCKS, BLOCK_HOURS)
    block_share = by_block.sum(axis=2)
    prior = totals.count * block_share[group].T
    scaled, noise = blocks.noisy.reshape(N_BLOCKS, -1) * totals.block_ratio, blocks.deviation * totals.block_ratio
    relative = _relative_change(scaled, prior, noise)
    smooth = totals.field.corridors.smooth_towards
    estimate = np.array(
        [smooth(row, mean, deviation=noise, relative=relative) for row, mean in zip(scaled, prior, strict=True)]
    )
    sums = estimate.sum(axis=0)
    share = np.where(sums > 0, estimate / np.maximum(sums, 1e-300), block_share[group].T)
    within = by_block / np.maximum(block_share[:, :, None], 1e-300)
    return (share.T[:, :, None] * within[group]).reshape(len(group), 24).T, relative


def _relative_change(noisy: Floats, prior: Floats, noise: float) -> float:
    """Estimate by how much counts differ from the prior, relative to it and beyond noise; busy links count most.

    One standard deviation of what noise alone would give is subtracted, so that noise does not pass for change.
    """
    weight = prior**2
    excess = float((weight * ((noisy - prior) ** 2 - noise**2)).sum()) - noise**2 * np.sqrt(2 * float((weight**2).sum()))
    return float(np.sqrt(min(max(excess, 0.0) / max(float((weight**2).sum()), 1e-300), 1.0)))


def estimate_slowness(speeds: Answer, totals: Totals, road_class: Integers) -> tuple[Floats, Floats]:
    """Estimate travel time over free time of every link and class; links with little traffic are shrunk to their class."""
    links, known = totals.count, np.maximum(totals.count, totals.deviation)
    of_class = np.zeros(N_CLASSES)
    for k in range(N_CLASSES):
        mine = road_class == k + 1
        traffic = float(links[mine].sum())
        if traffic > 3 * totals.deviation * np.sqrt(max(int(mine.sum()), 1)):
            of_class[k] = np.clip(speeds.noisy[mine].sum() / traffic, -0.5, 0.5)
    usual = of_class[road_class - 1]
    noise = speeds.deviation / known
    weight = CLASS_SLOWNESS_SD**2 / (CLASS_SLOWNESS_SD**2 + noise**2)
    value = np.clip(usual + weight * (speeds.noisy / known - usual), -0.48, 0.5)
    return (value + 0.5) * MAX_SLOWNESS, (of_class + 0.5) * MAX_SLOWNESS


def estimate_paces(paces: Answer, of_class: Floats) -> Floats:
    """Estimate [class, hour], how much slower than its own mean each class is at each hour; near one where noise is large."""
    counts, sums = paces.noisy.reshape(2, N_CLASSES, 24)
    traffic = np.maximum(counts, paces.deviation)
    mean = np.maximum(of_class, 0.1)[:, None]
    noise = paces.deviation / traffic * MAX_SLOWNESS / mean
    seen = (np.clip(sums / traffic, -0.48, 0.5) + 0.5) * MAX_SLOWNESS / mean
    weight = HOUR_SLOWNESS_SD**2 / (HOUR_SLOWNESS_SD**2 + noise**2)
    return np.clip(1 + weight * (seen - 1), 0.5, 2.0)


def estimate_turns(turns: Answer, into: Integers, out: Integers, counts: Floats, around: Floats) -> Floats:
    """Estimate counts of turns, shrunk towards the traffic of the links they lead to; `around` weighs U-turns down."""
    weight = (counts[out] + 1e-9) * around
    sums = np.bincount(into, weights=weight, minlength=len(counts))
    prior = counts[into] * weight / np.maximum(sums[into], 1e-300)
    return shrink(turns.noisy, prior, deviation=turns.deviation)
