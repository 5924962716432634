"""Draw the maps of a board on one ground and one scale: where points are, what differs, who goes where, roads, a few trips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from murmurate.core.space import Floats
from murmurate.report.breaks import Breaks, shared_breaks
from murmurate.report.density import CLASSES, change_breaks, change_patches, density_patches
from murmurate.report.flow_map import CLASSES as FLOW_CLASSES
from murmurate.report.flow_map import Flows, flow_arcs, zone_grid
from murmurate.report.view import View
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid
from murmurate.studio import standin

LINK_CLASSES = 5
"""Classes of traffic, as many as the style sheet has."""
COLOURS = 6
"""Colours of single trips, as many as the style sheet has."""

Shape = tuple[str, str, str]
"""Class, path and title of one thing drawn."""


@dataclass(frozen=True)
class Layer:
    """Hold one way to look: the originals and every stop, each as shapes, with one legend."""

    name: str
    title: str
    original: tuple[Shape, ...]
    stops: tuple[tuple[Shape, ...], ...]
    legend: tuple[tuple[str, str], ...]
    about: str


@dataclass(frozen=True)
class Pictures:
    """Hold all maps of a page."""

    ground: tuple[tuple[str, str], ...]
    width: int
    height: int
    scale: tuple[int, str]
    layers: tuple[Layer, ...]
    grid: Grid | None
    credit: str


def pictures(board: Mapping[str, Any], ground: Mapping[str, Any]) -> Pictures:
    """Draw a board; `ground` holds the public map under it."""
    grid = parse(board["grid"]) if board.get("grid") else None
    laid = grid if isinstance(grid, Grid) else None
    stops, original = board["stops"], board["original"]
    layers: list[Layer] = []
    if laid is not None and "cells" in original:
        layers += _cells(laid, original, stops)
        layers.append(_flows(laid, original, stops))
        layers.append(_trips(original, stops))
    if "links" in original:
        layers += _links(ground.get("streets", {}), original, stops)
    width, height = ground["size"]
    return Pictures(
        tuple((kind, d) for kind, d in ground["ground"]),
        width,
        height,
        tuple(ground["scale"]),
        tuple(layers),
        laid,
        ground.get("credit", ""),
    )


def dense(pairs: Iterable[Sequence[int]], size: int) -> Floats:
    """Return shares in per cent of every cell from (cell, thousandths of a per cent)."""
    found = np.zeros(size)
    for cell, value in pairs:
        found[cell] = value / 1000
    return found


def _cells(grid: Grid, original: Mapping[str, Any], stops: Sequence[Mapping[str, Any]]) -> list[Layer]:
    view = View.of(grid)
    before = dense(original["cells"], grid.n_cells)
    after = [dense(stop.get("cells", ()), grid.n_cells) for stop in stops]
    # one bad setting with a single busy cell would squeeze all others: the scale follows the data and the median setting
    greatest = [float(share.max(initial=0.0)) for share in (before, *after)]
    breaks = shared_breaks(max(greatest[0], float(np.median(greatest))), CLASSES)
    changes = [share - before for share in after]
    scale = change_breaks(changes) if changes else Breaks(())

    def shares(values: Floats) -> tuple[Shape, ...]:
        return tuple((f"d{patch.number}", patch.d, patch.label) for patch in density_patches(view, grid, values, breaks))

    def difference(values: Floats) -> tuple[Shape, ...]:
        return tuple(
            (f"n{-patch.number}" if patch.number < 0 else f"p{patch.number}", patch.d, patch.label)
            for patch in change_patches(view, grid, values, scale)
        )

    labels, sizes = breaks.labels("% of points"), scale.labels("percentage points")
    first = CLASSES - breaks.n + 1
    fewer = [(f"n{k}", f"fewer by {sizes[k]}") for k in range(scale.n - 1, 0, -1)]
    more = [(f"p{k}", f"more by {sizes[k]}") for k in range(1, scale.n)]
    share_legend = tuple((f"d{first + k}", label) for k, label in enumerate(labels))
    return [
        Layer("density", "Where points are", shares(before), tuple(shares(values) for values in after), share_legend,
              "The same colour means the same share on every map."),
        Layer("difference", "Difference", shares(before), tuple(difference(values) for values in changes), (*fewer, *more),
              "Blue cells hold a smaller share than in the data, orange cells a larger one; small differences stay blank."),
    ]  # fmt: skip


def _flows(grid: Grid, original: Mapping[str, Any], stops: Sequence[Mapping[str, Any]]) -> Layer:
    zones, view = zone_grid(grid), View.of(grid)
    sides = [_strongest(side.get("flows", ())) for side in (original, *stops)]
    breaks = shared_breaks(max((float(side.share.max(initial=0.0)) for side in sides), default=0.0), FLOW_CLASSES)
    drawn = [tuple(_arcs(view, zones, side, breaks)) for side in sides]
    first = FLOW_CLASSES - breaks.n + 1
    legend = tuple((f"f{first + k}", label) for k, label in enumerate(breaks.labels("% of trips")))
    about = f"The strongest flows between zones of {zones.cell_m:,.0f} m; a ring stands for trips that stay in a zone."
    return Layer("flows", "Who goes where", drawn[0], tuple(drawn[1:]), legend, about)


def _strongest(flows: Sequence[Sequence[int]]) -> Flows:
    columns = np.array(flows, dtype=np.int64).reshape(-1, 3)
    return Flows(columns[:, 0], columns[:, 1], columns[:, 2] / 1000, 0.0)


def _arcs(view: View, zones: Grid, side: Flows, breaks: Breaks) -> Iterable[Shape]:
    if not len(side.share):
        return
    for arcs in flow_arcs(view, zones, side, breaks):
        ends = "".join(f"M{x} {y}h0" for x, y in arcs.ends)
        rings = "".join(f"M{x - 22} {y}a22 22 0 1 0 44 0a22 22 0 1 0 -44 0" for x, y in arcs.rings)
        yield f"flow f{arcs.number}", arcs.d + rings, arcs.label
        if ends:
            yield f"flow end f{arcs.number}", ends, arcs.label


def _trips(original: Mapping[str, Any], stops: Sequence[Mapping[str, Any]]) -> Layer:
    def strands(side: Mapping[str, Any]) -> tuple[Shape, ...]:
        return tuple((f"strand s{k % COLOURS + 1}", d, "one trip") for k, d in enumerate(side.get("trips", ())))

    about = "A few trips of each side, drawn at random. They are not the same trips."
    return Layer("trips", "Some trips", strands(original), tuple(strands(stop) for stop in stops), (), about)


def _links(streets: Mapping[str, str], original: Mapping[str, Any], stops: Sequence[Mapping[str, Any]]) -> list[Layer]:
    sides = [side.get("links", ()) for side in (original, *stops)]
    greatest = [max((value for _, value in side), default=0) for side in sides]
    breaks = shared_breaks(float(max(greatest[0], float(np.median(greatest)))), LINK_CLASSES)
    first = LINK_CLASSES - breaks.n + 1
    labels = breaks.labels("trips")

    def traffic(side: Sequence[Sequence[int]]) -> tuple[Shape, ...]:
        parts: dict[int, list[str]] = {}
        if side:
            for (link, _), number in zip(side, breaks.classes(np.array([value for _, value in side], float)), strict=True):
                parts.setdefault(int(number), []).append(streets.get(str(link), ""))
        return tuple((f"link t{first + k}", "".join(paths), labels[k]) for k, paths in sorted(parts.items()))

    before = {link for link, _ in sides[0]}

    def overlap(side: Sequence[Sequence[int]]) -> tuple[Shape, ...]:
        here = {link for link, _ in side}
        roles = (
            ("both", here & before, "in both"),
            ("lost", before - here, "only in the data"),
            ("added", here - before, "only here"),
        )
        return tuple(
            (f"link {role}", "".join(streets.get(str(k), "") for k in sorted(found)), words) for role, found, words in roles
        )

    legend = tuple((f"t{first + k}", label) for k, label in enumerate(labels))
    drawn = [traffic(side) for side in sides]
    roles = (("both", "in both"), ("lost", "only in the data"), ("added", "only in what would leave"))
    shared, kept = "The same colour means the same traffic on every map.", "Which roads are kept, lost and added."
    differences = tuple(overlap(side) for side in sides[1:])
    return [
        Layer("links", "Traffic of roads", drawn[0], tuple(drawn[1:]), legend, shared),
        Layer("difference", "Difference", drawn[0], differences, roles, kept),
    ]


@cache
def thumbnail(mechanism: str, unit: str, wanted: str) -> tuple[Shape, ...]:
    """Return a small picture of the stand-in city at a middle stop, for the card of a product."""
    found = next(filter(None, (standin.board(mechanism, name) for name in (unit, "user_day", "trip", "user"))), None)
    if found is None:
        return ()
    layers = {layer.name: layer for layer in pictures(found, standin.table()).layers}
    layer = layers.get({"cells": "density"}.get(wanted, wanted)) or next(iter(layers.values()), None)
    return layer.stops[len(layer.stops) // 2] if layer is not None else ()
