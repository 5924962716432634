"""Draw every noisy table once, believe them together, and lay them out as link flows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.road_counts.believe import (
    Totals,
    believe_hours,
    believe_paces,
    believe_profiles,
    believe_slowness,
    believe_totals,
    believe_turns,
)
from murmurate.mechanisms.road_counts.corridors import Corridors, successions, turns_rad
from murmurate.mechanisms.road_counts.tables import Reader
from murmurate.mechanisms.road_counts.zones import HEADINGS, zones_of_links
from murmurate.spaces.drives import Drives
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

NORMAL_95 = 1.959964
U_TURN_WEIGHT = 0.02
SIGMAS = 3.0
OWN_SIGMAS = 2.0
"""A link must also carry this many times the error that is left of its own, which is wider where noise looks like traffic."""
INVENTED = 0.025
USUAL_VARIETY = 0.3
"""How much the hours of a link differ at least, relative to those of its zone, where intervals are concerned."""


def assemble(reader: Reader, *, n_zones: int, threshold_sigmas: float | None) -> LinkFlows:
    """The release; a link must be believed to carry `threshold_sigmas` times the error that is left to be published."""
    network = reader.drives.network
    corridors = Corridors.of(network)
    links = reader.links()
    blocks = reader.blocks() if "blocks" in reader.spreads else None
    block_deviation = reader.deviation("blocks") if blocks is not None else 0.0
    totals = believe_totals(
        links,
        blocks,
        deviation=reader.deviation("links"),
        block_deviation=block_deviation,
        network=network,
        corridors=corridors,
        generator=reader.rng.generator(),
    )
    error = error_left(totals)
    threshold = threshold_sigmas * error if threshold_sigmas else _without_invention(totals.count, SIGMAS * error, error)
    zone = zones_of_links(network, totals.count, n_zones)
    group = zone * HEADINGS + network.heading
    hours = reader.hours(group, n_zones * HEADINGS)
    profiles = believe_profiles(hours, reader.deviation("hours", reader.bounds.hours))
    share, relative = believe_hours(totals, blocks, profiles, group, deviation=block_deviation, corridors=corridors)
    size = max(reader.size(), 0.0)
    # where noise could have made the whole sum, nothing is known about the share the clip has kept
    known = totals.measured > 3 * totals.deviation * np.sqrt(network.n_links)
    rescale = max(size / totals.measured, 1.0) if known else 1.0
    # what all links of an hour share: the noise of the total and of the city's profile
    common = np.hypot(
        reader.deviation("size", reader.bounds.links) / max(size, 1.0),
        reader.deviation("hours", reader.bounds.hours) * np.sqrt(len(hours)) / max(float(hours.sum()) / 24, 1.0),
    )
    variety = float(np.hypot(max(relative, USUAL_VARIETY), min(common, 1.0)))
    own = min(OWN_SIGMAS, threshold_sigmas or SIGMAS) * totals.left
    published = np.flatnonzero((totals.count >= threshold) & (totals.count >= own))
    slowness = _slowness(reader, totals) if "speeds" in reader.spreads else None
    table = _rows(network, totals, share=share, published=published, rescale=rescale, variety=variety, slowness=slowness)
    further = {"zones": pl.DataFrame({"link": np.arange(network.n_links), "zone": zone, "heading": group % HEADINGS})}
    if "turns" in reader.spreads:
        further["turns"] = _turns(reader, totals.count, rescale)
    if "od" in reader.spreads:
        further["od"] = _od(reader, zone, n_zones)
    about = {
        "threshold_trips": threshold * rescale,
        "rescaled_by": rescale,
        "link_error_trips": error * rescale,
        "block_change": relative,
        "links_driven": size,
    }
    return LinkFlows(network=network, table=table, tables=further, about=about)


def _without_invention(count: Floats, threshold: float, error: float) -> float:
    """The threshold, raised until empty links would make up at most a fortieth of what passes it, were all links empty.

    Where hardly anything is above the noise, three deviations of it are passed by chance more often than by traffic.
    """
    from scipy.special import ndtr

    while True:
        passing = int((count >= threshold).sum())
        if len(count) * float(ndtr(-threshold / error)) <= INVENTED * passing or not passing:
            return threshold
        threshold += 0.1 * error


def error_left(totals: Totals) -> float:
    """One deviation for all links that carry little: the 95th percentile over the emptier half, never above the noise."""
    emptier = totals.left[totals.count <= np.median(totals.count)]
    return min(float(np.quantile(emptier, 0.95)), totals.deviation)


def _rows(
    network: RoadNetwork,
    totals: Totals,
    *,
    share: Floats,
    published: Integers,
    rescale: float,
    variety: float,
    slowness: tuple[Floats, Floats] | None,
) -> pl.DataFrame:
    """One row for every published link and hour, with what noise and the spread of profiles leave open."""
    part = share[:, published]
    count = part * totals.count[published] * rescale
    noise = part * totals.left[published] * rescale
    # a link's own hours differ from those of its zone as its blocks were seen to, and by chance
    half = NORMAL_95 * np.sqrt(noise**2 + (variety * count) ** 2 + count)
    columns: dict[str, Any] = {
        "hour": np.repeat(np.arange(24), len(published)),
        "link": np.tile(published, 24),
        "count": count.ravel(),
        "low": np.maximum(count - half, 0.0).ravel(),
        "high": (count + half).ravel(),
    }
    if slowness is not None:
        of_link, of_hour = slowness
        time = network.time_s[published] * of_link[published] * of_hour[network.road_class[published] - 1].T
        columns["travel_time_s"] = time.ravel()
        columns["speed_kmh"] = (network.length_m[published] * 3.6 / time).ravel()
    return pl.DataFrame(columns)


def _slowness(reader: Reader, totals: Totals) -> tuple[Floats, Floats]:
    of_link, of_class = believe_slowness(
        reader.speeds(),
        totals.count,
        reader.drives.network.road_class.astype(np.int64),
        deviation=reader.deviation("speeds", reader.bounds.clip / 2),
        count_deviation=totals.deviation,
    )
    return of_link, believe_paces(reader.paces(), of_class, deviation=reader.deviation("paces", reader.paces_clip))


def _turns(reader: Reader, counts: Floats, rescale: float) -> pl.DataFrame:
    """Successions of links at junctions above three deviations of their noise, with their share of the link they leave."""
    network = reader.drives.network
    into, out = successions(network)
    around = np.where(turns_rad(network, into, out) > np.pi * 0.9, U_TURN_WEIGHT, 1.0)
    deviation = reader.deviation("turns")
    noisy = reader.turns(_succession_of(reader.drives, into, out), len(into))
    believed = believe_turns(noisy, into, out, counts, around, deviation=deviation)
    leaving = np.bincount(into, weights=believed, minlength=network.n_links)
    shown = np.flatnonzero(leaving[into] >= 3 * deviation)
    half = NORMAL_95 * deviation * rescale
    count = believed[shown] * rescale
    return pl.DataFrame(
        {
            "from_link": into[shown],
            "to_link": out[shown],
            "count": count,
            "low": np.maximum(count - half, 0.0),
            "high": count + half,
            "share": believed[shown] / leaving[into[shown]],
        }
    )


def _succession_of(drives: Drives, into: Integers, out: Integers) -> Integers:
    """The number of the succession that each driven link begins; -1 where the next one does not follow it."""
    n = drives.network.n_links
    keys = into * n + out
    order = np.argsort(keys, kind="stable")
    found = np.full(len(drives.link), -1, dtype=np.int64)
    if len(found) < 2:
        return found
    follows = (drives.trip[1:] == drives.trip[:-1]) & (drives.part[1:] == drives.part[:-1])
    wanted = drives.link[:-1] * n + drives.link[1:]
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    there = follows & (keys[order][at] == wanted)
    found[:-1][there] = order[at[there]]
    return found


def _od(reader: Reader, zone: Integers, n_zones: int) -> pl.DataFrame:
    """All pairs of zones, zeros included: which pairs are listed tells nothing."""
    deviation = reader.deviation("od", reader.bounds.trips)
    noisy = reader.ends(zone, n_zones)
    half = NORMAL_95 * deviation
    flat = noisy.ravel()
    pairs = np.arange(n_zones * n_zones)
    return pl.DataFrame(
        {
            "from_zone": pairs // n_zones,
            "to_zone": pairs % n_zones,
            "trips": np.maximum(flat, 0.0),
            "low": np.maximum(flat - half, 0.0),
            "high": np.maximum(flat + half, 0.0),
        }
    )
