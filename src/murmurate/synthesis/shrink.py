"""What a noisy count should be believed to be: moved towards a prior as far as the noise explains the difference."""

from __future__ import annotations

import numpy as np

from murmurate.core.space import Floats


def shrink(noisy: Floats, prior: Floats, *, deviation: float) -> Floats:
    """Non-negative posterior means of counts with a known noise deviation, summing to the noisy total.

    The prior is right up to a relative error that is estimated from the noisy counts themselves (how much they vary
    around it beyond the noise), so nothing has to be tuned: without signal the prior stays, with much of it the counts.

    >>> np.round(shrink(np.array([100.0, 0, 50]), np.array([50.0, 50, 50]), deviation=1.0))
    array([100.,   0.,  50.])
    >>> shrink(np.array([10.0, -10, 0]), np.array([1.0, 1, 1]), deviation=50.0)
    array([0., 0., 0.])
    """
    total = max(float(noisy.sum()), 0.0)
    if total == 0.0 or prior.sum() <= 0:
        return nonnegative(noisy)
    mean = prior * (total / prior.sum())
    excess = float(((noisy - mean) ** 2).sum()) - deviation**2 * noisy.size
    relative = max(excess, 0.0) / float((mean**2).sum())
    believed = relative * mean**2
    return nonnegative(mean + believed / (believed + deviation**2) * (noisy - mean), total=total)


def nonnegative(values: Floats, *, total: float | None = None) -> Floats:
    """The nearest (in L2) non-negative values with the same sum: one amount is taken from all that stay above zero.

    >>> nonnegative(np.array([5.0, 1.0, -2.0]))
    array([4., 0., 0.])
    """
    wanted = max(float(values.sum()) if total is None else total, 0.0)
    flat = values.ravel()
    if wanted == 0.0:
        return np.zeros_like(values)
    ordered = np.sort(flat)[::-1]
    taken = (np.cumsum(ordered) - wanted) / np.arange(1, len(flat) + 1)
    last = int(np.flatnonzero(ordered > taken)[-1])
    return np.maximum(values - taken[last], 0.0)
