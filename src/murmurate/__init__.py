"""Murmurate: publish mobility data without exposing anyone, and prove it.

Private traces come in (`read`), one door charges a `Ledger` and lets a mechanism read them (`release`), and what leaves is a
release: data and a machine-readable guarantee. The names below are imported when first used, so that importing this is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PLACES = {
    "read": "murmurate.ingest.read",
    "scan": "murmurate.ingest.stream",
    "release": "murmurate.door",
    "rehearse": "murmurate.door",
    "fit": "murmurate.door",
    "sample": "murmurate.door",
    "verify": "murmurate.checking",
    "evaluate": "murmurate.review",
    "attack": "murmurate.review",
    "Ledger": "murmurate.core.ledger",
    "Trips": "murmurate.core.trips",
    "Release": "murmurate.core.release",
    "Score": "murmurate.core.score",
    "Unit": "murmurate.core.guarantee",
    "DP": "murmurate.core.guarantee",
    "GeoInd": "murmurate.core.guarantee",
    "NoGuarantee": "murmurate.core.guarantee",
    "Plane": "murmurate.spaces.plane",
    "Grid": "murmurate.spaces.grid",
    "RoadNetwork": "murmurate.spaces.road",
    "GeoIndistinguishability": "murmurate.mechanisms.geoind",
    "PredictiveGeoIndistinguishability": "murmurate.mechanisms.geoind_predictive",
    "AnchoredGeoIndistinguishability": "murmurate.mechanisms.geoind_anchors",
    "KAnonymousTrips": "murmurate.mechanisms.k_anonymity",
    "DPLoc": "murmurate.mechanisms.dp_loc",
    "NGram": "murmurate.mechanisms.ngram",
    "Flock": "murmurate.mechanisms.flock",
    "Plausible": "murmurate.mechanisms.plausible",
    "DPANI": "murmurate.mechanisms.dp_ani",
    "ODSuccessive": "murmurate.mechanisms.od_successive",
    "RoadCounts": "murmurate.mechanisms.road_counts",
}
_MODULES = ("errors", "noise", "demo", "dummies", "mechanisms", "spaces")

__all__ = ["__version__", *_PLACES, *_MODULES]  # noqa: PLE0604  the table is the list


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    if name in _MODULES:
        return import_module(f"murmurate.{name}")
    raise AttributeError(f"murmurate has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
