"""Draw a network release: traffic on every road, what it shares with the original, its hours and its busiest links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Floats
from murmurate.report.breaks import Breaks, shared_breaks
from murmurate.report.charts import Chart, hour_shares
from murmurate.report.ground import BaseMap, Ground, ground, link_shapes
from murmurate.report.view import View, lines
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

CLASSES = 5
"""Classes of traffic, by colour and width."""
BUSIEST = 12
"""Links in the table of the busiest. Set by hand."""
TAIL = 0.002
"""Share of the network's vertices outside the window on each side: a lone far road would shrink the rest. Set by hand."""
HEADINGS = ("east", "north", "west", "south")
"""Words for `RoadNetwork.heading`."""
OVERLAP = {"both": "in both", "lost": "only in the original", "added": "only in the release"}
"""Roles of roads on a map of overlap, in words."""


@dataclass(frozen=True)
class Roads:
    """Hold streets drawn alike: `role` names colour and width."""

    role: str
    label: str
    d: str


@dataclass(frozen=True)
class TrafficMap:
    """Hold one map, and the same in words."""

    title: str
    words: str
    roads: tuple[Roads, ...]


@dataclass(frozen=True)
class Busy:
    """Hold one of the busiest links, beside its original where that may be shown."""

    name: str
    heading: str
    released: str
    busiest_hour: str
    original: str
    rank: str


@dataclass(frozen=True)
class TrafficAtlas:
    """Hold every picture of a network release, on one window and one scale of traffic."""

    view: View
    ground: Ground
    scale: tuple[int, str]
    traffic: tuple[TrafficMap, ...]
    legend: tuple[tuple[str, str], ...]
    overlap: TrafficMap | None
    hours: tuple[Chart, ...]
    busiest: tuple[Busy, ...]


def traffic_atlas(
    released: LinkFlows, original: LinkFlows | None, *, base: BaseMap | RoadNetwork | None = None
) -> TrafficAtlas:
    """Draw a release and, on an internal page, its original; without it, everything is read from the release alone."""
    network = released.network
    view = network_view(network)
    sides = {"Original": original, "Released": released} if original is not None else {"Released": released}
    shown = {title: _streets(side) for title, side in sides.items() if side is not None}
    breaks = shared_breaks(max(float(values.max(initial=0.0)) for values in shown.values()), CLASSES)
    ends = {side.lower(): flows for side, flows in sides.items() if flows is not None}
    shares = {role: _percent(flows.by_hour.sum(axis=1)) for role, flows in ends.items()}
    return TrafficAtlas(
        view=view,
        ground=ground(view, base if base is not None else network, None),
        scale=view.scale_bar(),
        traffic=tuple(
            _traffic(title, flows, shown[title], breaks, view) for title, flows in sides.items() if flows is not None
        ),
        legend=tuple((f"t{k + 1 + CLASSES - breaks.n}", label) for k, label in enumerate(breaks.labels("trips"))),
        overlap=overlap(released, original, view) if original is not None else None,
        hours=(hour_shares("Traffic by hour", "% of links driven", shares),) if any(s.any() for s in shares.values()) else (),
        busiest=tuple(_busiest(released, original)),
    )


def network_view(network: RoadNetwork) -> View:
    """Return the window of a network, from public geography alone."""
    (south, north), (west, east) = (np.quantile(values, [TAIL, 1 - TAIL]) for values in (network.shape_lat, network.shape_lng))
    pad = 0.02 * max(north - south, east - west) + 1e-4
    return View(float(south - pad), float(west - pad), float(north + pad), float(east + pad))


def overlap(released: LinkFlows, original: LinkFlows, view: View, title: str = "Overlap") -> TrafficMap:
    """Draw what a release shares with the original, what it lost and what it added (the paper's figure 5)."""
    mine, theirs = released.totals > 0, original.totals > 0
    parts = {"both": mine & theirs, "lost": theirs & ~mine, "added": mine & ~theirs}
    length = original.network.length_m / 1000
    whole = float(length[theirs].sum()) or 1.0
    km = {role: float(length[chosen].sum()) for role, chosen in parts.items()}
    shown = km["both"] + km["added"]
    words = f"{shown:,.0f} km, {shown / whole:.2f} of the original; {km['lost']:,.0f} km lost, {km['added']:,.0f} km added"
    drawn = [Roads(role, OVERLAP[role], _d(view, original.network, chosen)) for role, chosen in parts.items()]
    return TrafficMap(title, words, tuple(part for part in drawn if part.d))


def driven_map(original: LinkFlows, view: View) -> TrafficMap:
    """Draw all roads that were driven, however often."""
    driven = Roads("both", "driven", _d(view, original.network, original.totals > 0))
    return TrafficMap("Original", f"{original.length_km:,.0f} km of roads", (driven,))


def comparison_maps(original: LinkFlows, releases: Mapping[str, LinkFlows], view: View) -> list[TrafficMap]:
    """Draw the original's roads, and what each release (name -> flows) shares with them."""
    return [driven_map(original, view), *(overlap(flows, original, view, title) for title, flows in releases.items())]


def _traffic(title: str, flows: LinkFlows, streets: Floats, breaks: Breaks, view: View) -> TrafficMap:
    number = breaks.classes(streets)
    labels = breaks.labels("trips")
    drawn = [
        Roads(f"t{k + 1 + CLASSES - breaks.n}", labels[k], _d(view, flows.network, (streets > 0) & (number == k)))
        for k in range(breaks.n)
    ]
    words = f"{flows.length_km:,.0f} km of roads, {flows.totals.sum():,.0f} links driven"
    return TrafficMap(title, words, tuple(part for part in drawn if part.d))


def _streets(flows: LinkFlows) -> Floats:
    """Return the traffic of both directions together, on each of them."""
    totals, twin = flows.totals, flows.network.twin
    return totals + np.where(twin >= 0, totals[twin], 0.0)


def _d(view: View, network: RoadNetwork, chosen: NDArray[np.bool_]) -> str:
    """Draw links as a path; a street whose other direction is drawn as well is drawn once."""
    twin = network.twin
    repeated = (twin >= 0) & (twin < np.arange(network.n_links)) & chosen[twin]
    return lines(*link_shapes(view, network, np.flatnonzero(chosen & ~repeated)))


def _percent(counts: Floats) -> Floats:
    total = float(counts.sum())
    return 100 * counts / total if total > 0 else np.zeros(24)


def _busiest(released: LinkFlows, original: LinkFlows | None) -> list[Busy]:
    network, totals = released.network, released.totals
    busy_hour = released.by_hour.argmax(axis=0)
    order = np.argsort(-totals, kind="stable")[:BUSIEST]
    ranks = {int(link): k + 1 for k, link in enumerate(np.argsort(-original.totals, kind="stable"))} if original else {}
    return [
        Busy(
            _name(network, link),
            HEADINGS[network.heading[link]],
            f"{totals[link]:,.0f}",
            f"{busy_hour[link]}:00",
            f"{original.totals[link]:,.0f}" if original is not None else "",
            f"{ranks[link]:,}" if original is not None else "",
        )
        for link in order[totals[order] > 0].tolist()
    ]


def _name(network: RoadNetwork, link: int) -> str:
    name = None if network.name is None else network.name[link]
    return str(name) if name else f"link {link} (class {int(network.road_class[link])})"
