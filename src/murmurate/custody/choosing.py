"""Choose mechanism and settings of an advised release by stated rules, from public facts and declared numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from murmurate.core.accounting import compose
from murmurate.core.guarantee import DP, GeoInd, Guarantee
from murmurate.errors import ParameterError
from murmurate.mechanisms import NAMES, build, mechanism_class

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
ZONE_M = 1000
"""Finest cells in metres of origin-destination tables, which have an entry for every pair of cells. Chosen by hand."""
MAX_CELLS = 100_000
"""Most cells of an advised grid. Chosen by hand: with more, most cells hold noise only."""
OCCUPIED_SHARE = 0.1
"""Share of a box in which most trips end, assumed where nothing better is known. Chosen by hand."""
MIN_MEAN_ENDS_SDS = 2.0
"""Mean number of trip ends of an occupied cell, in standard deviations of its noise, that a cell size must allow."""
ENDS_SHARE = 0.2
"""Share of the budget of a table of ends, for judging cell sizes."""
TYPICAL_TRIPS = {"trip": 1, "user_day": 4, "user": 30}
"""Trips read of each unit where nothing is declared: what people make in a day, and in a month or so. Chosen by hand."""
MAX_TRIPS = {"trip": 1, "user_day": 30, "user": 200}
"""Most trips read of each unit that is advised; noise grows with this number. Chosen by hand."""

COLLISIONS = 0.75
"""Power of a unit's trips to which its contribution to one table grows: some of them end in the same cells. Measured on San
Francisco's taxis and the built-in city."""
GEOIND_RADIUS_M = 200.0
"""Radius within which moved points hide places. Chosen by hand: a few blocks."""
GEOIND_POINTS = {"trip": 20, "user_day": 60, "user": 200}
"""Points read of each unit where points are moved; every one costs. Chosen by hand."""


@dataclass(frozen=True, kw_only=True)
class Case:
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


# -- which mechanism -----------------------------------------------------------------------------------------------------


def choose(case: Case) -> tuple[str, Case, tuple[str, ...]]:
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


def settings_of(mechanism: str, case: Case, total: float) -> dict[str, Any]:
    """Return the parameters of one release of the mechanism."""
    known = {item.name for item in fields(mechanism_class(mechanism))}
    settings: dict[str, Any] = {"unit": case.protect} if "unit" in known else {}
    if mechanism == "geoind":
        return settings | _moved_points(case, total)
    if "delta" in known and mechanism != "plausible":
        settings["delta"] = _delta(case, pure=mechanism == "flock")
    if "max_trips" in known and "clip" not in known and case.protect != "trip":
        settings["max_trips"] = case.trips_per_unit  # with a clip, all trips of a unit count together
    if mechanism == "plausible":
        settings["n_out"] = case.people or 1000
    finest = ZONE_M if mechanism == "od_counts" else CELLS_M[0]

    def placed(epsilon: float) -> dict[str, Any]:
        if mechanism == "road_counts" or (case.box is None and case.roads is not None):
            return {"epsilon": epsilon, **settings, "space": f"road:{case.roads}"}
        return {"epsilon": epsilon, **settings, "space": _grid(case, epsilon, settings, finest)}

    if case.repeats == 1:
        return placed(total)
    return placed(_epsilon_per_release(build(mechanism, placed(total / case.repeats)), total, case.repeats))


def _moved_points(case: Case, total: float) -> dict[str, Any]:
    """Return settings whose whole unit stays within the total at the radius: each point gets its share."""
    max_points = GEOIND_POINTS[case.protect]
    return {
        "epsilon": _round_down(total / max_points / case.repeats),
        "radius_m": GEOIND_RADIUS_M,
        "max_points": max_points,
        "smooth": case.timed,
    }


def _delta(case: Case, *, pure: bool) -> float:
    """Return the largest power of ten at or below one over UNITS_PER_DELTA times the declared units; 0 where few trips are
    better served by Laplace noise and the mechanism can be `pure`.
    """
    if pure and case.protect == "trip" and case.trips is not None and case.trips < PURE_TRIPS:
        return 0.0
    if not case.units:
        return DEFAULT_DELTA
    return float(min(DEFAULT_DELTA, 10.0 ** -math.ceil(math.log10(UNITS_PER_DELTA * case.units))))


def _epsilon_per_release(mechanism: Any, total: float, repeats: int) -> float:
    """Return the epsilon of one of `repeats` equal releases that together stay within `total` at the promise's own delta."""
    low, high = total / repeats, total
    for _ in range(30):
        middle = (low + high) / 2
        promise = replace(mechanism, epsilon=middle).guarantee()
        fits = compose([*promise.events] * repeats, delta=promise.delta) <= total
        low, high = (middle, high) if fits else (low, middle)
    return _round_down(low)


def _round_down(value: float) -> float:
    """Return a number with two digits that is at most this one.

    >>> _round_down(0.12987)
    0.12
    """
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.floor(value / step + 1e-9) * step:.2g}")


def _grid(case: Case, epsilon: float, settings: Mapping[str, Any], finest_m: float) -> str:
    """Return the finest grid of the ladder whose occupied cells stand above their noise."""
    from murmurate.asking import Budget
    from murmurate.spaces.grid import Grid

    if case.box is None:
        raise ParameterError("a public box is needed: --place CITY, or --box SOUTH,WEST,NORTH,EAST in degrees.")
    limit = float(settings.get("max_trips") or case.trips_per_unit**COLLISIONS)
    noise = Budget(epsilon=epsilon, delta=settings.get("delta", 0.0)).deviation(ENDS_SHARE, limit)
    trips = case.trips or 10_000
    most = min(MAX_CELLS, max(4.0, 2 * trips / OCCUPIED_SHARE / (MIN_MEAN_ENDS_SDS * noise)))
    found: Grid | None = None
    for cell_m in (size for size in CELLS_M if size >= finest_m):
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


def limit_of(guarantee: Guarantee, total: float, repeats: int) -> str:
    """Return the limit of so many releases with this promise, as `--limit` writes it."""
    if isinstance(guarantee, GeoInd):
        return f"geoind:{guarantee.unit.name}:{guarantee.epsilon_per_m * repeats:.6g}"
    if isinstance(guarantee, DP):
        delta = f":{guarantee.delta:g}" if guarantee.delta else ""
        return f"dp:{guarantee.unit.name}:{total}{delta}"
    raise ParameterError(f"nothing adds up for a {guarantee.kind} promise, so no limit can be advised.")
