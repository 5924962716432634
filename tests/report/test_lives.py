"""Figures of whole days: drawn for days only, the same values that were scored, nothing of the originals in the public ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

from murmurate.mechanisms.plausible.model import as_trips
from murmurate.metrics import measure
from murmurate.metrics.compare import compare
from murmurate.report.lives import BASELINES, USAGES, are_days, lives, similarity_charts, usage_map, visit_chart
from murmurate.report.view import View
from plausible_days import GRID, made_days, trips_of

ORIGINAL = trips_of(made_days(40, 3, seed=2))
RELEASED = as_trips(made_days(60, 1, seed=7).place, GRID, "UTC")


@pytest.fixture(scope="module")
def drawn():
    comparison = compare(RELEASED, ORIGINAL, grid=GRID)
    scores = [score for name in ("day_visits", "day_time_allocation") for score in measure(name, comparison)]
    return lives(RELEASED, GRID, original=ORIGINAL, scores=scores), {score.name: score.value for score in scores}


def test_only_releases_of_days_are_drawn_as_days():
    assert are_days(RELEASED)
    assert lives(RELEASED.take_points(np.arange(RELEASED.n_points) % 72 < 30), GRID) is None  # mornings
    uneven = RELEASED.take_points(np.arange(RELEASED.n_points) != 100)
    assert not are_days(uneven)


def test_both_sides_are_drawn_and_the_statistics_stand_beside_their_baselines(drawn):
    found, values = drawn
    assert [panel.title for panel in found.maps] == ["Original", "Released"]
    assert {series.role for series in found.charts[-1].series} == {"original", "released", "floor"}
    assert found.has_another_day
    by_what = {row.what: row for row in found.rows}
    kl = by_what["Visits: divergence, places in order of popularity"]
    assert float(kl.released) == pytest.approx(values["day_visits.kl"], abs=1e-3)
    assert len(kl.beside) == len(BASELINES)
    assert kl.beside[BASELINES.index("random")] == "–"
    assert float(kl.beside[BASELINES.index("uniform")]) > float(kl.released)


def test_lines_stay_inside_their_frames(drawn):
    for chart in drawn[0].charts:
        assert chart.words and chart.x_ticks and chart.y_ticks
        for series in chart.series:
            x, y = np.array(re.findall(r"[-\d.]+", series.d), dtype=float).reshape(-1, 2).T
            assert x.min() >= 45.9 and x.max() <= 390.1
            assert y.min() >= 11.9 and y.max() <= 196.1


def test_days_that_are_the_same_are_counted_as_alike():
    chart = similarity_charts({"released": np.zeros((5, 72), dtype=np.int32)}, 10)[0]
    assert "1.00" in chart.words
    assert min(float(y) for y in re.findall(r" ([\d.]+)", chart.series[0].d)) == pytest.approx(12, abs=0.2)  # all at the top


def test_a_release_alone_shows_one_side():
    found = lives(RELEASED, GRID)
    assert [panel.title for panel in found.maps] == ["Released"]
    assert all({series.role for series in chart.series} == {"released"} for chart in found.charts)
    assert not found.rows and not found.has_another_day


def test_homes_and_work_are_different_usages():
    """Two kinds of places, one for nights and one for days: the classes say so."""
    rng = np.random.default_rng(1)
    place = rng.integers(0, 60, (80, 1)).repeat(72, axis=1).astype(np.int32)
    place[:, 27:51] = rng.integers(60, 100, (80, 1))
    found = usage_map("made up", place, GRID, View.of(GRID))
    assert len(found.patches) == USAGES
    labels = " ".join(patch.label for patch in found.patches)
    assert "mostly 9:00 to 17:00" in labels
    assert "mostly 0:00 to 8:00" in labels or "mostly 17:00 to 1:00" in labels
    few = usage_map("few", np.zeros((5, 72), dtype=np.int32) + np.arange(72, dtype=np.int32) // 36, GRID, View.of(GRID))
    assert not few.patches and "too few" in few.words


def test_shares_of_visits_are_shares():
    chart = visit_chart({"released": np.zeros((3, 72), dtype=np.int32)}, 10)
    assert "100 %" in chart.words
