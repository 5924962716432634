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

WEIGHTS = {"links": 50, "blocks": 10, "hours": 22, "size": 2, "speeds": 5, "paces": 2, "turns": 10, "od": 10}
"""Relative budget of each table for units trip and user_day, before scaling to sum to one over the tables that are made.
Chosen on the first ten days of the San Francisco taxis and on the built-in city."""

USER_WEIGHTS = {"links": 74, "blocks": 0, "hours": 18, "size": 8, "speeds": 5, "paces": 2, "turns": 5, "od": 10}
"""The same for unit user; 0: the table is not made. The noise of a whole person hides single links by block, so that the
links' own counts get that budget."""

ALWAYS = ("links", "blocks", "hours", "size")
"""Tables that every release needs, if their weight is not 0."""


def shares_of(unit: str, extras: tuple[str, ...]) -> Mapping[str, float]:
    """Return the share of the budget of every table that is made; the shares add up to one.

    >>> shares_of("user", ())
    {'links': 0.74, 'hours': 0.18, 'size': 0.08}
    """
    weights = USER_WEIGHTS if unit == "user" else WEIGHTS
    names = tuple(name for name in (*ALWAYS, *extras) if weights[name])
    total = sum(weights[name] for name in names)
    return {name: weights[name] / total for name in names}


@dataclass(frozen=True)
class Bounds:
    """Norms that a unit's contributions are scaled down to (L2 under Gaussian noise, L1 under Laplace noise)."""

    clip: float
    """Of links driven, of links by block and of turns, in trips."""
    hours: float
    """Of links driven by zone, heading and hour."""
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
            "size": float(self.links),
            "speeds": self.clip / 2,
            "paces": self.hours * both,
            "od": self.trips,
        }


def bounds_of(unit: str, kind: Kind, clip: float | None, max_links: int | None) -> Bounds:
    """Return the bounds of a unit; a `clip` or `max_links` of one's own changes the others with it."""
    default, wider, links, trips = _GAUSSIAN[unit] if kind == "gaussian" else _LAPLACE[unit]
    clip = default if clip is None else float(clip)
    return Bounds(clip, clip * wider, links if max_links is None else max_links, trips, kind)


_GAUSSIAN: dict[str, tuple[float, float, int, float]] = {
    "trip": (14.0, 3.0, 150, 1.0),
    "user_day": (20.0, 5.0, 2_500, 5.0),
    "user": (100.0, 12.0, 40_000, 25.0),
}
"""By unit: clip in L2, bound of zones by hour relative to it, links in all, trips. A trip of 40 links has norm 6.3, one of 196
has 14: long trips on motorways must not be scaled down, or the busiest roads would be counted too low."""

_LAPLACE: dict[str, tuple[float, float, int, float]] = {
    "trip": (50.0, 1.0, 150, 1.0),
    "user_day": (400.0, 1.0, 2_500, 10.0),
    "user": (4_000.0, 1.0, 40_000, 100.0),
}
"""The same in L1, where a trip of 40 links has norm 40 by link and by zone."""
