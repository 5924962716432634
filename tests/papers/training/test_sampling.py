from __future__ import annotations

import numpy as np
import pytest

from murmurate.noise import seeded
from murmurate.papers.training.sampling import WIDTHS, chunks, group_by_unit, poisson_sample
from small_network import some_units


def test_every_unit_is_in_a_batch_as_often_as_said_and_independently():
    rng = seeded(1)
    drawn = np.zeros((4000, 50), dtype=bool)
    for batch in drawn:
        batch[poisson_sample(50, 0.2, rng)] = True
    assert drawn.mean(axis=0) == pytest.approx(0.2, abs=5 * 0.4 / np.sqrt(4000))
    sizes = drawn.sum(axis=1)
    assert sizes.var() == pytest.approx(50 * 0.2 * 0.8, rel=0.15)  # batches of a fixed size would have none
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.08


def test_sampling_of_all_and_of_nobody():
    assert len(poisson_sample(10, 1, seeded(1))) == 10
    assert len(poisson_sample(0, 0.5, seeded(1))) == 0


def test_no_sampled_unit_is_left_out_and_weights_make_means():
    grouped = some_units(300, most=40)
    units = poisson_sample(300, 0.5, seeded(2))
    weights, grams, shapes = 0.0, 0, set()
    for chunk in chunks(grouped, units, np.random.default_rng(1), grams=256):
        per_unit = chunk.weight.sum(axis=1)
        assert set(np.round(per_unit, 5)) <= {0.0, 1.0}
        weights += per_unit.sum()
        grams += (chunk.weight > 0).sum()
        shapes.add(chunk.weight.shape)
    assert weights == pytest.approx(len(units))
    assert grams == sum(grouped.offsets[unit + 1] - grouped.offsets[unit] for unit in units)
    assert all(width in WIDTHS for _, width in shapes)


def test_units_with_very_many_grams_are_thinned_not_dropped():
    grouped = group_by_unit({"x": np.arange(1000)}, np.r_[np.zeros(999, np.int64), 1])
    found = list(chunks(grouped, np.array([0, 1]), np.random.default_rng(1)))
    wide = next(chunk for chunk in found if chunk.weight.shape[1] == WIDTHS[-1])
    assert len(set(wide.columns["x"][0].tolist())) == WIDTHS[-1]
    assert sum(chunk.weight.sum() for chunk in found) == pytest.approx(2)


def test_one_gram_takes_one_of_each_unit_at_random():
    grouped = some_units(40, most=5)
    seen = set()
    for seed in range(30):
        for chunk in chunks(grouped, np.arange(40), np.random.default_rng(seed), one_gram=True, grams=64):
            assert chunk.weight.sum() == 40
            seen.add(tuple(chunk.columns["a"][:40, 0].tolist()))
    assert len(seen) > 20
