"""Sum, least, greatest, mean and spread of a per-trip measure, each with a bootstrap interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from murmurate.core.score import Better, Score
from murmurate.core.space import Floats

RESAMPLES = 200
LEVEL = 0.95
STATISTICS = ("mean", "sd", "min", "max", "sum")


def summary(
    name: str,
    values: Floats,
    *,
    unit: str,
    family: str,
    better: Better = "lower",
    note: str = "",
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Score]:
    """Five scores `name.mean`, `.sd`, `.min`, `.max`, `.sum`; values that are not finite are left out of all.

    >>> [round(score.value, 3) for score in summary("x", np.array([1.0, 3.0]), unit="m", family="trips")]
    [2.0, 1.0, 1.0, 3.0, 4.0]
    """
    finite = np.ascontiguousarray(values[np.isfinite(values)], dtype=np.float64)
    if not len(finite):
        return [Score(name=f"{name}.{word}", value=np.nan, better=better, unit=unit, family=family, n=0) for word in STATISTICS]
    own = _statistics(finite)
    low, high = interval(finite, seed=seed, resamples=resamples)
    return [
        Score(
            name=f"{name}.{word}",
            value=float(own[k]),
            low=float(low[k]),
            high=float(high[k]),
            better=better,
            unit=unit,
            family=family,
            n=len(finite),
            note=note,
        )
        for k, word in enumerate(STATISTICS)
    ]


def interval(values: Floats, *, seed: int = 0, resamples: int = RESAMPLES) -> tuple[Floats, Floats]:
    """Percentile bootstrap interval (95 %) of mean, sd, min, max and sum of finite values."""
    centre = values.mean()  # so that the sum of squares loses no digits
    sums = _resample(values - centre, resamples, np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64 ^ 0xD1B54A32D192ED03))
    n = len(values)
    mean = sums[:, 0] / n
    draws = np.column_stack(
        [
            mean + centre,
            np.sqrt(np.maximum(sums[:, 1] / n - mean**2, 0)),
            sums[:, 2] + centre,
            sums[:, 3] + centre,
            sums[:, 0] + n * centre,
        ]
    )
    edges = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return edges[0], edges[1]


def mean_interval(values: Floats, *, seed: int = 0, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean."""
    low, high = interval(np.ascontiguousarray(values, dtype=np.float64), seed=seed, resamples=resamples)
    return float(low[0]), float(high[0])


def _statistics(values: Floats) -> Floats:
    return np.array([values.mean(), values.std(), values.min(), values.max(), values.sum()])


@njit(cache=True)
def _resample(values: Floats, resamples: int, state: Any) -> Floats:
    """Sum, sum of squares, least and greatest of each resample; draws by splitmix64, multiplied into range."""
    n = len(values)
    result = np.empty((resamples, 4))
    for draw in range(resamples):
        total, squares, least, greatest = 0.0, 0.0, np.inf, -np.inf
        for _ in range(n):
            state += np.uint64(0x9E3779B97F4A7C15)
            word = state
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            word ^= word >> np.uint64(31)
            value = values[((word >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)]
            total += value
            squares += value * value
            least = min(least, value)
            greatest = max(greatest, value)
        result[draw, 0] = total
        result[draw, 1] = squares
        result[draw, 2] = least
        result[draw, 3] = greatest
    return result
