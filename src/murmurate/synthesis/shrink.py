"""Shrink noisy counts towards a prior, as far as the noise explains the difference."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from murmurate.core.space import Floats

GROUP_SIZE = 12
"""Smallest number of counts from which a relative error is estimated. Chosen by hand."""


def shrink(noisy: Floats, prior: Floats, *, deviation: float, groups: int = 1, scaled: bool = False) -> Floats:
    """Return non-negative posterior means of counts with known noise standard deviation, summing to the noisy total.

    The prior is right up to a relative error, which is estimated from the noisy counts themselves (how much they vary around it
    beyond the noise), so nothing has to be tuned: without signal the result is the prior, with a strong signal the counts. With
    `groups` that error is estimated separately for counts of similar size, because a few large ones would decide for all. A sum
    below the total is made up by one amount for all counts, or (`scaled`) in proportion to them, so that bins that should be
    empty stay empty.

    >>> np.round(shrink(np.array([100.0, 0, 50]), np.array([50.0, 50, 50]), deviation=1.0))
    array([100.,   0.,  50.])
    >>> shrink(np.array([10.0, -10, 0]), np.array([1.0, 1, 1]), deviation=50.0)
    array([0., 0., 0.])
    """
    total = max(float(noisy.sum()), 0.0)
    if total == 0.0 or prior.sum() <= 0:
        return nonnegative(noisy)
    mean = prior * (total / prior.sum())
    variance = _prior_variance(noisy, mean, deviation, max(1, min(groups, noisy.size // GROUP_SIZE)))
    found = mean + variance / (variance + deviation**2) * (noisy - mean)
    if scaled and 0 < found.sum() < total:
        found *= total / found.sum()
    return nonnegative(found, total=total)


def _prior_variance(noisy: Floats, mean: Floats, deviation: float, groups: int) -> Floats:
    """Estimate the prior variance of each count: squared differences beyond the noise, in proportion to the squared mean."""
    excess, square = (noisy - mean).ravel() ** 2 - deviation**2, mean.ravel() ** 2
    found = np.empty(noisy.size)
    for part in np.array_split(np.argsort(square, kind="stable"), groups) if groups > 1 else [np.arange(noisy.size)]:
        whole = float(square[part].sum())
        found[part] = max(float(excess[part].sum()), 0.0) * (square[part] / whole) if whole > 0 else 0.0
    return found.reshape(noisy.shape)


def above_zero(noisy: Floats, deviation: float) -> Floats:
    """Return posterior means of counts that cannot be negative: never zero, and the noisy counts where these are clear.

    For few counts whose zero would be conspicuous, such as the trips of an hour. Their sum grows a little.

    >>> np.round(above_zero(np.array([1000.0, 100, 0, -100]), 100.0))
    array([1000.,  129.,   80.,   53.])
    """
    ratio = noisy / deviation
    return np.asarray(noisy + deviation * np.exp(-(ratio**2) / 2 - log_ndtr(ratio)) / np.sqrt(2 * np.pi))


def nonnegative(values: Floats, *, total: float | None = None) -> Floats:
    """Return the nearest (in L2) non-negative values with the same sum: one amount is taken from all that stay above zero.

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
