"""Lay noisy answers out as link flows: estimate them together, leave out what noise could have made, add intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from murmurate.asking import Answer
from murmurate.asking.table import Answers
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.road_counts.corridors import successions, turns_rad
from murmurate.mechanisms.road_counts.estimate import (
    Totals,
    estimate_hours,
    estimate_paces,
    estimate_profiles,
    estimate_slowness,
    estimate_totals,
    estimate_turns,
)
from murmurate.mechanisms.road_counts.zones import HEADINGS, zones_of_links
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

NORMAL_95 = 1.959964
"""Standard deviations on either side that hold 95 % of a normal distribution."""

U_TURN_WEIGHT = 0.02
"""Weight of turning back at a junction against any other turn, before turns are measured; set by hand."""

U_TURN_RAD = 0.9 * np.pi
"""Turns sharper than this count as turning back."""

SIGMAS = 2.0
"""A link is published only if its estimated count exceeds this multiple of its own remaining standard error. Noise alone lets
no link pass: 0 of 322,000 links in 28 draws on three networks, because empty streets are shrunk to nearly nothing."""

CLIP_BIAS = 0.25
"""Standard deviation of a link's count that comes from the clip, relative to the count and to the share that was cut: people
who drive much are counted less, and drive elsewhere. Built-in city: .09 at .44, .04 at .09; taxis less."""

MIN_RELATIVE_CHANGE = 0.45
"""Least relative standard deviation of a link's hours around those of its zone that intervals allow for. At .3 they held 87 %
of the built-in city's hours, at .45 92 %."""


def traffic_of(answers: Answers, network: RoadNetwork) -> Totals:
    """Estimate how many drove each link, from the first round."""
    return estimate_totals(answers["links"], answers.get("blocks"), network)


def assemble(answers: Answers, network: RoadNetwork, *, n_zones: int, threshold_sigmas: float | None) -> LinkFlows:
    """Make the release from noisy answers alone.

    A link is published if its estimated count exceeds `threshold_sigmas` times its own remaining standard error.
    """
    totals = traffic_of(answers, network)
    sigmas = threshold_sigmas or SIGMAS
    error = typical_error(totals)
    zone = zones_of_links(network, totals.count, n_zones)
    group = zone * HEADINGS + network.heading
    hours = answers["hours"].noisy.reshape(-1, 24)
    day = answers["day"]
    profiles = estimate_profiles(hours, answers["hours"].deviation, day)
    share, relative = estimate_hours(totals, answers.get("blocks"), profiles, group)
    size = max(float(answers["size"].noisy[0]), 0.0)
    # where noise could have made the whole sum, nothing is known about the share the clip has kept
    known = totals.measured > 3 * totals.deviation * np.sqrt(network.n_links)
    rescale = max(size / totals.measured, 1.0) if known else 1.0
    # what all links of an hour share: the noise of the total and of the city's profile
    common = np.hypot(
        answers["size"].deviation / max(size, 1.0),
        day.deviation / max(float(day.noisy.sum()) / 24, 1.0),
    )
    cut = CLIP_BIAS * (1 - 1 / rescale)
    change = float(np.sqrt(max(relative, MIN_RELATIVE_CHANGE) ** 2 + min(common, 1.0) ** 2 + cut**2))
    published = np.flatnonzero((totals.count >= sigmas * totals.error) & (totals.count > 0))
    rows = _rows(share[:, published], totals.count[published], totals.error[published], rescale=rescale, change=change)
    rows = {"hour": np.repeat(np.arange(24), len(published)), "link": np.tile(published, 24), **rows}
    if "speeds" in answers:
        rows |= _speeds(answers, totals, network, published)
    further = {"zones": pl.DataFrame({"link": np.arange(network.n_links), "zone": zone, "heading": group % HEADINGS})}
    if "turns" in answers:
        further["turns"] = _turns(answers["turns"], network, totals.count, rescale)
    if "od" in answers:
        further["od"] = _od(answers["od"], n_zones)
    about = {
        "threshold_trips": sigmas * error * rescale,
        "rescaled_by": rescale,
        "link_error_trips": error * rescale,
        "block_change": relative,
        "links_driven": size,
    }
    return LinkFlows(network=network, table=pl.DataFrame(rows), tables=further, about=about)


def typical_error(totals: Totals) -> float:
    """Return the median remaining standard error over the busier half of links, at most that of the noise."""
    busier = totals.error[totals.count >= np.median(totals.count)]
    return min(float(np.median(busier)), totals.deviation)


def _rows(share: Floats, count: Floats, remaining: Floats, *, rescale: float, change: float) -> dict[str, Any]:
    """Return counts of published links by hour, with intervals for noise and for how hours differ within a zone."""
    mean = share * count * rescale
    noise = share * remaining * rescale
    # a link's own hours differ from those of its zone as its blocks were seen to, and by chance
    half = NORMAL_95 * np.sqrt(noise**2 + (change * mean) ** 2 + mean)
    return {"count": mean.ravel(), "low": np.maximum(mean - half, 0.0).ravel(), "high": (mean + half).ravel()}


def _speeds(answers: Answers, totals: Totals, network: RoadNetwork, published: Integers) -> dict[str, Any]:
    """Return travel times and speeds of published links by hour."""
    road_class = network.road_class.astype(np.int64)
    of_link, of_class = estimate_slowness(answers["speeds"], totals, road_class)
    of_hour = estimate_paces(answers["paces"], of_class)
    time = network.time_s[published] * of_link[published] * of_hour[road_class[published] - 1].T
    return {"travel_time_s": time.ravel(), "speed_kmh": (network.length_m[published] * 3.6 / time).ravel()}


def _turns(turns: Answer, network: RoadNetwork, counts: Floats, rescale: float) -> pl.DataFrame:
    """Return turns of links whose turns exceed three standard deviations of their noise, with their share of the link."""
    into, out = successions(network)
    around = np.where(turns_rad(network, into, out) > U_TURN_RAD, U_TURN_WEIGHT, 1.0)
    estimate = estimate_turns(turns, into, out, counts, around)
    leaving = np.bincount(into, weights=estimate, minlength=network.n_links)
    shown = np.flatnonzero(leaving[into] >= 3 * turns.deviation)
    half = NORMAL_95 * turns.deviation * rescale
    count = estimate[shown] * rescale
    return pl.DataFrame(
        {
            "from_link": into[shown],
            "to_link": out[shown],
            "count": count,
            "low": np.maximum(count - half, 0.0),
            "high": count + half,
            "share": estimate[shown] / leaving[into[shown]],
        }
    )


def _od(od: Answer, n_zones: int) -> pl.DataFrame:
    """Return all pairs of zones, zeros included: which pairs are listed says nothing about the trips."""
    half = NORMAL_95 * od.deviation
    pairs = np.arange(n_zones * n_zones)
    return pl.DataFrame(
        {
            "from_zone": pairs // n_zones,
            "to_zone": pairs % n_zones,
            "trips": np.maximum(od.noisy, 0.0),
            "low": np.maximum(od.noisy - half, 0.0),
            "high": np.maximum(od.noisy + half, 0.0),
        }
    )
