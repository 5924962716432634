"""List what can be published, by what it is for; a mechanism without words of its own here is listed by its own sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from murmurate.core.guarantee import GeoInd, Guarantee, NoGuarantee
from murmurate.core.parameters import public_parameters
from murmurate.errors import MurmurateError
from murmurate.mechanisms import NAMES, build, mechanism_class
from murmurate.spaces import parse
from murmurate.studio.drafts import Draft

UNITS = {"trip": "one trip", "user_day": "a person’s day", "user": "a person"}
"""The units a person can choose, finest first, in the words of the pages."""
PER = {"point": "per point", "trip": "per trip", "user_day": "per person and day", "user": "per person"}
"""The same after a number."""
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Stops of the slider for epsilon; few, so that nobody reads meaning into small steps. Set by hand."""
COUNTS = (2.0, 3.0, 5.0, 10.0, 20.0)
"""Stops for k, the size of a group. Set by hand."""
CELL_M = 500.0
"""Size of the cells of a new area in metres. Set by hand: a few streets."""
MAX_TRIPS = {"user_day": 10, "user": 50}
"""Trips that are read of each unit where the person says nothing else. Set by hand."""
RADIUS_M = 200.0
"""Radius within which moved points protect a place, in metres. Set by hand: a block or two."""
N_OUT = 5000
"""Trips or days that are drawn where the mechanism wants a number. Set by hand."""


@dataclass(frozen=True)
class Product:
    """Hold one card: what is published, what it is good for, what it is not for."""

    mechanism: str
    title: str
    good_for: str
    not_for: str
    picture: str = "cells"
    """Which drawing of the stand-in city shows it: cells, trips, flows or links."""
    main: bool = False
    """Whether it stands among the first cards."""
    warning: str = ""


_KNOWN = {
    "flock": Product(
        "flock", "Synthetic trips", "Maps, traffic models, trip lengths and times; as many trips as you like.",
        "Following one person, rare places, anything about single trips.", "cells", True,
    ),
    "od_counts": Product(
        "od_counts", "Zone and flow tables", "Counts between zones by hour, as planners exchange them.",
        "Routes, or places smaller than a zone.", "flows", True,
    ),
    "road_counts": Product(
        "road_counts", "Road flows", "Traffic of every road by hour: planning, noise, air.",
        "Single trips, quiet side streets.", "links", True,
    ),
    "geoind": Product(
        "geoind", "Moved points", "Services that need every point roughly where it was.",
        "Open data: one known time and place usually re-identifies a trip.", "trips", True,
        "Each trip stays in the release, moved. Somebody who knows one time and place of a trip usually finds it.",
    ),
    "plausible": Product(
        "plausible", "Synthetic days", "Whole days of made-up people: home, work, visits.",
        "Traffic on roads, fewer than about a thousand people.", "trips", True,
    ),
    "k_anonymity": Product(
        "k_anonymity", "Grouped trips", "Trips hidden in groups of k that move together.",
        "Open data: what an attacker learns is not bounded.", "trips", False,
        "k-anonymity is not differential privacy: several releases cannot be added up, and outside knowledge can undo it.",
    ),
    "geoind_anchors": Product(
        "geoind_anchors", "Moved points, every few", "Moved points with less noise where points are close in time.",
        "Open data, as for moved points.", "trips", False,
        "Each trip stays in the release, moved. Somebody who knows one time and place of a trip usually finds it.",
    ),
    "geoind_predictive": Product(
        "geoind_predictive", "Moved points, repeated", "Moved points of people who often stand still.",
        "Open data, as for moved points.", "trips", False,
        "Each trip stays in the release, moved. Somebody who knows one time and place of a trip usually finds it.",
    ),
    "dp_loc": Product(
        "dp_loc", "Synthetic trips, DP-Loc", "Synthetic trips as the paper DP-Loc makes them.",
        "Following one person, rare places.", "cells",
    ),
    "ngram": Product(
        "ngram", "Synthetic sequences of cells", "Which cells follow each other, in many trips.",
        "Times, streets, and fewer than about ten thousand trips.", "cells",
    ),
    "dp_ani": Product(
        "dp_ani", "Road flows, DP-ANI", "Repeating the paper DP-ANI.", "Open data: nothing is promised.", "links",
    ),
    "od_successive": Product(
        "od_successive", "Road flows, trimmed", "Repeating the published trimming of trip ends.",
        "Open data: nothing is promised.", "links",
    ),
}  # fmt: skip
"""Mechanism -> words of its card."""


def products() -> list[Product]:
    """Return a card for every registered mechanism, the main ones first."""
    listed = [_KNOWN.get(name) or _from_registry(name) for name in NAMES]
    return sorted(listed, key=lambda product: (not product.main, list(_KNOWN).index(product.mechanism) if product.main else 0))


def product(mechanism: str) -> Product:
    """Return the card of one mechanism."""
    return _KNOWN.get(mechanism) or _from_registry(mechanism)


def _from_registry(name: str) -> Product:
    about = (mechanism_class(name).__doc__ or name).splitlines()[0]
    return Product(name, name.replace("_", " "), about, "")


def fields_of(mechanism: str) -> dict[str, Any]:
    """Return the parameters of a mechanism with their defaults; `MISSING` where one must be given."""
    return {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(mechanism_class(mechanism))
    }


def space_wanted(mechanism: str) -> str:
    """Say which public space a mechanism must be given: grid, road, or none."""
    if fields_of(mechanism).get("space", None) is not MISSING:
        return ""
    example = mechanism_class(mechanism).example.get("space", "")
    return example if example in ("grid", "road") else "grid"


def dial(mechanism: str) -> tuple[str, tuple[float, ...]]:
    """Return the parameter that the slider moves, and its stops."""
    known = fields_of(mechanism)
    return ("epsilon", EPSILONS) if "epsilon" in known else ("k", COUNTS)


def first_parameters(draft: Draft, mechanism: str, *, space: str | None = None) -> dict[str, Any]:
    """Return the parameters that a draft begins with: what was said on earlier pages, and the product's own defaults."""
    known = fields_of(mechanism)
    parameter, stops = dial(mechanism)
    values: dict[str, Any] = {parameter: 1.0 if parameter == "epsilon" else 5}
    if parameter == "epsilon" and values[parameter] not in stops:
        values[parameter] = stops[0]
    if "unit" in known and draft.unit:
        values["unit"] = draft.unit
    if "max_trips" in known and draft.unit in MAX_TRIPS:
        values["max_trips"] = draft.bounds.get("max_trips", MAX_TRIPS[draft.unit])
    if known.get("radius_m") is MISSING:
        values["radius_m"] = RADIUS_M
    if "n_out" in known:
        values["n_out"] = N_OUT
    wanted = space_wanted(mechanism)
    spec = space or (
        f"road:{draft.roads}" if wanted == "road" and draft.roads else grid_spec(draft) if wanted == "grid" else ""
    )
    if wanted and spec:
        values["space"] = spec
    return values


def grid_spec(draft: Draft) -> str:
    """Return the public grid of a draft as `--space` takes it; empty where no area is given."""
    area = draft.area
    if not area:
        return ""
    corners = ",".join(f"{area[name]:.6g}" for name in ("south", "west", "north", "east"))
    return f"grid:{corners}:{area['cell_m']:g}"


def at_stop(draft: Draft, value: float) -> dict[str, Any]:
    """Return the parameters of a draft with the slider elsewhere."""
    parameter, _ = dial(draft.mechanism)
    return {**draft.parameters, parameter: int(value) if parameter == "k" else value}


def built(mechanism: str, parameters: Mapping[str, Any]) -> Any:
    """Return the mechanism with these parameters; a bad one is refused in its own words. A road file is read once."""
    values = {name: value for name, value in parameters.items() if name != "seed"}
    for name in ("space", "roads"):
        if isinstance(values.get(name), str) and values[name].startswith("road:"):
            path = Path(values[name].removeprefix("road:"))
            values[name] = _read_once(values[name], path.stat().st_mtime_ns if path.is_file() else 0)
    return build(mechanism, values)


@lru_cache(maxsize=2)
def _read_once(spec: str, _changed: int) -> Any:
    return parse(spec)


def promise_of(mechanism: str, parameters: Mapping[str, Any]) -> Guarantee:
    """Return what these parameters promise."""
    guarantee: Guarantee = built(mechanism, parameters).guarantee()
    return guarantee


def unfit(draft: Draft, mechanism: str, space: Any) -> str:
    """Say why a product cannot promise what was chosen; empty where it can. `space` is any space of the kind it takes."""
    try:
        given = first_parameters(draft, mechanism)
        guarantee = promise_of(mechanism, {**given, **({"space": space} if space_wanted(mechanism) else {})})
    except MurmurateError as error:
        return str(error)
    if guarantee.unit.name != draft.unit and not isinstance(guarantee, NoGuarantee):
        return f"It promises for {guarantee.unit.words()} only, not for {UNITS[draft.unit]}."
    return ""


def ceiling(guarantee: Guarantee) -> float | None:
    """Return the share of right guesses that no attacker passes, where the promise bounds it; a coin is right half the time.

    Under (epsilon, delta) the two cases that are to be told apart differ by at most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1)
    in total variation. For moved points the question is which of two places, one protection radius apart, was the true one.
    """
    from math import exp

    if guarantee.kind == "dp":
        epsilon, delta = guarantee.epsilon, guarantee.delta  # type: ignore[union-attr]
    elif isinstance(guarantee, GeoInd) and guarantee.radius_m:
        epsilon, delta = guarantee.epsilon_per_m * guarantee.radius_m, 0.0
    else:
        return None
    if epsilon > 700:
        return 1.0
    return min(1.0, (exp(epsilon) + delta) / (exp(epsilon) + 1))


def every_parameter(mechanism: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return every parameter, defaults too, as a manifest would list them."""
    return public_parameters(built(mechanism, parameters))
