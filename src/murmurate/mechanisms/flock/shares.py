"""Divide the budget among flock's tables: few trips tell most about places, many also about steps and hours."""

from __future__ import annotations

from murmurate.asking import Norm

SHARES = {
    "n": (0.02, 0.02),
    "ends": (0.27, 0.04),
    "origins": (0.0, 0.05),
    "destinations": (0.0, 0.05),
    "places": (0.02, 0.0),
    "visits": (0.39, 0.23),
    "pairs": (0.08, 0.12),
    "diameter": (0.11, 0.04),
    "shape": (0.11, 0.04),
    "towards": (0.0, 0.12),
    "steps": (0.0, 0.22),
    "sizes": (0.0, 0.07),
}
"""Shares of the budget without parts of the day, at detail 0 and at detail 1; in between they change linearly. Few trips tell
most about places, many also about steps. At detail 0 ends, visits and pairs were chosen among four divisions at epsilon 1 on
the built-in city and on other samples of San Francisco and Geolife than are scored, six releases each."""

GAUSSIAN_MOVES = {"visits": 0.13, "towards": 0.20, "steps": 0.24}
"""Shares at detail 1 under Gaussian noise instead of those above: the deviation grows with the root of a smaller share only, so
tables of many bins may take more. Chosen on half of the San Francisco taxis at epsilon 2, two releases each: of the top 100
patterns on 250 m cells 90 % instead of 86 % are found. Under Laplace noise they made ranks worse."""

HOUR_SHARES = {
    "source_hour": (0.04, 0.14),
    "destination_hour": (0.04, 0.14),
    "pairs_hour": (0.0, 0.06),
    "sizes_hour": (0.0, 0.05),
}
"""Shares of the tables by part of the day, where it is distinguished; the others are scaled down. Chosen by hand."""

MIN_SHARE = 0.004
"""Smallest share with which a table is measured; below, the table is left out and its share goes to the others. Such a table
would be all noise. Chosen by hand."""

COUNT_SHARE = 0.02
"""Share of the noisy number of trips. It is measured first, because it decides which of these tables are used. Chosen by
hand."""

SPEED_SHARES = {"pace": 0.02, "pace_hour": 0.01}
"""Shares of the speed tables, where trips have times; the other tables except the count are scaled down. Chosen by hand."""


def shares(*, hours: int, detail: float, timed: bool, norm: Norm) -> dict[str, float]:
    """Return the share of the budget of each table; they add up to one."""
    detailed = GAUSSIAN_MOVES if norm == "l2" else {}
    by_hour = {name: few + detail * (many - few) for name, (few, many) in HOUR_SHARES.items()} if hours > 1 else {}
    pace = {name: value for name, value in SPEED_SHARES.items() if timed and (name == "pace" or hours > 1)}
    parts = {name: few + detail * (detailed.get(name, many) - few) for name, (few, many) in SHARES.items() if name != "n"}
    left = 1 - COUNT_SHARE - sum(pace.values())
    parts = _scaled(parts, left - sum(by_hour.values())) | by_hour
    kept = {name: value for name, value in parts.items() if value >= MIN_SHARE}
    return {"n": COUNT_SHARE} | _scaled(kept, left) | pace


def _scaled(parts: dict[str, float], total: float) -> dict[str, float]:
    """Return shares in the same proportions that add up to `total`."""
    whole = sum(parts.values())
    return {name: value * total / whole for name, value in parts.items()}
