"""Draw plots with dots, lines and interval bands, as SVG path data in small panels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

WIDTH, HEIGHT = 400, 280
"""Size of a panel in SVG units; a page scales it to the width there is."""
LEFT, RIGHT, TOP, BOTTOM = 58, 10, 26, 46
"""Margins of a panel in SVG units: space for tick labels at the left, the y label above and the x label below."""
SHAPES = ("circle", "square", "diamond", "triangle", "cross")
"""Shapes of dots, so that series are distinguished without colour."""
COLOURS = 6
"""Colours of the style sheet for unordered series (`--s1` to `--s6`)."""
SHADES = 7
"""Ordered colours of the style sheet (`--b1` to `--b7`)."""


@dataclass(frozen=True)
class Axis:
    """Hold a linear or logarithmic scale between round ends, with its ticks."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Position of a value: 0 at the low end, 1 at the high end."""
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)


def linear_axis(label: str, values: Iterable[float], *, wanted: int = 5) -> Axis:
    """Make an axis that holds all finite values and zero.

    >>> linear_axis("m", [3.0, 24.0]).ticks
    (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)
    """
    there = [float(value) for value in values if isfinite(value)]
    low, high = min([0.0, *there]), max([0.0, *there])
    if low == high:
        high = 1.0
    step = round_step(high - low, wanted)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return Axis(label, first * step, last * step, tuple(float(f"{k * step:.12g}") for k in range(first, last + 1)))


def log_axis(label: str, values: Iterable[float]) -> Axis:
    """Make a logarithmic axis between numbers of the 1-2-5 series that holds all positive values.

    >>> log_axis("m", [3.0, 17.0]).ticks
    (2.0, 5.0, 10.0, 20.0)
    """
    there = [float(value) for value in values if isfinite(value) and value > 0] or [1.0]
    powers = range(floor(log10(min(there))) - 1, ceil(log10(max(there))) + 2)
    series = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    low = max(number for number in series if number <= min(there))
    high = min(number for number in series if number >= max(there) and number > low)
    ticks = tuple(number for number in series if low <= number <= high)
    if len(ticks) > 9:
        ticks = tuple(number for number in ticks if f"{number:e}".startswith("1"))
    return Axis(label, low, high, ticks, log=True)


def round_step(extent: float, wanted: int) -> float:
    """Return a step of 1, 2 or 5 times a power of ten that gives about as many steps as wanted."""
    rough = extent / wanted
    power = 10.0 ** floor(log10(rough))
    return float(min((1, 2, 5, 10), key=lambda digit: abs(digit * power - rough)) * power)


@dataclass(frozen=True)
class Style:
    """Hold how a series looks: a class of the style sheet for its colour, and the shape of its dots."""

    colour: str
    shape: str

    @property
    def sample(self) -> str:
        """A dot for the legend, in a 16 x 16 frame."""
        return _dot(8, 8, self.shape)


def series_style(number: int) -> Style:
    """Return the style of the numbered series; thirty differ."""
    return Style(f"c{number % COLOURS + 1}", SHAPES[number % len(SHAPES)])


def ordered_style(number: int, total: int) -> Style:
    """Return the style of one of `total` ordered series."""
    shade = 1 + round(number * (SHADES - 1) / max(1, total - 1))
    return Style(f"o{shade}", SHAPES[number % len(SHAPES)])


@dataclass(frozen=True)
class Shape:
    """Hold one drawn thing: its path, its classes, and the words shown when it is pointed at."""

    kind: str
    """`dot`, `line`, `band` or `level`."""
    colour: str
    d: str
    label: str = ""


@dataclass(frozen=True)
class Panel:
    """Hold one frame with its axes: ticks at their places, shapes, and what it shows in words."""

    title: str
    words: str
    x: Axis
    y: Axis
    shapes: tuple[Shape, ...]

    @property
    def x_ticks(self) -> list[tuple[int, str]]:
        """Places and labels of the ticks of x."""
        return [(round(_x(self.x, tick)), f"{tick:,.6g}") for tick in self.x.ticks]

    @property
    def y_ticks(self) -> list[tuple[int, str]]:
        """Places and labels of the ticks of y."""
        return [(round(_y(self.y, tick)), f"{tick:,.6g}") for tick in self.y.ticks]


@dataclass(frozen=True)
class Plot:
    """Hold panels that share a legend, and what a reader must know beside them."""

    title: str
    caption: str
    panels: tuple[Panel, ...]
    legend: tuple[tuple[Style, str], ...]
    notes: tuple[str, ...] = ()
    """What is not drawn, each with its reason."""


class Drawing:
    """Collect the shapes of one panel; a dot that is not finite, or has no place on a logarithmic axis, is left out."""

    def __init__(self, x: Axis, y: Axis) -> None:
        self.x, self.y = x, y
        self._shapes: list[Shape] = []

    def dots(self, style: Style, x: Sequence[float], y: Sequence[float], labels: Sequence[str]) -> None:
        """Draw one dot a value."""
        for across, up, label in zip(x, y, labels, strict=True):
            if self._fits(across, up):
                place = _dot(_x(self.x, across), _y(self.y, up), style.shape)
                self._shapes.append(Shape("dot", style.colour, place, label))

    def line(self, style: Style, x: Sequence[float], y: Sequence[float], label: str) -> None:
        """Draw a line through the finite points; the page cuts off what lies outside the frame."""
        there = [point for point in zip(x, y, strict=True) if _finite(point)]
        if there:
            self._shapes.append(Shape("line", style.colour, f"M{self._points(there)}", label))

    def band(self, style: Style, x: Sequence[float], low: Sequence[float], high: Sequence[float], label: str) -> None:
        """Draw the area between two lines behind everything else; the page cuts off what lies outside the frame."""
        if _finite((*low, *high)):
            lower, upper = (list(zip(x, ends, strict=True)) for ends in (low, high))
            path = f"M{self._points(lower)}L{self._points(upper[::-1])}z"
            self._shapes.insert(0, Shape("band", style.colour, path, label))

    def across(self, value: float, label: str) -> None:
        """Draw a dotted level from left to right."""
        if self._fits(self.x.high, value):
            self._shapes.append(Shape("level", "", f"M{LEFT} {_y(self.y, value):.0f}H{WIDTH - RIGHT}", label))

    def upright(self, value: float, label: str) -> None:
        """Draw a dotted level from bottom to top."""
        if self._fits(value, self.y.high):
            self._shapes.append(Shape("level", "", f"M{_x(self.x, value):.0f} {TOP}V{HEIGHT - BOTTOM}", label))

    def panel(self, title: str, words: str) -> Panel:
        """Return the finished panel."""
        return Panel(title, words, self.x, self.y, tuple(self._shapes))

    def _fits(self, x: float, y: float) -> bool:
        return all(
            isfinite(value) and (value > 0 or not axis.log) and -1e-6 <= axis.share(value) <= 1 + 1e-6
            for axis, value in ((self.x, x), (self.y, y))
        )

    def _points(self, points: Sequence[tuple[float, float]]) -> str:
        return "L".join(f"{_x(self.x, across):.1f} {_y(self.y, up):.1f}" for across, up in points)


def _finite(values: Iterable[float]) -> bool:
    return all(isfinite(value) for value in values)


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - BOTTOM - TOP)


def _dot(x: float, y: float, shape: str) -> str:
    outlines = {
        "circle": f"M{x - 5:.1f} {y:.1f}a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
        "square": f"M{x - 4.5:.1f} {y - 4.5:.1f}h9v9h-9z",
        "diamond": f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6-6z",
        "triangle": f"M{x:.1f} {y - 6:.1f}l5.5 10h-11z",
        "cross": f"M{x - 5.5:.1f} {y - 2:.1f}h3.5v-3.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5z",
    }
    return outlines[shape]
