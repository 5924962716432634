"""Summaries of any number of trips in fixed memory. Their integers add up to the same for any parts in any order.

`Histogram` counts values in fine bins, `LabelCounts` counts labels, `Drawn` holds rows of trips that are sampled by a hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.score import Better, Score
from murmurate.core.space import Floats, Integers
from murmurate.metrics.bootstrap import mean_score

BIN_BITS = 12
"""Leading bits of a value's mantissa that determine its bin: the relative width of a bin is at most 1/4096."""
BIN_SHARE = 2.0**-BIN_BITS
"""Maximum relative width of a bin."""
_REST_BITS = 20
"""Further bits of the mantissa, which are summed. Sums of 2^43 values fit into 64 bits, and a mean is exact to nine digits."""
_ALL = 2**64
"""One more than the largest hash."""
_NORMAL_95 = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Hold finite values of trips: one value for each trip, or the mean and number of trips of each bin."""

    values: Floats
    """In ascending order if they are means of bins."""
    counts: Integers | None = None
    """Number of trips of each value; None if each is of one trip."""
    ends: tuple[float, float] | None = None
    """Least and greatest value of a trip, if `values` are means of bins."""

    @property
    def n(self) -> int:
        return len(self.values) if self.counts is None else int(self.counts.sum())

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest value."""
        return self.ends or (float(self.values.min()), float(self.values.max()))

    def mean_score(self, name: str, **facts: Any) -> Score:
        """Return the mean as a score with a 95 % interval: by bootstrap, or by normal approximation if trips are in bins."""
        if self.counts is None:
            return mean_score(name, self.values, **facts)
        mean = float(np.average(self.values, weights=self.counts))
        spread = float(np.average((self.values - mean) ** 2, weights=self.counts)) ** 0.5
        half = _NORMAL_95 * spread / self.n**0.5
        better: Better = facts.pop("better", "lower")
        return Score(name=name, value=mean, low=mean - half, high=mean + half, better=better, n=self.n, **facts)

    def shift_bound(self) -> float:
        """Return an upper bound on the mean distance of values from the means of their bins: half the width of a bin."""
        return 0.0 if self.counts is None else float(np.average(self.values, weights=self.counts)) * BIN_SHARE / 2


@dataclass(frozen=True, eq=False)
class Histogram:
    """Count non-negative values in bins given by their leading bits; values that are not finite are left out."""

    bins: Integers
    counts: Integers
    rests: Integers
    """For each bin, the sum over its values of the bits after those that determine the bin."""
    ends: tuple[float, float]
    """Least and greatest value; infinite where there is none."""

    @classmethod
    def of(cls, values: Floats) -> Histogram:
        finite = np.ascontiguousarray(values[np.isfinite(values)], dtype=np.float64)
        bits = finite.view(np.int64)
        bins, at = np.unique(bits >> (52 - BIN_BITS), return_inverse=True)
        rest = (bits >> (52 - BIN_BITS - _REST_BITS)) & ((1 << _REST_BITS) - 1)
        ends = (float(finite.min()), float(finite.max())) if len(finite) else (np.inf, -np.inf)
        return cls(bins, np.bincount(at, minlength=len(bins)), _total(at, rest, len(bins)), ends)

    @classmethod
    def add(cls, parts: Sequence[Histogram]) -> Histogram:
        bins, at = np.unique(np.concatenate([part.bins for part in parts]), return_inverse=True)
        counts, rests = (
            _total(at, np.concatenate([getattr(part, name) for part in parts]), len(bins)) for name in ("counts", "rests")
        )
        return cls(bins, counts, rests, (min(part.ends[0] for part in parts), max(part.ends[1] for part in parts)))

    def distribution(self) -> Distribution:
        """Return the mean and the number of values of each bin."""
        half = 1 << (52 - BIN_BITS - _REST_BITS - 1)  # bits below those that were summed: half of their range, on average
        within = (self.rests / np.maximum(self.counts, 1) * 2.0 ** (52 - BIN_BITS - _REST_BITS)).astype(np.int64) + half
        means = np.ascontiguousarray((self.bins << (52 - BIN_BITS)) + within).view(np.float64)
        return Distribution(np.clip(means, *self.ends), self.counts, self.ends)


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Count how often labels occur. Of more than `most` labels, those with the smallest hashes are kept, with full counts."""

    labels: Integers
    counts: Integers
    total: int
    """Sum of the counts of all labels, including those not kept."""
    most: int | None = None
    """Maximum of labels kept besides those in `always`; None if all are kept."""
    always: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Labels that are kept whatever their hash, such as the most frequent ones."""
    below: int = _ALL
    """All labels with hashes below this were kept."""

    @classmethod
    def of(cls, labels: Integers, most: int | None = None, always: Integers | None = None) -> LabelCounts:
        found, counts = np.unique(labels, return_counts=True)
        return cls(found, counts, len(labels), most, np.zeros(0, dtype=np.int64) if always is None else always)._lowest()

    @classmethod
    def of_table(cls, counts: Integers) -> LabelCounts:
        """Take the counts of the labels 0, 1, ...; labels with count 0 are left out."""
        labels = np.flatnonzero(counts)
        return cls(labels, counts[labels], int(counts.sum()))

    @classmethod
    def add(cls, parts: Sequence[LabelCounts]) -> LabelCounts:
        """Add up counts. A label that is kept in the sum was kept in every part that has it, so its count is complete."""
        labels, at = np.unique(np.concatenate([part.labels for part in parts]), return_inverse=True)
        counts = _total(at, np.concatenate([part.counts for part in parts]), len(labels))
        total, below = sum(part.total for part in parts), min(part.below for part in parts)
        return cls(labels, counts, total, parts[0].most, parts[0].always, below)._lowest()

    def _lowest(self) -> LabelCounts:
        if self.most is None:
            return self
        hashed, certain, below = mixed(self.labels), np.isin(self.labels, self.always), self.below
        others = hashed[~certain & _less(hashed, below)]
        if len(others) > self.most:
            below = int(np.partition(others, self.most)[self.most])
        keep = certain | _less(hashed, below)
        return replace(self, labels=self.labels[keep], counts=self.counts[keep], below=below)


@dataclass(frozen=True, eq=False)
class Matched:
    """Hold the labels kept on both sides, their counts on each side, and how many labels each represents."""

    labels: Integers
    original: Floats
    released: Floats
    stands_for: Floats
    totals: tuple[int, int]

    @classmethod
    def of(cls, one: LabelCounts, other: LabelCounts) -> Matched:
        """Match the counts of two sides by label.

        >>> both = Matched.of(LabelCounts.of(np.array([3, 3, 9])), LabelCounts.of(np.array([9])))
        >>> both.labels, both.original, both.released
        (array([3, 9]), array([2., 1.]), array([0., 1.]))
        """
        below = min(one.below, other.below)
        labels = np.union1d(one.labels, other.labels)
        certain = np.isin(labels, one.always)
        keep = certain | _less(mixed(labels), below)
        labels, certain = labels[keep], certain[keep]
        counts = [np.zeros(len(labels)), np.zeros(len(labels))]
        for side, found in zip((one, other), counts, strict=True):
            known = np.isin(side.labels, labels)
            found[np.searchsorted(labels, side.labels[known])] = side.counts[known]
        return cls(labels, counts[0], counts[1], np.where(certain, 1.0, _ALL / below), (one.total, other.total))

    @property
    def shares(self) -> tuple[Floats, Floats]:
        """Shares of the labels on both sides."""
        return self.original / max(self.totals[0], 1), self.released / max(self.totals[1], 1)

    @property
    def n_labels(self) -> int:
        """Number of labels that occur on either side; estimated if not all were kept."""
        return round(float(self.stands_for.sum()))

    def sum_of(self, terms: Floats) -> float:
        """Return the sum of a term over all labels; estimated if not all were kept."""
        return float((self.stands_for * terms).sum())

    def note(self, terms: Floats) -> str:
        """Say how many labels were kept, and the standard error of `sum_of(terms)`; empty if all were kept."""
        if (self.stands_for == 1).all():
            return ""
        error = float((self.stands_for * (self.stands_for - 1) * terms**2).sum()) ** 0.5
        return f"; {len(self.labels):,} of about {self.n_labels:,} pairs drawn by a hash, standard error {error:.2g}"

    def ranked(self) -> str:
        """Say among how many labels the most frequent were searched; empty if all were kept."""
        return "" if (self.stands_for == 1).all() else f"among {len(self.labels):,} of about {self.n_labels:,} pairs"


@dataclass(frozen=True, eq=False)
class Drawn:
    """Hold a random sample of rows of trips: in each group the `most` rows with the smallest hashes."""

    group: Integers
    hashed: NDArray[np.uint64]
    rows: Floats
    most: int

    @classmethod
    def of(cls, group: Integers, hashed: NDArray[np.uint64], rows: Floats, most: int) -> Drawn:
        order = np.lexsort((hashed, group))
        group = group[order]
        kept = np.arange(len(order)) - np.searchsorted(group, group) < most
        return cls(group[kept], hashed[order[kept]], rows[order[kept]], most)

    @classmethod
    def add(cls, parts: Sequence[Drawn]) -> Drawn:
        group, hashed, rows = (np.concatenate([getattr(part, name) for part in parts]) for name in ("group", "hashed", "rows"))
        return cls.of(group, hashed, rows, parts[0].most)

    def of_group(self, group: int | None = None) -> Floats:
        """Return the sampled rows of a group, or a sample of the same size from all groups together."""
        if group is not None:
            return self.rows[self.group == group]
        return self.rows[np.argsort(self.hashed, kind="stable")[: self.most]]


def mixed(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash (splitmix64) of each whole number. It is the same on every machine; hashes of polars need not be.

    >>> mixed(np.array([0]))
    array([16294208416658607535], dtype=uint64)
    """
    word = numbers.astype(np.uint64, copy=False) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def digest(ends: Floats) -> NDArray[np.uint64]:
    """Return the number of trips, the sum of hashes of their pairs of ends, and that of single ends; independent of order."""
    hashes = (_row_hashes(rows).sum(dtype=np.uint64) for rows in (ends, ends.reshape(-1, 2)))
    return np.array([len(ends), *hashes], dtype=np.uint64)


def _row_hashes(rows: Floats) -> NDArray[np.uint64]:
    found = np.zeros(len(rows), dtype=np.uint64)
    for column in np.ascontiguousarray(rows.T).view(np.uint64):
        found = mixed(found ^ column)
    return found


def _less(hashed: NDArray[np.uint64], below: int) -> NDArray[np.bool_]:
    return hashed < np.uint64(below) if below < _ALL else np.ones(len(hashed), dtype=bool)


def _total(at: Integers, numbers: Integers, n: int) -> Integers:
    """Add up whole numbers by position, without rounding."""
    result = np.zeros(n, dtype=np.int64)
    np.add.at(result, at, numbers)
    return result
