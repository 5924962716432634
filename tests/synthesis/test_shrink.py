from __future__ import annotations

import numpy as np

from murmurate.synthesis.shrink import shrink


def test_shrinking_beats_both_the_prior_and_the_counts():
    generator = np.random.default_rng(5)
    prior = np.full(400, 50.0)
    truth = prior * generator.gamma(4.0, 0.25, 400)
    noisy = truth + generator.normal(0, 25, 400)
    found = shrink(noisy, prior, deviation=25.0)
    error = np.abs(found - truth).mean()
    assert error < 0.9 * np.abs(noisy - truth).mean()
    assert error < 0.9 * np.abs(prior - truth).mean()
