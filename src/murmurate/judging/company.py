"""Count, by brute force on released trips alone, how many people stay near each trip throughout."""

from __future__ import annotations

import numpy as np

from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.spaces.sphere import great_circle_m


def companions(released: Trips, radius_m: float) -> Integers:
    """Return for each trip how many other people have a trip that is near it at every moment.

    A trip is a moving point: straight lines in degrees between its records, so both distance and presence can be checked at
    the records of either trip, and at one moment between each two of them.
    """
    starts, ends = released.offsets[:-1], released.offsets[1:]
    seconds = released.time_us / 1e6
    begin, end = seconds[starts], seconds[ends - 1]
    found = np.zeros(released.n_trips, dtype=np.int64)
    for one in range(released.n_trips):
        people: set[int] = set()
        for other in np.flatnonzero((begin <= begin[one]) & (end >= end[one])):
            person = int(released.trip_user[other])
            if (
                person != released.trip_user[one]
                and person not in people
                and _near(released, seconds, one, int(other), radius_m)
            ):
                people.add(person)
        found[one] = len(people)
    return found


def _near(
    released: Trips, seconds: np.ndarray[tuple[int], np.dtype[np.float64]], one: int, other: int, radius_m: float
) -> bool:
    mine = slice(released.offsets[one], released.offsets[one + 1])
    theirs = slice(released.offsets[other], released.offsets[other + 1])
    records = np.unique(np.concatenate([seconds[mine], seconds[theirs]]))
    moments = np.unique(np.concatenate([records, (records[1:] + records[:-1]) / 2]))
    moments = moments[(moments >= seconds[mine][0]) & (moments <= seconds[mine][-1])]
    places = [
        np.interp(moments, seconds[which], values[which]) for which in (mine, theirs) for values in (released.lat, released.lng)
    ]
    return bool((great_circle_m(*places) <= radius_m).all())
