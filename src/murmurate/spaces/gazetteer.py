"""Cities by name, with boxes that are public anyway: facts that ship with the package and are drawn from no data set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike

from murmurate.core.parameters import closest
from murmurate.errors import ParameterError

KM_PER_DEGREE = 111.2
"""Kilometres of a degree of latitude."""
ROUND_DEG = 0.05
"""Boxes are rounded outward to multiples of this many degrees."""

Box = tuple[float, float, float, float]
"""South, west, north, east in degrees."""


@dataclass(frozen=True)
class City:
    """A city with its country and the coarse box around it."""

    name: str
    country: str
    lat: float
    lng: float
    reach_km: float

    @cached_property
    def box(self) -> Box:
        """Return the box that holds everything within reach of the centre, rounded outward."""
        up = self.reach_km / KM_PER_DEGREE
        aside = up / math.cos(math.radians(self.lat))
        return outward((self.lat - up, self.lng - aside, self.lat + up, self.lng + aside), ROUND_DEG)

    def share_of(self, lat: ArrayLike, lng: ArrayLike) -> float:
        """Return the share of these places that lie in the box."""
        south, west, north, east = self.box
        lat, lng = np.asarray(lat), np.asarray(lng)
        inside = (lat >= south) & (lat <= north) & (lng >= west) & (lng <= east)
        return float(inside.mean()) if inside.size else 0.0


@cache
def cities() -> tuple[City, ...]:
    """Return every city."""
    text = files("murmurate.spaces").joinpath("gazetteer.txt").read_text(encoding="utf-8")
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, country, lat, lng, reach = line.rsplit(" ", 4)
            found.append(City(name, country, float(lat), float(lng), float(reach)))
    return tuple(found)


def city(name: str) -> City:
    """Return the city of this name, in any case; `Portland, US` names the country too.

    >>> city("rome").box
    (41.6, 12.1, 42.2, 12.9)
    """
    wanted, _, country = (part.strip().casefold() for part in name.partition(","))
    for one in cities():
        if one.name.casefold() == wanted and country in ("", one.country.casefold()):
            return one
    raise ParameterError(
        f"no city is called {name!r} among the {len(cities())} that ship with the tool."
        f"{closest(wanted.title(), [one.name for one in cities()])} Give --box SOUTH,WEST,NORTH,EAST in degrees instead."
    )


def cities_around(lat: ArrayLike, lng: ArrayLike, *, min_share: float = 0.5) -> list[tuple[City, float]]:
    """Return the cities whose boxes hold at least this share of the places, with the share, best first.

    Of cities that hold equally many, the smaller box comes first.
    """
    lat, lng = np.asarray(lat), np.asarray(lng)
    if not lat.size:
        return []
    edges = lat.min(), lng.min(), lat.max(), lng.max()
    near = [one for one in cities() if _meet(one.box, edges)]  # of all cities, few have to be compared place by place
    found = [(one, share) for one in near if (share := one.share_of(lat, lng)) >= min_share]
    return sorted(found, key=lambda item: (-round(item[1], 2), item[0].reach_km))


def looks_swapped(lat: ArrayLike, lng: ArrayLike) -> bool:
    """Return whether places lie in no known city as they are, and in one with latitude and longitude exchanged.

    >>> looks_swapped([12.49], [41.9]), looks_swapped([41.9], [12.49])
    (True, False)
    """
    return not cities_around(lat, lng) and bool(cities_around(lng, lat))


def _meet(one: Box, other: Box) -> bool:
    """Return whether two boxes have a place in common."""
    return one[0] <= other[2] and one[2] >= other[0] and one[1] <= other[3] and one[3] >= other[1]


def outward(box: Sequence[float], step: float = 0.1) -> Box:
    """Return the box rounded outward to multiples of `step` degrees.

    >>> outward((41.83, 12.41, 41.97, 12.58))
    (41.8, 12.4, 42.0, 12.6)
    """
    south, west, north, east = box
    down = [math.floor(value / step + 1e-9) * step for value in (south, west)]
    up = [math.ceil(value / step - 1e-9) * step for value in (north, east)]
    return (
        max(-90.0, round(down[0], 6)),
        max(-180.0, round(down[1], 6)),
        min(90.0, round(up[0], 6)),
        min(180.0, round(up[1], 6)),
    )
