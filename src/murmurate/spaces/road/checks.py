"""Checks of the arrays of a road network; all faults are reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.errors import Fault, InputError

PROJECTED = (
    "they look like metres of a projected system (such as UTM); transform them to degrees (EPSG:4326), "
    "or give the reader crs=..."
)
"""Explanation and remedy for coordinates outside the range of degrees."""


LONGEST_M, SLOWEST_KMH = 1e6, 1e-3
"""Longest link and least speed: beyond them costs overflow, and no road is like that."""


def refuse_bad_arrays(arrays: Mapping[str, NDArray[Any]], name: pl.Series | None, way_id: NDArray[Any] | None) -> None:
    """Raise an InputError with all faults, the row of the first of each kind named."""
    n_nodes, n_links = len(arrays["node_lat"]), len(arrays["link_from"])
    if n_links == 0:
        raise InputError("the network has no links.", remedy="check that the file holds roads, and the area or class filter.")
    wanted = dict.fromkeys(("link_to", "length_m", "road_class", "speed_kmh", "lanes"), n_links)
    wanted |= {"node_lng": n_nodes, "shape_offsets": n_links + 1, "shape_lng": len(arrays["shape_lat"])}
    faults = [
        Fault(f"has {len(arrays[key]):,} values where {size:,} were expected", column=key)
        for key, size in wanted.items()
        if len(arrays[key]) != size
    ]
    for key, values in (("name", name), ("way_id", way_id)):
        if values is not None and len(values) != n_links:
            faults.append(Fault(f"has {len(values):,} values where {n_links:,} were expected", column=key))
    if faults:
        raise InputError(faults)
    for key in ("link_from", "link_to"):
        _add(faults, key, (arrays[key] < 0) | (arrays[key] >= n_nodes), f"links end at nodes outside 0 to {n_nodes - 1:,}")
    _add(faults, "link_to", arrays["link_from"] == arrays["link_to"], "links begin and end at the same node (self-loops)")
    for key, bound in (("node_lat", 90.0), ("node_lng", 180.0), ("shape_lat", 90.0), ("shape_lng", 180.0)):
        values = arrays[key]
        _add(faults, key, ~np.isfinite(values), "values are NaN or infinite")
        outside = np.abs(values) > bound  # NaN compares false and was counted above
        hint = f"; {PROJECTED}" if outside.any() else ""
        _add(faults, key, outside, f"values lie outside -{bound:g} to {bound:g}{hint}")
    length, speed = arrays["length_m"], arrays["speed_kmh"]
    _add(faults, "length_m", ~((length > 0) & (length <= LONGEST_M)), "lengths are not finite metres above 0, at most 1,000 km")
    _add(faults, "speed_kmh", ~((speed >= SLOWEST_KMH) & (speed <= 500)), "speeds are not between 0.001 and 500 km/h")
    _add(faults, "road_class", (arrays["road_class"] < 1) | (arrays["road_class"] > 5), "classes are not 1 to 5")
    _add(faults, "lanes", arrays["lanes"] < 0, "lane counts are negative")
    offsets = arrays["shape_offsets"]
    if offsets[0] != 0 or offsets[-1] != len(arrays["shape_lat"]):
        faults.append(Fault(f"must begin at 0 and end at the {len(arrays['shape_lat']):,} vertices", column="shape_offsets"))
    _add(faults, "shape_offsets", np.diff(offsets) < 2, "links have fewer than two vertices")
    longitude = arrays["node_lng"]
    if not faults and np.ptp(longitude) > 180.0:
        faults.append(Fault("the network crosses the 180th meridian, which is not supported; cut it there", column="node_lng"))
    if faults:
        raise InputError(faults)


def _add(faults: list[Fault], column: str, bad: NDArray[np.bool_], reason: str) -> None:
    """Add a fault where any value is bad, with their number and the first row."""
    if bad.any():
        faults.append(Fault(f"{int(bad.sum()):,} {reason}", row=int(bad.argmax()), column=column))
