"""Aggregated networks as one page of figures: maps of original, releases and overlap, and curves over epsilon; no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from murmurate.core.space import Floats
from murmurate.report.ground import ground
from murmurate.report.render import render, write_page
from murmurate.report.traffic_maps import TrafficMap, driven_map, network_view, overlap
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

CHART_WIDTH, CHART_HEIGHT, MARGIN = 560, 320, 54
ROLES = ("one", "two", "three", "four", "five", "six")
"""Colours of lines, in this order."""


@dataclass(frozen=True)
class Line:
    """One curve."""

    role: str
    label: str
    points: str


@dataclass(frozen=True)
class LinePanel:
    """Curves in a frame."""

    title: str
    x_label: str
    y_label: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    lines: tuple[Line, ...]
    words: str


def original_map(original: LinkFlows) -> TrafficMap:
    """The original network on its ground."""
    return driven_map(original, network_view(original.network))


def overlap_map(title: str, released: LinkFlows, original: LinkFlows) -> TrafficMap:
    """What a release shares with the original, what it lost and what it added."""
    return overlap(released, original, network_view(original.network), title)


def curves(
    title: str, x: Sequence[float], series: Mapping[str, Sequence[float]], *, x_label: str, y_label: str, log_x: bool = False
) -> LinePanel:
    """Lines over shared x values; NaN leaves a gap."""
    across = np.log10(np.array(x, dtype=float)) if log_x else np.array(x, dtype=float)
    values = np.array([list(line) for line in series.values()], dtype=float)
    low, high = _nice(float(np.nanmin(values)), float(np.nanmax(values)))
    span = float(np.ptp(across)) or 1.0
    to_x = MARGIN + (across - across.min()) / span * (CHART_WIDTH - MARGIN - 14)

    def to_y(value: Floats) -> Floats:
        return CHART_HEIGHT - MARGIN - (value - low) / (high - low) * (CHART_HEIGHT - MARGIN - 14)

    lines = []
    for number, (label, line) in enumerate(series.items()):
        y = to_y(np.array(list(line), dtype=float))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(to_x, y, strict=True) if np.isfinite(b))
        lines.append(Line(ROLES[number % len(ROLES)], label, points))
    ticks = np.linspace(low, high, 5)
    ends = "; ".join(f"{label}: {line[0]:.3g} to {line[-1]:.3g}" for label, line in series.items())
    return LinePanel(
        title,
        x_label,
        y_label,
        tuple((float(at), f"{value:g}") for at, value in zip(to_x, x, strict=True)),
        tuple((float(to_y(np.array([tick]))[0]), f"{tick:,.0f}" if high >= 1000 else f"{tick:.3g}") for tick in ticks),
        tuple(lines),
        f"From the first to the last value of {x_label}: {ends}.",
    )


def write_networks_page(
    path: str | Path,
    *,
    title: str,
    about: str,
    network: RoadNetwork,
    maps: Sequence[TrafficMap] = (),
    charts: Sequence[LinePanel] = (),
    tables: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> Path:
    """One page of maps, curves and tables (the first row of each is its head). Internal where it was made from private data."""
    view = network_view(network)
    text = render(
        "network_figures.html.j2",
        title=title,
        about=about,
        atlas=SimpleNamespace(view=view, ground=ground(view, network, None), scale=view.scale_bar()),
        maps=maps,
        charts=charts,
        tables=dict(tables or {}),
        chart_width=CHART_WIDTH,
        chart_height=CHART_HEIGHT,
        margin=MARGIN,
    )
    return write_page(path, text)


def _nice(low: float, high: float) -> tuple[float, float]:
    """A frame a little wider than the values."""
    room = (high - low or abs(high) or 1.0) * 0.06
    return low - room if low - room > 0 or low < 0 else 0.0, high + room
