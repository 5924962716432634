"""How well usage classes agree with known labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln


def agreement(one: NDArray[np.integer], other: NDArray[np.integer]) -> float:
    """Return the adjusted mutual information of two labellings: 1 for the same, 0 for what chance gives."""
    a, b = np.unique(one, return_inverse=True)[1], np.unique(other, return_inverse=True)[1]
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    n = table.sum()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    entropy = [-(part[part > 0] / n * np.log(part[part > 0] / n)).sum() for part in (rows, columns)]
    there = table > 0
    mutual = (table[there] / n * np.log(n * table[there] / np.outer(rows, columns)[there])).sum()
    expected = 0.0
    for x in rows:
        for y in columns:
            k = np.arange(max(1, x + y - n), min(x, y) + 1)
            log_p = (
                gammaln(x + 1) + gammaln(y + 1) + gammaln(n - x + 1) + gammaln(n - y + 1) - gammaln(n + 1)
                - gammaln(k + 1) - gammaln(x - k + 1) - gammaln(y - k + 1) - gammaln(n - x - y + k + 1)
            )  # fmt: skip
            expected += (k / n * np.log(n * k / (x * y)) * np.exp(log_p)).sum()
    largest = (entropy[0] + entropy[1]) / 2
    return float((mutual - expected) / (largest - expected)) if abs(largest - expected) > 1e-12 else 1.0
