"""Round estimates to whole numbers whose sums agree, add standard errors and intervals, and leave out what is unreliable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers, Places
from murmurate.mechanisms.od_counts.estimate import Estimates
from murmurate.spaces.zone_flows import HOURS, LENGTHS_KM, MINUTES, N_PERIODS, PARTS, REST, ZoneFlows


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How sure a figure must be, and how wide its interval is."""

    max_error: float | None
    """Largest relative error; None publishes every figure."""
    chance: float
    """Chance with which a published figure may be further off."""
    level: float
    """Level of the intervals."""
    laplace: bool
    common_error: float = 0.0
    """Relative standard deviation that all counts share."""

    def half_width(self, variance: Floats, cells: Floats | float, level: float) -> Floats:
        """Return half the width of an interval for a sum of this many noisy cells.

        Sums of Laplace noise are heavier at the ends than normal ones; the Cornish-Fisher term corrects the quantile.
        """
        from scipy.special import ndtri

        z = float(ndtri((1 + level) / 2))
        kurtosis = 3.0 / np.maximum(cells, 1.0) if self.laplace else 0.0
        return np.asarray((z + (z**3 - 3 * z) * kurtosis / 24) * np.sqrt(variance + ROUNDING))

    def reliable(self, trips: Integers, variance: Floats, cells: Floats | float) -> NDArray[np.bool_]:
        """Return which figures are published, from noisy values alone."""
        if self.max_error is None:
            return np.ones(len(trips), dtype=bool)
        return np.asarray(self.half_width(variance, cells, 1 - self.chance) <= self.max_error * trips)


ROUNDING = 1 / 12
"""Variance of rounding to whole trips."""


@dataclass(frozen=True, eq=False)
class Whole:
    """Whole numbers from which every figure is added up."""

    departures: Integers
    arrivals: Integers
    districts: Integers
    pairs: Integers
    pair_hours: Integers
    classes: Mapping[str, Integers]


def whole_numbers(estimates: Estimates, district: Integers, n_zones: int) -> Whole:
    """Round so that all sums agree: pairs first, then districts, and what is left is shared by largest remainders."""
    n_districts = int(district.max()) + 1
    hours = apportion(estimates.pair_hours, np.rint(estimates.pair_hours.sum(axis=1)).astype(np.int64))
    origin, destination = estimates.pairs // n_zones, estimates.pairs % n_zones
    listed = _summed(district[origin] * n_districts + district[destination], hours, n_districts**2)
    more = np.maximum(estimates.districts.reshape(1, -1) - listed.ravel(), 0.0)
    total = np.array([max(round(estimates.districts.sum()), int(listed.sum()))])
    flows = listed + apportion(more, total - listed.sum()).reshape(-1, HOURS)
    leaving = flows.reshape(n_districts, n_districts, HOURS).sum(axis=1)
    entering = flows.reshape(n_districts, n_districts, HOURS).sum(axis=(0, 2))
    of_origin, of_destination = _summed(origin, hours, n_zones), _summed(destination, hours, n_zones).sum(axis=1)
    rest = np.maximum(estimates.departures - of_origin, 0.0)
    departures = of_origin + _share_out(rest, leaving - _summed(district, of_origin, n_districts), district)
    rest_in = np.maximum(estimates.arrivals.sum(axis=1) - of_destination, 0.0)[:, None]
    missing = entering - np.bincount(district, weights=of_destination, minlength=n_districts).astype(np.int64)
    arriving = of_destination + _share_out(rest_in, missing[:, None], district)[:, 0]
    arrivals = apportion(estimates.arrivals, arriving)
    classes = {name: apportion(values[None, :], total)[0] for name, values in estimates.others.items()}
    return Whole(departures, arrivals, flows.reshape(n_districts, n_districts, HOURS), estimates.pairs, hours, classes)


def apportion(weights: Floats, totals: Integers) -> Integers:
    """Round each row to whole numbers of this total, in proportion to its weights, by largest remainders.

    >>> apportion(np.array([[1.0, 1.0, 1.0]]), np.array([4])).tolist()
    [[2, 1, 1]]
    """
    weights = np.maximum(weights, 0.0)
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    exact = weights / weights.sum(axis=1, keepdims=True) * totals[:, None]
    out = np.floor(exact).astype(np.int64)
    missing = totals - out.sum(axis=1)
    rank = np.argsort(np.argsort(out - exact, axis=1, kind="stable"), axis=1, kind="stable")
    return out + (rank < missing[:, None])


def _share_out(weights: Floats, totals: Integers, district: Integers) -> Integers:
    """Share [district, hour] totals among the zones of each district."""
    out = np.zeros(weights.shape, dtype=np.int64)
    for number in range(len(totals)):
        members = np.flatnonzero(district == number)
        out[members] = apportion(weights[members].T, totals[number]).T
    return out


def _summed(group: Integers, values: Integers, n: int) -> Integers:
    out = np.zeros((n, values.shape[1]), dtype=np.int64)
    np.add.at(out, group, values)
    return out


def publish(whole: Whole, estimates: Estimates, places: Places, rules: Rules, *, labels: Mapping[str, list[str]]) -> ZoneFlows:
    """Lay figures out as tables, with standard errors and intervals; `labels` name the categories of a declared column."""
    district = places.districts()
    sizes = np.bincount(district).astype(np.float64)
    noise = estimates.variance
    zones = pl.concat([*_zone_tables(whole, district, sizes, noise, rules)])
    od = pl.concat([*_district_pairs(whole, sizes, noise, rules), *_zone_pairs(whole, places.n_cells, noise, rules)])
    classes = _classes(whole, noise, rules, labels)
    return ZoneFlows(places=places, zones=zones, od=od, classes=classes, about={"trips": int(whole.districts.sum())})


def _zone_tables(
    whole: Whole, district: Integers, sizes: Floats, noise: Mapping[str, float], rules: Rules
) -> Iterator[pl.DataFrame]:
    """Yield departures and arrivals of zones, districts and the city by hour, part and day."""
    m = len(sizes)
    for direction, hours in (("departures", whole.departures), ("arrivals", whole.arrivals)):
        areas = (
            ("zone", hours, np.ones(len(district))),
            ("district", _summed(district, hours, m), sizes),
            ("city", hours.sum(axis=0, keepdims=True), np.array([float(len(district))])),
        )
        for area, values, n_zones in areas:
            for time, in_period, n_hours in _periods():
                trips = np.add.reduceat(values, in_period, axis=1)
                cells = n_zones[:, None] * n_hours[None, :]
                variance = cells * noise[direction]
                if area == "city" and time == "day":
                    variance = np.minimum(variance, noise["total"])
                place, period = np.divmod(np.arange(trips.size), trips.shape[1])
                keys = {"direction": direction, "area": area, "place": place, "time": time, "period": period}
                yield _figures(keys, trips.ravel(), variance.ravel(), cells.ravel(), rules)


def _district_pairs(whole: Whole, sizes: Floats, noise: Mapping[str, float], rules: Rules) -> Iterator[pl.DataFrame]:
    """Yield all pairs of districts, and for each origin the rest that is not published."""
    m = len(sizes)
    hours = whole.districts.reshape(m * m, HOURS)
    for time, in_period, n_hours in _periods():
        trips = np.add.reduceat(hours, in_period, axis=1)
        pair, period = np.divmod(np.arange(trips.size), trips.shape[1])
        cells = n_hours[period]
        keys: dict[str, Any] = {
            "area": "district",
            "origin": pair // m,
            "destination": pair % m,
            "time": time,
            "period": period,
        }
        shown = _figures(keys, trips.ravel(), cells * noise["districts"], cells, rules)
        yield shown
        hidden = trips.ravel() * shown["trips"].is_null().to_numpy()
        rest = np.zeros((m, trips.shape[1]), dtype=np.int64)
        np.add.at(rest, (pair // m, period), hidden)
        n_hidden = np.zeros((m, trips.shape[1]))
        np.add.at(n_hidden, (pair // m, period), shown["trips"].is_null().to_numpy())
        origin, period = np.divmod(np.arange(rest.size), rest.shape[1])
        keys = {"area": "district", "origin": origin, "destination": REST, "time": time, "period": period}
        cells = np.maximum(n_hidden.ravel(), 1.0) * n_hours[period]
        yield _figures(keys, rest.ravel(), cells * noise["districts"] * (n_hidden.ravel() > 0), cells, _every(rules))


def _zone_pairs(whole: Whole, n: int, noise: Mapping[str, float], rules: Rules) -> Iterator[pl.DataFrame]:
    """Yield found pairs of zones that are reliable, and the rest of each origin (and, by day, of each destination)."""
    for time, in_period, n_hours in _periods():
        trips = (
            np.add.reduceat(whole.pair_hours, in_period, axis=1) if len(whole.pairs) else np.zeros((0, len(n_hours)), np.int64)
        )
        pair, period = np.divmod(np.arange(trips.size), max(trips.shape[1], 1))
        part = n_hours[period] / HOURS
        # hours share the difference between the two measurements of a pair's total
        variance = n_hours[period] * noise.get("pairs_hour", 0.0) * (1 - part) + part**2 * noise["pair"]
        origin, destination = np.divmod(whole.pairs[pair], n)
        keys = {"area": "zone", "origin": origin, "destination": destination, "time": time, "period": period}
        cells = np.maximum(n_hours[period], 1.0)
        shown = _figures(keys, trips.ravel(), variance, cells, rules).filter(pl.col("trips").is_not_null())
        yield shown
        yield _rest_of(shown, "origin", np.add.reduceat(whole.departures, in_period, axis=1), time, (noise, n_hours, rules))
        if time == "day":
            arriving = whole.arrivals.sum(axis=1, keepdims=True)
            yield _rest_of(shown, "destination", arriving, time, (noise, n_hours, rules))


def _rest_of(
    shown: pl.DataFrame, side: str, totals: Integers, time: str, how: tuple[Mapping[str, float], Floats, Rules]
) -> pl.DataFrame:
    """Return for each place and period its total less the pairs that are shown."""
    noise, n_hours, rules = how
    rest, of_pairs = totals.copy(), np.zeros(totals.shape)
    at = shown[side].to_numpy(), shown["period"].to_numpy()
    np.subtract.at(rest, at, shown["trips"].to_numpy())
    np.add.at(of_pairs, at, shown["se"].to_numpy() ** 2)
    place, period = np.divmod(np.arange(rest.size), rest.shape[1])
    variance = n_hours[period] * noise["departures" if side == "origin" else "arrivals"] + of_pairs.ravel()
    other = "destination" if side == "origin" else "origin"
    keys = {"area": "zone", side: place, other: REST, "time": time, "period": period}
    return _figures(keys, rest.ravel(), variance, n_hours[period], _every(rules)).select(shown.columns)


def _classes(whole: Whole, noise: Mapping[str, float], rules: Rules, labels: Mapping[str, list[str]]) -> pl.DataFrame:
    """Return lengths, durations and categories."""
    words = {"lengths": _between(LENGTHS_KM, "km"), "durations": _between(MINUTES, "min"), **labels}
    found = []
    for name, trips in whole.classes.items():
        keys: dict[str, Any] = {"of": name, "number": np.arange(len(trips)), "label": words[name]}
        found.append(_figures(keys, trips, np.full(len(trips), noise[name]), 1.0, rules))
    return pl.concat(found)


def _between(edges: Floats | Integers, unit: str) -> list[str]:
    """Return words for classes with these upper edges."""
    low = [0.0, *edges.tolist()]
    return [f"{a:g} to {b:g} {unit}" for a, b in pairwise(low)] + [f"over {low[-1]:g} {unit}"]


def _periods() -> Iterator[tuple[str, Integers, Floats]]:
    """Yield each level of time: its name, the first hour of its periods, and their numbers of hours."""
    firsts = {"hour": np.arange(HOURS), "part": np.array([first for first, _ in PARTS.values()]), "day": np.array([0])}
    for time in N_PERIODS:
        yield time, firsts[time], np.diff(np.append(firsts[time], HOURS)).astype(np.float64)


def _figures(
    keys: Mapping[str, object], trips: Integers, variance: Floats, cells: Floats | float, rules: Rules
) -> pl.DataFrame:
    """Return one row for each figure; those that are not reliable enough have no trips."""
    variance = variance + (rules.common_error * trips) ** 2
    half = rules.half_width(variance, cells, rules.level)
    shown = rules.reliable(trips, variance, cells)
    table = pl.DataFrame(
        {"trips": trips, "se": np.sqrt(variance + ROUNDING), "low": np.maximum(trips - half, 0.0), "high": trips + half}
    )
    hidden = pl.Series(~shown)
    columns = [
        pl.Series(name, value) if isinstance(value, (np.ndarray, list)) else pl.lit(value, _kind(value)).alias(name)
        for name, value in keys.items()
    ]
    table = table.with_columns(pl.when(hidden).then(None).otherwise(pl.all()).name.keep())
    return table.with_columns(columns).select(*keys, "trips", "se", "low", "high")


def _kind(value: object) -> type[pl.DataType]:
    return pl.String if isinstance(value, str) else pl.Int64


def _every(rules: Rules) -> Rules:
    """Return the rules that publish every figure: the rest of a sum must be there for the sum to agree."""
    return replace(rules, max_error=None)
