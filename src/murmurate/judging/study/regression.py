"""Fit two layers of straight lines: how a metric grows with the radius (a), and how 1/a grows with the budget (c)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from murmurate.judging.study.grid import ORIGINAL
from murmurate.judging.study.spec import RegressionSpec

LEVEL = 0.95
"""Coverage of the intervals of slopes, as is usual."""
PLACE = ["dataset", "mechanism", "metric"]
"""Columns that name a series."""

FIRST = {
    **dict.fromkeys(PLACE, pl.String),
    **dict.fromkeys(("budget", "a", "low", "high", "b", "r2"), pl.Float64),
    "n": pl.Int64,
    "significant": pl.Boolean,
}
"""Columns of the first layer."""
SECOND = {
    **dict.fromkeys(PLACE, pl.String),
    **dict.fromkeys(("c", "low", "high", "c_of_low_a", "c_of_high_a", "r2"), pl.Float64),
    "n": pl.Int64,
    "significant": pl.Boolean,
}
"""Columns of the second layer."""
PERFORMANCE = {
    **dict.fromkeys([*PLACE, "baseline"], pl.String),
    **dict.fromkeys(("budget", "percent"), pl.Float64),
    "differs": pl.Boolean,
}
"""Columns of the comparison with the baseline."""


@dataclass(frozen=True)
class Line:
    """Hold a slope through the origin with its 95 % interval."""

    slope: float
    low: float
    high: float
    r2: float
    n: int

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 0; never where there is none."""
        return self.low > 0 or self.high < 0


def through_origin(x: ArrayLike, y: ArrayLike) -> Line:
    """Fit y on x by least squares without an intercept; Student's t with n - 1 degrees of freedom.

    >>> line = through_origin([1, 2, 3], [2, 4, 6])
    >>> line.slope, line.significant
    (2.0, True)
    """
    from scipy.stats import t as student

    at, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    there = np.isfinite(at) & np.isfinite(values)
    at, values = at[there], values[there]
    n, square = len(at), float(at @ at)
    if n == 0 or square == 0:
        return Line(math.nan, math.nan, math.nan, math.nan, n)
    slope = float(at @ values) / square
    residual = float(((values - slope * at) ** 2).sum())
    around = float((values**2).sum())
    r2 = 1 - residual / around if around > 0 else math.nan
    if n < 2:
        return Line(slope, math.nan, math.nan, r2, n)
    reach = float(student.ppf((1 + LEVEL) / 2, n - 1)) * math.sqrt(residual / (n - 1) / square)
    return Line(slope, slope - reach, slope + reach, r2, n)


@dataclass(frozen=True, eq=False)
class Regression:
    """Hold both layers, and the comparison of mechanisms that follows from them."""

    means: pl.DataFrame
    """What the first layer rests on: the mean over repeats of every metric at every setting, and its residual."""
    first: pl.DataFrame
    """a by dataset, mechanism, metric and budget."""
    second: pl.DataFrame
    """c by dataset, mechanism and metric; also of the low and the high ends of the first layer's intervals."""
    performance: pl.DataFrame
    """Percent by which a mechanism does better than the baseline at a budget; without a budget, from c. `differs` where
    the two intervals do not overlap."""

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return plain values; what is not a number becomes null."""
        tables = {"a": self.first, "c": self.second, "performance": self.performance}
        return {name: _plain(table) for name, table in tables.items()}


def regress(table: pl.DataFrame, spec: RegressionSpec) -> Regression:
    """Fit both layers for every mechanism that sweeps the two settings; empty tables where there is none.

    The intercept b is the metric of the originals against themselves. Only mean values over repeats enter.
    """
    empty = Regression(
        pl.DataFrame(), pl.DataFrame(schema=FIRST), pl.DataFrame(schema=SECOND), pl.DataFrame(schema=PERFORMANCE)
    )
    if table.is_empty() or not {spec.over, spec.budget} <= set(table.columns):
        return empty
    if table.schema[spec.over] != pl.Float64 or table.schema[spec.budget] != pl.Float64:
        return empty
    if "kind" in table.columns:
        table = table.filter(pl.col("kind") == "metric")  # an attack's success is no straight line of the radius
    own = table.filter(pl.col("mechanism") == ORIGINAL).group_by("dataset", "metric").agg(b=pl.col("value").mean())
    over, budget = pl.col(spec.over).alias("over"), pl.col(spec.budget).alias("budget")
    means = (
        table.filter(pl.col("mechanism") != ORIGINAL, pl.col(spec.over).is_not_null(), pl.col(spec.budget).is_not_null())
        .group_by(*PLACE, "unit", over, budget, maintain_order=True)
        .agg(value=pl.col("value").mean(), sd=pl.col("value").std(), repeats=pl.len())
        .join(own, on=["dataset", "metric"], how="left", maintain_order="left")
        .filter(pl.col("b").is_not_null())
    )
    lines: list[dict[str, Any]] = []
    for key, part in means.group_by(*PLACE, "budget", maintain_order=True):
        line = through_origin(part["over"], part["value"] - part["b"])
        names = dict(zip([*PLACE, "budget"], key, strict=True))
        lines.append({**names, "a": line.slope, "b": part["b"][0], **_interval(line), "r2": line.r2, "n": line.n})
    first = pl.DataFrame(lines, schema=FIRST)
    if first.is_empty():
        return empty
    joined = means.join(first.select(*PLACE, "budget", "a"), on=[*PLACE, "budget"], how="left", maintain_order="left")
    residual = pl.col("value") - pl.col("b") - pl.col("a") * pl.col("over")
    second = _second(first)
    return Regression(joined.with_columns(residual=residual), first, second, _performance(first, second, spec.baseline))


def _second(first: pl.DataFrame) -> pl.DataFrame:
    rows = []
    for key, part in first.group_by(*PLACE, maintain_order=True):
        line = through_origin(part["budget"], _inverse(part["a"]))
        # a low a is a mechanism that disturbs less, so its inverse is the high one
        ends = {word: through_origin(part["budget"], _inverse(part[word])) for word in ("low", "high")}
        crossed = bool(((part["low"] <= 0) & (part["high"] >= 0)).any())
        rows.append(
            {
                **dict(zip(PLACE, key, strict=True)),
                "c": line.slope,
                **_interval(line),
                "c_of_low_a": math.nan if crossed else ends["low"].slope,
                "c_of_high_a": math.nan if crossed else ends["high"].slope,
                "r2": line.r2,
                "n": line.n,
            }
        )
    return pl.DataFrame(rows, schema=SECOND)


def _performance(first: pl.DataFrame, second: pl.DataFrame, baseline: str | None) -> pl.DataFrame:
    """Return how much less each mechanism disturbs than the baseline (the first one unless named)."""
    rows: list[dict[str, Any]] = []
    for (dataset, metric), part in first.group_by("dataset", "metric", maintain_order=True):
        labels = part["mechanism"].unique(maintain_order=True).to_list()
        base = baseline if baseline in labels else labels[0]
        chosen = second.filter(pl.col("dataset") == dataset, pl.col("metric") == metric)
        for label in labels:
            if label == base:
                continue
            shared = {"dataset": dataset, "mechanism": label, "metric": metric, "baseline": base}
            mine, other = (part.filter(pl.col("mechanism") == word) for word in (label, base))
            both = mine.join(other, on="budget", suffix="_base").sort("budget")
            for row in both.iter_rows(named=True):
                percent = _gain(row["a_base"], row["a"])
                apart = row["low"] > row["high_base"] or row["high"] < row["low_base"]
                rows.append({**shared, "budget": row["budget"], "percent": percent, "differs": apart})
            ours, theirs = (chosen.filter(pl.col("mechanism") == word).row(0, named=True) for word in (label, base))
            percent = _gain(ours["c"], theirs["c"])
            apart = ours["low"] > theirs["high"] or ours["high"] < theirs["low"]
            rows.append({**shared, "budget": None, "percent": percent, "differs": apart})
    return pl.DataFrame(rows, schema=PERFORMANCE)


def _gain(more: float, less: float) -> float:
    """Return the percentage by which one slope is steeper; a trip made shorter is disturbed as one made longer is."""
    return 100 * (abs(more) / abs(less) - 1) if less else math.nan


def _interval(line: Line) -> dict[str, Any]:
    return {"low": line.low, "high": line.high, "significant": line.significant}


def _inverse(values: pl.Series) -> np.ndarray[Any, np.dtype[np.float64]]:
    numbers = values.to_numpy()
    with np.errstate(divide="ignore"):
        return np.where(numbers == 0, np.nan, 1 / numbers)


def _plain(table: pl.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
        for row in table.iter_rows(named=True)
    ]
