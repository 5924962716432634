"""Advise on a release: mechanism, unit, epsilon, cells and limit, from public facts, declared numbers and a few answers.

Nothing here reads private data. Whoever calls it passes what is public anyway or was declared public: a box, a road file, rough
numbers of people, trips and days.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from murmurate.core.guarantee import DP, GeoInd, Guarantee
from murmurate.core.parameters import one_of, positive, whole
from murmurate.custody.choosing import TOTAL_EPSILON, Case, choose, limit_of, settings_of
from murmurate.custody.looking import fewest_trips
from murmurate.custody.recipes import Recipe, commented
from murmurate.errors import ParameterError
from murmurate.mechanisms import build

PROTECT = {
    "trip": "single trips; a person with many trips is protected less",
    "user_day": "everything one person does on one day",
    "user": "everything one person ever does in these data",
}
"""Whom a release may protect, by the word users type, and what it means."""

PURPOSES = {
    "synthetic_trips": "made-up trips that behave like the real ones",
    "zone_tables": "how many go from where to where, by hour",
    "road_flows": "how many drive each road, and how fast",
    "moved_points": "the real trips, with every point moved",
    "whole_days": "made-up days of made-up people",
}
"""What a release may be for, by the word users type, and what leaves."""

WIDE_KM = 300.0
"""Box side in kilometres above which the advice says that a city or region would serve better. Chosen by hand."""


ONE = {"point": "point", "trip": "trip", "user_day": "person's day", "user": "person"}
"""One unit in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Hold what to release and how, with the reasons, the error to expect, and a recipe that runs as it is."""

    mechanism: str
    unit: str
    epsilon: float
    """Of one release."""
    delta: float
    space: str | None = None
    """The public space as `--space` writes it; None where the mechanism needs none."""
    cell_m: float | None = None
    max_trips: int | None = None
    max_points: int | None = None
    limit: str
    """The most that may ever be spent, as `--limit` writes it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Every parameter that is set, as `[set]` of a recipe holds them."""
    reasons: tuple[str, ...] = ()
    """Why, in plain sentences."""
    promise: str
    """The guarantee of one release in words."""
    expected_error: str
    recipe: str
    """The recipe as commented TOML."""

    def words(self) -> str:
        """Return the advice as a terminal shows it."""
        settings = ", ".join(f"{name} = {value}" for name, value in self.settings.items())
        lines = [f"Advice: {self.mechanism} with {settings}; limit {self.limit}"]
        lines += [f"  - {reason}" for reason in self.reasons]
        return "\n".join([*lines, f"Promise: {self.promise}", f"Expected error: {self.expected_error}"])

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**values, "settings": dict(self.settings), "reasons": list(self.reasons)}


def advise(
    *,
    protect: str = "user_day",
    purpose: str = "synthetic_trips",
    repeats: int = 1,
    box: Sequence[float] | None = None,
    roads: str | None = None,
    people: int | None = None,
    trips: int | None = None,
    days: int | None = None,
    timed: bool = True,
    total_epsilon: float | None = None,
    source: str | None = None,
    read: Mapping[str, Any] | None = None,
    clean: Mapping[str, Any] | None = None,
    declared: Sequence[str] = (),
) -> Advice:
    """Recommend a release; reads nothing private, and every number given here may be published with it.

    `protect` is trip, user_day or user; `purpose` one of `PURPOSES`; `repeats` how many releases of this kind are planned.
    `box` is a public box (south, west, north, east) in degrees, `roads` a public road file. `people`, `trips` and `days` are
    rough numbers, declared public. `timed` says whether points have times. `total_epsilon` is the most that may ever be
    spent on one unit; by default it follows from `protect`. `source`, `read`, `clean` and `declared` go into the recipe.

    >>> advice = advise(protect="user_day", box=(60.1, 24.8, 60.3, 25.2), people=3000, trips=90_000, days=10)
    >>> advice.mechanism, advice.unit, advice.epsilon, advice.limit
    ('flock', 'user_day', 2.0, 'dp:user_day:2.0:1e-07')
    """
    one_of("protect", protect, PROTECT)
    one_of("purpose", purpose, PURPOSES)
    whole("repeats", repeats, at_most=10_000)
    for name, value in (("people", people), ("trips", trips), ("days", days)):
        if value is not None:
            whole(name, value)
    if total_epsilon is not None:
        positive("total_epsilon", total_epsilon, at_most=100)
    case = Case(
        protect=protect,
        purpose=purpose,
        repeats=repeats,
        box=_checked_box(box),
        roads=roads,
        people=people,
        trips=trips,
        days=days,
        timed=timed,
    )
    mechanism, case, reasons = choose(case)
    total = total_epsilon or TOTAL_EPSILON[case.protect]
    settings = settings_of(mechanism, case, total)
    built = build(mechanism, settings)
    guarantee = built.guarantee()
    kept = {name: value for name, value in settings.items() if value is not None}
    cell_m = getattr(getattr(built, "space", None), "cell_m", None)
    limit = limit_of(guarantee, total, repeats)
    why = (*reasons, *_number_reasons(case, guarantee, total), *_place_reasons(case, cell_m), *_size_reasons(case, built))
    recipe = Recipe(
        mechanism=mechanism,
        source=source,
        limit=limit,
        parameters=kept,
        read=read or {},
        clean=clean or {},
        declared=tuple(declared),
    )
    expected = built.expected_error()
    return Advice(
        mechanism=mechanism,
        unit=guarantee.unit.name,
        epsilon=float(kept.get("epsilon", 0.0)),
        delta=float(getattr(guarantee, "delta", 0.0)),
        space=kept.get("space"),
        cell_m=cell_m,
        max_trips=guarantee.unit.max_trips,
        max_points=guarantee.unit.max_points,
        limit=limit,
        settings=kept,
        reasons=why,
        promise=guarantee.words(),
        expected_error=expected,
        recipe=commented(recipe, [*why, f"Promise: {guarantee.words()}", f"Expected error: {expected}"]),
    )


def _checked_box(box: Sequence[float] | None) -> tuple[float, float, float, float] | None:
    if box is None:
        return None
    if len(box) != 4:
        raise ParameterError(f"box takes south, west, north, east in degrees; got {box!r}.")
    south, west, north, east = (float(value) for value in box)
    return south, west, north, east


# -- reasons -------------------------------------------------------------------------------------------------------------


def _number_reasons(case: Case, guarantee: Guarantee, total: float) -> list[str]:
    reasons = [f"Protected is {guarantee.unit.words()}."]
    if case.protect == "trip":
        reasons.append("Someone who made many trips is protected less than each trip: choose user_day or user for people.")
    factor = f"e^{total:g} = {math.exp(total):.3g}"
    often = "one release" if case.repeats == 1 else f"{case.repeats:,} releases together"
    if isinstance(guarantee, DP):
        deployed = (
            " Google's mobility reports spent 2.64 and Meta's 2.0 a person and day." if case.protect == "user_day" else ""
        )
        reasons.append(
            f"The limit is epsilon {total:g}: over {often}, one {ONE[guarantee.unit.name]} changes the probability of any "
            f"outcome by at most the factor {factor}.{deployed}"
        )
        if guarantee.delta:
            reasons.append(
                f"Delta {guarantee.delta:g} is the probability with which this factor may be exceeded. It must stay well below "
                "one over the number of units. With it, Gaussian noise is used, which is smaller than Laplace noise here."
            )
    elif isinstance(guarantee, GeoInd) and guarantee.radius_m:
        reasons.append(
            f"Moving all points of one {ONE[guarantee.unit.name]} by {guarantee.radius_m:g} m changes the probability of any "
            f"outcome by at most the factor {factor}. This bound covers all of them together, so each single point moves far."
        )
    if guarantee.unit.max_trips is not None:
        reasons.append(
            f"At most {guarantee.unit.max_trips:,} trips of each {ONE[guarantee.unit.name]} are read; noise grows with it."
        )
    if case.repeats == 1:
        reasons.append("One release is planned. If more from these people will follow, say how many with --repeats.")
    return reasons


def _size_reasons(case: Case, mechanism: Any) -> list[str]:
    """Say so where the declared number of trips is too small for the unit."""
    fewest = fewest_trips(mechanism, case.trips_per_unit)
    if fewest is None or case.trips is None or case.trips >= fewest:
        return []
    return [
        f"About {case.trips:,} trips are too few: below about {fewest:,.0f} this mechanism releases nothing while it protects "
        f"a {ONE[case.protect]}. Take more data or a larger epsilon."
    ]


def _place_reasons(case: Case, cell_m: float | None) -> list[str]:
    reasons = []
    if cell_m is not None:
        basis = f"about {case.trips:,} trips" if case.trips else "10,000 trips, since no number was declared"
        reasons.append(f"Cells of {cell_m:g} m: the smallest size at which busy cells are above the noise, for {basis}.")
    if case.box is not None and cell_m is not None:
        south, west, north, east = case.box
        height, width = (north - south) * 111.2, (east - west) * 111.2 * math.cos(math.radians((south + north) / 2))
        if max(height, width) > WIDE_KM:
            reasons.append(
                f"The box is {height:,.0f} km high and {width:,.0f} km wide, so cells are coarse: one city at a time, with "
                "--place, is far more accurate."
            )
    return reasons
