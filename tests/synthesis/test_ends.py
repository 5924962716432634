from __future__ import annotations

import numpy as np
import pytest

from murmurate import noise
from murmurate.synthesis.ends import SHARES, Ends, fit_ends
from murmurate.synthesis.measure import Noise
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.shrink import shrink

ROWS, COLUMNS = 12, 10


def trips(n, seed):
    """Mornings go from the south-west to the north-east, evenings back."""
    generator = np.random.default_rng(seed)
    hour = generator.choice([8, 17], n, p=[0.6, 0.4])
    low = generator.integers(0, 4, n) * COLUMNS + generator.integers(0, 3, n)
    high = (ROWS - 1 - generator.integers(0, 3, n)) * COLUMNS + COLUMNS - 1 - generator.integers(0, 3, n)
    source, destination = np.where(hour == 8, low, high), np.where(hour == 8, high, low)
    return CellTrips(np.stack([source, destination], axis=1).ravel(), np.arange(0, 2 * n + 1, 2), hour)


def fitted(n=20_000, scale=1.0, seed=1):
    return fit_ends(trips(n, seed), rows=ROWS, columns=COLUMNS, hours=24, noise=Noise(scale=scale), rng=noise.seeded(seed))


def test_the_law_is_learned():
    source, destination, hour = fitted().sample(20_000, np.random.default_rng(1))
    assert np.isin(hour, [8, 17]).mean() > 0.97
    morning = (source // COLUMNS < 4) & (destination // COLUMNS >= ROWS - 3)
    assert morning[hour == 8].mean() > 0.97
    assert morning[hour == 17].mean() < 0.03
    assert (hour == 8).mean() == pytest.approx(0.6, abs=0.02)


def test_noise_alone_leaves_no_pattern():
    source, _, hour = fitted(n=50, scale=500.0).sample(5_000, np.random.default_rng(1))
    assert source.min() >= 0
    assert source.max() < ROWS * COLUMNS
    assert len(np.unique(hour)) >= 1


def test_arrays_make_the_same_law_again():
    law = fitted()
    again = Ends(**law.arrays())
    for one, other in zip(law.sample(500, np.random.default_rng(3)), again.sample(500, np.random.default_rng(3)), strict=True):
        assert (one == other).all()


def test_shares_make_a_whole():
    assert sum(SHARES.values()) == pytest.approx(1.0)


def test_no_trips_still_give_a_law():
    empty = CellTrips(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))
    law = fit_ends(empty, rows=3, columns=3, hours=24, noise=Noise(scale=5.0), rng=noise.seeded(1))
    source, destination, hour = law.sample(100, np.random.default_rng(1))
    assert (source < 9).all()
    assert (destination < 9).all()
    assert (hour < 24).all()


def test_shrinking_beats_both_the_prior_and_the_counts():
    generator = np.random.default_rng(5)
    prior = np.full(400, 50.0)
    truth = prior * generator.gamma(4.0, 0.25, 400)
    noisy = truth + generator.normal(0, 25, 400)
    believed = shrink(noisy, prior, deviation=25.0)
    error = np.abs(believed - truth).mean()
    assert error < 0.9 * np.abs(noisy - truth).mean()
    assert error < 0.9 * np.abs(prior - truth).mean()
