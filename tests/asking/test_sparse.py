"""Sparse tables: the same distribution as a full table whose low counts are hidden, paid and clipped as every table."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate import noise
from murmurate.asking import Answer, Budget, SparseTable, Table
from murmurate.asking.sparse import draw_sparse
from murmurate.errors import ContractBroken


def table(**more):
    options = {"n_bins": 40_000, "share": 1.0, "n_columns": 200, "threshold": np.repeat([3, 9], 100)}
    return SparseTable(name="pairs", **(options | more))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_it_answers_what_a_full_table_shows_above_the_threshold(delta):
    sparse, counts = table(), np.zeros(40_000, dtype=np.int64)
    counts[[5, 17, 20_100, 39_999]] = 500
    counts[1000:1400] = 4
    present = np.flatnonzero(counts)
    full = Budget(epsilon=1.0, delta=delta).draw(Table(name="pairs", n_bins=40_000, share=1.0), counts * 4096, noise.seeded(1))
    found = Budget(epsilon=1.0, delta=delta).draw(sparse, (present, counts[present] * sparse.steps), noise.seeded(2))
    shown = np.flatnonzero(full.noisy >= sparse.threshold[np.arange(40_000) // 200])
    assert {5, 17, 20_100, 39_999} <= set(found.bins.tolist()) and (np.diff(found.bins) > 0).all()
    assert len(found.bins) == pytest.approx(len(shown), abs=5 * np.sqrt(2 * len(shown)))
    assert (found.bins < 20_000).sum() == pytest.approx((shown < 20_000).sum(), abs=5 * np.sqrt(2 * len(shown)))
    assert found.noisy.mean() == pytest.approx(full.noisy[shown].mean(), rel=0.05)
    assert (found.noisy >= sparse.threshold[found.bins // 200]).all() and found.deviation == full.deviation


def test_no_empty_bin_is_drawn_twice_and_none_stands_for_a_counted_one():
    sparse = table(n_bins=60, n_columns=20, threshold=np.array([1, 2, 1]))
    present = np.arange(0, 60, 2)
    bins, values = draw_sparse(sparse, (present, np.full(30, 10**9)), 200.0, "l1", noise.seeded(3))
    assert len(np.unique(bins)) == len(bins) and (values[bins % 2 == 0] > 10**8).all() and (values[bins % 2 == 1] < 10**8).all()
    assert (bins % 2 == 1).any()


def test_it_is_paid_as_every_table_and_a_kept_answer_must_fit():
    budget = Budget(epsilon=1.0)
    with pytest.raises(ContractBroken, match="shares add up"):
        budget.check((table(share=0.7), Table(name="other", n_bins=1, share=0.4)))
    with pytest.raises(ContractBroken, match="another size"):
        Budget(epsilon=1.0).replay(table(), Answer(np.zeros(40_000), budget.deviation(1.0)))
    for wrong in ({"threshold": np.zeros(200, dtype=np.int64)}, {"threshold": np.ones(3, dtype=np.int64)}):
        with pytest.raises(ContractBroken):
            table(**wrong)
