"""Bootstrap intervals against scipy's, and the summaries they belong to."""

from __future__ import annotations

import numpy as np
from scipy import stats

from murmurate.metrics.bootstrap import interval, mean_interval, summary


def test_intervals_agree_with_scipy():
    values = np.random.default_rng(0).gamma(2, 100, 400)
    low, high = interval(values, resamples=4000)
    for column, statistic in ((0, np.mean), (1, np.std), (4, np.sum)):
        theirs = stats.bootstrap((values,), statistic, method="percentile", n_resamples=4000, rng=1).confidence_interval
        width = theirs.high - theirs.low
        assert abs(low[column] - theirs.low) < 0.06 * width
        assert abs(high[column] - theirs.high) < 0.06 * width


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    inside = 0
    for seed in range(400):
        low, high = mean_interval(rng.exponential(1, 80), seed=seed)
        inside += low <= 1 <= high
    assert 0.90 < inside / 400 < 0.97


def test_summary_leaves_out_what_is_not_finite():
    scores = summary("x", np.array([1.0, np.nan, 3.0, np.inf]), unit="m", family="trips")
    assert {score.name: score.value for score in scores} == {"x.mean": 2, "x.sd": 1, "x.min": 1, "x.max": 3, "x.sum": 4}
    assert all(score.n == 2 and score.low <= score.value <= score.high for score in scores)
    empty = summary("x", np.array([np.nan]), unit="m", family="trips")
    assert all(np.isnan(score.value) and score.n == 0 for score in empty)


def test_far_values_lose_no_digits():
    low, high = interval(np.array([1e9, 1e9 + 1, 1e9 + 2] * 30))
    assert 0.6 < low[1] <= high[1] < 0.95
