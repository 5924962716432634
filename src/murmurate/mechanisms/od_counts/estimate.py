"""Estimate counts from noisy tables: shrink what is not clear of the noise, then make all tables agree.

Post-processing: it reads noisy counts and public numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murmurate.asking.table import Answers
from murmurate.core.space import Floats, Integers
from murmurate.spaces.zone_flows import HOURS

CLEAR_SDS = 3.0
"""A noisy count of at least this many standard deviations is kept as it was measured; lower ones are shrunk."""

SWEEPS = 40
"""Rounds of projections onto the sums that must agree; the largest disagreement is then far below one trip."""

FALSE_SHARE = 0.01
"""Largest expected share of an origin's trips that noise alone puts into pairs that nobody travelled."""

NOT_CLASSES = ("departures", "arrivals", "districts", "pairs", "pairs_hour", "norms")
"""Tables of places and of units; the others are of classes of trips."""


@dataclass(eq=False)
class Estimates:
    """Estimated counts that agree with each other up to rounding, and the variance of each before they did."""

    departures: Floats
    """[zone, hour]"""
    arrivals: Floats
    """[zone, hour of arrival]"""
    districts: Floats
    """[district, district, hour]"""
    pairs: Integers
    """Found pairs, origin * n_zones + destination, ascending."""
    pair_hours: Floats
    """[found pair, hour]"""
    others: Mapping[str, Floats]
    """Lengths, durations and categories."""
    variance: Mapping[str, float]
    """Variance of the noise of one cell of each table; `pair` for the total of a found pair, `total` for all trips."""
    common_error: float
    """Relative standard deviation of every count beside its noise, from scaling down units with many trips."""


def thresholds(noisy_departures: Floats, n_zones: int, *, scale: float, laplace: bool) -> Integers:
    """Return [origin] the least noisy count of a pair that is answered: the lowest that keeps false pairs few."""
    from scipy.special import ndtr

    departing = np.maximum(noisy_departures.reshape(n_zones, HOURS).sum(axis=1), 1.0)
    level = np.arange(1.0, 40.0, 0.125)
    passing = np.exp(-level) / 2 if laplace else ndtr(-level)
    false_trips = n_zones * passing * scale * (level + (1.0 if laplace else 1 / level))
    first = (false_trips[None, :] <= FALSE_SHARE * departing[:, None]).argmax(axis=1)
    return np.maximum(np.ceil(level[first] * scale), 1).astype(np.int64)


def estimate(answers: Answers, district: Integers, n_zones: int, *, loss: float = 0.0) -> Estimates:
    """Return estimates that agree, from the noisy tables of all rounds; `loss` is the share of trips that the clip lost.

    Counts are scaled up by the loss of all trips. What a figure lost itself is not known: it is positive, and `loss` on
    average. It is taken as exponential (largest entropy for a given mean), so its standard deviation is its mean.
    """
    n_districts = int(district.max()) + 1
    sd = {name: answer.deviation for name, answer in answers.items()}
    raw = {name: answer.noisy for name, answer in answers.items()}
    departures = shrunk(raw["departures"].reshape(n_zones, HOURS), sd["departures"])
    arrivals = shrunk(raw["arrivals"].reshape(n_zones, HOURS), sd["arrivals"])
    flows = shrunk(raw["districts"].reshape(-1, HOURS), sd["districts"])
    found = answers["pairs"].bins
    pairs = found if found is not None else np.zeros(0, dtype=np.int64)
    totals, pair_variance = _pair_totals(raw, sd, len(pairs))
    total, total_variance = total_trips(answers)
    fitted = _Fit(departures, arrivals, flows, district, (pairs // n_zones, pairs % n_zones), total)
    fitted.agree()
    fitted.add_pairs(totals, raw.get("pairs_hour", np.zeros(0)), sd.get("pairs_hour", 1.0))
    scale = 1 / (1 - loss)
    variance = {name: (scale * value) ** 2 for name, value in sd.items()}
    variance |= {"pair": scale**2 * pair_variance, "total": scale**2 * total_variance}
    others = {name: _adding_up(*shrunk(raw[name][None, :], sd[name]), total) for name in raw if name not in NOT_CLASSES}
    return Estimates(
        fitted.departures.mean * scale,
        fitted.arrivals.mean * scale,
        fitted.flows.mean.reshape(n_districts, n_districts, HOURS) * scale,
        pairs,
        fitted.hours.mean * scale,
        {name: values * scale for name, values in others.items()},
        variance,
        loss * scale,
    )


def total_trips(answers: Answers) -> tuple[float, float]:
    """Return the number of trips from the sums of all full tables, by inverse variance, and its variance."""
    names = [name for name in answers if name not in ("pairs", "pairs_hour", "norms")]
    weight = np.array([1 / (len(answers[name].noisy) * answers[name].deviation ** 2) for name in names])
    sums = np.array([float(answers[name].noisy.sum()) for name in names])
    return max(float(weight @ sums / weight.sum()), 0.0), float(1 / weight.sum())


def shrunk(noisy: Floats, deviation: float) -> tuple[Floats, Floats]:
    """Return mean and variance of [row, column] counts: clear ones as measured, others shrunk towards row and column.

    Counts that are not clear get an exponential prior whose mean is the row's total times the profile of all columns. They are
    then scaled to the sum that was measured in their row (rows that are not clear: together), in which noise averages out.
    Otherwise shrinking would move trips to clear counts. For the same reason the variance stays that of the noise: the sum of
    many shrunk counts is no better known than the sum that was measured.
    """
    mean, variance = noisy.copy(), np.full(noisy.shape, deviation**2)
    low = noisy < CLEAR_SDS * deviation
    if not low.any():
        return mean, variance
    profile = np.maximum(noisy.sum(axis=0), 1e-9)
    rows = noisy.sum(axis=1)
    # the total of a row may be noise itself: those that are not clear share the mean of their kind
    unclear = rows < CLEAR_SDS * deviation * np.sqrt(noisy.shape[1])
    rows = np.where(unclear, max(float(rows[unclear].mean()) if unclear.any() else 0.0, 0.0), rows)
    prior = rows[:, None] * profile / profile.sum()
    mean[low] = _posterior(noisy[low], deviation, prior[low])
    group = np.where(unclear, len(rows), np.arange(len(rows)))
    measured, kept = (np.bincount(group, weights=(values * low).sum(axis=1)) for values in (noisy, mean))
    scale = np.divide(np.maximum(measured, 0.0), kept, out=np.zeros_like(kept), where=kept > 0)
    mean = np.where(low, mean * scale[group][:, None], mean)
    return mean, variance


def _posterior(noisy: Floats, deviation: float, prior: Floats) -> Floats:
    """Return the mean of a count with an exponential prior of this mean, given its noisy value."""
    from scipy.special import log_ndtr

    at = noisy / deviation - deviation / np.maximum(prior, 1e-6 * deviation)
    hazard = np.exp(-(at**2) / 2 - 0.5 * np.log(2 * np.pi) - log_ndtr(at))
    # far below zero the difference cancels: the mean is then that of an exponential of rate -at
    far = at < -30
    mean = np.where(far, -1 / np.where(far, at, -1.0), at + hazard)
    return np.asarray(deviation * np.maximum(mean, 0.0))


def _adding_up(mean: Floats, variance: Floats, total: float) -> Floats:
    """Return one row whose sum is the total, the difference shared in proportion to the variances (least squares)."""
    for _ in range(SWEEPS):
        mean = np.maximum(mean + variance * (total - mean.sum()) / max(float(variance.sum()), 1e-12), 0.0)
    return mean[0]


def _pair_totals(raw: Mapping[str, Floats], sd: Mapping[str, float], n_pairs: int) -> tuple[Floats, float]:
    """Return the total of each found pair and its variance: measured alone and as the sum of its hours."""
    if not n_pairs:
        return np.zeros(0), sd["pairs"] ** 2
    summed, alone = HOURS * sd["pairs_hour"] ** 2, sd["pairs"] ** 2
    weight = summed / (summed + alone)
    hours = raw["pairs_hour"].reshape(n_pairs, HOURS).sum(axis=1)
    return np.maximum(weight * raw["pairs"] + (1 - weight) * hours, 0.0), summed * alone / (summed + alone)


def _pair_hours(noisy: Floats, deviation: float, expected: Floats) -> tuple[Floats, Floats]:
    """Shrink the noisy hours of pairs towards what the ends of each pair let expect; return means and variances.

    Hours differ from what is expected by chance and by a relative deviation that is estimated from all pairs (empirical Bayes);
    large counts are hardly moved.
    """
    excess = float(((noisy - expected) ** 2 - deviation**2 - expected).sum())
    relative = max(excess, 0.0) / max(float((expected**2).sum()), 1e-9)
    prior = relative * expected**2 + expected + 1e-9
    weight = prior / (prior + deviation**2)
    return expected + weight * (noisy - expected), weight * deviation**2


@dataclass(eq=False)
class _Cells:
    """A table of estimates with a variance for each."""

    mean: Floats
    variance: Floats


class _Fit:
    """Moves estimates as little as their variances allow until all sums agree and no remainder is negative."""

    def __init__(  # noqa: PLR0917
        self,
        departures: tuple[Floats, Floats],
        arrivals: tuple[Floats, Floats],
        flows: tuple[Floats, Floats],
        district: Integers,
        ends: tuple[Integers, Integers],
        total: float,
    ) -> None:
        self.departures, self.arrivals, self.flows = _Cells(*departures), _Cells(*arrivals), _Cells(*flows)
        self.total, self.district = total, district
        self.n_districts = n_districts = int(district.max()) + 1
        self.origin, self.destination = ends
        self.pair_district = district[self.origin] * n_districts + district[self.destination]
        self.from_district, self.to_district = np.divmod(np.arange(n_districts**2), n_districts)
        self.hours = _Cells(np.zeros((len(self.origin), HOURS)), np.zeros((len(self.origin), HOURS)))
        self.pair_total = np.zeros(len(self.origin))

    def agree(self) -> None:
        """Project zones and districts onto each family of sums in turn."""
        for _ in range(SWEEPS):
            for cells in (self.departures, self.arrivals, self.flows):
                _add_up_to(cells, self.total)
            self._equal_departures()
            self._equal_arrivals()
            for cells in (self.departures, self.arrivals, self.flows):
                np.maximum(cells.mean, 0.0, out=cells.mean)

    def add_pairs(self, totals: Floats, noisy_hours: Floats, deviation: float) -> None:
        """Take in found pairs: totals that their ends can hold, and hours shrunk towards those of their ends.

        Zones and districts stay as they are. They were measured better than sums over pairs and hours, and moving them only
        where such a sum is larger would make them too large.
        """
        if not len(totals):
            return
        for cells, of_pair in ((self.departures, self.origin), (self.arrivals, self.destination)):
            held = cells.mean.sum(axis=1)
            summed = np.bincount(of_pair, weights=totals, minlength=len(held))
            number = np.bincount(of_pair, minlength=len(held))
            over = np.maximum(summed - held, 0.0) / np.maximum(number, 1)
            totals = np.maximum(totals - over[of_pair], 0.0)
        leaving, entering = self.departures.mean[self.origin] + 1e-9, self.arrivals.mean[self.destination] + 1e-9
        profile = leaving * entering / (self.departures.mean.sum(axis=0) + 1e-9)
        expected = profile / profile.sum(axis=1, keepdims=True) * totals[:, None]
        noisy = noisy_hours.reshape(len(totals), HOURS)
        self.hours, self.pair_total = _Cells(*_pair_hours(noisy, deviation, expected)), totals
        for _ in range(SWEEPS):
            self._keep_pair_totals()
            self._fit_into(self.flows.mean, self.pair_district)
            self._fit_into(self.departures.mean, self.origin)

    def _keep_pair_totals(self) -> None:
        """Let the hours of each pair add up to its total, which was measured far better than its hours."""
        room = self.hours.variance / np.maximum(self.hours.variance.sum(axis=1, keepdims=True), 1e-12)
        for _ in range(3):  # once more, for what cutting at zero changed
            self.hours.mean += room * (self.pair_total - self.hours.mean.sum(axis=1))[:, None]
            np.maximum(self.hours.mean, 0.0, out=self.hours.mean)

    def _fit_into(self, held: Floats, of_pair: Integers) -> None:
        """Lower the hours of pairs whose sum is larger than what holds them."""
        mean, variance = (_summed(of_pair, part, len(held)) for part in _parts(self.hours))
        push = np.maximum(mean - held, 0.0) / np.maximum(variance, 1e-12)
        self.hours.mean = np.maximum(self.hours.mean - self.hours.variance * push[of_pair], 0.0)

    def _equal_departures(self) -> None:
        """Let the departures of a district in an hour be the sum of its flows in that hour."""
        _equal(self.departures, self.district, self.flows, self.from_district, self.n_districts, by_hour=True)

    def _equal_arrivals(self) -> None:
        """Let the arrivals of a district be the sum of the flows into it, all hours together."""
        _equal(self.arrivals, self.district, self.flows, self.to_district, self.n_districts, by_hour=False)


def _equal(one: _Cells, of_one: Integers, other: _Cells, of_other: Integers, n: int, *, by_hour: bool) -> None:
    """Move two tables towards each other until their sums by group agree, each as far as its variance allows."""

    def summed(group: Integers, values: Floats) -> Floats:
        found = _summed(group, values, n)
        return found if by_hour else found.sum(axis=1, keepdims=True)

    gap = summed(of_other, other.mean) - summed(of_one, one.mean)
    first, second = _room(one, gap[of_one] < 0), _room(other, gap[of_other] > 0)
    push = gap / np.maximum(summed(of_one, first) + summed(of_other, second), 1e-12)
    one.mean += first * push[of_one]
    other.mean -= second * push[of_other]


def _add_up_to(cells: _Cells, total: float) -> None:
    """Move the sum of a table to the total."""
    missing = total - float(cells.mean.sum())
    room = _room(cells, np.asarray(missing < 0))
    cells.mean += room * (missing / max(float(room.sum()), 1e-12))


def _room(cells: _Cells, lowered: NDArray[np.bool_]) -> Floats:
    """Return how far cells may move: where they are lowered, only those that have something.

    Taken from all, it would come back when empty cells are cut at zero, and sums would stay too large.
    """
    return np.where(lowered & (cells.mean <= 0), 0.0, cells.variance)


def _parts(cells: _Cells) -> tuple[Floats, Floats]:
    return cells.mean, cells.variance


def _summed(group: Integers, values: Floats, n: int) -> Floats:
    """Sum rows of [row, hour] values by group."""
    out = np.zeros((n, values.shape[1]))
    np.add.at(out, group, values)
    return out
