"""Lay released and original trips on one plane, in metres, for attacks on whole traces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.metrics.comparison import NotMeasurable
from murmurate.spaces.sphere import METRES_PER_DEGREE

Tracks = tuple[Floats, Floats, Integers]
"""x and y of every point in metres, and the offsets of the trips in them."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Hold both sides in metres, and which original each released trip comes from."""

    released: Tracks
    original: Tracks
    known: Integers
    """Released trips that have an original."""
    source: Integers
    """The original of each of them."""


def pairs(released: Trips, original: Trips, pairing: ArrayLike | None) -> Pairs:
    """Return both sides on one plane; `NotMeasurable` where released trips have no originals."""
    if pairing is None:
        raise NotMeasurable("released trips are not paired with originals")
    of = np.asarray(pairing, dtype=np.int64)
    if of.shape != (released.n_trips,) or (len(of) and (of.min() < -1 or of.max() >= original.n_trips)):
        raise ParameterError(
            f"pairing must hold the position of an original (0 to {original.n_trips - 1:,}, or -1) for each of the "
            f"{released.n_trips:,} released trips."
        )
    known = np.flatnonzero(of >= 0)
    if not len(known):
        raise NotMeasurable("the pairing names no original for any released trip")
    here = degrees(original)
    middle = float(here[0].mean()), float(here[1].mean())
    scale = METRES_PER_DEGREE * np.cos(np.radians(middle[0]))
    tracks = [
        ((lng - middle[1]) * scale, (lat - middle[0]) * METRES_PER_DEGREE, trips.offsets)
        for (lat, lng), trips in ((degrees(released), released), (here, original))
    ]
    return Pairs(tracks[0], tracks[1], known, of[known])


def degrees(trips: Trips) -> tuple[Floats, Floats]:
    """Return latitude and longitude of every point; the middle of its cell or link where there are no coordinates."""
    if trips.has_coordinates:
        return np.ascontiguousarray(trips.lat), np.ascontiguousarray(trips.lng)
    if trips.space is None:
        raise NotMeasurable("the trips have cells or links and no space that tells where they are")
    return trips.space.centre(trips.cell if "cell" in trips.columns else trips.link)


def rate_interval(successes: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval (Wilson) of a rate; successes may be fractions, where ties are shared."""
    z = 1.959963985
    rate = successes / n
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return float(max(0.0, min(rate, middle - reach))), float(min(1.0, max(rate, middle + reach)))
