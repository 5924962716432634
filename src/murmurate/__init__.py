"""Murmurate: publish mobility data with a privacy guarantee that is stated, charged and checked.

Private traces come in (`read`), one door charges a `Ledger` and lets a mechanism read them (`release`), and what leaves is a
release: data and a machine-readable guarantee. The names below are imported when first used, so that importing this is quick;
editors and type checkers read the same names from the imports under `TYPE_CHECKING`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from murmurate import demo as demo
    from murmurate import errors as errors
    from murmurate import mechanisms as mechanisms
    from murmurate import noise as noise
    from murmurate import spaces as spaces
    from murmurate.core.guarantee import DP as DP
    from murmurate.core.guarantee import GeoInd as GeoInd
    from murmurate.core.guarantee import NoGuarantee as NoGuarantee
    from murmurate.core.guarantee import Unit as Unit
    from murmurate.core.ledger import Ledger as Ledger
    from murmurate.core.score import Score as Score
    from murmurate.core.trips import Trips as Trips
    from murmurate.custody.door import fit as fit
    from murmurate.custody.door import rehearse as rehearse
    from murmurate.custody.door import release as release
    from murmurate.custody.door import sample as sample
    from murmurate.ingest.read import read as read
    from murmurate.ingest.stream import scan as scan
    from murmurate.judging.checking import verify as verify
    from murmurate.judging.review import attack as attack
    from murmurate.judging.review import evaluate as evaluate
    from murmurate.mechanisms.dp_ani import DPANI as DPANI
    from murmurate.mechanisms.dp_loc import DPLoc as DPLoc
    from murmurate.mechanisms.flock import Flock as Flock
    from murmurate.mechanisms.geoind import GeoIndistinguishability as GeoIndistinguishability
    from murmurate.mechanisms.geoind_anchors import AnchoredGeoIndistinguishability as AnchoredGeoIndistinguishability
    from murmurate.mechanisms.geoind_predictive import PredictiveGeoIndistinguishability as PredictiveGeoIndistinguishability
    from murmurate.mechanisms.k_anonymity import KAnonymousTrips as KAnonymousTrips
    from murmurate.mechanisms.ngram import NGram as NGram
    from murmurate.mechanisms.od_counts import ODCounts as ODCounts
    from murmurate.mechanisms.od_successive import ODSuccessive as ODSuccessive
    from murmurate.mechanisms.plausible import Plausible as Plausible
    from murmurate.mechanisms.plausible import dummies as dummies
    from murmurate.mechanisms.road_counts import RoadCounts as RoadCounts
    from murmurate.releases.folder import Release as Release
    from murmurate.releases.opening import open as open
    from murmurate.spaces.grid import Grid as Grid
    from murmurate.spaces.plane import Plane as Plane
    from murmurate.spaces.road import RoadNetwork as RoadNetwork
else:  # hidden from type checkers: a module `__getattr__` would make every misspelt name look right
    from importlib import import_module

    _PLACES = {
        "read": "murmurate.ingest.read",
        "scan": "murmurate.ingest.stream",
        "release": "murmurate.custody.door",
        "rehearse": "murmurate.custody.door",
        "fit": "murmurate.custody.door",
        "sample": "murmurate.custody.door",
        "verify": "murmurate.judging.checking",
        "evaluate": "murmurate.judging.review",
        "attack": "murmurate.judging.review",
        "Ledger": "murmurate.core.ledger",
        "Trips": "murmurate.core.trips",
        "Release": "murmurate.releases.folder",
        "open": "murmurate.releases.opening",
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
        "ODCounts": "murmurate.mechanisms.od_counts",
        "ODSuccessive": "murmurate.mechanisms.od_successive",
        "RoadCounts": "murmurate.mechanisms.road_counts",
    }
    _MODULES = {
        "errors": "murmurate.errors",
        "noise": "murmurate.noise",
        "demo": "murmurate.demo",
        "dummies": "murmurate.mechanisms.plausible.dummies",
        "mechanisms": "murmurate.mechanisms",
        "spaces": "murmurate.spaces",
    }

    __all__ = ["__version__", *_PLACES, *_MODULES]  # noqa: PLE0604  the table is the list

    def __getattr__(name: str) -> object:
        if name in _PLACES:
            return getattr(import_module(_PLACES[name]), name)
        if name in _MODULES:
            return import_module(_MODULES[name])
        raise AttributeError(f"murmurate has no {name!r}; it has {', '.join(__all__)}")

    def __dir__() -> list[str]:
        return sorted(__all__)
