"""Summarise a per-trip measure by mean, spread, least, greatest and sum, each with a bootstrap interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from murmurate.core.score import Better, Score
from murmurate.core.space import Floats

RESAMPLES = 200
"""Bootstrap resamples of an interval. Set by hand: enough for the 2.5 % and 97.5 % quantiles at little cost."""
LEVEL = 0.95
"""Coverage of every bootstrap interval, as is usual."""
STATISTICS = ("mean", "sd", "min", "max", "sum")
"""Parts of a summary of a per-trip measure, in the order of their scores."""


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
    """Return five scores `name.mean`, `.sd`, `.min`, `.max`, `.sum`; values that are not finite are left out of all.

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
    """Return the percentile bootstrap interval (95 %) of mean, sd, min, max and sum of finite values."""
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
    """Return the percentile bootstrap interval of the mean."""
    low, high = interval(np.ascontiguousarray(values, dtype=np.float64), seed=seed, resamples=resamples)
    return float(low[0]), float(high[0])


def mean_score(name: str, values: Floats, *, better: Better = "lower", **facts: Any) -> Score:
    """Return the mean of values as a score, with its bootstrap interval; `facts` are further fields of the score."""
    low, high = mean_interval(values)
    return Score(name=name, value=float(values.mean()), low=low, high=high, better=better, n=len(values), **facts)


def _statistics(values: Floats) -> Floats:
    return np.array([values.mean(), values.std(), values.min(), values.max(), values.sum()])


@njit(cache=True)
def _resample(values: Floats, resamples: int, state: Any) -> Floats:
    """Return sum, sum of squares, least and greatest of each resample; draws by splitmix64, multiplied into range."""
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
        result[draw] = (total, squares, least, greatest)
    return result
