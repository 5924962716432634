"""Count trips in fixed-point histograms that one trip changes by a norm of at most 1."""

from __future__ import annotations

from typing import Literal

import numpy as np

from murmurate.core.space import Integers

FULL_WEIGHT = 1 << 12
"""Weight of one trip in fixed-point steps; shares of it are rounded down, so that no trip ever weighs more. Chosen by hand."""


def spread_over_trip(bins: Integers, trip: Integers, n_bins: int, *, norm: Literal["l2", "l1"] = "l2") -> Integers:
    """Return a fixed-point histogram in which a trip's distinct bins share its weight, so that its change has norm at most 1.

    `bins` may hold -1 (left out); `trip` is sorted. With m distinct bins each weighs 1/sqrt(m) (L2) or 1/m (L1).
    """
    inside = bins >= 0
    pairs = np.sort(trip[inside] * n_bins + bins[inside])
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    owner, place = pairs // n_bins, pairs % n_bins
    distinct = np.bincount(owner)[owner] if len(owner) else owner
    weight = FULL_WEIGHT / np.sqrt(distinct) if norm == "l2" else FULL_WEIGHT / distinct
    fixed = np.zeros(n_bins, dtype=np.int64)
    np.add.at(fixed, place, np.floor(weight).astype(np.int64))
    return fixed
