from __future__ import annotations

import numpy as np
import pytest

from murmurate.synthesis.measure import FULL_WEIGHT, spread_over_trip


def random_grams(seed):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 40, 30)
    trip = np.repeat(np.arange(30), sizes)
    return generator.integers(-1, 25, len(trip)), trip


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(20))
def test_a_trip_never_weighs_more_than_one(norm, seed):
    bins, trip = random_grams(seed)
    for gone in range(0, 30, 7):
        rest = trip != gone
        change = spread_over_trip(bins, trip, 25, norm=norm) - spread_over_trip(bins[rest], trip[rest], 25, norm=norm)
        assert np.linalg.norm(change, ord=1 if norm == "l1" else 2) <= FULL_WEIGHT


def test_a_trip_is_nearly_used_up():
    whole = spread_over_trip(np.arange(9), np.zeros(9, dtype=np.int64), 9)
    assert np.linalg.norm(whole) > 0.99 * FULL_WEIGHT
