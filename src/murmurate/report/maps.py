"""Draw all maps of a page on one window, one ground and common scales: density, change, flows and a few trips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Integers, Places
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
from murmurate.report.flow_map import Arcs, flow_arcs, flow_breaks, strongest_flows, zone_grid
from murmurate.report.ground import BaseMap, Ground, ground
from murmurate.report.view import View, lines
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork

Base = BaseMap | RoadNetwork | None
"""What maps are drawn on."""

AROUND = 0.99
"""Share of the released points that the window holds each way, without a public grid. Set by hand: strays would widen it."""
CELLS_ACROSS = 48
"""Cells along the longer side of such a window. Set by hand."""
SHOWN = 36
"""Trips drawn of each side. Set by hand."""
COLOURS = 6
"""Colours they are drawn in, as many as the style sheet has."""


@dataclass(frozen=True)
class Strand:
    """Hold the trips of one colour."""

    number: int
    d: str


@dataclass(frozen=True)
class Panel:
    """Hold one map: whose it is, what is drawn on the ground, and the same in words."""

    title: str
    words: str
    patches: tuple[Patch, ...] = ()
    arcs: tuple[Arcs, ...] = ()
    strands: tuple[Strand, ...] = ()


@dataclass(frozen=True)
class Legend:
    """Hold the classes of colour and what each stands for, least first."""

    title: str
    kind: str
    entries: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Atlas:
    """Hold every map of a page."""

    view: View
    ground: Ground
    scale: tuple[int, str]
    density: tuple[Panel, ...]
    density_legend: Legend
    change: tuple[Panel, ...]
    change_legend: Legend | None
    flows: tuple[Panel, ...]
    flow_legend: Legend
    samples: tuple[Panel, ...]
    cells: str
    """What the places of the density maps are."""
    zones: str
    """What flows go between."""


def atlas(
    grid: Places, sides: Mapping[str, Trips], *, base: Base = None, original: str | None = None, pairing: Integers | None = None
) -> Atlas:
    """Draw maps of every side (title -> trips); `original` names the side that the others are compared with."""
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
        ground=ground(view, base, shown),
        scale=view.scale_bar(),
        density=tuple(
            Panel(
                title,
                f"{int((share > 0).sum()):,} cells visited; the busiest holds {share.max(initial=0.0):.2g} % of the points",
                patches=tuple(density_patches(view, shown, share, breaks)),
            )
            for title, share in shares.items()
        ),
        density_legend=legend("Share of all points in a cell", "density", breaks, "%", CLASSES),
        change=tuple(
            Panel(
                title,
                f"{np.abs(change).sum() / 2:.3g} % of the points lie in other cells than in the originals",
                patches=tuple(change_patches(view, shown, change, change_scale)),
            )
            for title, change in changes.items()
        ),
        change_legend=_change_legend(change_scale) if changes else None,
        flows=tuple(
            Panel(
                title,
                f"the {len(found.share)} strongest flows hold {found.covered:.3g} % of the trips",
                arcs=tuple(flow_arcs(view, zones, found, flow_scale)),
            )
            for title, found in flows.items()
        ),
        flow_legend=legend("Share of all trips in a flow", "flow", flow_scale, "%", FLOW_CLASSES),
        samples=_samples(view, laid, original, pairing),
        cells=_words(shown, "Cells"),
        zones=_words(zones, "zones"),
    )


def _words(places: Places, what: str) -> str:
    """Say what places are drawn."""
    return f"{what} of {places.cell_m:,.0f} m" if isinstance(places, Grid) else places.describe().rstrip(".")


def grid_around(trips: Trips) -> Grid:
    """Return a window over released trips, read from nothing but them."""
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
        mine, theirs = _choose(side, laid.get(original or ""), pairing)
        if original is not None and not panels:
            panels.append(Panel(original, f"{len(theirs)} trips", strands=tuple(_strands(view, laid[original], theirs))))
        panels.append(Panel(title, f"{len(mine)} trips", strands=tuple(_strands(view, side, mine))))
    return tuple(panels)


def _choose(released: Side, original: Side | None, pairing: Integers | None) -> tuple[Integers, Integers]:
    """Return positions of released trips to draw and of originals to draw beside them; fixed, so that a page repeats."""
    draw = np.random.default_rng(0)
    if original is not None and pairing is not None and (pairing >= 0).any():
        known = np.flatnonzero(pairing >= 0)
        shown = draw.permutation(known)[:SHOWN]
        return shown, pairing[shown]
    mine = draw.permutation(released.n)[:SHOWN]
    return mine, np.zeros(0, dtype=np.int64) if original is None else draw.permutation(original.n)[:SHOWN]


def _strands(view: View, side: Side, chosen: Integers) -> list[Strand]:
    """Draw the chosen trips in several colours."""
    x, y = view.project(*side.degrees)
    found = []
    for colour in range(COLOURS):
        parts = [slice(side.offsets[k], side.offsets[k + 1]) for k in chosen[colour::COLOURS]]
        d = "".join(lines(x[part], y[part], np.array([0, part.stop - part.start])) for part in parts)
        if d:
            found.append(Strand(colour + 1, d))
    return found


def legend(title: str, kind: str, breaks: Breaks, unit: str, classes: int) -> Legend:
    """Return the classes of a scale; the greatest always has the strongest colour."""
    labels = breaks.labels(unit)
    return Legend(title, kind, tuple((k + classes - breaks.n + 1, label) for k, label in enumerate(labels)))


def _change_legend(breaks: Breaks) -> Legend:
    labels = breaks.labels("pp")
    skipped = 4 - breaks.n  # the greatest change always has the strongest colour
    fewer = [(-k - skipped, f"fewer, {labels[k]}") for k in range(breaks.n - 1, 0, -1)]
    more = [(k + skipped, f"more, {labels[k]}") for k in range(1, breaks.n)]
    blank = f"; blank: {labels[0]}" if breaks.edges else ""
    return Legend(f"Change of a cell's share, in percentage points (pp){blank}", "change", (*fewer, *more))
