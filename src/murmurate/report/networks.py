"""Write a page of aggregated networks: maps of original, releases and overlap, curves over epsilon, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

from murmurate.report import plots
from murmurate.report.ground import ground
from murmurate.report.plots import Drawing, Plot, linear_axis, log_axis, series_style
from murmurate.report.render import render, write_page
from murmurate.report.traffic_maps import TrafficMap, driven_map, network_view, overlap
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork


def original_map(original: LinkFlows) -> TrafficMap:
    """Draw the original network."""
    return driven_map(original, network_view(original.network))


def overlap_map(title: str, released: LinkFlows, original: LinkFlows) -> TrafficMap:
    """Draw what a release shares with the original, what it lost and what it added."""
    return overlap(released, original, network_view(original.network), title)


def curves(
    title: str, x: Sequence[float], series: Mapping[str, Sequence[float]], *, x_label: str, y_label: str, log_x: bool = False
) -> Plot:
    """Draw lines over shared x values; what is not finite is left out."""
    across = (log_axis if log_x else linear_axis)(x_label, x)
    drawing = Drawing(across, linear_axis(y_label, [value for line in series.values() for value in line]))
    legend = tuple((series_style(number), label) for number, label in enumerate(series))
    for (style, label), line in zip(legend, series.values(), strict=True):
        drawing.line(style, x, line, label)
        drawing.dots(style, x, line, [f"{label}, {x_label} {at:g}: {value:.4g}" for at, value in zip(x, line, strict=True)])
    ends = "; ".join(f"{label}: {line[0]:.3g} to {line[-1]:.3g}" for label, line in series.items())
    return Plot(title, "", (drawing.panel("", f"From the first to the last value of {x_label}: {ends}."),), legend)


def write_networks_page(
    path: str | Path,
    *,
    title: str,
    about: str,
    network: RoadNetwork,
    maps: Sequence[TrafficMap] = (),
    charts: Sequence[Plot] = (),
    tables: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> Path:
    """Write one page of maps, curves and tables (the first row of each is its head); internal where the data are private."""
    view = network_view(network)
    text = render(
        "network_figures.html.j2",
        title=title,
        about=about,
        atlas=SimpleNamespace(view=view, ground=ground(view, network, None), scale=view.scale_bar()),
        maps=maps,
        charts=charts,
        tables=dict(tables or {}),
        frame=plots,
    )
    return write_page(path, text)
