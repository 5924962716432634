"""Public bounds and budget shares of each unit; chosen once on public grounds, the same whatever the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Literal

Kind = Literal["gaussian", "laplace"]
"""Kind of noise; it decides whether a unit's contribution is measured in L2 or in L1."""

BLOCK_HOURS = 4
"""Hours of a block of the day. Single hours of single links would drown in noise; six blocks keep morning and evening apart."""

N_BLOCKS = 24 // BLOCK_HOURS
"""Blocks of a day."""

N_CLASSES = 5
"""Road classes of a network, from motorways (1) to local roads (5)."""

N_ZONES = {"trip": 16, "user_day": 4, "user": 1}
"""Zones with hourly profiles of their own, one for each of four headings: few where the noise of each is large."""

WEIGHTS = {"links": 50, "blocks": 10, "day": 6, "hours": 16, "size": 2, "speeds": 5, "paces": 2, "turns": 10, "od": 10}
"""Relative budget of each table for units trip and user_day, before scaling to sum to one over the tables that are made.
Chosen on the first ten days of the San Francisco taxis and on the built-in city."""

USER_WEIGHTS = {"links": 76, "blocks": 0, "day": 8, "hours": 12, "size": 4, "speeds": 5, "paces": 2, "turns": 5, "od": 10}
"""The same for unit user; 0: the table is not made. The noise of a whole person hides single links by block, so that the
links' own counts get that budget."""

UNITS_SHARE = {"user_day": 0.01, "user": 0.04}
"""Share of the budget for links per unit, from which the clip follows. Persons are few: at epsilon 1, the 200 taxis of San
Francisco do not stand out of the noise of 1 %, and a wrong clip spoils everything."""

ALWAYS = ("links", "blocks", "day", "hours", "size")
"""Tables that every release needs, if their weight is not 0."""


def shares_of(unit: str, extras: tuple[str, ...], *, total: float = 1.0) -> Mapping[str, float]:
    """Return the share of the budget of every table that is made; the shares add up to `total`.

    >>> shares_of("user", ())
    {'links': 0.76, 'day': 0.08, 'hours': 0.12, 'size': 0.04}
    """
    weights = USER_WEIGHTS if unit == "user" else WEIGHTS
    names = tuple(name for name in (*ALWAYS, *extras) if weights[name])
    all_weights = sum(weights[name] for name in names)
    return {name: total * weights[name] / all_weights for name in names}


@dataclass(frozen=True)
class Bounds:
    """Norms that a unit's contributions are scaled down to (L2 under Gaussian noise, L1 under Laplace noise)."""

    clip: float
    """Of links driven, of links by block and of turns, in trips."""
    hours: float
    """Of links driven by zone, heading and hour."""
    day: float
    """Of links driven by hour, anywhere."""
    links: int
    """Links driven in all, for the total that counts are rescaled to."""
    trips: float
    """Of trips by origin and destination zone."""
    kind: Kind = "gaussian"

    def limits(self) -> Mapping[str, float]:
        """Return the limit of every table. Sums of slowness have half the norm of the counts they belong to."""
        both = sqrt(1.25) if self.kind == "gaussian" else 1.5  # counts and their sums of slowness side by side
        return {
            "links": self.clip,
            "blocks": self.clip,
            "turns": self.clip,
            "hours": self.hours,
            "day": self.day,
            "size": float(self.links),
            "speeds": self.clip / 2,
            "paces": self.hours * both,
            "od": self.trips,
        }


def bounds_of(unit: str, kind: Kind, clip: float | None, max_links: int | None, typical: tuple[int, int] | None) -> Bounds:
    """Return the bounds of a unit; a `clip` or `max_links` of one's own changes the others with it.

    `typical` holds the median of the links driven per unit and a high quantile, where they are known from noisy counts.
    """
    if typical is not None:
        median, most = typical
        default, hours, day = (float(median) ** power for power in NORM_POWERS)
        links, trips = most, TRIPS[unit]
    else:
        default, wider, links, trips = _TRIP if kind == "gaussian" else _LAPLACE[unit]
        hours = day = default * wider
    scale = 1.0 if clip is None else float(clip) / default
    return Bounds(default * scale, hours * scale, day * scale, links if max_links is None else max_links, trips, kind)


NORM_POWERS = (0.52, 0.77, 0.84)
"""Norms of what a unit drove, as powers of the number of links: by link, by zone, heading and hour, and by hour. A trip by link
has .5 and persons .6, because they drive the same roads again; measured on the built-in city."""

TYPICAL_LINKS = {"user_day": (80, 160), "user": (600, 1_200)}
"""Median and high quantile of the links a unit drives where nothing is measured yet: four trips a day and thirty in all, of
twenty links each. For expected errors only."""

TRIPS = {"user_day": 5.0, "user": 25.0}
"""Norm of trips by origin and destination zone, by unit."""

_TRIP = (10.0, 7.0, 150, 1.0)
"""Of a trip: clip in L2, bound by hour relative to it, links in all, trips. A trip of 40 links has norm 6.3, one of 100 has 10
and, driven in one hour, 100 by hour: long trips on motorways must not be scaled down much, or the busiest roads would be
counted too low. Chosen on half of San Francisco's taxis and the built-in city."""

_LAPLACE: dict[str, tuple[float, float, int, float]] = {
    "trip": (50.0, 1.0, 150, 1.0),
    "user_day": (400.0, 1.0, 2_500, 10.0),
    "user": (4_000.0, 1.0, 40_000, 100.0),
}
"""The same in L1, where a trip of 40 links has norm 40 by link and by zone."""
