"""Write a page about a private file: where its points are, when, how many, and how long the gaps. For the custodian only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from murmurate.ingest.inspect import Inspection
from murmurate.ingest.picture import PAUSE_WORDS, STEP_DEG, Picture
from murmurate.report.render import render, write_page
from murmurate.report.view import View

CLASSES = 7
"""Colour classes of the map, as many as the style sheet has ordered colours."""
MAX_ACROSS = 90
"""Most squares along the longer side of the map. Set by hand."""
OUTLIERS = 0.005
"""Share of points left out on each side of the map, so that a few mistakes do not shrink the rest. Set by hand."""
MAX_BARS = 60
"""Most bars of the chart of days; more days are drawn together."""


@dataclass(frozen=True)
class Bar:
    """One bar of a chart: its words, its count, and its share of the longest."""

    label: str
    count: int
    part: float


@dataclass(frozen=True)
class Map:
    """Squares of points on a window, class by class."""

    view: View
    paths: list[tuple[int, str]]
    scale: tuple[int, str]


def write_inspection(path: str | Path, found: Inspection, source: str) -> Path:
    """Write the page of an inspection."""
    picture = found.picture or Picture()
    values = {
        "found": found,
        "words": found.words().splitlines()[1:-1],
        "hours": bars([f"{hour}:00" for hour in range(24)], picture.hours) if picture.hours.any() else [],
        "pauses": bars(PAUSE_WORDS, picture.pauses) if picture.pauses.any() else [],
        "days": day_bars(picture.days),
        "map": draw_map(picture),
        "source": Path(source).name,
    }
    return write_page(path, render("inspection.html.j2", **values))


def bars(labels: Any, counts: Any) -> list[Bar]:
    """Return bars with their shares of the longest."""
    most = max(1, max((int(count) for count in counts), default=1))
    return [Bar(str(label), int(count), int(count) / most) for label, count in zip(labels, counts, strict=True)]


def day_bars(days: dict[int, int]) -> list[Bar]:
    """Return a bar for each day, or for each run of days where there are many; days without a trip show as gaps."""
    if not days:
        return []
    first, last = min(days), max(days)
    width = -(-(last - first + 1) // MAX_BARS)
    sums = np.zeros((last - first) // width + 1, np.int64)
    for day, count in days.items():
        sums[(day - first) // width] += count
    start = date(1970, 1, 1)
    return bars([(start + timedelta(days=first + k * width)).isoformat() for k in range(len(sums))], sums)


def draw_map(picture: Picture) -> Map | None:
    """Return the squares of all but outlying points, coloured by the logarithm of their count."""
    if picture.squares is None or not picture.squares.height:
        return None
    row, column, n = (picture.squares[name].to_numpy() for name in ("row", "column", "n"))
    bounds = [_weighted_quantiles(values, n) for values in (row, column)]
    inside = np.logical_and.reduce([(v >= low) & (v <= high) for v, (low, high) in zip((row, column), bounds, strict=True)])
    times = max(1, -(-int(max(high - low + 1 for low, high in bounds)) // MAX_ACROSS))
    keys, at = np.unique(np.column_stack((row[inside] // times, column[inside] // times)), axis=0, return_inverse=True)
    counts = np.bincount(at.ravel(), n[inside])
    step = STEP_DEG * times
    south, west = keys.min(axis=0) * step
    north, east = (keys.max(axis=0) + 1) * step
    view = View(float(south), float(west), float(north), float(east))
    number = 1 + np.floor((CLASSES - 1e-9) * np.log1p(counts) / np.log1p(counts.max())).astype(int)
    paths = [(k, _squares(view, keys[number == k], step)) for k in range(1, CLASSES + 1) if (number == k).any()]
    return Map(view, paths, view.scale_bar())


def _weighted_quantiles(values: Any, weights: Any) -> tuple[float, float]:
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = np.searchsorted(share, (OUTLIERS, 1 - OUTLIERS))
    return float(values[order][low]), float(values[order][min(high, len(order) - 1)])


def _squares(view: View, keys: Any, step: float) -> str:
    left, top = view.project((keys[:, 0] + 1) * step, keys[:, 1] * step)
    right, bottom = view.project(keys[:, 0] * step, (keys[:, 1] + 1) * step)
    return "".join(f"M{x} {y}H{x2}V{y2}H{x}Z" for x, y, x2, y2 in zip(left, top, right, bottom, strict=True))
