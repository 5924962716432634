"""What one unit may add to a table: its own vector, scaled down to a public norm, in fixed point cut towards zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.road_counts.budget import Kind, Spread

ONE = 1 << 12
"""One full trip in fixed point. The noise is hundreds of these steps wide, so that the lattice costs nothing."""

INSIDE = 1 - 1e-12
"""Taken off every scaled vector before it is cut, so that floating-point error cannot push its norm above the clip."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """What units have at the keys of a table: one row for every unit and key, whole amounts."""

    unit: Integers
    """0, 1, ... of every row."""
    key: Integers
    amount: Integers

    @classmethod
    def of(cls, unit: Integers, key: Integers, amount: Integers | None = None) -> Contributions:
        """Rows of one unit and key become one; without amounts, rows are counted."""
        what = pl.len().cast(pl.Int64) if amount is None else pl.col("amount").sum()
        columns = {"unit": unit, "key": key} if amount is None else {"unit": unit, "key": key, "amount": amount}
        grouped = pl.DataFrame(columns).group_by("unit", "key").agg(what.alias("amount"))
        return cls(*(grouped[name].to_numpy() for name in ("unit", "key", "amount")))

    def scales(self, n_units: int, *, clip: float, kind: Kind) -> Floats:
        """What each unit's vector must be multiplied with to have a norm (L2 for Gaussian noise, else L1) of at most `clip`."""
        if kind == "gaussian":
            squares = np.zeros(n_units, dtype=np.int64)
            np.add.at(squares, self.unit, self.amount**2)
            norm = np.sqrt(squares.astype(np.float64))
        else:
            sizes = np.zeros(n_units, dtype=np.int64)
            np.add.at(sizes, self.unit, np.abs(self.amount))
            norm = sizes.astype(np.float64)
        return np.minimum(1.0, clip / np.maximum(norm, clip))

    def sums(self, scales: Floats, n_keys: int, *, steps: int = ONE) -> Integers:
        """Scaled vectors added up in fixed point; `steps` is what an amount of one is worth there.

        >>> both = Contributions.of(np.array([0, 0, 0, 0, 1]), np.array([2, 2, 0, 2, 0]))
        >>> scales = both.scales(2, clip=2.0, kind="laplace")
        >>> (both.sums(scales, 3) / ONE).round(2).tolist()
        [1.5, 0.0, 1.5]
        """
        scale = scales[self.unit]
        cut = np.trunc(self.amount * (scale * (steps * INSIDE))).astype(np.int64)
        fixed = np.where(scale == 1.0, self.amount * steps, cut)  # what need not be scaled is whole already
        total = np.zeros(n_keys, dtype=np.int64)
        np.add.at(total, self.key, fixed)
        return total


def noisy(sums: Integers, *, spread: Spread, clip: float, rng: Any) -> Floats:
    """The sums in trips, with noise fit for vectors of norm `clip`."""
    from murmurate import noise

    draw = noise.gaussian_integers if spread.kind == "gaussian" else noise.laplace_integers
    flat = np.ascontiguousarray(sums).ravel()
    return (draw(flat, scale=spread.multiplier * clip * ONE, rng=rng) / ONE).reshape(sums.shape)
