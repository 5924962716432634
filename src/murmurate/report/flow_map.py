"""Draw who goes where: the strongest flows between zones of the box as arcs on one scale of widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import polars as pl

from murmurate.core.space import Floats, Integers, Places
from murmurate.metrics.comparison import Side
from murmurate.report.breaks import Breaks, shared_breaks
from murmurate.report.view import View
from murmurate.spaces.grid import Grid

ZONES_ACROSS = 8
"""Zones along the longer side of the box. Set by hand."""
SHOWN = 60
"""Flows drawn on a map. Set by hand: more hide each other."""
CLASSES = 4
"""Classes of width."""
BEND = 0.16
"""How far an arc leaves the straight line, to its right, as a share of its length: both directions stay apart."""


@dataclass(frozen=True)
class Arcs:
    """Hold the flows of one class: arcs, open dots where they begin, full ones where they end, rings inside a zone."""

    number: int
    d: str
    starts: tuple[tuple[int, int], ...]
    ends: tuple[tuple[int, int], ...]
    rings: tuple[tuple[int, int], ...]
    label: str


@dataclass(frozen=True)
class Flows:
    """Hold the strongest flows of one side: zones and per cent of its trips."""

    origin: Integers
    destination: Integers
    share: Floats
    covered: float
    """Per cent of all trips that the flows shown hold."""


@overload
def zone_grid(grid: Grid) -> Grid: ...


@overload
def zone_grid(grid: Places) -> Places: ...


def zone_grid(grid: Places) -> Places:
    """Return few large zones over the box of a grid; other places are zones themselves."""
    if not isinstance(grid, Grid):
        return grid
    longer = max(grid.rows, grid.columns) * grid.cell_m
    return Grid(grid.south, grid.west, grid.north, grid.east, max(grid.cell_m, longer / ZONES_ACROSS))


def strongest_flows(side: Side, zones: Places) -> Flows:
    """Return the flows that hold most trips; trips that begin or end outside the box are left out."""
    lat, lng = side.degrees
    first, last = side.offsets[:-1], side.offsets[1:] - 1
    origin, destination = zones.locate(lat[first], lng[first]), zones.locate(lat[last], lng[last])
    known = (origin >= 0) & (destination >= 0)
    pairs = pl.DataFrame({"origin": origin[known], "destination": destination[known]})
    counts = (
        pairs.group_by("origin", "destination").len().sort(["len", "origin", "destination"], descending=[True, False, False])
    )
    top = counts.head(SHOWN)
    share = 100 * top["len"].to_numpy() / max(1, pairs.height)
    return Flows(top["origin"].to_numpy(), top["destination"].to_numpy(), share, float(share.sum()))


def flow_breaks(sides: Sequence[Flows]) -> Breaks:
    """Return one scale for all panels."""
    return shared_breaks(max(float(flows.share.max(initial=0.0)) for flows in sides), CLASSES)


def flow_arcs(view: View, zones: Places, flows: Flows, breaks: Breaks) -> list[Arcs]:
    """Draw the flows, thin ones first."""
    number = breaks.classes(flows.share)
    labels = breaks.labels("% of trips")
    skipped = CLASSES - breaks.n
    x1, y1 = view.project(*zones.centre(flows.origin))
    x2, y2 = view.project(*zones.centre(flows.destination))
    found = []
    for k in range(breaks.n):
        moves = np.flatnonzero((number == k) & (flows.origin != flows.destination))
        stays = np.flatnonzero((number == k) & (flows.origin == flows.destination))
        if len(moves) or len(stays):
            bend_x = np.rint((x1 + x2) / 2 - BEND * (y2 - y1)).astype(np.int64)
            bend_y = np.rint((y1 + y2) / 2 + BEND * (x2 - x1)).astype(np.int64)
            d = "".join(f"M{x1[i]} {y1[i]}Q{bend_x[i]} {bend_y[i]} {x2[i]} {y2[i]}" for i in moves)
            starts, ends = (tuple(dict.fromkeys((int(x[i]), int(y[i])) for i in moves)) for x, y in ((x1, y1), (x2, y2)))
            found.append(Arcs(k + skipped + 1, d, starts, ends, tuple((int(x1[i]), int(y1[i])) for i in stays), labels[k]))
    return found
