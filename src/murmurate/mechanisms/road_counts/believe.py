"""From noisy tables to one consistent network: non-negative, hours adding up to links, speeds where they are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.road_counts.corridors import Corridors
from murmurate.mechanisms.road_counts.settings import BLOCK_HOURS, N_BLOCKS
from murmurate.mechanisms.road_counts.tables import SLOWEST
from murmurate.synthesis.shrink import nonnegative, shrink

USUAL_SPREAD = 0.1
"""How far the mean slowness of links lies from that of their class, in units of the range of slowness."""

USUAL_CHANGE = 0.2
"""How much slower or faster an hour usually is than the day."""


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
    blocks: Floats,
    *,
    deviation: float,
    block_deviation: float,
    corridors: Corridors,
    generator: np.random.Generator,
) -> Totals:
    """Both measurements of the totals, weighed by their noise, and smoothed along corridors."""
    summed = float(blocks.sum())
    ratio = float(np.clip(links.sum() / summed, 0.5, 2.0)) if summed > 0 and links.sum() > 0 else 1.0
    second = block_deviation * ratio * np.sqrt(len(blocks))
    precision = 1 / deviation**2 + 1 / second**2
    both = (links / deviation**2 + blocks.sum(axis=0) * ratio / second**2) / precision
    combined = float(1 / np.sqrt(precision))
    count, left = corridors.smooth(both, combined, generator)
    return Totals(count, left, combined, float(both.sum()), ratio)


def believe_profiles(hours: Floats, deviation: float) -> Floats:
    """[zone, hour]: share of each hour in the zone's traffic; zones lean on the city as far as their noise demands."""
    city, zone = nonnegative(hours.sum(axis=0)), nonnegative(hours.sum(axis=1))
    if city.sum() <= 0:
        return np.full(hours.shape, 1 / 24)
    shape = city / city.sum()
    believed = np.array([shrink(row, total * shape, deviation=deviation) for row, total in zip(hours, zone, strict=True)])
    sums = believed.sum(axis=1, keepdims=True)
    return np.where(sums > 0, believed / np.maximum(sums, 1e-300), shape)


def believe_hours(
    totals: Totals, blocks: Floats, profiles: Floats, zone: Integers, *, deviation: float, corridors: Corridors
) -> tuple[Floats, float]:
    """[hour, link] shares of each link's traffic, and how much blocks vary around their zone's profile."""
    by_block = profiles.reshape(len(profiles), N_BLOCKS, BLOCK_HOURS)
    block_share = by_block.sum(axis=2)
    prior = totals.count * block_share[zone].T
    scaled, noise = blocks * totals.block_ratio, deviation * totals.block_ratio
    # a deviation of what noise alone would give is taken off, lest noise pass for variety
    excess = float(((scaled - prior) ** 2).sum()) - noise**2 * (scaled.size + np.sqrt(2 * scaled.size))
    relative = float(np.sqrt(max(excess, 0.0) / max(float((prior**2).sum()), 1e-300)))
    relative = min(relative, 1.0)
    believed = np.array(
        [
            corridors.smooth_towards(row, mean, deviation=noise, relative=relative)
            for row, mean in zip(scaled, prior, strict=True)
        ]
    )
    sums = believed.sum(axis=0)
    share = np.where(sums > 0, believed / np.maximum(sums, 1e-300), block_share[zone].T)
    within = by_block / np.maximum(block_share[:, :, None], 1e-300)
    return (share.T[:, :, None] * within[zone]).reshape(len(zone), 24).T, relative


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
