"""The figures of a study: first layer, final layer, residuals, performance, and utility against an attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from murmurate.judging.study.grid import ORIGINAL
from murmurate.judging.study.regression import Regression

Figure = Any
"""A plotly figure; plotly itself is imported where a figure is drawn."""

MECHANISM_COLOURS = (
    *("#1f6f8b", "#d1603d", "#6a4c93", "#4f8a3d", "#b8860b", "#8b3a62", "#3d5a80"),
    *("#2aa198", "#7f5539", "#c2185b", "#607d3b", "#5c5c5c", "#e09f3e"),
)
BUDGET_COLOURS = ("#b5380f", "#d97828", "#c9a227", "#5f9e6e", "#2f7f9d", "#33539e", "#4b2e83")
_STEEPEST = 1000.0
_LAYOUT = {
    "template": "plotly_white",
    "font": {"family": "system-ui, sans-serif", "size": 13},
    "margin": {"l": 70, "r": 20, "t": 50, "b": 60},
    "legend": {"orientation": "h", "y": -0.22},
}


def first_layer(regression: Regression, dataset: str, metric: str, *, over: str, unit: str) -> Figure:
    """Means over repeats at every radius with the line b + a R, one panel a mechanism, one colour a budget."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    means, lines = (_of(table, dataset, metric) for table in (regression.means, regression.first))
    labels = means["mechanism"].unique(maintain_order=True).to_list()
    budgets = sorted(means["budget"].unique().to_list())
    figure = make_subplots(cols=len(labels), shared_yaxes=True, subplot_titles=labels, horizontal_spacing=0.03)
    for column, label in enumerate(labels, start=1):
        for number, budget in enumerate(budgets):
            here = (pl.col("mechanism") == label) & (pl.col("budget") == budget)
            points, line = means.filter(here).sort("over"), lines.filter(here)
            if points.is_empty():
                continue
            colour = _shade(number, len(budgets))
            shared = {"legendgroup": str(budget), "name": f"budget {budget:g}"}
            figure.add_trace(
                Scatter(
                    x=points["over"].to_list(),
                    y=points["value"].to_list(),
                    mode="markers",
                    marker={"color": colour, "size": 7},
                    showlegend=column == 1,
                    **shared,
                ),
                row=1,
                col=column,
            )
            reach = [0.0, points["over"].max()]
            a, b = line["a"][0], line["b"][0]
            figure.add_trace(
                Scatter(
                    x=reach,
                    y=[b + a * at for at in reach],
                    mode="lines",
                    line={"color": colour, "width": 1.5},
                    showlegend=False,
                    **shared,
                ),
                row=1,
                col=column,
            )
        figure.update_xaxes(title_text=over, row=1, col=column)
    figure.update_yaxes(title_text=_axis(metric, unit), row=1, col=1)
    return figure.update_layout(title="First layer", height=430, **_LAYOUT)


def final_layer(regression: Regression, dataset: str, metric: str, *, over: str, budget: str) -> Figure:
    """1/a over the budget with the line c x budget; beside it what the first layer leaves unexplained."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    first, second, means = (_of(t, dataset, metric) for t in (regression.first, regression.second, regression.means))
    labels = first["mechanism"].unique(maintain_order=True).to_list()
    figure = make_subplots(cols=2, subplot_titles=["Final layer: 1/a", "Residuals of the first layer"], horizontal_spacing=0.12)
    for number, label in enumerate(labels):
        here = pl.col("mechanism") == label
        colour = MECHANISM_COLOURS[number % len(MECHANISM_COLOURS)]
        lines = first.filter(here).sort("budget")
        c = second.filter(here)["c"][0]
        shared = {"legendgroup": label}
        points = lines.filter(pl.col("a") != 0)
        figure.add_trace(
            Scatter(
                x=points["budget"].to_list(),
                y=(1 / points["a"]).to_list(),
                mode="markers",
                name=label,
                marker={"color": colour, "size": 8},
                **shared,
            ),
            row=1,
            col=1,
        )
        reach = [0.0, lines["budget"].max()]
        figure.add_trace(
            Scatter(x=reach, y=[c * at for at in reach], mode="lines", line={"color": colour}, showlegend=False, **shared),
            row=1,
            col=1,
        )
        left = means.filter(here).sort("over")
        figure.add_trace(
            Scatter(
                x=left["over"].to_list(),
                y=left["residual"].to_list(),
                mode="markers",
                marker={"color": colour, "size": 6},
                text=[f"budget {value:g}" for value in left["budget"]],
                showlegend=False,
                **shared,
            ),
            row=1,
            col=2,
        )
    figure.update_xaxes(title_text=budget, row=1, col=1).update_xaxes(title_text=over, row=1, col=2)
    figure.update_yaxes(title_text="1 / a", row=1, col=1)
    return figure.update_layout(height=400, **_LAYOUT)


def performance(regression: Regression, dataset: str, metrics: Sequence[str], *, budget: str) -> Figure:
    """Percent by which each mechanism does better than the baseline, over the budget.

    The first score of each metric is drawn; the others wait in the legend.
    """
    from plotly.graph_objects import Figure as PlotlyFigure
    from plotly.graph_objects import Scatter

    figure = PlotlyFigure()
    table = regression.performance.filter(pl.col("dataset") == dataset, pl.col("budget").is_not_null())
    labels = table["mechanism"].unique(maintain_order=True).to_list()
    marks = ("circle", "diamond", "square", "triangle-up", "x")
    leading: set[str] = set()
    for number, metric in enumerate(metrics):
        family = metric.partition(".")[0]
        visible = True if family not in leading else "legendonly"
        leading.add(family)
        for k, label in enumerate(labels):
            part = table.filter(pl.col("metric") == metric, pl.col("mechanism") == label).sort("budget")
            if part.is_empty():
                continue
            # a score that a mechanism hardly moves at all gains any percentage, and would flatten the others
            steep = bool((part["percent"].abs() > _STEEPEST).any())
            figure.add_trace(
                Scatter(
                    x=part["budget"].to_list(),
                    y=part["percent"].to_list(),
                    name=metric if len(labels) == 1 else f"{metric}, {label}",
                    mode="lines+markers",
                    visible="legendonly" if steep else visible,
                    line={"color": MECHANISM_COLOURS[number % len(MECHANISM_COLOURS)]},
                    marker={"symbol": marks[k % len(marks)], "size": 8},
                )
            )
    figure.add_hline(y=0, line={"color": "#888", "dash": "dot"})
    base = table["baseline"][0] if table.height else ""
    title = f"Performance against {base}: how much less it disturbs" if base else "Performance"
    figure.update_yaxes(title_text="%").update_xaxes(title_text=budget)
    return figure.update_layout(title=title, height=560, **_LAYOUT)


def trade_off(table: pl.DataFrame, dataset: str, *, utility: str, attack: str) -> Figure:
    """Every setting of every mechanism: what it still is good for, against how well one attack does on it."""
    from plotly.graph_objects import Figure as PlotlyFigure
    from plotly.graph_objects import Scatter

    here = table.filter(pl.col("dataset") == dataset, pl.col("metric").is_in([utility, attack]))
    means = here.group_by("mechanism", "setting", "metric", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("chance").mean()
    )
    figure = PlotlyFigure()
    settings = settings_in_words(here)
    labels = [label for label in means["mechanism"].unique(maintain_order=True).to_list() if label != ORIGINAL]
    for number, label in enumerate(labels):
        part = means.filter(pl.col("mechanism") == label)
        good = part.filter(pl.col("metric") == utility).select("setting", good="value")
        both = good.join(part.filter(pl.col("metric") == attack), on="setting").sort("value")
        figure.add_trace(
            Scatter(
                x=both["value"].to_list(),
                y=both["good"].to_list(),
                mode="markers",
                name=label,
                text=[settings.get((label, number), "") for number in both["setting"]],
                hovertemplate="%{text}<br>attack %{x:.3f}, utility %{y:.4g}<extra>%{fullData.name}</extra>",
                marker={
                    "color": MECHANISM_COLOURS[number % len(MECHANISM_COLOURS)],
                    "size": 11,
                    "line": {"width": 1, "color": "white"},
                },
            )
        )
    chance = here.filter(pl.col("metric") == attack, pl.col("chance").is_not_null())["chance"]
    if len(chance):
        figure.add_vline(x=float(chance.to_numpy().mean()), line={"color": "#888", "dash": "dot"}, annotation_text="chance")
    units = here.filter(pl.col("metric") == utility)["unit"].to_list()
    figure.update_xaxes(title_text=f"success of {attack}", rangemode="tozero")
    figure.update_yaxes(title_text=_axis(utility, units[0] if units else ""), type="log", dtick="D2")
    return figure.update_layout(title=f"Utility against {attack}", height=520, **_LAYOUT)


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


def _of(table: pl.DataFrame, dataset: str, metric: str) -> pl.DataFrame:
    return table.filter(pl.col("dataset") == dataset, pl.col("metric") == metric)


def _axis(metric: str, unit: str) -> str:
    return f"{metric} ({unit})" if unit else metric


def _shade(number: int, total: int) -> str:
    return BUDGET_COLOURS[round(number * (len(BUDGET_COLOURS) - 1) / max(1, total - 1))]
