"""The page of a study: whole, self-contained, and about what was measured."""

from __future__ import annotations

import math
import re

import polars as pl
import pytest

from murmurate.core.score import number
from murmurate.judging.study import study
from murmurate.report.plots import Drawing, linear_axis, log_axis, series_style
from murmurate.report.study import study_page, write_study_report
from murmurate.report.study_figures import trade_off

SPEC = {
    "name": "page <b>",
    "about": "A study & its page",
    "metrics": ["hausdorff", "duration_change", "od_queries"],
    "attacks": ["reidentify"],
    "datasets": {"tony900": {"skaters": 25}, "absent": {"file": "nowhere.csv"}},
    "seed": 1,
    "repeats": 2,
    "mechanisms": [
        {"name": "geoind", "label": "simple", "sweep": {"epsilon": [0.5, 1], "radius_m": [50, 100, 200]}},
        {"name": "geoind", "label": "memo", "set": {"memo": True}, "sweep": {"epsilon": [0.5, 1], "radius_m": [50, 100, 200]}},
        {"name": "k_anonymity", "label": "groups", "sweep": {"k": [2], "radius_m": [50, 200]}},
    ],
    "regression": {"baseline": "simple"},
}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return study(SPEC, out=tmp_path_factory.mktemp("study") / "out")


@pytest.fixture(scope="module")
def page(result):
    return study_page(result)


def test_it_says_that_it_is_internal_and_what_was_left_out(page):
    assert "Internal: computed from the originals" in page
    assert "nowhere.csv" in page


def test_names_are_escaped(page):
    assert "page &lt;b&gt;" in page
    assert "A study &amp; its page" in page


def test_every_figure_is_drawn_with_its_axes_and_described(page):
    titles = set(re.findall(r"<figcaption>([^<]+)<span>", page))
    assert titles >= {"Utility against reidentify.places.top1_k4", "Performance against simple", "First layer", "Final layer"}
    drawings = re.findall(r'<svg class="chart" .*?</svg>\n<p class', page, re.DOTALL)
    assert drawings
    for drawing in drawings:
        assert re.search(r"<title>[^<]+</title>\s*<desc>[^<]+ over [^<]+</desc>", drawing)
        assert 'class="dot' in drawing
        assert "nan" not in drawing.lower()
    assert 'class="band' in page


def test_nothing_is_fetched_and_nothing_runs(page):
    assert "<script" not in page
    assert re.findall(r'(?:src|href)\s*=\s*"([^"]*)"', page) == ["data:,"]
    assert "default-src 'none'; style-src" in page
    assert not re.findall(r"https?://", page)


def test_a_mechanism_without_lines_is_named(page):
    assert "Without lines over radius_m and epsilon: groups" in page


def test_the_numbers_are_those_of_the_regression(result, page):
    c = result.regression.second.row(0, named=True)["c"]
    assert number(c, digits=4) in page and not re.search(r"\d[eE][+-]?\d\d", page.split("</style>")[-1])
    assert "Nothing changes: duration_change" in page


def test_chosen_scores_only(result):
    page = study_page(result, metrics=["hausdorff.max"])
    assert "<summary>hausdorff.max</summary>" in page
    assert "<summary>hausdorff.mean</summary>" not in page


def test_a_study_without_data_still_has_a_page(tmp_path):
    empty = study({**SPEC, "datasets": {"absent": {"file": "nowhere.csv"}}}, out=tmp_path / "out")
    path = write_study_report(empty, tmp_path / "report.html")
    assert "No dataset of this study is here" in path.read_text(encoding="utf-8")


def measured(better, **by_mechanism):
    rows = [
        {"dataset": "d", "mechanism": label, "setting": 1, "metric": metric, "value": value, "better": better, "unit": "m"}
        | {"chance": 0.1 if metric == "attack" else None}
        for label, found in by_mechanism.items()
        for metric, value in found.items()
    ]
    return pl.DataFrame(rows)


def test_a_mechanism_without_pairs_is_listed_with_the_reason():
    table = measured("lower", paired={"hausdorff.mean": 5.0, "attack": 0.5}, lone={"attack": 0.2})
    reason = {"hausdorff (d, lone)": "the release pairs no trips with the originals"}
    plot = trade_off(table, "d", utility="hausdorff.mean", attack="attack", skipped=reason)
    assert [label for _, label in plot.legend] == ["paired"]
    assert plot.notes == ("lone is not drawn: no hausdorff.mean, the release pairs no trips with the originals.",)


@pytest.mark.parametrize(
    ("better", "words"),
    [("lower", "low is closer"), ("higher", "high is closer"), ("neither", "near the originals' own value")],
)
def test_the_caption_says_where_good_values_are(better, words):
    table = measured(better, original={"utility": 7.0}, paired={"utility": 5.0, "attack": 0.5})
    assert words in trade_off(table, "d", utility="utility", attack="attack", skipped={}).caption


def test_axes_hold_what_they_show():
    assert linear_axis("", [-3.0, 7.0, math.nan]).ticks == (-4.0, -2.0, 0.0, 2.0, 4.0, 6.0, 8.0)
    assert linear_axis("", []).ticks[-1] == 1.0
    assert log_axis("", [0.0, 0.3, 4000.0]).low == 0.2
    drawing = Drawing(linear_axis("", [1.0]), log_axis("", [1.0, 10.0]))
    drawing.dots(series_style(0), [0.5, 0.5, math.nan], [5.0, 0.0, 5.0], ["here", "at zero", "nowhere"])
    assert [shape.label for shape in drawing.panel("", "").shapes] == ["here"]
