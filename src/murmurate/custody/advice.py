"""Advise on a release: mechanism, unit, epsilon, cells and limit, from public facts, declared numbers and a few answers.

Nothing here reads private data. Whoever calls it passes what is public anyway or was declared public: a box, a road file, rough
numbers of people, trips and days.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from murmurate.core.accounting import compose
from murmurate.core.guarantee import DP, GeoInd, Guarantee
from murmurate.core.parameters import one_of, positive, whole
from murmurate.custody.recipes import Recipe, commented
from murmurate.errors import ParameterError
from murmurate.mechanisms import NAMES, build, mechanism_class

PROTECT = {
    "trip": "single trips: who made many trips is protected less",
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

TOTAL_EPSILON = {"trip": 1.0, "user_day": 2.0, "user": 3.0}
"""Most that may ever be spent on one unit. Google's mobility reports spent 2.64 and Meta's maps 2.0 a person and day; a whole
person is harder to hide, and above 3 the factor e^3 = 20 would be hard to defend. Chosen by hand."""

PURE_TRIPS = 30_000
"""Declared trips below which trips are protected with delta 0: Laplace noise serves few trips better. Chosen by hand."""

UNITS_PER_DELTA = 100
"""A delta is below one over this many times the declared number of units."""
DEFAULT_DELTA = 1e-6
"""Delta where no numbers are declared, and the largest that is advised."""

CELLS_M = (250, 300, 400, 500, 750, 1000, 1500, 2000, 3000, 5000, 10_000)
"""Sides of cells that are advised, in metres; finer ones show single addresses."""
MAX_CELLS = 100_000
"""Most cells of an advised grid. Chosen by hand: with more, most cells hold noise only."""
OCCUPIED_SHARE = 0.1
"""Share of a box in which most trips end, assumed where nothing better is known. Chosen by hand."""
MIN_MEAN_ENDS_SDS = 2.0
"""Mean number of trip ends of an occupied cell, in standard deviations of its noise, that a cell size must allow."""
ENDS_SHARE = 0.2
"""Share of the budget of a table of ends, for judging cell sizes."""
WIDE_KM = 300.0
"""Box side in kilometres above which the advice says that a city or region would serve better. Chosen by hand."""

TYPICAL_TRIPS = {"trip": 1, "user_day": 4, "user": 30}
"""Trips read of each unit where nothing is declared: what people make in a day, and in a month or so. Chosen by hand."""
MAX_TRIPS = {"trip": 1, "user_day": 30, "user": 200}
"""Most trips read of each unit that is advised; noise grows with this number. Chosen by hand."""

GEOIND_RADIUS_M = 200.0
"""Radius within which moved points hide places. Chosen by hand: a few blocks."""
GEOIND_POINTS = {"trip": 20, "user_day": 60, "user": 200}
"""Points read of each unit where points are moved; every one costs. Chosen by hand."""


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


@dataclass(frozen=True, kw_only=True)
class _Case:
    """Hold the answers and declared numbers that one advice starts from."""

    protect: str
    purpose: str
    repeats: int
    box: tuple[float, float, float, float] | None
    roads: str | None
    people: int | None
    trips: int | None
    days: int | None
    timed: bool

    @property
    def units(self) -> float | None:
        """Return the declared number of protected units."""
        if self.protect == "trip":
            return self.trips
        if self.protect == "user":
            return self.people
        return None if self.people is None else self.people * (self.days or 1)

    @property
    def trips_per_unit(self) -> int:
        """Return how many trips of a unit to read: the declared mean, or what is typical."""
        if self.protect == "trip":
            return 1
        if self.trips is None or not self.units:
            return TYPICAL_TRIPS[self.protect]
        return max(1, min(MAX_TRIPS[self.protect], math.ceil(self.trips / self.units)))


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
    case = _Case(
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
    mechanism, case, reasons = _choose(case)
    total = total_epsilon or TOTAL_EPSILON[case.protect]
    settings = _settings(mechanism, case, total)
    built = build(mechanism, settings)
    guarantee = built.guarantee()
    kept = {name: value for name, value in settings.items() if value is not None}
    cell_m = getattr(getattr(built, "space", None), "cell_m", None)
    limit = _limit(guarantee, total, repeats)
    why = (*reasons, *_number_reasons(case, guarantee, total), *_place_reasons(case, cell_m))
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


# -- which mechanism -----------------------------------------------------------------------------------------------------


def _choose(case: _Case) -> tuple[str, _Case, tuple[str, ...]]:
    """Return the mechanism, the case with the unit it can protect, and the reasons."""
    if case.purpose == "road_flows":
        if case.roads is None:
            raise ParameterError("road flows need a public road network: give --roads FILE (OpenStreetMap, GraphML, GeoJSON).")
        return "road_counts", case, ("road_counts counts every road of a public network and adds noise to each.",)
    if case.purpose == "moved_points":
        return (
            "geoind",
            case,
            (
                "geoind moves every point. Times stay exact, so whoever knows when somebody travelled may find the trip: "
                "the release command asks you to confirm this. Synthetic trips are the safer choice.",
            ),
        )
    if case.box is None and case.roads is None:
        raise ParameterError(
            "a public box is needed: --place CITY, or --box SOUTH,WEST,NORTH,EAST in degrees, or --roads FILE for a public "
            "road network."
        )
    if case.purpose == "whole_days":
        if case.box is None:
            raise ParameterError("whole days need a public box: --place CITY, or --box SOUTH,WEST,NORTH,EAST in degrees.")
        reason = "plausible makes whole days of places from noisy counts; its promise always covers whole people."
        return "plausible", replace(case, protect="user"), (reason,)
    if case.purpose == "zone_tables":
        if "od_counts" in NAMES and case.box is not None:
            return "od_counts", case, ("od_counts publishes tables of trips between zones by hour, with noise on every entry.",)
        reason = "flock makes synthetic trips; count them by zone and hour to get origin-destination tables."
        return "flock", case, (reason,)
    reason = "flock makes synthetic trips from a few noisy tables: no released row belongs to anybody, and times are made up."
    return "flock", case, (reason,)


# -- which settings ------------------------------------------------------------------------------------------------------


def _settings(mechanism: str, case: _Case, total: float) -> dict[str, Any]:
    """Return the parameters of one release of the mechanism."""
    known = {item.name for item in fields(mechanism_class(mechanism))}
    settings: dict[str, Any] = {"unit": case.protect} if "unit" in known else {}
    if mechanism == "geoind":
        return settings | _moved_points(case, total)
    delta = _delta(case)
    if "delta" in known and mechanism != "plausible":
        settings["delta"] = delta
    if mechanism == "flock" and case.protect != "trip":
        settings["max_trips"] = case.trips_per_unit
    if mechanism == "plausible":
        settings["n_out"] = case.people or 1000
    epsilon = _epsilon_per_release(settings.get("delta", 0.0), total, case.repeats)
    settings = {"epsilon": epsilon, **settings}
    if mechanism == "road_counts" or (case.box is None and case.roads is not None):
        return settings | {"space": f"road:{case.roads}"}
    return settings | {"space": _grid(case, epsilon, settings)}


def _moved_points(case: _Case, total: float) -> dict[str, Any]:
    """Return settings whose whole unit stays within the total at the radius: each point gets its share."""
    max_points = GEOIND_POINTS[case.protect]
    return {
        "epsilon": _round_down(total / max_points / case.repeats),
        "radius_m": GEOIND_RADIUS_M,
        "max_points": max_points,
        "smooth": case.timed,
    }


def _delta(case: _Case) -> float:
    """Return the largest power of ten at or below one over UNITS_PER_DELTA times the declared units."""
    if case.protect == "trip" and case.trips is not None and case.trips < PURE_TRIPS:
        return 0.0
    if not case.units:
        return DEFAULT_DELTA
    return float(min(DEFAULT_DELTA, 10.0 ** -math.ceil(math.log10(UNITS_PER_DELTA * case.units))))


def _epsilon_per_release(delta: float, total: float, repeats: int) -> float:
    """Return the epsilon of one of `repeats` equal releases that together stay within `total` at the same delta."""
    if repeats == 1:
        return total
    if delta == 0:
        return _round_down(total / repeats)
    from murmurate.asking import Budget

    low, high = total / repeats, total
    for _ in range(30):
        middle = (low + high) / 2
        events = [*Budget(epsilon=middle, delta=delta).events] * repeats
        low, high = (middle, high) if compose(events, delta=delta) <= total else (low, middle)
    return _round_down(low)


def _round_down(value: float) -> float:
    """Return a number with two digits that is at most this one.

    >>> _round_down(0.12987)
    0.12
    """
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.floor(value / step + 1e-9) * step:.2g}")


def _grid(case: _Case, epsilon: float, settings: Mapping[str, Any]) -> str:
    """Return the finest grid of the ladder whose occupied cells can be told from their noise."""
    from murmurate.asking import Budget
    from murmurate.spaces.grid import Grid

    if case.box is None:
        raise ParameterError("a public box is needed: --place CITY, or --box SOUTH,WEST,NORTH,EAST in degrees.")
    limit = float(settings.get("max_trips") or 1)
    noise = Budget(epsilon=epsilon, delta=settings.get("delta", 0.0)).deviation(ENDS_SHARE, limit)
    trips = case.trips or 10_000
    most = min(MAX_CELLS, max(4.0, 2 * trips / OCCUPIED_SHARE / (MIN_MEAN_ENDS_SDS * noise)))
    found: Grid | None = None
    for cell_m in CELLS_M:
        try:
            found = Grid(*case.box, cell_m)
        except ParameterError:
            if cell_m == CELLS_M[-1]:
                raise
            continue
        if found.n_cells <= most:
            break
    if found is None or found.n_cells < 4:
        raise ParameterError(f"the box {case.box} is too small for a release: it must hold several cells of {CELLS_M[0]} m.")
    return found.spec()


def _limit(guarantee: Guarantee, total: float, repeats: int) -> str:
    if isinstance(guarantee, GeoInd):
        return f"geoind:{guarantee.unit.name}:{guarantee.epsilon_per_m * repeats:.6g}"
    if isinstance(guarantee, DP):
        delta = f":{guarantee.delta:g}" if guarantee.delta else ""
        return f"dp:{guarantee.unit.name}:{total}{delta}"
    raise ParameterError(f"nothing adds up for a {guarantee.kind} promise, so no limit can be advised.")


# -- reasons -------------------------------------------------------------------------------------------------------------


def _number_reasons(case: _Case, guarantee: Guarantee, total: float) -> list[str]:
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
            f"The limit is epsilon {total:g}: over {often}, no {guarantee.unit.name} changes a probability by more than "
            f"{factor}.{deployed}"
        )
        if guarantee.delta:
            reasons.append(
                f"Delta {guarantee.delta:g} is the chance that the promise fails; it lies well below one over the number of "
                "units, and Gaussian noise is smaller than Laplace noise here."
            )
    elif isinstance(guarantee, GeoInd) and guarantee.radius_m:
        reasons.append(
            f"Together the points of one {guarantee.unit.name} hide places within {guarantee.radius_m:g} m by a factor of "
            f"{factor} at most; that is why single points move so far."
        )
    if guarantee.unit.max_trips is not None:
        reasons.append(
            f"At most {guarantee.unit.max_trips:,} trips of each {guarantee.unit.name} are read; noise grows with it."
        )
    if case.repeats == 1:
        reasons.append("Planned is one release. Another one from these people needs a budget of its own: say --repeats.")
    return reasons


def _place_reasons(case: _Case, cell_m: float | None) -> list[str]:
    reasons = []
    if cell_m is not None:
        basis = f"about {case.trips:,} trips" if case.trips else "10,000 trips, since no number was declared"
        reasons.append(f"Cells of {cell_m:g} m: the finest of which the busy ones rise above the noise with {basis}.")
    if case.box is not None and cell_m is not None:
        south, west, north, east = case.box
        height, width = (north - south) * 111.2, (east - west) * 111.2 * math.cos(math.radians((south + north) / 2))
        if max(height, width) > WIDE_KM:
            reasons.append(
                f"The box is {height:,.0f} km high and {width:,.0f} km wide, so cells are coarse: one city at a time, with "
                "--place, is far more accurate."
            )
    return reasons
