"""The figures of a study: first layer, final layer and residuals, performance, and utility against an attack."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from murmurate.core.score import number
from murmurate.judging.study.grid import ORIGINAL
from murmurate.judging.study.regression import Regression
from murmurate.report.plots import Drawing, Plot, linear_axis, log_axis, ordered_style, series_style

STEEPEST_PERCENT = 1000.0
"""Gains beyond this are not drawn: a score that the baseline hardly moves gains any percentage and would flatten the others."""


def first_layer(regression: Regression, dataset: str, metric: str, *, over: str, budget: str, unit: str) -> Plot:
    """Draw means over repeats at every radius with the line b + a R and its interval, one panel a mechanism."""
    means, lines = (_of(table, dataset, metric) for table in (regression.means, regression.first))
    labels = means["mechanism"].unique(maintain_order=True).to_list()
    budgets = sorted(means["budget"].unique().to_list())
    reach = max(means["over"].to_list())
    x = linear_axis(over, means["over"].to_list())
    ends = [row["b"] + row["a"] * reach for row in lines.iter_rows(named=True)]
    y = linear_axis(_axis(metric, unit), [*means["value"].to_list(), *ends, *lines["b"].to_list()])
    panels = []
    for label in labels:
        drawing, words = Drawing(x, y), []
        for index, at in enumerate(budgets):
            here = (pl.col("mechanism") == label) & (pl.col("budget") == at)
            points, line = means.filter(here).sort("over"), lines.filter(here)
            if points.is_empty():
                continue
            style, name = ordered_style(index, len(budgets)), f"{budget} {at:g}"
            a, b, low, high = (line[word][0] for word in ("a", "b", "low", "high"))
            drawing.band(
                style, [0.0, reach], [b, b + low * reach], [b, b + high * reach], f"{name}: 95 % interval of the slope"
            )
            drawing.line(style, [0.0, reach], [b, b + a * reach], f"{name}: {_short(b)} + {_short(a)} x {over}")
            drawing.dots(style, points["over"].to_list(), points["value"].to_list(), _pointed(points, over, name))
            words.append(f"{_short(a)} at {budget} {at:g}")
        panels.append(drawing.panel(label, f"Slope a: {', '.join(words)}."))
    legend = tuple((ordered_style(k, len(budgets)), f"{budget} {at:g}") for k, at in enumerate(budgets))
    caption = (
        f"Mean over repeats at each {over}, and the line through the originals' own value; shaded: 95 % interval of its slope."
    )
    return Plot("First layer", caption, tuple(panels), legend)


def final_layer(regression: Regression, dataset: str, metric: str, *, over: str, budget: str) -> Plot:
    """Draw 1/a over the budget with the line c x budget; beside it what the first layer leaves unexplained."""
    first, second, means = (_of(t, dataset, metric) for t in (regression.first, regression.second, regression.means))
    labels = first["mechanism"].unique(maintain_order=True).to_list()
    slopes = first.filter(pl.col("a") != 0)
    reach = max(first["budget"].to_list())
    rises = [c * reach for c in second["c"].to_list()]
    final = Drawing(
        linear_axis(budget, first["budget"].to_list()), linear_axis("1 / a", [*(1 / slopes["a"]).to_list(), *rises])
    )
    left = Drawing(linear_axis(over, means["over"].to_list()), linear_axis("residual", means["residual"].to_list()))
    left.across(0.0, "no residual")
    still = []
    for index, label in enumerate(labels):
        here, style = pl.col("mechanism") == label, series_style(index)
        line = second.filter(here).row(0, named=True)
        c, low, high = (line[word] for word in ("c", "low", "high"))
        points = slopes.filter(here).sort("budget")
        if points.is_empty():
            still.append(f"{label}: it does not change this score, so there is no 1/a.")
        final.band(style, [0.0, reach], [0.0, low * reach], [0.0, high * reach], f"{label}: 95 % interval of c")
        final.line(style, [0.0, reach], [0.0, c * reach], f"{label}: {_short(c)} x {budget}")
        named = [f"{label}, {budget} {row['budget']:g}: 1/a = {_short(1 / row['a'])}" for row in points.iter_rows(named=True)]
        final.dots(style, points["budget"].to_list(), (1 / points["a"]).to_list(), named)
        rest = means.filter(here).sort("over")
        named = [f"{label}, {budget} {row['budget']:g}, {over} {row['over']:g}" for row in rest.iter_rows(named=True)]
        left.dots(style, rest["over"].to_list(), rest["residual"].to_list(), named)
    rates = ", ".join(
        f"{row['mechanism']} {_short(row['c'])}" for row in second.iter_rows(named=True) if math.isfinite(row["c"])
    )
    greatest = max(means["residual"].abs().to_list())
    panels = (
        final.panel("Final layer: 1/a", f"Slope c: {rates}." if rates else "No slope c."),
        left.panel("Residuals of the first layer", f"The largest is {_short(greatest)}."),
    )
    legend = tuple((series_style(index), label) for index, label in enumerate(labels))
    caption = "The steeper the line, the less a mechanism disturbs for its budget; shaded: 95 % interval of c."
    return Plot("Final layer", caption, panels, legend, tuple(still))


def performance(regression: Regression, dataset: str, metrics: Sequence[str], *, budget: str) -> Plot:
    """Draw the percentage by which each mechanism does better than the baseline, over the budget.

    One score of each metric is drawn; the notes list the others, whose percentages the tables hold.
    """
    table = regression.performance.filter(pl.col("dataset") == dataset, pl.col("budget").is_not_null())
    labels = table["mechanism"].unique(maintain_order=True).to_list()
    drawn: list[tuple[str, pl.DataFrame]] = []
    families: set[str] = set()
    others, steep = [], []
    for metric in metrics:
        part = table.filter(pl.col("metric") == metric)
        family = metric.partition(".")[0]
        if part.is_empty():
            continue
        if family in families:
            others.append(metric)
            continue
        families.add(family)
        for label in labels:
            mine = part.filter(pl.col("mechanism") == label).sort("budget")
            name = metric if len(labels) == 1 else f"{metric}, {label}"
            if (mine["percent"].abs() > STEEPEST_PERCENT).any():
                steep.append(name)
            elif mine.height:
                drawn.append((name, mine))
    percents = [value for _, part in drawn for value in part["percent"].to_list()]
    drawing = Drawing(linear_axis(budget, table["budget"].to_list()), linear_axis("% less disturbance", percents))
    drawing.across(0.0, "as the baseline")
    for index, (name, part) in enumerate(drawn):
        at, gained = part["budget"].to_list(), part["percent"].to_list()
        drawing.line(series_style(index), at, gained, name)
        named = [
            f"{name}, {budget} {row['budget']:g}: {_short(row['percent'])} %{'' if row['differs'] else ', intervals overlap'}"
            for row in part.iter_rows(named=True)
        ]
        drawing.dots(series_style(index), at, gained, named)
    notes = []
    if others:
        notes.append(f"Only in the tables, one score of each metric being drawn: {', '.join(others)}.")
    if steep:
        notes.append(f"Beyond {STEEPEST_PERCENT:,.0f} %, as the baseline hardly changes them: {', '.join(steep)}.")
    base = table["baseline"][0]
    words = f"From {_short(min(percents))} % to {_short(max(percents))} %." if percents else "No line fits this frame."
    legend = tuple((series_style(index), name) for index, (name, _) in enumerate(drawn))
    caption = f"Above 0 a mechanism disturbs less than {base} at the same {budget}, below 0 more."
    return Plot(f"Performance against {base}", caption, (drawing.panel("", words),), legend, tuple(notes))


def trade_off(table: pl.DataFrame, dataset: str, *, utility: str, attack: str, skipped: Mapping[str, str]) -> Plot:
    """Draw every setting of every mechanism: its utility against the success of one attack.

    A mechanism for which either was not measured is named in the notes, with the reason that the study gives.
    """
    data = table.filter(pl.col("dataset") == dataset)
    here = data.filter(pl.col("metric").is_in([utility, attack]))
    means = here.group_by("mechanism", "setting", "metric", maintain_order=True).agg(pl.col("value").mean())
    good, bad = (here.filter(pl.col("metric") == word) for word in (utility, attack))
    settings = settings_in_words(here)
    labels = [label for label in data["mechanism"].unique(maintain_order=True).to_list() if label != ORIGINAL]
    pairs: dict[str, pl.DataFrame] = {}
    notes = []
    for label in labels:
        part = means.filter(pl.col("mechanism") == label)
        both = part.filter(pl.col("metric") == utility).select("setting", good="value")
        both = both.join(part.filter(pl.col("metric") == attack), on="setting").sort("value")
        if both.height:
            pairs[label] = both
        else:
            notes.append(_not_drawn(label, dataset, part, (utility, attack), skipped))
    drawn = pl.concat(pairs.values()) if pairs else means.clear().with_columns(good=pl.col("value"))
    own = good.filter(pl.col("mechanism") == ORIGINAL)["value"].to_list()
    chance = bad.filter(pl.col("chance").is_not_null())["chance"].to_list()
    level = sum(chance) / len(chance) if chance else math.nan
    values = drawn["good"].to_list()
    units = good["unit"].to_list()
    better = (good.filter(pl.col("mechanism") != ORIGINAL)["better"].to_list() or ["neither"])[0]
    reference = own[0] if own and better not in ("lower", "higher") else math.nan
    spread = all(value > 0 for value in values) and bool(values) and max(values) > 5 * min(values)
    scale = log_axis if spread else linear_axis
    y = scale(_axis(utility, units[0] if units else ""), [*values, reference])
    drawing = Drawing(linear_axis(f"success of {attack}", [*drawn["value"].to_list(), level]), y)
    drawing.upright(level, f"by chance: {_short(level)}")
    drawing.across(reference, f"the originals: {_short(reference)}")
    for index, (label, both) in enumerate(pairs.items()):
        named = [
            f"{label}: {settings.get((label, row['setting']), '')}; "
            f"attack {_short(row['value'])}, utility {_short(row['good'])}"
            for row in both.iter_rows(named=True)
        ]
        drawing.dots(series_style(index), both["value"].to_list(), both["good"].to_list(), named)
    caption = f"Every dot is one setting. Left is safer against this attack; {_closer(better, bool(own))}. Dotted: chance"
    caption += ", and the originals' own value." if math.isfinite(reference) else "."
    words = f"{drawn.height} settings; attack {_range(drawn['value'].to_list())}, utility {_range(values)}."
    legend = tuple((series_style(index), label) for index, label in enumerate(pairs))
    return Plot(f"Utility against {attack}", caption, (drawing.panel("", words),), legend, tuple(notes))


def settings_in_words(table: pl.DataFrame) -> dict[tuple[str, int], str]:
    """What was set, in words, by mechanism and number of the setting."""
    known = {"study", "dataset", "mechanism", "mechanism_name", "setting", "repeat", "kind", "metric", "value"}
    known |= {"low", "high", "chance", "better", "unit"}
    names = [name for name in table.columns if name not in known]
    rows = table.select("mechanism", "setting", *names).unique(maintain_order=True)
    return {
        (row["mechanism"], row["setting"]): ", ".join(
            f"{name} {row[name]:g}" if isinstance(row[name], float) else f"{name} {row[name]}"
            for name in names
            if row[name] is not None
        )
        for row in rows.iter_rows(named=True)
    }


def _not_drawn(label: str, dataset: str, part: pl.DataFrame, words: Sequence[str], skipped: Mapping[str, str]) -> str:
    missing = [word for word in words if word not in part["metric"]]
    reasons = [skipped.get(f"{word.partition('.')[0]} ({dataset}, {label})", "") for word in missing]
    reason = "; ".join(dict.fromkeys(filter(None, reasons))) or "none of its settings has both values"
    return f"{label} is not drawn: {f'no {chr(32).join(missing)}, ' if missing else ''}{reason}."


def _closer(better: str, own: bool) -> str:
    if better in ("lower", "higher"):
        return f"{'low' if better == 'lower' else 'high'} is closer to the originals"
    return "near the originals' own value is closer to them" if own else "neither high nor low is better by itself"


def _pointed(points: pl.DataFrame, over: str, name: str) -> list[str]:
    return [f"{name}, {over} {row['over']:g}: {_short(row['value'])}" for row in points.iter_rows(named=True)]


def _range(values: Sequence[float]) -> str:
    return f"{_short(min(values))} to {_short(max(values))}" if values else "not measured"


def _short(value: float) -> str:
    return number(value, digits=4)


def _of(table: pl.DataFrame, dataset: str, metric: str) -> pl.DataFrame:
    return table.filter(pl.col("dataset") == dataset, pl.col("metric") == metric)


def _axis(metric: str, unit: str) -> str:
    return f"{metric} ({unit})" if unit else metric
