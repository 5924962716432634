"""Calculate distances between distributions, in one place so that every metric means the same by a word."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from murmurate.core.space import Floats

ZERO_COUNT = 0.1
"""What a count of zero becomes before a Kullback-Leibler divergence (Bindschaedler and Shokri 2016, footnote 5)."""


def jensen_shannon(one: ArrayLike, other: ArrayLike, *, base: float | None = 2.0) -> float:
    """Return the Jensen-Shannon divergence of two count vectors; 0 to 1 in base 2, natural logarithm where `base` is None.

    >>> jensen_shannon([1, 1, 0], [0, 0, 5])
    1.0
    """
    p, q = shares(one), shares(other)
    middle = (p + q) / 2
    value = (relative_entropy(p, middle) + relative_entropy(q, middle)) / 2
    return max(0.0, value / float(np.log(base)) if base else value)


def kullback_leibler(reference: ArrayLike, other: ArrayLike, *, zero_count: float = ZERO_COUNT) -> float:
    """Return KL(reference || other) in nats, counts of zero set to `zero_count` first.

    >>> round(kullback_leibler([8, 2], [5, 5]), 4)
    0.1927
    """
    p, q = (np.asarray(counts, dtype=np.float64) for counts in (reference, other))
    p, q = (shares(np.where(counts == 0, zero_count, counts)) for counts in (p, q))
    return max(0.0, relative_entropy(p, q))


def total_variation(one: ArrayLike, other: ArrayLike) -> float:
    """Return half the L1 distance of two distributions: the share of mass that differs."""
    return float(np.abs(shares(one) - shares(other)).sum() / 2)


def shares(counts: ArrayLike) -> Floats:
    """Return counts as probabilities; all zero where there is nothing."""
    values = np.asarray(counts, dtype=np.float64)
    total = values.sum()
    return values / total if total > 0 else values


def relative_entropy(p: Floats, q: Floats) -> float:
    """Return the sum of p log(p / q) over p > 0, in nats."""
    there = p > 0
    return float(np.sum(p[there] * np.log(p[there] / q[there])))


def divergence_terms(p: Floats, q: Floats) -> Floats:
    """Return what each label adds to the Jensen-Shannon divergence of two distributions, in nats.

    >>> float(divergence_terms(np.array([0.0, 1.0]), np.array([1.0, 0.0])).sum() / np.log(2))
    1.0
    """
    middle = (p + q) / 2
    terms = np.zeros(len(p))
    for side in (p, q):
        there = side > 0
        terms[there] += side[there] * np.log(side[there] / middle[there]) / 2
    return terms
