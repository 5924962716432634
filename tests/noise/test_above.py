"""AboveThreshold keeps its law, and a wrong scale is told apart."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.attacks.audit import audit
from murmurate.errors import ParameterError
from murmurate.noise import seeded
from murmurate.noise.above import above_threshold


def first_answer(epsilon, sensitivity=1.0):
    def outputs(neighbour, n, rng):
        values = np.tile([24 + neighbour, 24 + neighbour, 23 + neighbour], (n, 1))
        return above_threshold(values, threshold=25, epsilon=epsilon, sensitivity=sensitivity, rng=rng).astype(float)

    return outputs


def test_neighbours_one_apart_stay_within_epsilon_and_a_wrong_sensitivity_is_caught():
    assert audit(first_answer(2.0), n=40_000, rng=seeded(1)).value <= 2.0
    assert audit(first_answer(2.0, sensitivity=0.05), n=40_000, rng=seeded(1)).value > 2.0


def test_scales_of_threshold_and_tests():
    n = 200_000
    found = above_threshold(np.full((n, 1), 30), threshold=25, epsilon=1.0, sensitivity=2.0, rng=seeded(2))
    rng = np.random.default_rng(0)
    expected = (30 + rng.laplace(0, 8.0, 10**6) >= 25 + rng.laplace(0, 4.0, 10**6)).mean()
    assert (found == 0).mean() == pytest.approx(expected, abs=0.005)
    wrong = (30 + rng.laplace(0, 8.0 * 0.7, 10**6) >= 25 + rng.laplace(0, 4.0 * 0.7, 10**6)).mean()
    assert abs((found == 0).mean() - wrong) > 0.01


def test_none_passes_and_senseless_input():
    assert above_threshold(np.zeros((3, 2)), threshold=1e6, epsilon=1.0, sensitivity=1.0, rng=seeded(1)).tolist() == [-1] * 3
    with pytest.raises(ParameterError, match="rows"):
        above_threshold(np.zeros(3), threshold=1, epsilon=1.0, sensitivity=1.0, rng=seeded(1))
    with pytest.raises(ParameterError, match="sensitivity"):
        above_threshold(np.zeros((1, 1)), threshold=1, epsilon=1.0, sensitivity=0, rng=seeded(1))
