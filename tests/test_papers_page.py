"""The page of reproductions: how a number is classed, and the whole page at its small size."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def papers():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("papers", BENCHMARKS / "papers.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["papers"] = module
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(
    ("printed", "found", "more", "verdict"),
    [
        (100.0, 109.0, {}, "reproduced"),
        (100.0, 111.0, {}, "not reproduced"),
        (-0.2, -0.19, {"reading": "settled"}, "reproduced under a stated reading"),
        (0.02, 0.06, {"share": True, "reading": "settled"}, "reproduced under a stated reading"),
        (0.02, 0.08, {"share": True, "reading": "settled"}, "not reproduced"),
        (1.0, None, {}, "not reproduced"),
    ],
)
def test_classes_follow_the_stated_limits(papers, printed, found, more, verdict):
    row = papers.Row(paper="P", item="Table 1", setting="x", printed=printed, found=found, **more)
    assert row.verdict == verdict
    assert dict(papers.counted([row]))["P"][papers.CLASSES.index(verdict)] == 1


def test_trained_figures_have_the_shape_of_kept_ones(papers, monkeypatch):
    """What a run of the benchmark returns, with made-up figures."""

    def run(_data, which, _cell_m, epsilon, _n_out):
        percent = dict.fromkeys((10, 20, 50, 100), 10.0 * epsilon)
        scores = {"cell_sets_percent": percent, "patterns_percent": percent}
        networks = {"ends": {"loss": 2.5}, "next_cell": {"loss": 1.4, "accuracy_percent": 73.5, "error_m": 238.0}}
        return scores | (networks if which == "as_published" else {})

    monkeypatch.setattr(papers.sections, "run", run)
    kept = json.loads((BENCHMARKS / "papers_kept.json").read_text())["dp_loc"]
    figures = papers.sections.trained(kept)
    rows = [
        papers.Row(**row)
        for part in (papers.sections.kept_patterns, papers.sections.kept_losses, papers.sections.kept_next_cell)
        for row in part(figures)
    ]
    assert len(rows) == 32 + 4 + 12
    assert all(row.found is not None and not row.taken for row in rows)
    assert {row.setting: row.verdict for row in rows}["500 m, epsilon 1, accuracy %"] == "reproduced"


@pytest.mark.data
def test_the_small_page_has_every_publication(data_dir, tmp_path):
    page = tmp_path / "papers.html"
    command = [sys.executable, str(BENCHMARKS / "papers.py"), "--data", str(data_dir), "--html", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = dict(re.findall(r"^(.*?) {2,}(\d+ reproduced;.*)$", done.stdout, re.MULTILINE))
    assert set(counts) == {"Geo-indistinguishability study", "DP-Loc", "DP-ANI", "Plausible traces", "all"}
    study = [int(number) for number in re.findall(r"(\d+) \w", counts["Geo-indistinguishability study"])]
    assert sum(study) == 168
    assert study[2] <= 25  # the small size leaves a few more than the full one
    text = page.read_text()
    for item in (
        "Table 3, length",
        "Table 12, centroid",
        "Table 1, the data",
        "Figure 5, lengths",
        "Table III",
        "Figure 6, ends moved",
    ):
        assert item in text, item
