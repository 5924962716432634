"""Draw whole days: how places are used, how alike days are, how visits and time are shared; plain SVG, no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers, Places
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import Comparison, NotMeasurable, Side
from murmurate.metrics.semantics import beside, day_sets, pair_similarities, time_allocation
from murmurate.profiles.classes import location_graph, usage_classes
from murmurate.profiles.days import STEPS, daily_traces
from murmurate.profiles.mobility import profiles_of_rows
from murmurate.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Series
from murmurate.report.density import Patch, outlines
from murmurate.report.view import View

Visited = NDArray[np.int32]
"""Cell of each step [day, step]."""

USAGES = 6
"""Usage classes drawn: as many as the style sheet has colours."""
DAYS_COMPARED = 200
"""Days of each side whose places are mapped onto one another; pairs grow with the square."""
PERIODS = 8
"""Periods of the day in which the use of places is compared. Set by hand."""
TOP_PLACES = 50
"""Most visited places drawn, as in the paper."""
PLACES = ("main", "second", "third")
"""A person's places by time spent, of which a chart each is drawn."""


@dataclass(frozen=True)
class UsageMap:
    """Hold cells coloured by how they are used, longest stays first, and what each class is."""

    title: str
    words: str
    patches: tuple[Patch, ...]


@dataclass(frozen=True)
class Row:
    """Hold one statistic of days: released, and its baselines."""

    letter: str
    what: str
    released: str
    beside: tuple[str, ...]


@dataclass(frozen=True)
class Lives:
    """Hold the figures and the table of whole days."""

    view: View
    maps: tuple[UsageMap, ...]
    charts: tuple[Chart, ...]
    rows: tuple[Row, ...]
    baselines: tuple[str, ...]
    has_another_day: bool


def lives(
    released: Trips, grid: Places, *, original: Trips | None = None, scores: Sequence[Score] = (), seed: int = 0
) -> Lives | None:
    """Draw a release of whole days beside its originals, or alone; None where trips are not days."""
    if not are_days(released):
        return None
    sides: dict[str, Visited]
    if original is None:
        sides = {"released": daily_traces(released, grid, grid.n_cells).place}
    else:
        try:
            real, again, sets = day_sets(Comparison(Side(original, grid), Side(released, grid), None, seed))
        except NotMeasurable:
            return None
        sides = {"original": real, "released": sets[0]} | ({} if again is None else {"floor": again})
    if min(len(place) for place in sides.values()) < 4:
        return None
    shown = {role: place for role, place in sides.items() if role != "floor"}
    view = View.of(grid)
    return Lives(
        view=view,
        maps=tuple(usage_map(role.capitalize(), place, grid, view) for role, place in shown.items()),
        charts=(*similarity_charts(shown, grid.n_cells), visit_chart(sides, grid.n_cells), *allocation_charts(sides)),
        rows=statistic_rows(scores),
        baselines=BASELINES,
        has_another_day="floor" in sides,
    )


def are_days(trips: Trips) -> bool:
    """Whether every trip is a day of the same number of steps, as `plausible` releases them."""
    size = np.diff(trips.offsets)
    if not len(size) or not trips.has_time or size[0] < 12 or (size != size[0]).any():
        return False
    lasts_h = (trips.time_us[trips.offsets[1:] - 1] - trips.time_us[trips.offsets[:-1]]) / 3.6e9
    return bool((np.abs(lasts_h - 24 * (1 - 1 / size[0])) < 0.5).all())


# -- how places are used ----------------------------------------------------------------------------------------------


def usage_map(title: str, place: Visited, grid: Places, view: View) -> UsageMap:
    """Draw usage classes of the cells that some of these days visit, found by mapping everybody's places onto everybody's."""
    some = place[:DAYS_COMPARED]
    graph = location_graph(profiles_of_rows(some, np.arange(len(some) + 1), grid.n_cells, periods=PERIODS))
    if len(graph.place) < 2 * USAGES:
        return UsageMap(title, f"{len(graph.place)} cells, too few to tell classes apart", ())
    found = usage_classes(graph, n_classes=USAGES)
    stay_h, hours = _usage(some, graph.place, found)
    order = np.argsort(-stay_h)
    patches = [
        Patch(rank + 1, outlines(view, grid, graph.place[found == k]), f"{_stay(stay_h[k])}, mostly {_busiest(hours[k])}")
        for rank, k in enumerate(order)
    ]
    return UsageMap(title, f"{len(graph.place):,} cells that {len(some):,} days visit", tuple(patches))


def _usage(place: Visited, cells: Integers, classes: Integers) -> tuple[Floats, Floats]:
    """Return mean hours of a stay in each class, and how its visits spread over the hours of the day."""
    steps = place.shape[1]
    of_cell = np.full(int(max(place.max(), cells.max())) + 1, -1, dtype=np.int64)
    of_cell[cells] = classes
    used, n = of_cell[place], int(classes.max()) + 1
    begins = np.column_stack([np.ones(len(place), dtype=bool), place[:, 1:] != place[:, :-1]])
    spent = np.bincount(used.ravel(), minlength=n)
    stays = np.bincount(used[begins], minlength=n)
    hour = np.broadcast_to(np.arange(steps) * 24 // steps, place.shape)
    hours = np.bincount((used * 24 + hour).ravel(), minlength=n * 24).reshape(n, 24)
    return spent / np.maximum(stays, 1) * 24 / steps, hours / np.maximum(spent, 1)[:, None]


def _stay(hours: float) -> str:
    return f"stays of {hours:.0f} h" if hours >= 1.5 else f"stays of {60 * hours:.0f} min"


def _busiest(share: Floats) -> str:
    """Return the eight hours in a row that hold most of the visits."""
    around = np.concatenate([share, share[:7]])
    first = int(np.argmax(np.convolve(around, np.ones(8), mode="valid")))
    return f"{first}:00 to {(first + 8) % 24}:00"


# -- curves -----------------------------------------------------------------------------------------------------------


def similarity_charts(sides: Mapping[str, Visited], n_places: int) -> list[Chart]:
    """Draw how alike days are, up to relabelled places: a histogram, and quantiles against quantiles for two sides."""
    alike = {role: pair_similarities(place[:DAYS_COMPARED], n_places) for role, place in sides.items()}
    low = float(np.floor(10 * min(0.9, *(np.quantile(values, 0.005) for values in alike.values()))) / 10)
    edges = (np.arange(int(STEPS * low) - 1.5, STEPS + 2.5, 2)) / STEPS  # similarities of single days lie on steps of one
    shares = {role: 100 * np.histogram(values, edges)[0] / len(values) for role, values in alike.items()}
    means = ", ".join(f"{role} {values.mean():.2f}" for role, values in alike.items())
    steps = {role: (np.clip(np.repeat(edges, 2)[1:-1], low, 1), np.repeat(share, 2)) for role, share in shares.items()}
    charts = [_chart("How alike days are", "semantic similarity", "% of pairs", steps, f"Mean: {means}.", across=(low, 1.0))]
    if len(alike) == 2:
        points = np.linspace(0.005, 0.995, 100)
        one, two = (np.quantile(alike[role], points) for role in ("original", "released"))
        both = np.array([low, 1.0])
        lines = {"floor": (both, both), "released": (one, two)}
        words = f"On the dotted line both sides are alike. Correlation {np.corrcoef(one, two)[0, 1]:.3f}."
        box = (low, 1.0)
        charts.append(_chart("Quantiles of likeness", "originals", "released", lines, words, across=box, up=box))
    return charts


def visit_chart(sides: Mapping[str, Visited], n_places: int) -> Chart:
    """Draw shares of visits of the most visited places, most visited first."""
    size = min(TOP_PLACES, n_places)
    lines, held = {}, []
    for role, place in sides.items():
        share = np.sort(np.bincount(place.ravel(), minlength=n_places))[::-1][:size] * 100 / place.size
        lines[role] = (np.arange(1, size + 1, dtype=float), share)
        held.append(f"{_NAMES[role]} {share.sum():.0f} %")
    words = f"Together they hold: {', '.join(held)}."
    return _chart(
        f"The {size} most visited places", "rank of the place", "% of visits", lines, words, across=(0.0, float(size))
    )


def allocation_charts(sides: Mapping[str, Visited]) -> list[Chart]:
    """Draw the share of the day that people spend at their main, second and third place, people in order."""
    charts = []
    for rank, name in enumerate(PLACES):
        lines, medians = {}, []
        for role, place in sides.items():
            share = 100 * time_allocation(place, rank)
            lines[role] = (np.linspace(0, 100, len(share)), share)
            medians.append(f"{_NAMES[role]} {np.median(share):.0f} %")
        words = f"Median: {', '.join(medians)}."
        charts.append(_chart(f"Time at the {name} place", "% of days", "% of the day", lines, words))
    return charts


_NAMES = {"original": "original", "released": "released", "floor": "another real day"}
"""What each line is called in words."""


def _chart(
    title: str,
    x_label: str,
    y_label: str,
    lines: Mapping[str, tuple[Floats, Floats]],
    words: str,
    *,
    across: tuple[float, float] = (0.0, 100.0),
    up: tuple[float, float] | None = None,
) -> Chart:
    """Draw lines in a frame; without `up` it reaches from 0 to a round number above all of them."""
    left, right = across
    bottom, end = up or (0.0, round_above(max(float(y.max()) for _, y in lines.values())))

    def at(x: Floats, y: Floats) -> tuple[Floats, Floats]:
        part = (x - left) / (right - left), (y - bottom) / (end - bottom)
        return LEFT + part[0] * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - part[1] * (HEIGHT - BOTTOM - TOP)

    series = []
    for role, (x, y) in lines.items():
        points = " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(*at(x, y), strict=True))
        series.append(Series(role, _NAMES[role], f"M{points}"))
    x_ticks, y_ticks = np.linspace(left, right, 6), np.linspace(bottom, end, 6)
    return Chart(
        title,
        x_label,
        y_label,
        tuple((float(x), f"{value:.3g}") for x, value in zip(at(x_ticks, x_ticks)[0], x_ticks, strict=True)),
        tuple((float(y), f"{value:.3g}") for y, value in zip(at(y_ticks, y_ticks)[1], y_ticks, strict=True)),
        tuple(series),
        words,
    )


def round_above(highest: float) -> float:
    """Return the least of 1, 1.5, 2, 2.5, 5 or 10 times a power of ten that is no less."""
    power = 10.0 ** np.floor(np.log10(highest or 1.0))
    return float(
        next(power * part for part in (1.0, 1.5, 2.0, 2.5, 5.0, 10.0) if power * part >= (highest or 1.0) * (1 - 1e-9))
    )


# -- the six statistics -----------------------------------------------------------------------------------------------

BASELINES = ("another real day", "uniform", "single place", "random")
"""Baselines of the paper, as the notes of scores name them."""

_STATISTICS = (
    ("a", "Visits: divergence, places in order of popularity", "day_visits.kl"),
    ("a", "Visits: relative error", "day_visits.relative_error"),
    ("b", "The 50 most visited: distance of shares", "day_visits.top50_distance"),
    ("c", "The 10 most visited kept", "day_visits.top10_coverage"),
    ("c", "The 50 most visited kept", "day_visits.top50_coverage"),
    ("d", "Time at the main place: divergence", "day_time_allocation.place1_kl"),
    ("d", "Time at the first two", "day_time_allocation.top2_kl"),
    ("d", "Time at the first three", "day_time_allocation.top3_kl"),
    ("d", "Time at the second place alone", "day_time_allocation.place2_kl"),
    ("d", "Time at the third place alone", "day_time_allocation.place3_kl"),
    ("e", "Moves between places: similarity", "day_mobility.moves_similarity"),
    ("e", "Visits by place: similarity", "day_mobility.visits_similarity"),
    ("f", "Likeness of days: correlation of quantiles", "day_semantics.qq_correlation"),
    ("f", "Likeness of days: mean gap of quantiles", "day_semantics.qq_gap"),
)
"""Statistic of the paper, its words and its score, in the order of the table."""


def statistic_rows(scores: Sequence[Score]) -> tuple[Row, ...]:
    """Return the six statistics (a) to (f) as they were scored, each beside its baselines."""
    by_name = {score.name: score for score in scores if score.name.startswith("day_")}
    rows = []
    for letter, what, name in _STATISTICS:
        score = by_name.get(name)
        if score is not None:
            known = beside(score)
            others = tuple(_plain(known[base]) if base in known else "–" for base in BASELINES)
            rows.append(Row(letter, what, _plain(score.value), others))
    return tuple(rows)


def _plain(value: float) -> str:
    """Write three decimals, four for what is small: no powers of ten between plain numbers."""
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.4f}"
