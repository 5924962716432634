"""Counts by zone and hour: quiet hours are estimated from the hours around them."""

from __future__ import annotations

import numpy as np

from murmurate.synthesis.ends import shrink_zone_hour

HOURS, ZONES, DEVIATION = 24, 32, 6.0


def truth():
    """A quiet night in which all trips are in the last zones, and a busy day in which they are everywhere."""
    counts = np.full((ZONES, HOURS), 40.0)
    counts[:, 1:6] = 0.0
    counts[-4:, 1:6] = 25.0
    return counts


def test_quiet_hours_learn_from_the_hours_around():
    counts = truth()
    by_zone = counts.sum(axis=1)
    as_over_the_day = by_zone / by_zone.sum()
    off = {"estimate": 0.0, "day": 0.0, "noisy": 0.0}
    for seed in range(5):
        noisy = counts + DEVIATION * np.random.default_rng(seed).normal(size=counts.shape)
        found = shrink_zone_hour(noisy, by_zone, DEVIATION)
        assert found.min() >= 0
        assert abs(found.sum() / counts.sum() - 1) < 0.05
        night = slice(2, 5)
        for name, table in (
            ("estimate", found),
            ("day", as_over_the_day[:, None] * counts.sum(axis=0)),
            ("noisy", np.maximum(noisy, 0)),
        ):
            off[name] += np.abs(table - counts)[:, night].sum() / counts[:, night].sum()
    assert off["estimate"] < 0.5 * off["day"]
    assert off["estimate"] < off["noisy"]


def test_two_parts_of_the_day_have_no_hours_around():
    noisy = np.array([[100.0, 0.0], [0.0, 100.0], [50.0, 50.0], [50.0, 50.0]])
    assert np.abs(shrink_zone_hour(noisy, noisy.sum(axis=1), 0.1) - noisy).max() < 1.0
