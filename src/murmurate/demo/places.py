"""Lay out the places of Sturnia: homes, workplaces, schools, shops, food, night places, parks, leisure; and who goes where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.demo.draws import PLACES, uniforms
from murmurate.demo.network import StreetMap
from murmurate.demo.plan import to_degrees

LABELS = ("home", "work", "school", "shop", "food", "night", "park", "leisure")
"""Kinds of places, as the truth names them."""
HOME, WORK, SCHOOL, SHOP, FOOD, NIGHT, PARK, LEISURE = range(8)
"""Positions in `LABELS`."""

_PER_NODE = {HOME: 0.62, WORK: 0.075, SCHOOL: 0.008, SHOP: 0.032, FOOD: 0.022, NIGHT: 0.014, LEISURE: 0.014}
"""Places per crossing of the city, by kind. Set by hand; every park is a place."""

_REACH_M = (1500.0, 4200.0, 1300.0, 1500.0, 2500.0, 3500.0, 1600.0, 2200.0)
"""[label] distance from home over which the appeal of a place falls by a factor of e, in metres. Set by hand."""


@dataclass(frozen=True, eq=False)
class Places:
    """Public list of places; `label` is what they truly are, and is handed out with the truth only."""

    node: Integers
    x: Floats
    y: Floats
    label: NDArray[np.int8]
    starts: Integers
    """Places of label k are starts[k]:starts[k + 1]."""
    appeal: Floats
    """Running sums, one row a home: how likely its people take up each place, label by label."""

    @property
    def n(self) -> int:
        return len(self.node)

    def table(self) -> pl.DataFrame:
        """Return the public list of places: place, lat, lng."""
        lat, lng = to_degrees(self.x, self.y)
        return pl.DataFrame({"place": np.arange(self.n), "lat": lat, "lng": lng})

    def labels(self) -> pl.DataFrame:
        """Return the truth about places: place, label."""
        names = pl.Series("label", [LABELS[k] for k in self.label.tolist()])
        return pl.DataFrame({"place": np.arange(self.n), "label": names})


def lay_out(streets: StreetMap, *, seed: int) -> Places:
    """Choose where everything stands; the same for the same streets and seed, however many people live there."""
    half = streets.plan.half_m
    nodes = [_sites(streets, label, seed) for label in range(len(LABELS))]
    node = np.concatenate(nodes)
    label = np.repeat(np.arange(len(LABELS), dtype=np.int8), [len(part) for part in nodes])
    # A place lies some steps from its crossing, never two at one spot.
    drawn = uniforms(seed, PLACES, 20, 3 * len(node)).reshape(3, -1)
    x = np.round(streets.node_x[node] + (drawn[0] - 0.5) * 36, 1)
    y = np.round(streets.node_y[node] + (drawn[1] - 0.5) * 36, 1)
    starts = np.r_[0, np.cumsum([len(part) for part in nodes])].astype(np.int64)
    size = np.minimum(1.0 / (0.02 + drawn[2]), 18.0)  # few large employers and shops, many small ones
    size[label == HOME] = 1.0
    size[label == SCHOOL] = 1.0
    centrality = np.exp(-np.hypot(x, y) / (0.25 * half))
    appeal = np.zeros((len(nodes[HOME]), len(node)))
    for kind in range(len(LABELS)):
        of_kind = slice(int(starts[kind]), int(starts[kind + 1]))
        gap = np.hypot(x[: len(appeal), None] - x[None, of_kind], y[: len(appeal), None] - y[None, of_kind])
        weight = np.exp(-gap / _REACH_M[kind]) * size[None, of_kind]
        if kind in (NIGHT, FOOD):
            weight = weight * (0.3 + centrality[None, of_kind])
        appeal[:, of_kind] = np.cumsum(weight, axis=1)
    return Places(node, x, y, label, starts, appeal)


def _sites(streets: StreetMap, label: int, seed: int) -> Integers:
    """Draw the crossings at which places of one label stand."""
    x, y, half = streets.node_x, streets.node_y, streets.plan.half_m
    if label == PARK:
        gap = np.hypot(x[None, :] - streets.plan.parks[:, 0, None], y[None, :] - streets.plan.parks[:, 1, None])
        return np.unique(gap.argmin(axis=1)).astype(np.int64)
    network = streets.network
    best_class = np.full(len(x), 5)
    np.minimum.at(best_class, network.link_from, network.road_class)
    from_centre = np.hypot(x, y) / half
    on_motorway = best_class == 1
    core = np.exp(-((from_centre / 0.22) ** 2))
    docks = np.exp(-(((x / half - 0.35) ** 2 + (y / half + 0.62) ** 2) / 0.03))
    works = np.exp(-(((x / half + 0.55) ** 2 + (y / half - 0.38) ** 2) / 0.025))
    main_street = np.where(best_class <= 3, 1.0, 0.25)
    weight = {
        HOME: (1.1 - core) * (1 - 0.8 * np.maximum(docks, works)),
        WORK: 0.18 + 1.6 * core + 1.6 * docks + 1.6 * works,
        SCHOOL: np.where(from_centre < 0.85, 1.0, 0.1),
        SHOP: main_street * (0.35 + core),
        FOOD: main_street * (0.2 + core + 0.4 * docks),
        NIGHT: 0.12 + 1.6 * core**2 + 0.9 * docks,
        LEISURE: 0.5 + 0.3 * core,
    }[label]
    weight = np.where(on_motorway, 0.0, weight)
    count = max(6, int(_PER_NODE[label] * len(x)))
    # Without replacement: the largest of weighted keys, one key a crossing.
    chance = np.maximum(uniforms(seed, PLACES, label, len(x)), 1e-12)
    key = np.where(weight > 0, np.log(chance) / np.maximum(weight, 1e-12), -np.inf)
    return np.sort(np.argsort(-key, kind="stable")[:count]).astype(np.int64)
