"""The predictive mechanism: public parameters, promise, and the run over whole traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from murmurate.core.guarantee import GeoInd
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import one_of, positive
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.geoind_predictive import budgets, kernel
from murmurate.mechanisms.geoind_predictive.predictors import predictor
from murmurate.mechanisms.geoind_terms import KNOWN, WORD, GeoIndTerms, check_stride, decisions_for
from murmurate.noise import Draws
from murmurate.noise.steps import WIDEST_SCALE_M, sines
from murmurate.spaces import Plane

if TYPE_CHECKING:
    from murmurate.mechanisms.geoind_predictive.session import Session

_MIN_DRAW_SHARE = 0.25
"""Least share of epsilon for a draw; one with less noise budget is farther off than the report it replaces. Set by hand."""


@dataclass(frozen=True, kw_only=True)
class PredictiveGeoIndistinguishability(GeoIndTerms):
    """Repeats the last report while a noisy test (or the public stride) says that it still holds; otherwise draws a new one.

    Guarantee: `max_points * epsilon / radius_m` per metre for a unit. Every test and every draw is debited, and where the
    budget of a trace (its points times epsilon) ends, its last report is repeated, whatever the input. `variant="as_published"`
    is the study's own reading, whose real price is 0.1 (or a tenth of epsilon) higher at the radius.

    >>> predictive = PredictiveGeoIndistinguishability(epsilon=1.0, radius_m=200.0, max_points=50)
    >>> predictive.guarantee().epsilon_per_m
    0.25
    """

    name: ClassVar[str] = "geoind_predictive"
    example: ClassVar[Mapping[str, Any]] = {"epsilon": 1.0, "radius_m": 300.0, "max_points": 100}

    variant: Literal["own", "as_published"] = "own"
    """Our budget rules, or the study's own reading."""
    predictor: Literal["parrot", "linear", "last_k"] = "parrot"
    """How the next place is predicted: the last report, the line through the last two, or the mean of the last few."""
    last_k: int = 3
    """Reports that predictor last_k takes the mean of."""
    manager: Literal["fixed_rate", "fixed_utility", "skipping"] = "fixed_rate"
    """Spread the budget over all points, keep one accuracy until it ends, or draw once for each radius that is travelled."""
    accuracy_m: float | None = None
    """The accuracy that manager fixed_utility keeps until the budget ends."""
    stride: float | None = None
    """Points from one decision to the next, between which reports are repeated for free; None: from public numbers."""
    running_rate: bool = False
    """Let the share of passed tests enlarge what is spent now, as in the paper's Figure 2; less is left for later."""
    published_test: Literal["absolute", "share"] = "absolute"
    """as_published: the first test's budget of 0.1, absolute (fits the study's Tony-900) or a share of epsilon (Porto)."""
    eta: float = 1.0
    """The paper's factor on the budget of a test relative to that of a draw."""
    gamma: float = 1.0
    """The paper's ratio of a test's noise to its threshold."""
    c_theta: float = 0.3
    """The paper's confidence factor of tests."""
    c_N: float = 2.0  # noqa: N815  the paper's own name
    """The paper's confidence factor of draws: accuracy in noise scales."""

    def __post_init__(self) -> None:
        self._check_terms()
        one_of("variant", self.variant, ("own", "as_published"))
        one_of("manager", self.manager, budgets.MANAGERS)
        one_of("published_test", self.published_test, ("absolute", "share"))
        predictor(self.predictor, last_k=self.last_k)
        for name in ("eta", "gamma", "c_theta", "c_N"):
            positive(name, getattr(self, name), at_most=1e6)
        if self.unit == "point":
            raise ParameterError(
                "predictions tie the points of a trace together: unit must be trip, user_day or user, not point."
            )
        if self.max_points > 10**8:
            raise ParameterError(f"max_points must be at most 100,000,000 here; got {self.max_points!r}.")
        if not isinstance(self.running_rate, bool):
            raise ParameterError(f"running_rate must be true or false; got {self.running_rate!r}.")
        check_stride(self.stride)
        if not 1e-4 <= self.test_share <= 1e4:
            raise ParameterError(
                "eta * c_theta / c_N * (1 + 1/gamma), a test's price for each draw's, must lie between 0.0001 and 10,000; "
                f"got {self.test_share:g}."
            )
        if self.scale_m > WIDEST_SCALE_M:
            raise ParameterError(f"radius_m / epsilon must be at most {WIDEST_SCALE_M:,.0f} m; got {self.scale_m:,.0f} m.")
        self._check_accuracy()
        self._check_published()
        self.guarantee()

    def _check_accuracy(self) -> None:
        if self.manager == "skipping" and self.stride is not None:
            raise ParameterError("manager skipping takes its stride from the radius and the public speed; give no stride.")
        if self.manager != "fixed_utility":
            if self.accuracy_m is not None:
                raise ParameterError(f"accuracy_m belongs to manager fixed_utility; {self.manager} lets the accuracy vary.")
            return
        if self.accuracy_m is None:
            raise ParameterError("manager fixed_utility needs the wanted accuracy_m in metres.")
        positive("accuracy_m", self.accuracy_m, at_most=self.c_N * WIDEST_SCALE_M)
        wanted = self.c_N * self.radius_m / self.accuracy_m
        if wanted > self.max_points * self.epsilon:
            raise ParameterError(
                f"an accuracy of {self.accuracy_m:g} m costs epsilon {wanted:g} at {self.radius_m:g} m for the first point "
                f"alone; max_points * epsilon is {self.max_points * self.epsilon:g}. Ask for less accuracy or give more budget."
            )

    def _check_published(self) -> None:
        if self.variant == "as_published" and (
            self.manager != "fixed_rate" or self.predictor != "parrot" or self.running_rate or self.stride is not None
        ):
            raise ParameterError(
                "variant as_published is the study's one reading: manager fixed_rate, predictor parrot, no stride and no "
                "running rate. Use variant own for anything else."
            )

    # -- public numbers ------------------------------------------------------------------------------------------------

    @property
    def test_share(self) -> float:
        """Return what a test costs for each epsilon of a draw."""
        return self.eta * self.c_theta / self.c_N * (1 + 1 / self.gamma)

    @property
    def _first_test(self) -> float:
        """Return epsilon of the study's first test, which it spends on top of the budget it states."""
        return budgets.PUBLISHED_TEST * (self.epsilon if self.published_test == "share" else 1.0)

    @property
    def budget(self) -> float:
        """Return epsilon at the radius that a unit can spend at most."""
        if self.variant == "own":
            return self.max_points * self.epsilon
        trips = 1 if self.unit == "trip" else min(self.max_trips or self.max_points, self.max_points)
        return self.max_points * self.epsilon + trips * self._first_test

    def rule(self) -> budgets.Rule:
        """Return the budget rule in grains."""
        grains_per_epsilon = budgets.GRAINS / self.epsilon
        published = self.variant == "as_published"
        wanted = 0.0 if self.accuracy_m is None else self.c_N * self.radius_m / self.accuracy_m
        return budgets.Rule(
            manager=budgets.AS_PUBLISHED if published else budgets.MANAGERS[self.manager],
            test_share=self.test_share,
            limit_share=self.c_N / (self.eta * (self.gamma + 1)),  # l = c_theta radius / (gamma epsilon_theta)
            running_rate=self.running_rate,
            noise_grains=float(np.floor(wanted * grains_per_epsilon)),
            least_grains=1.0 if self.manager == "fixed_utility" else _MIN_DRAW_SHARE * budgets.GRAINS,
            published_test=float(np.rint(self._first_test * grains_per_epsilon)),
            epsilon_per_grain=self.epsilon / budgets.GRAINS,
        )

    def terms(self) -> tuple[float, float, int, int]:
        """Return metres x grains of a noise scale, the lattice step (0: microdegrees), and the predictor, for the kernel."""
        chosen = predictor(self.predictor, last_k=self.last_k)
        step_m = self.space.step_m if isinstance(self.space, Plane) else 0.0
        return self.radius_m * budgets.GRAINS / self.epsilon, step_m, chosen.rule, chosen.window

    def plan(self, points: Floats, steps_m: Floats) -> tuple[Floats, Floats, Any]:
        """Return grains, number of decisions, and whether tests are made, for traces of these public sizes."""
        grains = points * budgets.GRAINS
        if self.variant == "as_published":
            return grains + self.rule().published_test, points, np.ones(len(points), dtype=bool)
        if self.manager == "skipping":
            # the study's remark: one budget for the time it takes to travel the radius, and no test
            strides = np.maximum(self.radius_m / np.maximum(steps_m, 1.0), 1.0)
            return grains, decisions_for(points, strides), np.zeros(len(points), dtype=bool)
        if self.stride is not None:
            strides, tests = np.full(len(points), float(self.stride)), np.ones(len(points), dtype=bool)
        else:
            strides = self._strides(steps_m)
            tests = strides > 1  # else noise is so small beside a step that predictions hardly ever hold
        return grains, decisions_for(points, strides), tests

    # -- the promise ---------------------------------------------------------------------------------------------------

    def guarantee(self) -> GeoInd:
        """Promise all that a unit of `max_points` can spend."""
        assumptions: tuple[str, ...] = (KNOWN,)
        if self.variant == "as_published":
            assumptions += (
                f"The study states epsilon * n = {self.max_points * self.epsilon:g} at the radius and spends up to "
                f"{self._first_test:g} more in every trip; this guarantee prices what is really spent.",
            )
        return GeoInd(
            epsilon_per_m=self.budget / self.radius_m,
            unit=self._bounds(),
            metric=self._metric(),
            radius_m=self.radius_m,
            assumptions=assumptions,
        )

    def statement(self) -> tuple[str, ...]:
        """Say what is and is not protected, in plain words."""
        return (
            "A report is drawn with noise, repeated because a noisy test passed, or repeated by a public rule at no cost.",
            f"Every draw and every test is paid for. All points of a {WORD[self.unit]} together can cost at most epsilon "
            f"{self.budget:g} at {self.radius_m:g} m, whatever the input; this is what was charged.",
            "One point alone can cost several times epsilon, up to all that its trace has left.",
            "Where the budget of a trace ends, its last report is repeated to the end.",
            "Repeated reports show that a test passed or that none was made.",
            *self._other_units(),
            *self._open_ends(),
        )

    def expected_error(self) -> str:
        """Say how far a drawn report lies from its place."""
        if self.accuracy_m is not None:
            return (
                f"A drawn report lies {2 * self.accuracy_m / self.c_N:,.4g} m off on average, for as long as the budget lasts."
            )
        if self.variant == "as_published" or (self.stride is None and self.interval_s is None):
            return (
                f"A report lies up to {2 * self.scale_m:,.4g} m off on average where every point is drawn, and less the more "
                "points are repeated."
            )
        step_m = (self.interval_s or 0.0) * self.speed_kmh / 3.6
        points = np.array([float(self.max_points)])
        _, decisions, tests = self.plan(points, np.array([step_m]))
        scale = self.scale_m * float(decisions[0]) / self.max_points * (1 + self.test_share * bool(tests[0]))
        return (
            f"A drawn report lies {2 * scale:,.4g} m off on average, about every {self.max_points / float(decisions[0]):.3g} "
            "points; in between it is repeated."
        )

    # -- what it does --------------------------------------------------------------------------------------------------

    def apply(self, private: Trips, rng: Rng) -> Trips:
        """Report all points; units beyond the bounds they were priced for are refused, never let through."""
        self._refuse_unbounded(private)
        x, y, scale_m, _ = self.run(private, rng)
        return self._released(private, *self._degrees(x, y), scale_m)

    def run(self, private: Trips, rng: Rng) -> tuple[Integers, Integers, Floats, Floats]:
        """Return lattice places, noise scales (infinite: repeated) and what each trip spent, in epsilon at the radius."""
        points = np.diff(private.offsets).astype(np.float64)
        needs_pace = self.variant == "own" and self.stride is None
        steps_m = self._steps_m(private) if needs_pace else np.zeros(len(points))
        return self.run_planned(private, self.plan(points, steps_m), rng)

    def run_planned(
        self, private: Trips, planned: tuple[Floats, Floats, Any], rng: Rng
    ) -> tuple[Integers, Integers, Floats, Floats]:
        """Run by a given plan: grains, number of decisions and whether to test, of each trip."""
        x, y = self._snapped(private.lat, private.lng)
        grains, decisions, tests = planned
        out = np.empty_like(x), np.empty_like(y), np.empty(len(x))
        points = np.diff(private.offsets).astype(np.float64)
        spent = grains.copy()
        self.advance((private.offsets, x, y, points, decisions, tests, spent), Draws(rng), np.zeros(kernel.STATE), out)
        return *out, spent * (self.epsilon / budgets.GRAINS)

    def advance(self, traces: tuple[Any, ...], draws: Draws, state: Floats, out: tuple[Integers, Integers, Floats]) -> None:
        """Run the kernel over these traces to their end, with as much randomness as it asks for."""
        offsets, x, y, *planned = traces
        known = (offsets, x, y, sines(y) if self.space is None else np.empty((2, 0)), *planned)
        marks = np.zeros(2, dtype=np.int64), state
        rule, terms = self.rule(), self.terms()
        done = False
        while not done:
            draws.ready()
            randomness = (draws.words, draws.u, draws.v, draws.radius, draws.other, draws.used)
            done = kernel.run(known, rule, terms, randomness, marks, out)

    def session(self, *, points: int, path: Path | None = None, rng: Rng | None = None) -> Session:
        """Begin a trace reported point by point, of `points` points at most; with a path its account survives a crash."""
        from murmurate.mechanisms.geoind_predictive.session import Session

        return Session.begin(self, points=points, path=path, rng=rng)
