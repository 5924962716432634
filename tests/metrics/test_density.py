"""Density against scipy, direct counting and hand-worked cases."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from murmurate.core.trips import Trips
from murmurate.judging.review import evaluate
from murmurate.metrics.compare import compare
from murmurate.metrics.density import range_queries
from murmurate.metrics.divergence import jensen_shannon, kullback_leibler, total_variation
from small_town import GRID


def visiting(*cells):
    """One trip a cell string, no time, no coordinates."""
    rows = [(tid, tid, cell) for tid, line in enumerate(cells) for cell in line]
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "cell"], orient="row"), space=GRID)


def test_divergences_agree_with_scipy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.poisson(2, 40), rng.poisson(3, 40)
        assert jensen_shannon(one, other) == pytest.approx(jensenshannon(one, other, base=2) ** 2)
        assert jensen_shannon(one, other, base=None) == pytest.approx(jensenshannon(one, other) ** 2)
        filled = [np.where(counts == 0, 0.1, counts) for counts in (one, other)]
        assert kullback_leibler(one, other) == pytest.approx(entropy(*filled))
    assert total_variation([1, 1], [1, 0]) == 0.5


def test_visits_by_label_and_by_popularity():
    # the same popularity at other places: alike when sorted, not by label
    found = evaluate(visiting([4, 4, 4, 2]), visiting([2, 2, 2, 4]), metrics=["visits", "counting_queries", "top_places"])
    assert found["visits.kl_by_popularity"].value == 0
    assert found["visits.kl_by_label"].value == pytest.approx(0.75 * np.log(3) + 0.25 * np.log(1 / 3))
    assert found["counting_queries"].value == pytest.approx((2 / 3 + 2 / 1) / 2)
    assert found["top_places.coverage_10"].value == 1


def test_a_cell_that_nobody_visits_counts_a_tenth():
    found = evaluate(visiting([4]), visiting([4, 2]), metrics=["visits"])
    p, q = np.array([0.5, 0.5]), np.array([0.1, 1.0]) / 1.1
    assert found["visits.kl_by_label"].value == pytest.approx(entropy(p, q))


def test_counting_queries_have_a_sanity_bound():
    # 2,000 visits: a cell with none on one side is held against 0.1 % of them, which is 2
    original, released = visiting([1] * 2000), visiting([1] * 1999 + [9])
    found = evaluate(released, original, metrics=["counting_queries"])
    assert found["counting_queries"].value == pytest.approx((1 / 2000 + 1 / 2) / 2)


def test_a_larger_release_is_scaled():
    found = evaluate(visiting([2, 2, 4, 4]), visiting([2, 4]), metrics=["counting_queries", "range_queries", "visits"])
    assert found["counting_queries"].value == 0
    assert found["range_queries"].value == 0


def test_range_queries_agree_with_direct_counting(original, noise):
    comparison = compare(noise, original)
    score = range_queries(comparison, queries=50)[0]
    generator = comparison.generator(2)
    from murmurate.metrics.density import random_spans

    (low, high), (left, right) = (random_spans(size, 50, generator, 1 / 32) for size in (GRID.rows, GRID.columns))
    assert (low >= 0).all()
    assert (high <= GRID.rows).all()
    assert (high > low).all()
    counts = []
    for side in (original, noise):
        row, column = GRID.row_column(GRID.locate(side.lat, side.lng))
        counts.append(
            [
                ((row >= a) & (row < b) & (column >= c) & (column < d)).sum()
                for a, b, c, d in zip(low, high, left, right, strict=True)
            ]
        )
    one, other = np.array(counts, dtype=float)
    expected = np.mean(np.abs(one - other) / np.maximum(one, 0.001 * original.n_points))
    assert score.value == pytest.approx(expected)


def test_top_places_and_hot_spots_by_hand():
    original = visiting([1] * 5 + [2] * 4 + [3] * 3 + [4] * 2)
    released = visiting([1] * 5 + [4] * 4 + [3] * 3 + [2] * 2)
    comparison = compare(released, original)
    from murmurate.metrics.density import hot_spots, top_places

    coverage = {score.name: score.value for score in top_places(comparison, top=(1, 2, 3))}
    assert coverage == {
        "top_places.coverage_1": 1.0,
        "top_places.coverage_2": 0.5,
        "top_places.coverage_3": pytest.approx(2 / 3),
    }
    overlap, share = hot_spots(comparison, share=0.5)
    assert overlap.value == pytest.approx(1 / 3)
    assert share.value == pytest.approx(9 / 14 - 7 / 14)


def test_gyration_by_hand():
    metre = 1 / 111195.0
    table = pl.DataFrame({"uid": [0, 0], "tid": [0, 0], "lat": [60.0, 60.0 + 200 * metre], "lng": [24.05, 24.05]})
    still = table.with_columns(lat=pl.lit(60.01))
    found = evaluate(Trips(still), Trips(table), grid=GRID, metrics=["gyration"])
    assert found["gyration.mean_change"].value == pytest.approx(100, rel=1e-4)
    assert found["gyration.emd"].value == pytest.approx(100, rel=1e-4)
    assert found["gyration.jsd"].value == 1


def test_time_of_day_uses_the_local_hour(original):
    other_zone = Trips(original.table, space=GRID, time_zone="Europe/Helsinki")
    found = evaluate(other_zone, original, metrics=["time_of_day"])
    assert found["time_of_day.departures_jsd"].value > 0.2
    counts = [np.bincount(side.local_hour, minlength=24) for side in (original, other_zone)]
    assert found["time_of_day.points_jsd"].value == pytest.approx(jensenshannon(*counts, base=2) ** 2)
