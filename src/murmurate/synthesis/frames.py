"""Check parameters that synthesisers on a public grid share: the unit, its bound, the hours and the fictional day."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np

from murmurate.core.guarantee import Unit
from murmurate.core.parameters import one_of, positive, whole
from murmurate.core.space import Integers
from murmurate.errors import InputError, ParameterError

TYPICAL_TRIPS = {"trip": 1, "user_day": 4, "user": 30}
"""Trips of a unit where nothing is declared: a person makes three to four trips a day (national travel surveys), and files hold
about a week. For expected errors only."""


def check_unit(unit: str, max_trips: int | None, *, optional: bool = False) -> None:
    """Raise ParameterError for a unit without its bound on trips (unless `optional`), or a bound without such a unit."""
    one_of("unit", unit, ("trip", "user_day", "user"))
    if max_trips is not None:
        whole("max_trips", max_trips)
    if (unit == "trip" and max_trips is not None) or (unit != "trip" and max_trips is None and not optional):
        raise ParameterError(
            f"max_trips says how many trips of each {unit} are read: give it for unit user_day or user, and leave "
            f"it out for unit trip; got unit={unit!r} and max_trips={max_trips!r}."
        )


def check_clip(clip: float | None, *, joint: bool) -> None:
    """Raise ParameterError for a clip that is no positive number, or that nothing is clipped to."""
    if clip is None:
        return
    positive("clip", clip)
    if not joint:
        raise ParameterError(
            f"clip bounds all trips of a person or person-day together: give it with unit user_day or user and delta above 0; "
            f"got clip={clip!r}."
        )


def refuse_unbounded(units: Integers, unit: Unit) -> None:
    """Raise InputError where a unit has more trips than its guarantee allows, as in a fit without `release()`."""
    most = unit.max_trips or 1
    if len(units) and int(np.bincount(units).max()) > most:
        raise InputError(
            f"a {unit.name} has more than the {most} trips its guarantee is priced for.",
            "Go through murmurate.release or murmurate.fit, which draw at most max_trips of each.",
        )


def check_hours_and_day(hours: Any, day: Any) -> None:
    """Raise ParameterError for hours that do not divide the day, and for a day that is not a date."""
    if isinstance(hours, bool) or hours not in (1, 2, 3, 4, 6, 8, 12, 24):
        raise ParameterError(f"hours must divide the day (1, 2, 3, 4, 6, 8, 12 or 24); got {hours!r}.")
    try:
        date.fromisoformat(day)
    except (TypeError, ValueError):
        raise ParameterError(f"day must be a date such as 2000-01-03; got {day!r}.") from None
