"""A study as one HTML page that asks nothing of the outside: figures, tables, and what could not be measured."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from murmurate.judging.study import StudyResult
from murmurate.judging.study.grid import ORIGINAL
from murmurate.judging.study.table import INTERNAL, whole_file
from murmurate.report import study_figures as figures

TEMPLATES = Path(__file__).parent / "templates"
UTILITIES = ("hausdorff.mean", "hausdorff_nearest.mean", "od_queries", "range_queries", "length.released_mean")
ATTACKS = ("reidentify.places.top1_k4", "reidentify.timed.top1_k4", "average.found_all")
"""What the cross-family figures take: the first utility that was measured, and each of these attacks."""


def write_study_report(result: StudyResult, path: str | Path, *, metrics: Sequence[str] | None = None) -> Path:
    """Write the page; `metrics` names the scores shown in full (by default the means and what has no statistics).

    Internal: the page shows figures computed from private data.
    """
    place = Path(path)
    with whole_file(place) as temporary:
        temporary.write_text(study_page(result, metrics=metrics), encoding="utf-8")
    return place


def study_page(result: StudyResult, *, metrics: Sequence[str] | None = None) -> str:
    """The page as text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    environment.filters["number"] = _number
    template = environment.get_template("study.html.j2")
    names = [] if result.table.is_empty() else result.table["dataset"].unique(maintain_order=True).to_list()
    return template.render(
        spec=result.spec,
        internal=INTERNAL,
        plotly=get_plotlyjs(),
        datasets=[_dataset(result, name, metrics) for name in names],
        skipped=dict(result.skipped),
        failed=dict(result.failed),
        n_values=result.table.height,
    )


def _dataset(result: StudyResult, name: str, metrics: Sequence[str] | None) -> dict[str, Any]:
    spec, regression = result.spec.regression, result.regression
    first = regression.first.filter(pl.col("dataset") == name)
    shown = [metric for metric in first["metric"].unique(maintain_order=True).to_list() if _wanted(metric, metrics)]
    moving = [metric for metric in shown if first.filter(pl.col("metric") == metric)["a"].abs().max() or 0]
    units = dict(result.table.filter(pl.col("dataset") == name).select("metric", "unit").unique().iter_rows())
    drawn = [
        {
            "name": metric,
            "first": _json(figures.first_layer(regression, name, metric, over=spec.over, unit=units[metric])),
            "final": _json(figures.final_layer(regression, name, metric, over=spec.over, budget=spec.budget)),
            "rows": _rows(result, name, metric),
        }
        for metric in moving
    ]
    compared = regression.performance.filter(pl.col("dataset") == name).height
    return {
        "name": name,
        "metrics": drawn,
        "budgets": sorted(first["budget"].unique().to_list()),
        "still": [metric for metric in shown if metric not in moving],
        "performance": _json(figures.performance(regression, name, moving, budget=spec.budget)) if compared else None,
        "trade_offs": _trade_offs(result, name),
        "summary": _summary(result, name),
    }


def _trade_offs(result: StudyResult, name: str) -> list[str]:
    there = result.table.filter(pl.col("dataset") == name, pl.col("mechanism") != ORIGINAL)["metric"].unique()
    utility = next((word for word in UTILITIES if word in there), None)
    if utility is None:
        return []
    attacks = [word for word in ATTACKS if word in there]
    return [_json(figures.trade_off(result.table, name, utility=utility, attack=attack)) for attack in attacks]


def _rows(result: StudyResult, dataset: str, metric: str) -> list[dict[str, Any]]:
    """The paper's table of one metric: a by budget, b and c, and where two mechanisms cannot be told apart."""
    here = (pl.col("dataset") == dataset) & (pl.col("metric") == metric)
    first, second = result.regression.first.filter(here), result.regression.second.filter(here)
    compared = result.regression.performance.filter(here)
    rows = []
    for label in first["mechanism"].unique(maintain_order=True):
        lines = first.filter(pl.col("mechanism") == label).sort("budget")
        last = second.filter(pl.col("mechanism") == label).row(0, named=True)
        rows.append({"label": label, "lines": lines.to_dicts(), "b": lines["b"][0], "c": last})
    for label in compared["mechanism"].unique(maintain_order=True):
        part = compared.filter(pl.col("mechanism") == label)
        rows.append({"label": f"{label} against {part['baseline'][0]}", "percent": part.to_dicts()})
    return rows


def _summary(result: StudyResult, dataset: str) -> list[dict[str, Any]]:
    """Mean over repeats of every score that has no first layer, setting by setting: attacks and whole-release metrics."""
    regressed = result.regression.first.filter(pl.col("dataset") == dataset)["metric"].unique()
    table = result.table.filter(pl.col("dataset") == dataset, pl.col("mechanism") != ORIGINAL)
    attacks = (pl.col("kind") == "attack") | ~pl.col("metric").is_in(regressed.to_list())
    found = table.filter(attacks, pl.col("metric").str.contains("top1|all|od_queries|range_queries|hausdorff.mean"))
    means = found.group_by("mechanism", "setting", "metric", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("chance").mean(), pl.col("low").mean(), pl.col("high").mean()
    )
    words = figures.settings_in_words(table)
    return [{**row, "settings": words.get((row["mechanism"], row["setting"]), "")} for row in means.iter_rows(named=True)]


def _wanted(metric: str, metrics: Sequence[str] | None) -> bool:
    if metrics is not None:
        return metric in metrics
    return not metric.endswith(("sd", "_min", "_max", "_sum", ".min", ".max", ".sum"))


def _json(figure: Any) -> str:
    """Plotly's own JSON, safe inside a script element."""
    text: str = figure.to_json()
    json.loads(text)
    return text.replace("<", "\\u003c")


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:,.{digits}g}"
