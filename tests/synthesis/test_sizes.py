from __future__ import annotations

import numpy as np
import pytest

from murmurate import noise
from murmurate.synthesis.measure import Noise
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.sizes import _smooth, fit_sizes, n_rings_of, rings

COLUMNS = 20


def test_rings_grow_and_the_corner_is_the_last():
    cells = np.arange(400)
    found = rings(np.zeros(400, np.int64), cells, COLUMNS)
    assert found[0] == 0
    assert found[1] == 1
    assert found.max() == n_rings_of(20, COLUMNS) - 1


def test_sizes_follow_distance_and_hour():
    generator = np.random.default_rng(1)
    n = 20_000
    hours = generator.choice([3, 12], n)
    far = generator.random(n) < 0.5
    sizes = np.where(far, 9, 3) + (hours == 12)
    cells = [
        np.r_[np.zeros(size - 1, np.int64) + np.arange(size - 1) % 2, 399 if far_ else 1 + size % 2]
        for size, far_ in zip(sizes, far, strict=True)
    ]
    trips = CellTrips(np.concatenate(cells), np.r_[0, np.cumsum(sizes)], hours)
    ring = rings(trips.sources, trips.destinations, COLUMNS)
    ring_hour = np.bincount(ring * 24 + hours, minlength=n_rings_of(20, COLUMNS) * 24).reshape(-1, 24).astype(float)
    law = fit_sizes(
        trips,
        rows=20,
        columns=COLUMNS,
        hours=24,
        max_cells=30,
        ring_hour=ring_hour,
        noise=Noise(scale=2.0),
        rng=noise.seeded(1),
    )
    for far_ in (True, False):
        for hour in (3, 12):
            chosen = (far == far_) & (hours == hour)
            drawn = law.sample(trips.sources[chosen], trips.destinations[chosen], hours[chosen], generator)
            assert drawn.mean() == pytest.approx(sizes[chosen].mean(), abs=0.35)
            assert drawn.min() >= 2


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9])
def test_rows_keep_their_number_of_sizes(n):
    smoothed = _smooth(np.full(n, 3.0))
    assert smoothed.shape == (n,) and np.allclose(smoothed, 3.0)
