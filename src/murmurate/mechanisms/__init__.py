"""The mechanisms by name; each is one file or folder, imported only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from murmurate.core.parameters import closest
from murmurate.core.registry import Entry, Registry
from murmurate.errors import ParameterError
from murmurate.spaces import parse


@dataclass(frozen=True)
class Listed(Entry):
    """Where a mechanism lives, and which kind of release it makes where that is finer than the manifest's word."""

    release_kind: str = ""


NAMES: Registry[Listed] = Registry(
    "mechanism",
    {
        "geoind": Listed("murmurate.mechanisms.geoind:GeoIndistinguishability"),
        "geoind_predictive": Listed("murmurate.mechanisms.geoind_predictive:PredictiveGeoIndistinguishability"),
        "geoind_anchors": Listed("murmurate.mechanisms.geoind_anchors:AnchoredGeoIndistinguishability"),
        "k_anonymity": Listed("murmurate.mechanisms.k_anonymity:KAnonymousTrips"),
        "dp_loc": Listed("murmurate.mechanisms.dp_loc:DPLoc"),
        "ngram": Listed("murmurate.mechanisms.ngram:NGram"),
        "flock": Listed("murmurate.mechanisms.flock:Flock"),
        "plausible": Listed("murmurate.mechanisms.plausible:Plausible", release_kind="days"),
        "dp_ani": Listed("murmurate.mechanisms.dp_ani:DPANI"),
        "od_successive": Listed("murmurate.mechanisms.od_successive:ODSuccessive"),
        "road_counts": Listed("murmurate.mechanisms.road_counts:RoadCounts"),
        "od_counts": Listed("murmurate.mechanisms.od_counts:ODCounts"),
    },
)
"""Registry name -> module:class. One line a mechanism."""


def mechanism_class(name: str) -> type[Any]:
    """Return the class behind a name; an unknown name is refused with the nearest known one."""
    found: type[Any] = NAMES.load(name)
    return found


def build(name: str, parameters: Mapping[str, Any]) -> Any:
    """Build a mechanism from plain values, as recipes, manifests and `--set` give them; a space may be given built already."""
    kind = mechanism_class(name)
    known = {field.name: field for field in fields(kind)}
    unknown = [key for key in parameters if key not in known]
    if unknown:
        hints = "".join(closest(key, known) for key in unknown)
        raise ParameterError(f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(known)}.{hints}")
    values = dict(parameters)
    for key in ("space", "roads"):
        if isinstance(values.get(key), str):
            values[key] = parse(values[key])
    missing = [
        key
        for key, field in known.items()
        if key not in values and field.default is MISSING and field.default_factory is MISSING
    ]
    if missing:
        raise ParameterError(f"{name} needs a value for {', '.join(missing)}; give it with --set {missing[0]}=...")
    return kind(**values)


def example(name: str, spaces: Mapping[str, Any]) -> Any:
    """Build a mechanism with its demo settings; `spaces` gives the plane, grid and road of the data at hand."""
    settings = dict(mechanism_class(name).example)
    wanted = settings.get("space")
    if isinstance(wanted, str) and wanted in spaces:
        settings["space"] = spaces[wanted]
    return build(name, settings)
