"""From noisy tables to one consistent network: non-negative, hours adding up to links, speeds where they are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.road_counts.corridors import Corridors
from murmurate.mechanisms.road_counts.neighbourhoods import usual_counts
from murmurate.mechanisms.road_counts.settings import BLOCK_HOURS, N_BLOCKS
from murmurate.mechanisms.road_counts.tables import SLOWEST
from murmurate.spaces.road import RoadNetwork
from murmurate.synthesis.shrink import nonnegative, shrink

USUAL_SPREAD = 0.1
"""How far the mean slowness of links lies from that of their class, in units of the range of slowness."""

USUAL_CHANGE = 0.2
"""How much slower or faster an hour usually is than the day."""


LEANING = np.concatenate([[0.0], np.geomspace(0.01, 1e6, 33)])
"""How strongly hours may lean on their neighbours, from not at all to one value for the whole day."""


@dataclass(frozen=True, eq=False)
class Totals:
    """Believed counts of links, before they are rescaled."""

    count: Floats
    left: Floats
    """How far off each may still be, one deviation."""
    deviation: float
    """Of the noise they were believed in spite of."""
    measured: float
    """Their sum as it was measured, before anything was smoothed or cut at zero."""
    block_ratio: float
    """How much more the clip left of links than of links by block."""


def believe_totals(
    links: Floats,
    blocks: Floats | None,
    *,
    deviation: float,
    block_deviation: float,
    network: RoadNetwork,
    corridors: Corridors,
    generator: np.random.Generator,
) -> Totals:
    """All measurements of the totals, weighed by their noise, smoothed along corridors and towards their neighbourhood."""
    both, combined, ratio = links, deviation, 1.0
    if blocks is not None:
        summed = float(blocks.sum())
        ratio = float(np.clip(links.sum() / summed, 0.5, 2.0)) if summed > 0 and links.sum() > 0 else 1.0
        second = block_deviation * ratio * np.sqrt(len(blocks))
        precision = 1 / deviation**2 + 1 / second**2
        both = (links / deviation**2 + blocks.sum(axis=0) * ratio / second**2) / precision
        combined = float(1 / np.sqrt(precision))
    rough = corridors.fit(both, combined).level
    field = corridors.fit(both, combined, usual=usual_counts(network, both, rough, deviation=combined))
    return Totals(field.level, field.left(generator), combined, float(both.sum()), ratio)


def believe_profiles(hours: Floats, deviation: float) -> Floats:
    """[group, hour]: share of each hour in the group's traffic, a few patterns of the day mixed differently everywhere.

    What groups have in common is the city's profile. Of the rest, patterns that noise alone would show are left out and the
    others are shrunk by what noise adds to them (the shrinkage of singular values that is best for white noise).
    """
    city = nonnegative(_smooth_day(hours.sum(axis=0), deviation * np.sqrt(len(hours))))
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
    believed = np.maximum(traffic[:, None] * shape + (left * kept) @ right, 0.0)
    sums = believed.sum(axis=1, keepdims=True)
    return np.where(sums > 0, believed / np.maximum(sums, 1e-300), shape)


def _smooth_day(noisy: Floats, deviation: float) -> Floats:
    """Hours of the city, leaning on the hours beside them; the sum stays.

    How much they lean is what makes the expected error least, as the noisy hours themselves tell it (Stein's estimate): where
    steps from hour to hour drown in noise, day and night still stand apart.
    """
    waves = np.fft.rfft(noisy)
    rough = 2 - 2 * np.cos(2 * np.pi * np.arange(len(waves)) / len(noisy))
    twice = np.where(np.arange(len(waves)) % (len(noisy) / 2) == 0, 1.0, 2.0)  # all waves but the first and last come in pairs
    kept = 1 / (1 + np.outer(LEANING, rough))
    missed = ((1 - kept) ** 2) @ (twice * np.abs(waves) ** 2) / len(noisy)
    best = kept[np.argmin(missed + 2 * deviation**2 * (kept @ twice))]
    return np.fft.irfft(waves * best, len(noisy))


def believe_hours(
    totals: Totals, blocks: Floats | None, profiles: Floats, group: Integers, *, deviation: float, corridors: Corridors
) -> tuple[Floats, float]:
    """[hour, link] shares of each link's traffic, and how much blocks vary around their group's profile."""
    if blocks is None:
        return profiles[group].T, 0.0
    by_block = profiles.reshape(len(profiles), N_BLOCKS, BLOCK_HOURS)
    block_share = by_block.sum(axis=2)
    prior = totals.count * block_share[group].T
    scaled, noise = blocks * totals.block_ratio, deviation * totals.block_ratio
    relative = _variety(scaled, prior, noise)
    believed = np.array(
        [
            corridors.smooth_towards(row, mean, deviation=noise, relative=relative)
            for row, mean in zip(scaled, prior, strict=True)
        ]
    )
    sums = believed.sum(axis=0)
    share = np.where(sums > 0, believed / np.maximum(sums, 1e-300), block_share[group].T)
    within = by_block / np.maximum(block_share[:, :, None], 1e-300)
    return (share.T[:, :, None] * within[group]).reshape(len(group), 24).T, relative


def _variety(noisy: Floats, prior: Floats, noise: float) -> float:
    """By how much counts differ from the prior, relative to it and beyond noise; busy links tell most of it.

    A deviation of what noise alone would give is taken off, lest noise pass for variety.
    """
    weight = prior**2
    excess = float((weight * ((noisy - prior) ** 2 - noise**2)).sum()) - noise**2 * np.sqrt(2 * float((weight**2).sum()))
    return float(np.sqrt(min(max(excess, 0.0) / max(float((weight**2).sum()), 1e-300), 1.0)))


def believe_slowness(
    speeds: Floats, links: Floats, road_class: Integers, *, deviation: float, count_deviation: float
) -> tuple[Floats, Floats]:
    """Mean travel time over free time of every link, and of every class; rarely driven links lean on their class."""
    known = np.maximum(links, count_deviation)
    of_class = np.zeros(5)
    for k in range(5):
        mine = road_class == k + 1
        traffic = float(links[mine].sum())
        if traffic > 3 * count_deviation * np.sqrt(max(int(mine.sum()), 1)):
            of_class[k] = np.clip(speeds[mine].sum() / traffic, -0.5, 0.5)
    usual = of_class[road_class - 1]
    noise = deviation / known
    belief = USUAL_SPREAD**2 / (USUAL_SPREAD**2 + noise**2)
    value = np.clip(usual + belief * (speeds / known - usual), -0.48, 0.5)
    return (value + 0.5) * SLOWEST, (of_class + 0.5) * SLOWEST


def believe_paces(paces: Floats, of_class: Floats, *, deviation: float) -> Floats:
    """[class, hour]: how much slower than its own mean each class is at each hour, near one where little is known."""
    traffic = np.maximum(paces[0], deviation)
    mean = np.maximum(of_class, 0.1)[:, None]
    noise = deviation / traffic * SLOWEST / mean
    seen = (np.clip(paces[1] / traffic, -0.48, 0.5) + 0.5) * SLOWEST / mean
    belief = USUAL_CHANGE**2 / (USUAL_CHANGE**2 + noise**2)
    return np.clip(1 + belief * (seen - 1), 0.5, 2.0)


def believe_turns(noisy: Floats, into: Integers, out: Integers, counts: Floats, around: Floats, *, deviation: float) -> Floats:
    """Counts of successions, leaning on the traffic of the links they lead to; `around` weighs U-turns down."""
    pull = (counts[out] + 1e-9) * around
    sums = np.bincount(into, weights=pull, minlength=len(counts))
    prior = counts[into] * pull / np.maximum(sums[into], 1e-300)
    return shrink(noisy, prior, deviation=deviation)
