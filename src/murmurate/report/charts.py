"""Draw distributions over each other and lines by hour, as paths in a small frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from murmurate.core.score import Score, number
from murmurate.core.space import Floats
from murmurate.metrics.comparison import Side
from murmurate.report.plots import round_step

WIDTH, HEIGHT = 400, 236
"""Size of a chart in SVG units; a page scales it to the width there is."""
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 40
"""Margins of a chart in SVG units: tick labels at the left, axis labels below."""
BINS = 30
"""Bars of a histogram, about. Set by hand."""
TAIL = 0.99
"""Distributions are drawn up to this quantile of all sides: a few strays would squeeze the rest. Set by hand."""


@dataclass(frozen=True)
class Series:
    """Hold one line: `role` names its colour and dash."""

    role: str
    label: str
    d: str
    area: bool = False


@dataclass(frozen=True)
class Chart:
    """Hold a drawn chart: paths, ticks at their places, and the same in words for those who do not see it."""

    title: str
    x_label: str
    y_label: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    series: tuple[Series, ...]
    words: str


def distributions(sides: Mapping[str, Side]) -> list[Chart]:
    """Draw length, duration, speed and hour of departure of the sides (role -> side) that have them."""
    charts = [histogram("Length of trips", "km", {role: side.length_m / 1000 for role, side in sides.items()})]
    timed = {role: side for role, side in sides.items() if side.trips.has_time}
    if timed:
        charts.append(histogram("Duration of trips", "min", {role: side.duration_s / 60 for role, side in timed.items()}))
        charts.append(histogram("Mean speed of trips", "km/h", {role: side.speed_kmh for role, side in timed.items()}))
    by_hour = {role: side for role, side in sides.items() if side.trips.has_time or "hour" in side.trips.columns}
    if by_hour:
        shares = {role: 100 * np.bincount(side.hour, minlength=24)[:24] / max(1, side.n) for role, side in by_hour.items()}
        charts.append(hour_shares("Hour of day of trips", "% of trips", shares))
    return [chart for chart in charts if chart is not None]


def score_by_hour(title: str, unit: str, scores: Sequence[Score], name: str, floor: Score | None = None) -> Chart | None:
    """Draw the scores called `name.hour_HH` as a line over the day; hours without one leave a gap."""
    found = {int(score.name[-2:]): score.value for score in scores if score.name.startswith(f"{name}.hour_")}
    values = np.array([found.get(hour, np.nan) for hour in range(24)])
    if not np.isfinite(values).any():
        return None
    top = max(float(np.nanmax(values)), floor.value if floor and np.isfinite(floor.value) else 0.0)
    y_ticks, y_of = y_axis(top)
    x = LEFT + (np.arange(24) + 0.5) / 24 * (WIDTH - LEFT - RIGHT)
    series = [Series("released", "release", _broken_line(x, y_of(values), np.isfinite(values)))]
    if floor is not None and np.isfinite(floor.value):
        level = y_of(np.array([floor.value]))[0]
        series.append(Series("floor", "a second sample of the originals", f"M{LEFT} {level:.0f}H{WIDTH - RIGHT}"))
    worst = int(np.nanargmax(values))
    words = f"From {number(float(np.nanmin(values)))} to {number(float(np.nanmax(values)))} ({unit}), greatest at {worst}:00."
    ticks = tuple((float(LEFT + hour / 24 * (WIDTH - LEFT - RIGHT)), f"{hour}") for hour in range(0, 25, 6))
    return Chart(title, "hour of day", unit, ticks, y_ticks, tuple(series), words)


def histogram(title: str, unit: str, values: Mapping[str, Floats], y_label: str = "% of trips") -> Chart | None:
    """Draw the distributions of values, role by role; None where there is none."""
    finite = {role: found[np.isfinite(found)] for role, found in values.items()}
    finite = {role: found for role, found in finite.items() if len(found)}
    if not finite:
        return None
    end = max(float(np.quantile(found, TAIL)) for found in finite.values())
    x_step = round_step(end or 1.0, 5)
    width = x_step / max(1, round(x_step / ((end or 1.0) / BINS)))
    edges = np.arange(0, int(np.ceil((end or 1.0) / width)) + 1) * width
    shares = {role: 100 * np.histogram(found, edges)[0] / len(found) for role, found in finite.items()}
    y_ticks, y_of = y_axis(max(float(share.max()) for share in shares.values()))
    x = LEFT + edges / edges[-1] * (WIDTH - LEFT - RIGHT)
    series = tuple(_steps(role, x, y_of(share), y_of(np.zeros(1))[0]) for role, share in shares.items())
    ticks = np.arange(0, edges[-1] + x_step / 1e6, x_step)
    medians = ", ".join(f"{role} {number(float(np.median(found)), unit)}" for role, found in finite.items())
    return Chart(
        title,
        unit,
        y_label,
        tuple((float(LEFT + tick / edges[-1] * (WIDTH - LEFT - RIGHT)), f"{tick:,.6g}") for tick in ticks),
        y_ticks,
        series,
        f"Median: {medians}.",
    )


def hour_shares(title: str, y_label: str, shares: Mapping[str, Floats]) -> Chart:
    """Draw what share of a day falls on each of its hours, role by role."""
    y_ticks, y_of = y_axis(max(float(share.max()) for share in shares.values()))
    x = np.linspace(LEFT, WIDTH - RIGHT, 25)
    series = tuple(_steps(role, x, y_of(share), y_of(np.zeros(1))[0]) for role, share in shares.items())
    peaks = ", ".join(f"{role} {int(share.argmax())}:00" for role, share in shares.items())
    ticks = tuple((float(x[hour]), f"{hour}") for hour in range(0, 25, 6))
    return Chart(title, "local hour", y_label, ticks, y_ticks, series, f"Busiest hour: {peaks}.")


def _steps(role: str, x: Floats, y: Floats, bottom: float) -> Series:
    """Draw the outline of a histogram."""
    d = f"M{x[0]:.0f} {bottom:.0f}" + "".join(f"V{level:.0f}H{right:.0f}" for level, right in zip(y, x[1:], strict=True))
    return Series(role, role, f"{d}V{bottom:.0f}", area=role == "original")


def _broken_line(x: Floats, y: Floats, there: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    parts, before = [], False
    for here, left, up in zip(there, x, y, strict=True):
        if here:
            # a lone hour is still a dot: round caps draw a line of no length
            parts.append(f"L{left:.0f} {up:.0f}" if before else f"M{left:.0f} {up:.0f}h0")
        before = bool(here)
    return "".join(parts)


def y_axis(top: float) -> tuple[tuple[tuple[float, str], ...], Callable[[Floats], Floats]]:
    """Return the ticks of a scale from 0 to a round number above `top`, and the scale."""
    step = round_step(top or 1.0, 4)
    end = max(step, float(np.ceil((top or 1.0) / step - 1e-9) * step))

    def scale(values: Floats) -> Floats:
        return HEIGHT - BOTTOM - values / end * (HEIGHT - BOTTOM - TOP)

    values = np.arange(0, end + step / 1e6, step)
    return tuple((float(at), f"{value:,.4g}") for at, value in zip(scale(values), values, strict=True)), scale
