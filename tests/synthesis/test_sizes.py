from __future__ import annotations

import numpy as np
import pytest

from murmurate.synthesis.sizes import _smooth, n_rings_of, rings

COLUMNS = 20


def test_rings_grow_and_the_corner_is_the_last():
    cells = np.arange(400)
    found = rings(np.zeros(400, np.int64), cells, COLUMNS)
    assert found[0] == 0
    assert found[1] == 1
    assert found.max() == n_rings_of(20, COLUMNS) - 1


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9])
def test_rows_keep_their_number_of_sizes(n):
    smoothed = _smooth(np.full(n, 3.0))
    assert smoothed.shape == (n,) and np.allclose(smoothed, 3.0)
