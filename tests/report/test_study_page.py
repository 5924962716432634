"""The page of a study: whole, self-contained, and about what was measured."""

from __future__ import annotations

import json
import re

import pytest

from murmurate.judging.study import study
from murmurate.report.study import study_page, write_study_report

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
    ],
    "regression": {"baseline": "simple"},
}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return study(SPEC, out=tmp_path_factory.mktemp("study") / "out")


@pytest.fixture(scope="module")
def page(result):
    return study_page(result)


def without_plotly(page):
    return re.sub(r"<script>/\*\*.*?</script>", "", page, count=1, flags=re.DOTALL)


def test_it_says_that_it_is_internal_and_what_was_left_out(page):
    assert "Internal: computed from the originals" in page
    assert "nowhere.csv" in page


def test_names_are_escaped(page):
    assert "page &lt;b&gt;" in page
    assert "A study &amp; its page" in page


def test_every_figure_has_its_data_and_its_place(page):
    body = without_plotly(page)
    places = re.findall(r'data-figure="([^"]+)"', body)
    data = dict(re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', body, re.DOTALL))
    assert set(places) == set(data)
    assert {name.split("-")[0] for name in places} == {"trade", "performance", "first", "final"}
    for text in data.values():
        assert json.loads(text)["data"]


def test_nothing_is_fetched(page):
    body = without_plotly(page)
    assert not re.findall(r'(?:src|href)\s*=\s*"', body)
    assert "default-src 'none'" in body
    outside = [address for address in re.findall(r"https?://[^\s\"'<]+", body) if "w3.org" not in address]
    assert outside == []


def test_the_numbers_are_those_of_the_regression(result, page):
    c = result.regression.second.row(0, named=True)["c"]
    assert f"{c:,.4g}" in page
    assert "Nothing changes: duration_change" in page


def test_chosen_scores_only(result):
    page = without_plotly(study_page(result, metrics=["hausdorff.max"]))
    assert "<summary>hausdorff.max</summary>" in page
    assert "<summary>hausdorff.mean</summary>" not in page


def test_a_study_without_data_still_has_a_page(tmp_path):
    empty = study({**SPEC, "datasets": {"absent": {"file": "nowhere.csv"}}}, out=tmp_path / "out")
    path = write_study_report(empty, tmp_path / "report.html")
    assert "No dataset of this study is here" in path.read_text(encoding="utf-8")
