"""How (epsilon, delta) becomes noise: one budget, split over the tables that are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Literal

from murmurate.core.accounting import solve_noise_multiplier
from murmurate.core.events import Event, Gaussian, Laplace

Kind = Literal["gaussian", "laplace"]

WEIGHTS = {"links": 50, "blocks": 10, "hours": 22, "size": 2, "speeds": 5, "paces": 2, "turns": 10, "od": 10}
USER_WEIGHTS = {"links": 74, "blocks": 0, "hours": 18, "size": 8, "speeds": 5, "paces": 2, "turns": 5, "od": 10}
"""Parts of the budget of each table, before they are scaled to sum to one over the tables that are made; 0 is never made. Where
a unit is a whole person nothing could be told of single links by block, so that the links' own counts come first."""

ALWAYS = ("links", "blocks", "hours", "size")


@dataclass(frozen=True)
class Spread:
    """Noise of one table: `multiplier` times the sensitivity is the standard deviation (Laplace: the scale)."""

    kind: Kind
    multiplier: float

    def deviation(self, sensitivity: float) -> float:
        """Standard deviation of a noisy value."""
        return self.multiplier * sensitivity * (1.0 if self.kind == "gaussian" else sqrt(2))

    def event(self) -> Event:
        """What the accountant is told."""
        step = Gaussian if self.kind == "gaussian" else Laplace
        return step(noise_multiplier=self.multiplier)


@lru_cache(maxsize=64)
def budget_of(*, kind: Kind, unit: str, epsilon: float, delta: float, extras: tuple[str, ...]) -> dict[str, Spread]:
    """The noise of every table; inverse variances add up (Gaussian), or epsilons do (Laplace).

    >>> from murmurate.core.accounting import compose
    >>> spreads = budget_of(kind="gaussian", unit="trip", epsilon=1.0, delta=1e-6, extras=("speeds",))
    >>> 0.999 < compose([spread.event() for spread in spreads.values()], delta=1e-6) <= 1.0
    True
    """
    weights = USER_WEIGHTS if unit == "user" else WEIGHTS
    names = tuple(name for name in (*ALWAYS, *extras) if weights[name])
    total = sum(weights[name] for name in names)
    if kind == "laplace":
        # a ten-billionth more noise than the sum needs, so that rounding never passes epsilon
        return {name: Spread(kind, total / weights[name] / epsilon * (1 + 1e-10)) for name in names}
    whole = solve_noise_multiplier("gaussian", epsilon=epsilon, delta=delta) * (1 + 1e-10)
    return {name: Spread(kind, whole * sqrt(total / weights[name])) for name in names}
