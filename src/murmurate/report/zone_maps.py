"""Draw released flows: zones by departures, arcs between zones, a matrix of districts, hours with error bands, top pairs.

Everything is drawn from the release alone, so both editions of a report show it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from murmurate.core.space import Floats
from murmurate.report.breaks import Breaks, shared_breaks
from murmurate.report.charts import LEFT, RIGHT, WIDTH, Chart, Series, y_axis
from murmurate.report.density import CLASSES, Patch, outlines
from murmurate.report.flow_map import CLASSES as FLOW_CLASSES
from murmurate.report.flow_map import SHOWN, Flows, flow_arcs, flow_breaks
from murmurate.report.ground import Ground, ground
from murmurate.report.maps import Base, Legend, Panel, legend
from murmurate.report.view import View
from murmurate.spaces.zone_flows import HOURS, REST, ZoneFlows

TOP_PAIRS = 12
"""Pairs in the table of the strongest flows. Set by hand."""

MATRIX_SIDE = 640
"""Side of the matrix of districts in units of the drawing."""

MAX_MATRIX_DISTRICTS = 60
"""Most districts that a matrix shows; beyond it, cells are too small to read."""


LONE_HOUR = 4.0
"""Half the length of the line of an hour whose neighbours are not published, in units of the drawing."""


@dataclass(frozen=True)
class Square:
    """Hold one cell of the matrix: its place, its class (0 is not published) and what it says."""

    x: float
    y: float
    number: int
    label: str


@dataclass(frozen=True)
class ZoneAtlas:
    """Hold every picture of released flows."""

    view: View
    ground: Ground
    scale: tuple[int, str]
    zones: tuple[Panel, ...]
    zone_legend: Legend
    flows: Panel
    flow_legend: Legend
    hours: tuple[Chart, ...]
    matrix: tuple[Square, ...]
    matrix_cell: float
    matrix_legend: Legend
    top: tuple[tuple[str, ...], ...]
    level: str


def zone_atlas(flows: ZoneFlows, *, level: float, base: Base = None) -> ZoneAtlas:
    """Draw a release of flows."""
    view = View.of(flows.places)
    totals = {direction: flows.totals(direction, time="day")[:, 0] for direction in ("departures", "arrivals")}
    breaks = shared_breaks(max(float(np.nan_to_num(values).max(initial=0.0)) for values in totals.values()), CLASSES)
    zones = tuple(_choropleth(flows, view, direction, values, breaks) for direction, values in totals.items())
    pairs, arcs, arc_breaks = _flows(flows, view)
    squares, cell, matrix_breaks = _matrix(flows)
    return ZoneAtlas(
        view=view,
        ground=ground(view, base, flows.places),
        scale=view.scale_bar(),
        zones=zones,
        zone_legend=legend("Trips a zone", "density", breaks, "trips", CLASSES),
        flows=arcs,
        flow_legend=legend("Share of all trips", "flow", arc_breaks, "% of trips", FLOW_CLASSES),
        hours=tuple(_profile(flows, direction) for direction in totals),
        matrix=squares,
        matrix_cell=cell,
        matrix_legend=legend("Trips between districts", "density", matrix_breaks, "trips", CLASSES),
        top=pairs,
        level=f"{level:.0%}",
    )


def _choropleth(flows: ZoneFlows, view: View, direction: str, values: Floats, breaks: Breaks) -> Panel:
    """Draw every published zone in the colour of its class."""
    known = np.flatnonzero(np.isfinite(values))
    number = breaks.classes(np.nan_to_num(values))[known]
    labels = breaks.labels("trips")
    patches = [
        Patch(k + 1 + CLASSES - breaks.n, outlines(view, flows.places, known[number == k]), labels[k])
        for k in range(breaks.n)
        if (number == k).any()
    ]
    words = f"{len(known):,} of {flows.places.n_cells:,} zones are published; {np.nansum(values):,.0f} trips"
    return Panel(direction.capitalize(), words, tuple(patches))


def _flows(flows: ZoneFlows, view: View) -> tuple[tuple[tuple[str, ...], ...], Panel, Breaks]:
    """Draw the strongest listed pairs as arcs, and list the first of them with their intervals."""
    listed = flows.pairs().head(SHOWN)
    total = max(float(flows.about.get("trips", 0)), 1.0)
    share = 100 * listed["trips"].to_numpy() / total
    found = Flows(listed["origin"].to_numpy(), listed["destination"].to_numpy(), share, float(share.sum()))
    breaks = flow_breaks([found])
    words = f"the {len(share):,} strongest of {flows.pairs().height:,} published pairs, {found.covered:.0f} % of all trips"
    panel = Panel("Flows between zones", words, arcs=tuple(flow_arcs(view, flows.places, found, breaks)))
    names = flows.places.names()
    rows = tuple(
        (names[row["origin"]], names[row["destination"]], f"{row['trips']:,}", f"{row['low']:,.0f} to {row['high']:,.0f}")
        for row in listed.head(TOP_PAIRS).iter_rows(named=True)
    )
    return rows, panel, breaks


def _matrix(flows: ZoneFlows) -> tuple[tuple[Square, ...], float, Breaks]:
    """Draw flows between districts as squares, origins downwards; a figure that is not published is left white."""
    n = int(flows.district.max()) + 1
    chosen = flows.od.filter(pl.col("area") == "district", pl.col("time") == "day")
    chosen = chosen.filter(pl.col("origin") != REST, pl.col("destination") != REST)
    breaks = shared_breaks(float(chosen["trips"].max() or 0), CLASSES)  # type: ignore[arg-type]
    if n > MAX_MATRIX_DISTRICTS:
        return (), 0.0, breaks
    cell = MATRIX_SIDE / n
    squares = []
    for row in chosen.iter_rows(named=True):
        words = "not published" if row["trips"] is None else f"{row['trips']:,} ({row['low']:,.0f} to {row['high']:,.0f})"
        number = 0 if row["trips"] is None else int(breaks.classes(np.array([row["trips"]]))[0]) + 1 + CLASSES - breaks.n
        label = f"district {row['origin']} to {row['destination']}: {words}"
        squares.append(Square(round(row["destination"] * cell, 1), round(row["origin"] * cell, 1), number, label))
    return tuple(squares), cell, breaks


def _profile(flows: ZoneFlows, direction: str) -> Chart:
    """Draw the trips of the whole area by hour, with the interval of each hour as a band."""
    rows = flows.zones.filter(direction=direction, area="city", time="hour").sort("period")
    trips, low, high = (rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("trips", "low", "high"))
    known = np.flatnonzero(np.isfinite(trips))
    y_ticks, y_of = y_axis(float(np.nan_to_num(high).max(initial=0.0)))
    x = LEFT + (np.arange(HOURS) + 0.5) / HOURS * (WIDTH - LEFT - RIGHT)
    # hours that are not published leave a gap
    runs = [run for run in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1) if len(run)]
    bands = "".join(_band(*_wide(x[run], y_of(low[run]), y_of(high[run]))) for run in runs)
    line = "".join(_line(*_wide(x[run], y_of(trips[run]))) for run in runs)
    series = [*([Series("band", "interval", bands, area=True)] if bands else []), Series("released", "released", line)]
    busiest = f"Busiest hour: {int(np.nanargmax(trips))}:00." if len(known) else "No hour is published."
    if 0 < len(known) < HOURS:
        busiest += f" {len(known)} of {HOURS} hours are published."
    ticks = tuple((float(LEFT + hour / HOURS * (WIDTH - LEFT - RIGHT)), f"{hour}") for hour in range(0, 25, 6))
    return Chart(f"{direction.capitalize()} by hour", "local hour", "trips", ticks, y_ticks, tuple(series), busiest)


def _wide(x: Floats, *values: Floats) -> tuple[Floats, ...]:
    """Return points to draw; an hour between two gaps gets a short line of its own."""
    if len(x) > 1:
        return (x, *values)
    return (np.array([x[0] - LONE_HOUR, x[0] + LONE_HOUR]), *(np.repeat(value, 2) for value in values))


def _line(x: Floats, y: Floats) -> str:
    return "M" + "".join(f"L{a:.0f} {b:.1f}" for a, b in zip(x, y, strict=True))[1:]


def _band(x: Floats, low: Floats, high: Floats) -> str:
    """Return the outline of a band: along the upper ends and back along the lower ones."""
    there = "".join(f"L{a:.0f} {b:.1f}" for a, b in zip(x, high, strict=True))
    back = "".join(f"L{a:.0f} {b:.1f}" for a, b in zip(x[::-1], low[::-1], strict=True))
    return "M" + (there + back)[1:]
