"""Functional class (1 motorway ... 5 local) and usual speed of each kind of road that maps name."""

from __future__ import annotations

import re

CLASS_WORDS = {1: "motorway", 2: "primary", 3: "secondary", 4: "tertiary", 5: "local"}
"""Name of each class in files for other tools, as OpenStreetMap has them."""

CLASS_SPEED_KMH = {1: 90.0, 2: 55.0, 3: 45.0, 4: 40.0, 5: 30.0}
"""Speed in km/h of a class where nothing else is known; set by hand for city driving."""

ROADS: dict[str, tuple[int, float]] = {
    # OpenStreetMap `highway`: class, usual speed in km/h
    "motorway": (1, 100.0),
    "motorway_link": (1, 60.0),
    "trunk": (1, 80.0),
    "trunk_link": (1, 50.0),
    "primary": (2, 55.0),
    "primary_link": (2, 45.0),
    "secondary": (3, 45.0),
    "secondary_link": (3, 40.0),
    "tertiary": (4, 40.0),
    "tertiary_link": (4, 35.0),
    "unclassified": (5, 35.0),
    "residential": (5, 30.0),
    "living_street": (5, 15.0),
    "road": (5, 30.0),
    "service": (5, 20.0),
    "busway": (5, 30.0),
    # US Census TIGER `MTFCC`
    "S1100": (1, 90.0),  # primary road: limited access
    "S1200": (2, 50.0),  # secondary road: main arteries
    "S1300": (4, 40.0),  # minor connecting road (older files)
    "S1400": (5, 32.0),  # local neighbourhood road
    "S1630": (1, 50.0),  # ramp
    "S1640": (5, 30.0),  # service drive along a limited access road
    "S1730": (5, 15.0),  # alley
    "S1740": (5, 20.0),  # private road for service vehicles
    "S1750": (5, 20.0),  # internal Census use
    "S1780": (5, 10.0),  # parking lot road
    "S1500": (5, 20.0),  # vehicular trail
    # plain words and numbers, as this product and others write classes
    "1": (1, 90.0),
    "2": (2, 55.0),
    "3": (3, 45.0),
    "4": (4, 40.0),
    "5": (5, 30.0),
    "arterial": (1, 80.0),
    "local": (5, 30.0),
}
"""Functional class and usual speed in km/h of each word; speeds set by hand for city driving."""

DRIVEN = frozenset(word for word in ROADS if word.islower() and word not in ("service", "busway", "arterial", "local"))
"""The OpenStreetMap `highway` values read by default: where ordinary cars drive through."""


def class_and_speed(word: str) -> tuple[int, float] | None:
    """Return class and usual speed of a highway value, an MTFCC code or a class number; None if no car drives there.

    OSMnx writes several values of a merged street as a list; the first known one counts.

    >>> class_and_speed("secondary"), class_and_speed("S1400"), class_and_speed("['footway', 'primary']")
    ((3, 45.0), (5, 32.0), (2, 55.0))
    """
    for part in words_in(word):
        found = ROADS.get(part) or ROADS.get(part.removesuffix(".0"))
        if found:
            return found
    return None


def speed_kmh(text: str) -> float | None:
    """Return a `maxspeed` in km/h: '50', '30 mph', '20 knots', the slowest of a list; None where it says nothing numeric.

    >>> speed_kmh("25 mph"), speed_kmh("50"), speed_kmh("signals")
    (40.2336, 50.0, None)
    """
    found = []
    for part in words_in(text, separators="[],;|'\""):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(mph|knots|km/h|kmh|kph)?", part)
        if match and float(match[1]) > 0:
            factor = {"mph": 1.609344, "knots": 1.852}.get(match[2] or "", 1.0)
            found.append(round(float(match[1]) * factor, 6))
    return min(found) if found else None


def lane_count(text: str) -> int:
    """Return the number of lanes of a `lanes` tag; 0 for unknown.

    >>> lane_count("2"), lane_count("['2', '3']"), lane_count("")
    (2, 3, 0)
    """
    numbers = [float(part) for part in words_in(text) if re.fullmatch(r"\d+(\.\d+)?", part)]
    return min(99, int(max(numbers))) if numbers else 0


def words_in(text: str, separators: str = "[],;|'\" ") -> list[str]:
    """Split the values of a tag that may be a list written as text."""
    for separator in separators:
        text = text.replace(separator, "\n")
    return [part.strip() for part in text.split("\n") if part.strip()]
