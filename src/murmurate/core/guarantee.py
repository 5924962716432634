"""Describe what a release promises: each guarantee is a value with its unit, its adjacency and its assumptions."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import exp
from typing import Any, ClassVar, Literal

from murmurate.core.events import Approximate, Event, Pure, event_from_json, event_to_json
from murmurate.core.parameters import one_of, positive, share, whole
from murmurate.core.score import number
from murmurate.core.views import view
from murmurate.errors import ParameterError

UnitName = Literal["point", "trip", "user_day", "user"]

FINER: dict[str, tuple[str, ...]] = {
    "user": ("user", "user_day", "trip", "point"),
    "user_day": ("user_day", "trip", "point"),
    "trip": ("trip", "point"),
    "point": ("point",),
}
"""Accounts that a charge of each unit debits: a promise about a unit holds for every finer one too."""

_WORDS = {
    "point": "one recorded point",
    "trip": "one trip",
    "user_day": "all trips one person began on one day",
    "user": "everything one person ever did in these data",
}
"""Units in plain words, for statements and reports."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Whose contribution is hidden, and the public bounds on how much of it is read."""

    name: UnitName
    max_trips: int | None = None
    """Trips read per unit; the rest are left out before the mechanism sees them."""
    max_points: int | None = None
    """Points read per unit, over all its trips."""

    def __post_init__(self) -> None:
        one_of("unit", self.name, FINER)
        for name in ("max_trips", "max_points"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))

    def words(self) -> str:
        """Return the unit in plain words."""
        return _WORDS[self.name]


@dataclass(frozen=True, kw_only=True)
class DP:
    """(epsilon, delta)-differential privacy for one unit, add or remove."""

    kind: ClassVar[str] = "dp"
    epsilon: float
    delta: float = 0.0
    unit: Unit
    adjacency: Literal["add_remove"] = "add_remove"
    assumptions: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    """What the accountant composes; without it, the bare (epsilon, delta)."""

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        share("delta", self.delta, closed=True)
        if not self.events:
            bare = Approximate(epsilon=self.epsilon, delta=self.delta) if self.delta else Pure(epsilon=self.epsilon)
            object.__setattr__(self, "events", (bare,))

    def _repr_html_(self) -> str:
        return str(view("guarantee.html", self))

    def words(self) -> str:
        """Return the promise as a data officer would say it."""
        delta = f", except with probability {self.delta:.3g}," if self.delta else ""
        return (
            f"Whether {self.unit.words()} was in the data or not{delta} changes the probability of any outcome "
            f"by a factor of at most e^{self.epsilon:.4g} = {_exp(self.epsilon)}."
        )


@dataclass(frozen=True, kw_only=True)
class GeoInd:
    """Geo-indistinguishability of a whole unit: every place moved by up to d metres costs `epsilon_per_m` * d."""

    kind: ClassVar[str] = "geoind"
    epsilon_per_m: float
    unit: Unit
    metric: str = "great-circle metres between points snapped to the public microdegree lattice"
    radius_m: float | None = None
    """The protection radius the parameters were chosen for; for reading only."""
    adjacency: Literal["any_other_place"] = "any_other_place"
    assumptions: tuple[str, ...] = ()
    point_epsilon_per_m: float | None = None
    """What one point alone can cost, where every point costs alike; None where a point can take the share of others."""

    def __post_init__(self) -> None:
        positive("epsilon_per_m", self.epsilon_per_m)
        if self.radius_m is not None:
            positive("radius_m", self.radius_m)
        if self.point_epsilon_per_m is not None:
            positive("point_epsilon_per_m", self.point_epsilon_per_m, at_most=self.epsilon_per_m)

    def _repr_html_(self) -> str:
        return str(view("guarantee.html", self))

    def words(self) -> str:
        """Return the promise as a data officer would say it."""
        text = (
            f"If every place of {self.unit.words()} had been up to d metres elsewhere, the probability of any "
            f"outcome would change by a factor of at most e^({self.epsilon_per_m:.4g} d)."
        )
        if self.radius_m:
            level = self.epsilon_per_m * self.radius_m
            text += f" At d = {self.radius_m:g} m that is e^{level:.4g} = {_exp(level)}."
            if self.point_epsilon_per_m is not None and self.point_epsilon_per_m < self.epsilon_per_m:
                one = self.point_epsilon_per_m * self.radius_m
                text += (
                    f" One of its points alone, {self.radius_m:g} m elsewhere, changes it by e^{one:.4g} = {_exp(one)} at most."
                )
        return text


@dataclass(frozen=True, kw_only=True)
class PlausibleDeniability:
    """A filter: each released trace could have come from at least `k` records; listed, never summed."""

    kind: ClassVar[str] = "plausible_deniability"
    k: int
    delta_d: float | None = None
    unit: Unit = field(default_factory=lambda: Unit(name="user"))
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole("k", self.k)

    def _repr_html_(self) -> str:
        return str(view("guarantee.html", self))

    def words(self) -> str:
        """Return the promise as a data officer would say it."""
        return (
            f"Every released trace passed a filter: at least {self.k} records other than its seed explain it nearly "
            "as well. This is not differential privacy, does not add up over releases and says nothing of membership."
        )


@dataclass(frozen=True, kw_only=True)
class KAnonymity:
    """Every released trip lies within `radius_m` of at least `k` - 1 others; listed, never summed."""

    kind: ClassVar[str] = "k_anonymity"
    k: int
    radius_m: float
    unit: Unit = field(default_factory=lambda: Unit(name="trip"))
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole("k", self.k, at_least=2)
        positive("radius_m", self.radius_m)

    def _repr_html_(self) -> str:
        return str(view("guarantee.html", self))

    def words(self) -> str:
        """Return the promise as a data officer would say it."""
        return (
            f"Every released trip stays within {self.radius_m:g} m of at least {self.k - 1} others at every moment. "
            "This is not differential privacy and does not add up over releases."
        )


@dataclass(frozen=True, kw_only=True)
class NoGuarantee:
    """Nothing is promised, and why."""

    kind: ClassVar[str] = "none"
    why: str
    unit: Unit = field(default_factory=lambda: Unit(name="trip"))
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.why.strip():
            raise ParameterError("NoGuarantee needs its reason: say why nothing is promised.")

    def _repr_html_(self) -> str:
        return str(view("guarantee.html", self))

    def words(self) -> str:
        """Return the absence of a promise as a data officer would say it."""
        return f"This release carries no privacy guarantee: {self.why}"


Guarantee = DP | GeoInd | PlausibleDeniability | KAnonymity | NoGuarantee

_KINDS: dict[str, type[Guarantee]] = {kind.kind: kind for kind in (DP, GeoInd, PlausibleDeniability, KAnonymity, NoGuarantee)}
"""Guarantee classes by the kind under which manifests and ledgers store them."""


def short_promise(guarantee: Guarantee) -> str:
    """Write the guarantee in one short line, for a table."""
    unit = {"point": "point", "trip": "trip", "user_day": "person and day", "user": "person"}[guarantee.unit.name]
    if isinstance(guarantee, DP):
        delta = f", delta = {guarantee.delta:.2g}" if guarantee.delta else ""
        return f"differential privacy per {unit}: epsilon = {guarantee.epsilon:.4g}{delta}"
    if isinstance(guarantee, GeoInd):
        at = f" ({guarantee.epsilon_per_m * guarantee.radius_m:.4g} at {guarantee.radius_m:g} m)" if guarantee.radius_m else ""
        return f"geo-indistinguishability per {unit}: epsilon = {guarantee.epsilon_per_m:.4g} per metre{at}"
    if isinstance(guarantee, PlausibleDeniability):
        return f"plausible deniability, k = {guarantee.k}: a filter, not differential privacy"
    if isinstance(guarantee, KAnonymity):
        return f"k-anonymity, k = {guarantee.k} within {guarantee.radius_m:g} m: not differential privacy"
    return "no privacy guarantee"


def to_json(guarantee: Guarantee) -> dict[str, Any]:
    """Return a guarantee as plain values, kind first."""
    values = asdict(guarantee)
    if isinstance(guarantee, DP):
        values["events"] = [event_to_json(event) for event in guarantee.events]
    values["assumptions"] = list(guarantee.assumptions)
    return {"kind": guarantee.kind, **values}


def from_json(values: dict[str, Any]) -> Guarantee:
    """Return the guarantee that `to_json` wrote."""
    fields = dict(values)
    kind = _KINDS.get(fields.pop("kind", ""))
    if kind is None:
        raise ParameterError(f"unknown guarantee {values.get('kind')!r}; known: {', '.join(_KINDS)}.")
    fields["unit"] = Unit(**fields["unit"])
    fields["assumptions"] = tuple(fields.get("assumptions", ()))
    if "events" in fields:
        fields["events"] = tuple(event_from_json(event) for event in fields["events"])
    return kind(**fields)


def _exp(value: float) -> str:
    return number(exp(value)) if value < 50 else "a number too large to mean anything"
