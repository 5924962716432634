"""Write the page of a study: figures, tables, and what could not be measured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from murmurate.core.score import number
from murmurate.judging.study import StudyResult
from murmurate.judging.study.grid import ORIGINAL
from murmurate.judging.study.table import INTERNAL, whole_file
from murmurate.report import plots
from murmurate.report import study_figures as figures
from murmurate.report.render import render

UTILITIES = ("hausdorff.mean", "hausdorff_nearest.mean", "od_queries", "range_queries", "length.released_mean")
"""Scores that the figures against attacks may take: of those that most mechanisms have, the first."""
ATTACKS = ("reidentify.places.top1_k4", "reidentify.timed.top1_k4", "average.found_all")
"""Attack scores that get a figure each."""


def write_study_report(result: StudyResult, path: str | Path, *, metrics: Sequence[str] | None = None) -> Path:
    """Write the page; `metrics` names the scores shown in full (by default the means and what has no statistics).

    Internal: the page shows figures computed from private data.
    """
    place = Path(path)
    with whole_file(place) as temporary:
        temporary.write_text(study_page(result, metrics=metrics), encoding="utf-8")
    return place


def study_page(result: StudyResult, *, metrics: Sequence[str] | None = None) -> str:
    """Return the page as text."""
    names = [] if result.table.is_empty() else result.table["dataset"].unique(maintain_order=True).to_list()
    return render(
        "study.html.j2",
        spec=result.spec,
        internal=INTERNAL,
        frame=plots,
        number=partial(number, digits=4),
        datasets=[_dataset(result, name, metrics) for name in names],
        skipped=dict(result.skipped),
        failed=dict(result.failed),
        n_values=result.table.height,
    )


def _dataset(result: StudyResult, name: str, metrics: Sequence[str] | None) -> dict[str, Any]:
    spec, regression = result.spec.regression, result.regression
    table = result.table.filter(pl.col("dataset") == name)
    first = regression.first.filter(pl.col("dataset") == name)
    shown = [metric for metric in first["metric"].unique(maintain_order=True).to_list() if _wanted(metric, metrics)]
    moving = [metric for metric in shown if first.filter(pl.col("metric") == metric)["a"].abs().max() or 0]
    units = dict(table.select("metric", "unit").unique().iter_rows())
    drawn = [
        {
            "name": metric,
            "plots": [
                figures.first_layer(regression, name, metric, over=spec.over, budget=spec.budget, unit=units[metric]),
                figures.final_layer(regression, name, metric, over=spec.over, budget=spec.budget),
            ],
            "rows": _rows(result, name, metric),
        }
        for metric in moving
    ]
    compared = regression.performance.filter(pl.col("dataset") == name).height
    trade_offs, no_trade_off = _trade_offs(result, table, name)
    labels = [label for label in table["mechanism"].unique(maintain_order=True).to_list() if label != ORIGINAL]
    return {
        "name": name,
        "metrics": drawn,
        "budgets": sorted(first["budget"].unique().to_list()),
        "still": [metric for metric in shown if metric not in moving],
        "performance": figures.performance(regression, name, moving, budget=spec.budget) if compared else None,
        "trade_offs": trade_offs,
        "no_trade_off": no_trade_off,
        "without_lines": [label for label in labels if label not in first["mechanism"]],
        "summary": _summary(result, name),
    }


def _trade_offs(result: StudyResult, table: pl.DataFrame, name: str) -> tuple[list[plots.Plot], str]:
    """Draw the figures of utility against attacks, or say why there are none."""
    measured = table.filter(pl.col("mechanism") != ORIGINAL)
    having = dict(measured.group_by("metric").agg(pl.col("mechanism").n_unique()).iter_rows())
    attacks = [word for word in ATTACKS if word in having]
    utilities = [word for word in UTILITIES if word in having]
    if not result.spec.attacks or (attacks and utilities):
        utility = max(utilities, key=lambda word: having[word], default="")  # the first of equals
        return [
            figures.trade_off(table, name, utility=utility, attack=attack, skipped=result.skipped) for attack in attacks
        ], ""
    wanted, found = ("attacks", ATTACKS) if not attacks else ("metrics", UTILITIES)
    return [], f"No figure of utility against attacks: none of the {wanted} {', '.join(found)} was measured."


def _rows(result: StudyResult, dataset: str, metric: str) -> list[dict[str, Any]]:
    """Return the paper's table of one metric: a by budget, b and c, and where two mechanisms do not differ."""
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
    """Return the mean over repeats of every score without a first layer, by setting: attacks and whole-release metrics."""
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
