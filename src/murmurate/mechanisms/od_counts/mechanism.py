"""ODCounts: how many go from where to where, by hour, with intervals and sums that agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from murmurate.asking import Budget, Facts, Round, SparseTable, Table
from murmurate.asking.table import Answers
from murmurate.core.accounting import several_words
from murmurate.core.guarantee import DP, Unit
from murmurate.core.parameters import one_of, positive, share, whole
from murmurate.core.space import Integers, Places
from murmurate.errors import ParameterError
from murmurate.mechanisms.od_counts.clip import SHARE, TABLE, Norms, norms_table
from murmurate.mechanisms.od_counts.counting import CountHours, CountNorms, CountPairs, CountTrips, ReadTrips, Weighing
from murmurate.mechanisms.od_counts.estimate import estimate, thresholds
from murmurate.mechanisms.od_counts.publish import Rules, publish, whole_numbers
from murmurate.spaces import parse_specs
from murmurate.spaces.zone_flows import HOURS, LENGTHS_KM, MINUTES, ZoneFlows

if TYPE_CHECKING:
    from murmurate.noise import Randomness

WEIGHTS = {
    "departures": 0.23,
    "arrivals": 0.20,
    "districts": 0.12,
    "pairs": 0.20,
    "pairs_hour": 0.16,
    "lengths": 0.03,
    "durations": 0.03,
}
"""Share of the budget of each table, before those that are not made are left out. Set on the built-in city: zones by hour and
pairs are what planners read first."""

COLUMN_WEIGHT = 0.03
"""The same for a declared column."""

UNITS = ("trip", "user_day", "user")
"""Units that a promise can be made for."""

MAX_PAIR_STEPS = 2.0**18
"""Largest noise scale of pairs in fixed-point steps; their tail is added up step by step."""

MOST_CATEGORIES = 1_000
"""Most declared categories; more are a column of identifiers. Set by hand."""


@dataclass(frozen=True, kw_only=True)
class ODCounts:
    """Releases trips between zones, departures and arrivals by hour, lengths and durations, with intervals.

    Guarantee
        (epsilon, delta)-differential privacy for one unit, add or remove. Noise is added to every zone, pair and hour,
        travelled or not; of the pairs only those whose noisy count passes a threshold are listed. Everything after that reads
        noisy tables and public parameters alone.

    >>> from murmurate.spaces import Grid
    >>> ODCounts(epsilon=1.0, space=Grid(60.1, 24.8, 60.3, 25.2, 2000)).guarantee().unit.name
    'trip'
    """

    name: ClassVar[str] = "od_counts"
    needs: ClassVar[frozenset[str]] = frozenset({"time", "coordinates"})
    emits: ClassVar[tuple[str, ...]] = ()
    makes: ClassVar[str] = "flows"
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"epsilon": 2.0, "unit": "user_day", "space": "grid"}

    epsilon: float
    """The budget of one unit; smaller protects more."""
    space: Places
    """The public zones: grid:..., hex:..., zones:FILE or stops:FILE."""
    delta: float = 1e-6
    """Used with Gaussian noise only; should stay below one over ten times the number of units."""
    unit: Literal["trip", "user_day", "user"] = "trip"
    """Whose presence is protected."""
    max_trips: int | None = None
    """Trips read of each person or person-day; not needed for the promise, which the clip keeps."""
    noise: Literal["laplace", "gaussian"] | None = None
    """Without it, Laplace for trips (no delta is spent) and Gaussian for days and people, where it is smaller."""
    clip: float | None = None
    """Norm that a unit's trips are scaled down to (L2; L1 with Laplace noise). Without it, noisy norms say it."""
    column: str | None = None
    """A categorical column to count, such as mode or payment."""
    categories: tuple[str, ...] = ()
    """Its public values; every other value is counted together."""
    max_error: float | None = 0.1
    """A figure is published only if it is at most this far off (relative), up to `error_chance`; 0 publishes every figure."""
    error_chance: float = 0.05
    """Chance with which a published figure may be further off than `max_error`."""
    level: float = 0.95
    """Level of the intervals."""

    def __post_init__(self) -> None:
        parse_specs(self)
        positive("epsilon", self.epsilon)
        one_of("unit", self.unit, UNITS)
        if self.noise is not None:
            one_of("noise", self.noise, ("laplace", "gaussian"))
        share("delta", self.delta, closed=self._laplace)
        if self.max_trips is not None:
            whole("max_trips", self.max_trips)
            if self.unit == "trip":
                raise ParameterError("max_trips bounds the trips of a day or a person; with unit='trip' there is one.")
        if self.clip is not None:
            positive("clip", self.clip, at_most=1e6)
            if self.unit == "trip":
                raise ParameterError("clip scales down days or people with many trips; with unit='trip' each adds one count.")
        if self.max_error is not None and self.max_error != 0:
            positive("max_error", self.max_error, at_most=10)
        for name in ("error_chance", "level"):
            share(name, getattr(self, name))
        object.__setattr__(self, "categories", tuple(str(value) for value in self.categories))
        if self.column in (*WEIGHTS, TABLE):
            raise ParameterError(f"column {self.column!r} is the name of a table of od_counts; rename it in the data.")
        if bool(self.column) != bool(self.categories):
            raise ParameterError(
                "column and categories go together: a category that was read from the data would reveal that somebody has it. "
                "Give column=mode and categories=['car', 'bus', ...]."
            )
        if len(set(self.categories)) < len(self.categories) or len(self.categories) > MOST_CATEGORIES:
            raise ParameterError(f"categories must be at most {MOST_CATEGORIES:,} different values.")
        if not isinstance(self.space, Places):
            raise ParameterError(
                f"space must be zones (grid:..., hex:..., zones:FILE, stops:FILE); got {type(self.space).__name__}."
            )

    # -- the promise -----------------------------------------------------------------------------------------------

    @property
    def _laplace(self) -> bool:
        return self.noise == "laplace" or (self.noise is None and self.unit == "trip")

    def budget(self) -> Budget:
        """Return a new budget of the whole promise."""
        return Budget(epsilon=self.epsilon, delta=0.0 if self._laplace else self.delta)

    @cached_property
    def _shares(self) -> Mapping[str, float]:
        weights = {**WEIGHTS, **({self.column: COLUMN_WEIGHT} if self.column else {})}
        left = 1.0 if self.unit == "trip" else 1 - SHARE
        return {name: left * weight / sum(weights.values()) for name, weight in weights.items()}

    def _norms(self, answers: Answers) -> Norms:
        return Norms(answers[TABLE], self._laplace)

    def _limit(self, answers: Answers) -> float:
        """Return the norm that the trips of a unit are scaled down to."""
        return self.clip or (1.0 if self.unit == "trip" else self._norms(answers).limit())

    def _weighing(self, answers: Answers) -> Weighing:
        limit = self._limit(answers) if TABLE in answers else 0.0
        return Weighing(district=self._district, shares=self._shares, limit=limit, laplace=self._laplace)

    def guarantee(self) -> DP:
        """Return the promise of all noisy tables together."""
        return DP(
            epsilon=float(self.epsilon),
            delta=0.0 if self._laplace else float(self.delta),
            unit=Unit(name=self.unit, max_trips=self.max_trips),
            assumptions=("The zones, their districts, the declared categories and all other parameters are public.",),
            events=self.budget().events,
        )

    def _noise_words(self, name: str) -> str:
        """Return the standard deviation of a table's noise in words; it grows with the clip where that is measured."""
        if self.unit != "trip" and self.clip is None:
            return f"{self.budget().deviation(self._shares[name]):.4g} times the clip"
        return f"{self.budget().deviation(self._shares[name], self.clip or 1.0):.4g} trips"

    def statement(self) -> tuple[str, ...]:
        """Say what is and is not protected."""
        sentences = [
            f"Zones: {self.space.describe()}",
            "Trips that begin or end outside the zones are not counted.",
            "Noise was added to the departures and arrivals of every zone in every hour, to all flows between districts, and "
            f"to all pairs of zones; its standard deviation is {self._noise_words('departures')} for departures and "
            f"{self._noise_words('pairs')} for pairs.",
            "Pairs of zones are listed where their noisy count passed a threshold; a pair that is not listed need not be "
            "empty. Rows with place -1 hold the trips of all pairs that are not listed.",
            "Estimates were made non-negative whole numbers whose sums agree over zones, districts, hours, parts of the day "
            "and classes of trips; this uses noisy tables alone.",
            f"low and high are intervals at a level of {self.level:.0%}"
            + ("" if self.unit == "trip" else "; those of the largest pairs hold the true count less often")
            + ". They do not include trips that the data lack.",
        ]
        if self.max_error:
            sentences.append(
                f"A figure is not published (its trips are empty) if it is more than {self.max_error:.0%} off with a "
                f"probability above {self.error_chance:.0%}. This was decided from noisy values."
            )
        if self.unit != "trip":
            limit = "a clip that follows from noisy norms" if self.clip is None else f"{self.clip:g}"
            sentences.append(
                f"Trips of {Unit(name=self.unit).words()} count for at most {limit} together; more is scaled down. All counts "
                "were then scaled up by the share of trips that this loses, as estimated with noise. Intervals include that "
                "single figures lost more or less, but not a few very busy people whom that noise hides."
            )
        if self.unit != "user":
            parts = "trips" if self.unit == "trip" else "days"
            promise = self.guarantee()
            sentences.append(several_words(promise.events, parts, delta=promise.delta))
        return tuple(sentences)

    def expected_error(self) -> str:
        """Say how far off the figures are."""
        scale = shown = ""
        if self.max_error:
            least = NormalDist().inv_cdf(1 - self.error_chance / 2) / self.max_error  # of normal noise, about
            fewest = least * self.budget().deviation(self._shares["departures"], self.clip or 1.0)
            unknown = self.unit != "trip" and self.clip is None
            shown = f" Few departures below about {fewest:,.0f} {'times the clip' if unknown else 'trips'} are published."
        if self.unit != "trip" and self.clip is None:
            scale = (
                f" The clip bounds how much {Unit(name=self.unit).words()} count together, in trips. It is measured first, "
                "with noise."
            )
        return (
            f"A zone's departures in an hour are off by about {self._noise_words('departures')}, a listed pair by about "
            f"{self._noise_words('pairs')}.{shown}{scale}"
        )

    # -- what it measures ------------------------------------------------------------------------------------------

    @cached_property
    def _district(self) -> Integers:
        return self.space.districts()

    @cached_property
    def _prepare(self) -> ReadTrips:
        return ReadTrips(self.space, self.column, self.categories)

    def ask(self, answers: Answers, facts: Facts) -> Round | None:
        """Ask for zones by hour; then for pairs above a threshold; then for the hours of the pairs found; None when done.

        For days and people, the norms of their trips come first: the clip and what it loses follow from them.
        """
        if self.unit != "trip" and TABLE not in answers:
            return self._round((norms_table(),), CountNorms(self._weighing(answers)))
        if "departures" not in answers:
            return self._margins_round(answers)
        if "pairs" not in answers:
            return self._pairs_round(answers)
        found = answers["pairs"].bins
        if found is None or not len(found) or "pairs_hour" in answers:
            return None
        table = self._table("pairs_hour", len(found) * HOURS, answers)
        return self._round((table,), CountHours(self._weighing(answers), found=found))

    def _margins_round(self, answers: Answers) -> Round:
        n, m = self.space.n_cells, int(self._district.max()) + 1
        bins = {
            "departures": n * HOURS,
            "arrivals": n * HOURS,
            "districts": m * m * HOURS,
            "lengths": len(LENGTHS_KM) + 1,
            "durations": len(MINUTES) + 1,
            **({self.column: len(self.categories) + 1} if self.column else {}),
        }
        tables = tuple(self._table(name, n_bins, answers) for name, n_bins in bins.items())
        return self._round(tables, CountTrips(self._weighing(answers)))

    def _pairs_round(self, answers: Answers) -> Round:
        n, limit = self.space.n_cells, self._limit(answers)
        scale = self.budget().scale(self._shares["pairs"], limit)
        table = SparseTable(
            name="pairs",
            n_bins=n * n,
            n_columns=n,
            share=self._shares["pairs"],
            limit=limit,
            steps=1 << int(np.clip(np.floor(np.log2(MAX_PAIR_STEPS / scale)), 0, 12)),
            threshold=thresholds(answers["departures"].noisy, n, scale=scale, laplace=self._laplace),
        )
        return self._round((table,), CountPairs(self._weighing(answers), table.steps))

    def _table(self, name: str, n_bins: int, answers: Answers) -> Table:
        joint = self.unit != "trip" and not self._laplace
        return Table(name=name, n_bins=n_bins, share=self._shares[name], limit=self._limit(answers), joint=joint)

    def _round(self, tables: tuple[Table, ...], contribute: Any) -> Round:
        return Round(tables=tables, prepare=self._prepare, contribute=contribute, keep="trips")

    def model(self, answers: Answers, facts: Facts, rng: Randomness) -> ZoneFlows:
        """Estimate flows from noisy answers; nothing private is read."""
        n = self.space.n_cells
        loss = 0.0 if self.unit == "trip" else self._norms(answers).loss(self._limit(answers))
        found = estimate(answers, self._district, n, loss=loss)
        rules = Rules(
            max_error=self.max_error or None,
            chance=self.error_chance,
            level=self.level,
            laplace=self._laplace,
            common_error=found.common_error,
        )
        labels = {self.column: [*self.categories, "other"]} if self.column else {}
        return publish(whole_numbers(found, self._district, n), found, self.space, rules, labels=labels)
