"""All maps of a page on one window, one ground and common scales: density, change, flows and a few trips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import Side
from murmurate.report.breaks import Breaks
from murmurate.report.density import (
    CLASSES,
    Patch,
    change_breaks,
    change_patches,
    density_breaks,
    density_patches,
    display_grid,
    visit_shares,
)
from murmurate.report.flow_map import CLASSES as FLOW_CLASSES
from murmurate.report.flow_map import Arcs, Flows, flow_arcs, flow_breaks, strongest_flows, zone_grid
from murmurate.report.ground import BaseMap, Layer, ground
from murmurate.report.samples import Strand, choose, strands
from murmurate.report.view import View
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork

Base = BaseMap | RoadNetwork | None

AROUND = 0.99
"""Without a public grid the window holds this share of the released points each way."""
CELLS_ACROSS = 48


@dataclass(frozen=True)
class Panel:
    """One map: whose it is, what is drawn on the ground, and the same in words."""

    title: str
    words: str
    patches: tuple[Patch, ...] = ()
    arcs: tuple[Arcs, ...] = ()
    strands: tuple[Strand, ...] = ()


@dataclass(frozen=True)
class Legend:
    """Class of colour and what it stands for, least first."""

    title: str
    kind: str
    entries: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Atlas:
    """Every map of a page."""

    view: View
    ground: tuple[Layer, ...]
    scale: tuple[int, str]
    density: tuple[Panel, ...]
    density_legend: Legend
    change: tuple[Panel, ...]
    change_legend: Legend | None
    flows: tuple[Panel, ...]
    flow_legend: Legend
    samples: tuple[Panel, ...]
    cell_m: float
    zone_m: float


def atlas(
    grid: Grid, sides: Mapping[str, Trips], *, base: Base = None, original: str | None = None, pairing: Integers | None = None
) -> Atlas:
    """Maps of every side (title -> trips); `original` names the side that the others are compared with."""
    shown, zones, view = display_grid(grid), zone_grid(grid), View.of(grid)
    laid = {title: Side(trips, shown) for title, trips in sides.items()}
    shares = {title: visit_shares(side) for title, side in laid.items()}
    breaks = density_breaks(list(shares.values()))
    others = [title for title in laid if title != original]
    changes = {} if original is None else {title: shares[title] - shares[original] for title in others}
    change_scale = change_breaks(list(changes.values())) if changes else Breaks(())
    flows = {title: strongest_flows(side, zones) for title, side in laid.items()}
    flow_scale = flow_breaks(list(flows.values()))
    return Atlas(
        view=view,
        ground=tuple(ground(view, base, shown)),
        scale=view.scale_bar(),
        density=tuple(
            Panel(title, _density_words(share), patches=tuple(density_patches(view, shown, share, breaks)))
            for title, share in shares.items()
        ),
        density_legend=_legend("Share of all points in a cell", "density", breaks, "%", CLASSES),
        change=tuple(
            Panel(title, _change_words(change), patches=tuple(change_patches(view, shown, change, change_scale)))
            for title, change in changes.items()
        ),
        change_legend=_change_legend(change_scale) if changes else None,
        flows=tuple(
            Panel(title, _flow_words(found), arcs=tuple(flow_arcs(view, zones, found, flow_scale)))
            for title, found in flows.items()
        ),
        flow_legend=_legend("Share of all trips in a flow", "flow", flow_scale, "%", FLOW_CLASSES),
        samples=_samples(view, laid, original, pairing),
        cell_m=shown.cell_m,
        zone_m=zones.cell_m,
    )


def grid_around(trips: Trips) -> Grid:
    """A window over released trips, read from nothing but them."""
    lat, lng = Side(trips, Grid(-1, -1, 1, 1, 1e5)).degrees
    tail = (1 - AROUND) / 2
    (south, north), (west, east) = (np.quantile(values, [tail, 1 - tail]) for values in (lat, lng))
    pad = 0.03 * max(north - south, east - west) + 0.001
    south, north = max(-89.9, south - pad), min(89.9, north + pad)
    west, east = max(-180.0, west - pad), min(180.0, east + pad)
    across_m = 111_195 * max(north - south, (east - west) * float(np.cos(np.radians((south + north) / 2))))
    return Grid(float(south), float(west), float(north), float(east), float(max(1.0, across_m / CELLS_ACROSS)))


def _samples(view: View, laid: Mapping[str, Side], original: str | None, pairing: Integers | None) -> tuple[Panel, ...]:
    panels: list[Panel] = []
    for title, side in laid.items():
        if title == original:
            continue
        mine, theirs = choose(side, laid.get(original or ""), pairing)
        if original is not None and not panels:
            panels.append(Panel(original, f"{len(theirs)} trips", strands=tuple(strands(view, laid[original], theirs))))
        panels.append(Panel(title, f"{len(mine)} trips", strands=tuple(strands(view, side, mine))))
    return tuple(panels)


def _legend(title: str, kind: str, breaks: Breaks, unit: str, classes: int) -> Legend:
    labels = breaks.labels(unit)
    return Legend(title, kind, tuple((k + classes - breaks.n + 1, label) for k, label in enumerate(labels)))


def _change_legend(breaks: Breaks) -> Legend:
    labels = breaks.labels("pp")
    fewer = [(-k, f"fewer, {labels[k]}") for k in range(breaks.n - 1, 0, -1)]
    more = [(k, f"more, {labels[k]}") for k in range(1, breaks.n)]
    return Legend("Change of a cell's share, in percentage points (pp)", "change", (*fewer, *more))


def _density_words(share: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return f"{int((share > 0).sum()):,} cells visited; the busiest holds {share.max(initial=0.0):.2g} % of the points"


def _change_words(change: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return f"{np.abs(change).sum() / 2:.3g} % of the points lie in other cells than in the originals"


def _flow_words(flows: Flows) -> str:
    return f"the {len(flows.share)} strongest flows hold {flows.covered:.3g} % of the trips"
