"""Compute accounts, one per (kind, unit): what was spent, what may be, and whether one more charge fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, inf

from murmurate.core.accounting import compose
from murmurate.core.events import Approximate, Event, Pure, for_several
from murmurate.core.guarantee import DP, FINER, GeoInd, Guarantee
from murmurate.core.parameters import one_of, positive, share
from murmurate.errors import ParameterError

TOLERANCE = 1e-12
"""Relative tolerance of a limit: ten charges of 0.1 fit into 1.0 in any order of floating-point addition."""

MEANINGLESS = 1e6
"""Epsilon of promises without meaning: large, and finite so that sums stay finite. Set by hand."""

SUMMED = ("dp", "geoind")
"""Kinds of guarantees that are summed; the others are only listed."""


@dataclass(frozen=True)
class Amount:
    """A sum of privacy: epsilon with its delta, or epsilon per metre."""

    kind: str
    unit: str
    epsilon: float
    """Per metre where `kind` is geoind."""
    delta: float = 0.0

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        if self.kind == "geoind":
            return f"epsilon {self.epsilon:.6g} per metre per {self.unit}"
        return f"epsilon {self.epsilon:.6g}{f', delta {self.delta:.3g}' if self.delta else ''} per {self.unit}"


@dataclass(frozen=True)
class Limit:
    """How much an account may spend, who set it and when."""

    amount: Amount
    who: str
    at: str
    two_people: bool = False
    """Whether two people must sign every release that it bounds."""

    @property
    def account(self) -> tuple[str, str]:
        return self.amount.kind, self.amount.unit


def limit_amount(*, kind: str, unit: str, epsilon: float | None, delta: float | None, epsilon_per_m: float | None) -> Amount:
    """Check a limit and return it as an amount; 0 closes an account."""
    one_of("kind", kind, SUMMED)
    one_of("unit", unit, FINER)
    name, value, other = ("epsilon", epsilon, epsilon_per_m) if kind == "dp" else ("epsilon_per_m", epsilon_per_m, epsilon)
    if value is None or other is not None or (kind == "geoind" and delta):
        wanted = "epsilon (and delta)" if kind == "dp" else "epsilon_per_m alone"
        raise ParameterError(f"a limit of kind {kind} is given as {wanted}.")
    if value != 0:
        positive(name, value)
    share("delta", delta or 0.0, closed=True)
    return Amount(kind, unit, float(value), float(delta or 0.0))


@dataclass(frozen=True)
class Spent:
    """The standing of one account."""

    spent: Amount
    limit: Amount | None
    n_charges: int
    closed: bool = False
    """No limit of its own while another unit of the kind has one: nothing can be charged for this unit itself."""

    @property
    def ceiling(self) -> str:
        """The limit in words."""
        return (
            str(self.limit)
            if self.limit
            else "no limit of its own, so no release for this unit alone"
            if self.closed
            else "no limit"
        )

    @property
    def remaining(self) -> Amount | None:
        """Limit less spent; with a delta, later charges may cost less than their own epsilon. None without a limit."""
        if self.limit is None:
            return None
        left = self.limit.epsilon - self.spent.epsilon
        return Amount(
            self.limit.kind, self.limit.unit, left if left > self.limit.epsilon * TOLERANCE else 0.0, self.limit.delta
        )

    @property
    def within(self) -> bool:
        """Whether the limit, if there is one, holds."""
        return self.limit is None or self.spent.epsilon <= self.limit.epsilon * (1 + TOLERANCE)


def accounts_of(guarantee: Guarantee) -> list[tuple[str, str]]:
    """Return every account a charge debits: its own unit and all finer ones; none for guarantees that are not summed."""
    if guarantee.kind not in SUMMED:
        return []
    return [(guarantee.kind, unit) for unit in FINER[guarantee.unit.name]]


def standing(account: tuple[str, str], charges: Sequence[Guarantee], limit: Amount | None) -> Spent:
    """Compose the charges to this account at the limit's delta."""
    kind, unit = account
    if kind == "geoind":
        spent = Amount(kind, unit, fsum(charge.epsilon_per_m for charge in charges if isinstance(charge, GeoInd)))
        return Spent(spent, limit, len(charges))
    charged = [_seen_from(unit, charge) for charge in charges if isinstance(charge, DP)]
    # without a limit no delta is given: the sum of the promises' own deltas always suffices
    delta = limit.delta if limit is not None else min(1.0, fsum(delta for _, delta in charged))
    epsilon = compose([event for events, _ in charged for event in events], delta=delta) if charged else 0.0
    return Spent(Amount(kind, unit, epsilon, delta), limit, len(charged))


def requested(account: tuple[str, str], guarantee: Guarantee) -> Amount:
    """Return what one charge costs an account by itself."""
    if isinstance(guarantee, GeoInd):
        return Amount(*account, guarantee.epsilon_per_m)
    if isinstance(guarantee, DP):
        if guarantee.unit.name == account[1]:
            return Amount(*account, guarantee.epsilon, guarantee.delta)
        events, delta = _seen_from(account[1], guarantee)
        return Amount(*account, compose(events, delta=delta), delta)
    return Amount(*account, inf)


def _seen_from(unit: str, charge: DP) -> tuple[tuple[Event, ...], float]:
    """Return events and delta of a promise as they count in the account of its own unit or of a finer one.

    Changing part of a unit is a replacement: one removal and one addition, so twice the distance. A point can do more to
    person-days: without the first point of a trip, the trip may begin on the next day, so that two days are replaced.
    Pure, Laplace and Gaussian steps are priced at that distance, all others by what group privacy gives for any step.
    """
    if unit == charge.unit.name:
        return charge.events, charge.delta
    n = 4 if (charge.unit.name, unit) == ("user_day", "point") else 2
    farther = tuple(for_several(event, n) for event in charge.events)
    if None not in farther:
        return tuple(event for event in farther if event is not None), charge.delta
    delta = min(1.0, fsum(exp(min(k * charge.epsilon, 700.0)) for k in range(n)) * charge.delta)
    return (Approximate(epsilon=n * charge.epsilon, delta=delta) if delta < 1 else Pure(epsilon=MEANINGLESS),), delta
