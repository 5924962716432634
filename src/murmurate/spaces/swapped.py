"""Notice latitude and longitude that were exchanged, by cities, coasts or the shape of movement."""

from __future__ import annotations

import numpy as np

from murmurate.core.space import Floats
from murmurate.core.trips import Trips
from murmurate.spaces.coasts import on_land
from murmurate.spaces.gazetteer import looks_swapped

POINTS = 20_000
"""First points of some trips that are looked at. Set by hand."""
SEA_POINTS = 100
"""Points that are compared with coasts. Set by hand."""
OFFSHORE_DEG = 0.3
"""Distance from land, in degrees, from which on a place is at sea: not on a lake, a bridge or an island that is not drawn."""
MOSTLY = 0.9
"""Share of points on land, or at sea, that counts as all of them."""
MIN_STEPS = 200
"""Steps between points below which their shape says nothing. Set by hand."""
MIN_STRETCH = 0.6
"""Log ratio by which movement must be narrower from west to east than it should be. Streets and railways make up to 0.5: the
largest that was found in 23 places of three public data sets (2024)."""
NEAR_STRETCH = 0.3
"""Log ratio within which it must then fit the exchanged places. Set by hand."""


def why_swapped(trips: Trips) -> str | None:
    """Say why latitude and longitude look exchanged; None where they do not, or it cannot be told.

    No single sign is needed: no known city there but one at the exchanged place; open sea there but land at the exchanged
    place; or movement that is as wide in degrees as it would be at the exchanged place only. A degree from west to east is
    shorter than one from south to north by the cosine of the latitude, so movement spans more of them.
    """
    if not trips.has_coordinates or not trips.n_points:
        return None
    lat, lng = trips.lat[:POINTS], trips.lng[:POINTS]
    if np.abs(lng).max() > 90:
        return None  # exchanged, it would be no latitude
    if looks_swapped(lat, lng):
        return "as they are, no known city is there"
    some = slice(None, None, max(1, len(lat) // SEA_POINTS))
    ashore = on_land(lat[some], lng[some], within_deg=OFFSHORE_DEG)
    if ashore.mean() < 1 - MOSTLY and on_land(lng[some], lat[some]).mean() > MOSTLY:
        return "as they are, the places lie in the sea"
    same = np.diff(trips.point_trip[:POINTS]) == 0
    if _fits_exchanged(lat, lng, np.abs(np.diff(lat))[same], np.abs(np.diff(lng))[same]):
        return "as they are, movement is far too narrow from west to east for this latitude"
    return None


def _fits_exchanged(lat: Floats, lng: Floats, north: Floats, east: Floats) -> bool:
    """Return whether steps, in degrees, have the shape of the exchanged places and not of these."""
    length = np.hypot(north, east)
    moved = (length > 0) & (length <= np.quantile(length, 0.99)) if len(length) else length > 0  # no flights, no jumps
    if moved.sum() < MIN_STEPS or not north[moved].sum() or not east[moved].sum():
        return False
    found = np.log(east[moved].sum() / north[moved].sum())
    here, exchanged = -np.log(np.cos(np.radians(np.median(lat)))), np.log(np.cos(np.radians(np.median(lng))))
    return bool(found < here - MIN_STRETCH and abs(found - exchanged) < NEAR_STRETCH)
