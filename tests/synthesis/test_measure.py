from __future__ import annotations

import numpy as np
import pytest

from murmurate import noise
from murmurate.synthesis.measure import FULL_WEIGHT, Noise, measure, once_per_trip, spread_over_trip


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


def test_once_per_trip_adds_one():
    assert (once_per_trip(np.array([1, 1, 3]), 5) == FULL_WEIGHT * np.array([0, 2, 0, 1, 0])).all()


@pytest.mark.parametrize(("kind", "trips"), [("gaussian", 1), ("gaussian", 4), ("laplace", 3)])
def test_deviation_is_what_the_noise_has(kind, trips):
    made = Noise(kind=kind, scale=3.0, trips_per_unit=trips)
    values = measure(np.zeros((100, 400), dtype=np.int64), noise=made, rng=noise.seeded(3))
    assert values.shape == (100, 400)
    assert values.std() == pytest.approx(made.deviation, rel=0.03)


def test_parts_use_the_whole_budget_up():
    whole = Noise(scale=2.0)
    inverse = sum(1 / whole.part(share).scale ** 2 for share in (0.1, 0.2, 0.7))
    assert inverse == pytest.approx(1 / 4)
    epsilons = sum(1 / Noise(kind="laplace", scale=2.0).part(share).scale for share in (0.1, 0.2, 0.7))
    assert epsilons == pytest.approx(1 / 2)
