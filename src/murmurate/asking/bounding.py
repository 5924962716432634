"""Choose which trips and points of a unit are read: no more than the public bounds on which the guarantee rests."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.guarantee import Unit
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.errors import InputError

if TYPE_CHECKING:
    from murmurate.noise import Randomness


def new_key(rng: Randomness) -> bytes:
    """Draw the key of `bound`. One key serves a whole release, so that a part that is read again keeps the same trips."""
    return rng.words(2).tobytes()


def units_of_trips(private: Trips, unit: Unit) -> Integers:
    """Return the unit (0, 1, ...) of each trip; a trip that passes midnight belongs to the day it began on."""
    if unit.name == "user":
        return private.trip_user
    if unit.name == "user_day":
        if not private.has_time:
            raise InputError("unit user_day needs a time for every point; these trips have none. Use unit user or trip.")
        days = private.first_local_day
        span = int(days.max() - days.min()) + 1 if len(days) else 1
        _, codes = np.unique(private.trip_user * span + days, return_inverse=True)
        return codes.astype(np.int64)
    return np.arange(private.n_trips, dtype=np.int64)


def bound(private: Trips, unit: Unit, key: bytes) -> Trips:
    """Keep at most `max_trips` trips (a keyed random choice) and `max_points` points (the earliest) of every unit.

    Which trips are kept follows from the unit's own identifiers and the key: not from who else is there, nor from the order
    or number of parts, nor from how often a part is read.
    """
    if private.n_points == 0 or unit.name == "point":
        return private
    if unit.max_trips is not None:
        of_unit = units_of_trips(private, unit)
        crowded = np.bincount(of_unit)[of_unit] > unit.max_trips
        if crowded.any():
            rank = np.zeros(private.n_trips, dtype=np.uint64)
            rank[crowded] = _ranks(private, np.flatnonzero(crowded), key)
            private = private.take_trips(_first(of_unit, np.lexsort((rank, of_unit)), unit.max_trips))
    if unit.max_points is not None:
        of_point = np.repeat(units_of_trips(private, unit), np.diff(private.offsets))
        if len(of_point) and np.bincount(of_point).max() > unit.max_points:
            order = np.lexsort((private.time_us, of_point)) if private.has_time else np.argsort(of_point, kind="stable")
            private = private.take_points(_first(of_point, order, unit.max_points))
    return private


def _ranks(private: Trips, trips: Integers, key: bytes) -> NDArray[np.uint64]:
    """Return a keyed hash of (uid, tid) of these trips."""
    first = private.offsets[:-1][trips]
    names = zip(*(private.table[name].gather(first).cast(pl.String).to_list() for name in ("uid", "tid")), strict=True)
    digests = [hashlib.blake2b(f"{uid}\x1f{tid}".encode(), key=key, digest_size=8).digest() for uid, tid in names]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def _first(groups: Integers, order: Integers, most: int) -> NDArray[np.bool_]:
    """Mark rows that are among the first `most` of their group, when read in `order` (which keeps groups together)."""
    sorted_groups = groups[order]
    starts = np.flatnonzero(np.r_[True, sorted_groups[1:] != sorted_groups[:-1]])
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    keep = np.zeros(len(order), dtype=bool)
    keep[order[rank < most]] = True
    return keep
