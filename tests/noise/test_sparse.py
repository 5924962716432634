from __future__ import annotations

import numpy as np
import pytest

from murmurate.noise import gaussian_integers, laplace_integers, seeded
from murmurate.noise.sparse import gaussian_survivors, laplace_survivors


@pytest.mark.parametrize(("scale", "threshold"), [(2.0, 3), (10.0, 25), (0.7, 1)])
def test_same_law_as_noising_every_zero(scale, threshold):
    n = 400_000
    dense = laplace_integers(np.zeros(n, dtype=np.int64), scale=scale, rng=seeded(1))
    places, values = laplace_survivors(n, scale=scale, threshold=threshold, rng=seeded(2))
    kept = dense[dense >= threshold]
    assert len(places) == pytest.approx(len(kept), abs=5 * np.sqrt(2 * len(kept)))
    assert values.mean() == pytest.approx(kept.mean(), abs=5 * kept.std() * np.sqrt(2 / len(kept)))
    assert values.min() == threshold
    exact = n * np.exp(-threshold / scale) / (1 + np.exp(-1 / scale))
    assert len(places) == pytest.approx(exact, abs=5 * np.sqrt(exact))


def test_a_wrong_scale_would_be_noticed():
    places, _ = laplace_survivors(400_000, scale=2.0 * 1.3, threshold=3, rng=seeded(2))
    exact = 400_000 * np.exp(-3 / 2.0) / (1 + np.exp(-1 / 2.0))
    assert abs(len(places) - exact) > 5 * np.sqrt(exact)


def test_places_are_spread_evenly_and_stay_inside():
    places, _ = laplace_survivors(1_000_000, scale=5.0, threshold=20, rng=seeded(3))
    assert (np.diff(places) > 0).all()
    assert places.min() >= 0
    assert places.max() < 1_000_000
    halves = (places < 500_000).mean()
    assert halves == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(len(places)))


def test_nothing_to_noise_and_nothing_that_passes():
    assert len(laplace_survivors(0, scale=1.0, threshold=1, rng=seeded(1))[0]) == 0
    assert len(laplace_survivors(10**6, scale=1.0, threshold=2000, rng=seeded(1))[0]) == 0


@pytest.mark.parametrize(("scale", "threshold"), [(25.0, 20), (60.0, 130)])
def test_same_law_as_gaussian_noise_on_every_zero(scale, threshold):
    from scipy.special import ndtr

    n = 400_000
    dense = gaussian_integers(np.zeros(n, dtype=np.int64), scale=scale, rng=seeded(1))
    places, values = gaussian_survivors(n, scale=scale, threshold=threshold, rng=seeded(2))
    kept = dense[dense >= threshold]
    exact = n * ndtr(-(threshold - 0.5) / scale)
    assert len(places) == pytest.approx(exact, abs=5 * np.sqrt(exact))
    assert abs(len(gaussian_survivors(n, scale=scale * 1.3, threshold=threshold, rng=seeded(2))[0]) - exact) > 5 * np.sqrt(
        exact
    )
    assert values.mean() == pytest.approx(kept.mean(), abs=5 * kept.std() * np.sqrt(2 / len(kept)))
    assert values.std() == pytest.approx(kept.std(), rel=0.1)
    assert values.min() == threshold and (np.diff(places) > 0).all()
