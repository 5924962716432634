"""Aggregated networks as pictures: maps of original, release and overlap, and curves over epsilon; plain SVG, no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.report.render import render, write_page
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

WIDTH = 560
CHART_WIDTH, CHART_HEIGHT, MARGIN = 560, 320, 54
ROLES = ("one", "two", "three", "four", "five", "six")
"""Colours of lines, in this order."""


@dataclass(frozen=True)
class Layer:
    """Links drawn in one colour, twin directions once."""

    role: str
    label: str
    d: str


@dataclass(frozen=True)
class MapPanel:
    """One map: ground first, then its layers; the words say the same without seeing."""

    title: str
    words: str
    height: int
    layers: tuple[Layer, ...]


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


def original_map(original: LinkFlows) -> MapPanel:
    """The original network on its ground."""
    height, draw = _frame(original.network)
    layers = (_ground(original.network, draw), Layer("original", "original", draw(original.used)))
    return MapPanel("Original", f"{original.length_km:,.0f} km of roads were driven.", height, layers)


def overlap_map(title: str, released: LinkFlows, original: LinkFlows) -> MapPanel:
    """What a release shares with the original, what it lost and what it added."""
    height, draw = _frame(original.network)
    both = np.intersect1d(released.used, original.used)
    lost, new = np.setdiff1d(original.used, released.used), np.setdiff1d(released.used, original.used)
    length = original.network.length_m
    words = (
        f"{released.length_km:,.0f} km, {released.length_km / original.length_km:.3f} of the original; "
        f"{length[lost].sum() / 1000:,.0f} km lost, {length[new].sum() / 1000:,.0f} km added."
    )
    layers = (
        _ground(original.network, draw),
        Layer("lost", "only in the original", draw(lost)),
        Layer("both", "in both", draw(both)),
        Layer("added", "only in the release", draw(new)),
    )
    return MapPanel(title, words, height, layers)


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
        tuple((float(to_y(np.array([tick]))[0]), f"{tick:.3g}") for tick in ticks),
        tuple(lines),
        f"From the first to the last value of {x_label}: {ends}.",
    )


def write_networks_page(
    path: str | Path,
    *,
    title: str,
    about: str,
    maps: Sequence[MapPanel] = (),
    charts: Sequence[LinePanel] = (),
    tables: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> Path:
    """One page of maps, curves and tables (the first row of each is its head). Internal where it was made from private data."""
    text = render(
        "networks.html.j2",
        title=title,
        about=about,
        maps=maps,
        charts=charts,
        tables=dict(tables or {}),
        width=WIDTH,
        chart_width=CHART_WIDTH,
        chart_height=CHART_HEIGHT,
        margin=MARGIN,
    )
    return write_page(path, text)


class _Draw:
    """Links of a network as the `d` of an SVG path."""

    def __init__(self, network: RoadNetwork) -> None:
        squeeze = float(np.cos(np.radians(network.shape_lat.mean())))
        x, y = network.shape_lng * squeeze, network.shape_lat
        scale = (WIDTH - 8) / (float(np.ptp(x)) or 1.0)
        self.height = int(float(np.ptp(y)) * scale) + 8
        self.x, self.y = 4 + (x - x.min()) * scale, self.height - 4 - (y - y.min()) * scale
        self.offsets, self.twin = network.shape_offsets, network.twin

    def __call__(self, links: Integers) -> str:
        chosen: NDArray[np.bool_] = np.zeros(len(self.twin), dtype=bool)
        chosen[links] = True
        parts = []
        for link in np.flatnonzero(chosen):
            if 0 <= self.twin[link] < link and chosen[self.twin[link]]:
                continue  # the other direction is drawn
            span = slice(int(self.offsets[link]), int(self.offsets[link + 1]))
            parts.append("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(self.x[span], self.y[span], strict=True)))
        return "".join(parts)


def _frame(network: RoadNetwork) -> tuple[int, _Draw]:
    draw = _Draw(network)
    return draw.height, draw


def _ground(network: RoadNetwork, draw: _Draw) -> Layer:
    return Layer("ground", "all roads", draw(np.arange(network.n_links)))


def _nice(low: float, high: float) -> tuple[float, float]:
    """A frame a little wider than the values."""
    room = (high - low or abs(high) or 1.0) * 0.06
    return low - room if low - room > 0 or low < 0 else 0.0, high + room
