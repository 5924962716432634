"""Cuts every unit's contribution down to the public bounds its guarantee was priced for."""

from __future__ import annotations

import numpy as np

from murmurate.core.guarantee import Unit
from murmurate.core.mechanism import Rng
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.errors import InputError


def units_of_trips(private: Trips, unit: Unit) -> Integers:
    """The unit (0, 1, ...) of each trip; a trip that passes midnight belongs to the day it began on."""
    if unit.name == "user":
        return private.trip_user
    if unit.name == "user_day":
        if not private.has_time:
            raise InputError("unit user_day needs a time for every point; these trips have none. Use unit user or trip.")
        days = private.local_day[private.offsets[:-1]]
        span = int(days.max() - days.min()) + 1 if len(days) else 1
        _, codes = np.unique(private.trip_user * span + days, return_inverse=True)
        return codes.astype(np.int64)
    return np.arange(private.n_trips, dtype=np.int64)


def bound(private: Trips, unit: Unit, rng: Rng) -> Trips:
    """At most `max_trips` trips (drawn at random) and `max_points` points (the earliest) of every unit."""
    if private.n_points == 0 or unit.name == "point":
        return private
    if unit.max_trips is not None:
        of_unit = units_of_trips(private, unit)
        keep = _first(of_unit, np.lexsort((rng.words(private.n_trips), of_unit)), unit.max_trips)
        if not keep.all():
            private = private.take_trips(keep)
    if unit.max_points is not None:
        of_point = np.repeat(units_of_trips(private, unit), np.diff(private.offsets))
        if len(of_point) and np.bincount(of_point).max() > unit.max_points:
            order = np.lexsort((private.time_us, of_point)) if private.has_time else np.argsort(of_point, kind="stable")
            private = private.take_points(_first(of_point, order, unit.max_points))
    return private


def _first(groups: Integers, order: Integers, most: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows are among the first `most` of their group, when read in `order` (which keeps groups together)."""
    sorted_groups = groups[order]
    starts = np.flatnonzero(np.r_[True, sorted_groups[1:] != sorted_groups[:-1]])
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    keep = np.zeros(len(order), dtype=bool)
    keep[order[rank < most]] = True
    return keep
