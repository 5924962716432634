"""The public bounds that go with each unit; chosen once on public grounds, the same whatever the data."""

from __future__ import annotations

from dataclasses import dataclass

from murmurate.mechanisms.road_counts.budget import Kind

BLOCK_HOURS = 4
N_BLOCKS = 24 // BLOCK_HOURS
N_ZONES = {"trip": 16, "user_day": 4, "user": 1}
"""Zones with hourly profiles of their own, one for each of four headings: few where little can be told of each."""


@dataclass(frozen=True)
class Bounds:
    """Norms that a unit's vectors are scaled down to."""

    clip: float
    """Of links driven (and of turns)."""
    hours: float
    """Of links driven by zone, heading and hour."""
    links: int
    """Links driven, in all: for the total that counts are rescaled to."""
    trips: float
    """Of trips by origin and destination zone."""


def bounds_of(unit: str, kind: Kind, clip: float | None, max_links: int | None) -> Bounds:
    """The bounds of a unit, where a `clip` or `max_links` of one's own changes the others with it."""
    default, wider, links, trips = _GAUSSIAN[unit] if kind == "gaussian" else _LAPLACE[unit]
    clip = default if clip is None else float(clip)
    return Bounds(clip, clip * wider, links if max_links is None else max_links, trips)


_GAUSSIAN: dict[str, tuple[float, float, int, float]] = {
    "trip": (14.0, 3.0, 150, 1.0),
    "user_day": (20.0, 5.0, 2_500, 5.0),
    "user": (100.0, 12.0, 40_000, 25.0),
}
"""Clip in L2, how much wider zones are than links, links in all, trips. A trip of 40 links has norm 6.3, one of 196 has 14:
long trips on motorways must not be cut, lest the busiest roads are counted too low."""

_LAPLACE: dict[str, tuple[float, float, int, float]] = {
    "trip": (50.0, 1.0, 150, 1.0),
    "user_day": (400.0, 1.0, 2_500, 10.0),
    "user": (4_000.0, 1.0, 40_000, 100.0),
}
"""The same in L1, where a trip of 40 links has norm 40 by link and by zone."""
