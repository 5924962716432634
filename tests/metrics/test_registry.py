"""Every registered metric: perfect against itself, bad against noise, repeatable, documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from murmurate.errors import ParameterError
from murmurate.metrics import METRICS, measure, metrics_of
from murmurate.metrics.compare import compare
from small_town import GRID

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"

OF_TRIPS = [name for name in metrics_of("trips") if not name.startswith("day_")]
"""The others need whole days; tests/metrics/test_semantics.py holds them to the same."""

BELOW_ONE = {"adatrace_kendall", "adatrace_kendall.other_grids"}
"""Ties keep it below one even for the originals themselves; `.of_ceiling` reaches it."""

# (better, value) that a release without any relation to the originals must be worse than; anything else: just not perfect
WORSE_THAN = {
    "visits.jsd": 0.1,
    "od_emd": 2000.0,
    "hausdorff.mean": 1000.0,
    "patterns.f1_50": 0.2,
    "adatrace_trip": 0.1,
    "top_places.coverage_10": 0.5,
}


def judged(scores):
    return [score for score in scores if score.better in ("lower", "higher")]


@pytest.mark.parametrize("name", OF_TRIPS)
def test_a_release_against_itself_is_perfect(name, original):
    itself = compare(original, original, grid=GRID, pairing=np.arange(original.n_trips))
    scores = judged(measure(name, itself))
    assert scores, "a metric must say which way is better"
    for score in scores:
        if score.name not in BELOW_ONE:
            assert score.value == pytest.approx(0.0 if score.better == "lower" else 1.0, abs=1e-9), score


@pytest.mark.parametrize("name", OF_TRIPS)
def test_noise_is_bad(name, original, noise):
    scores = judged(measure(name, compare(noise, original, grid=GRID, pairing=np.arange(original.n_trips))))
    for score in scores:
        bound = WORSE_THAN.get(score.name)
        if bound is not None:
            assert score.value > bound if score.better == "lower" else score.value < bound, score
    # the scores that sum a metric up must notice; a least value or a rare hour may be lucky
    worst = max(
        (score.value if np.isfinite(score.value) else 1.0) if score.better == "lower" else 1.0 - score.value for score in scores
    )
    assert worst > 0.05, scores


@pytest.mark.parametrize("name", OF_TRIPS)
def test_scores_are_named_by_their_metric_and_repeat(name, original, noise):
    once, again = (
        measure(name, compare(noise, original, grid=GRID, pairing=np.arange(original.n_trips), seed=3)) for _ in range(2)
    )
    assert [score.to_json() for score in once] == [score.to_json() for score in again]
    assert all(score.name == name or score.name.startswith(f"{name}.") for score in once)
    assert len({score.name for score in once}) == len(once)
    assert all(score.family for score in once)
    for score in once:
        assert isinstance(score.value, float)
        if score.low is not None:
            assert score.low <= score.high


@pytest.mark.parametrize("name", metrics_of("trips"))
def test_every_metric_has_an_entry_that_says_what_it_is(name):
    entries = dict(re.findall(r"^### `(\w+)`.*?\n(.*?)(?=^##|\Z)", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    assert name in entries, f"docs/metrics.md has no entry for {name}"
    for word in ("Formula", "Unit", "Range", "Better", "From"):
        assert f"**{word}**" in entries[name], f"{name} does not tell its {word.lower()}"


def test_no_entry_is_left_of_a_metric_that_is_gone():
    assert set(re.findall(r"^### `(\w+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE)) == set(metrics_of("trips"))


@pytest.mark.parametrize("name", [*metrics_of("network"), *metrics_of("flows")])
def test_every_metric_of_networks_and_flows_has_a_row(name):
    assert f"| `{name}." in DOCS.read_text(encoding="utf-8"), f"docs/metrics.md has no row for {name}"


def test_every_metric_reads_one_kind_of_release():
    assert set(METRICS) == set(metrics_of("trips")) | set(metrics_of("network")) | set(metrics_of("flows"))


def test_an_unknown_metric_is_answered_with_the_nearest():
    with pytest.raises(ParameterError, match="Did you mean 'hausdorff'"):
        METRICS["hausdorf"]


def test_listing_the_metrics_loads_no_kernels():
    code = "import sys, murmurate.metrics; sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
