"""Measure one setting after the other by rehearsals, and keep what the page shows of it: errors, maps, odds.

The same numbers come from the public stand-in, computed ahead, and from rehearsals on the own file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from murmurate import noise
from murmurate.core import progress
from murmurate.core.ledger import Ledger
from murmurate.core.space import Floats
from murmurate.core.trips import Trips
from murmurate.custody.door import rehearse
from murmurate.errors import MurmurateError
from murmurate.judging.attack_words import attack_label
from murmurate.judging.review import positions
from murmurate.judging.scoring import run_attacks, take_metrics
from murmurate.mechanisms import NAMES, build
from murmurate.metrics.comparison import Side
from murmurate.releases import kind_named, kind_of_data
from murmurate.releases.kind import Kind
from murmurate.report.density import display_grid, visit_shares
from murmurate.report.flow_map import strongest_flows, zone_grid
from murmurate.report.ground import BaseMap, ground, link_shapes
from murmurate.report.traffic_maps import network_view
from murmurate.report.view import View, lines
from murmurate.report.words import KEY_ATTACKS
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork

RUNS = 5
"""Rehearsals of each setting: one alone misleads."""
SHOWN_TRIPS = 14
"""Trips drawn of a release. Set by hand."""
SHOWN_FLOWS = 40
"""Flows drawn of a release. Set by hand."""
MEASURES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "trips": {
        "range_queries": ("error of a count in an area", "%"),
        "top_places.coverage_50": ("of the 50 busiest cells are found", "%"),
        "length.relative_mean_change": ("change of the mean trip length", "%"),
        "od_emd_whole": ("off in start-to-end flows", "m"),
    },
    "days": {
        "day_visits.top50_coverage": ("of the 50 most visited cells are found", "%"),
        "day_mobility.visits_similarity": ("likeness of visits by part of the day", "%"),
        "day_mobility.moves_similarity": ("likeness of moves between places", "%"),
    },
    "network": {
        "network_links.relative_error": ("error of the busiest links", "%"),
        "network_links.top_100": ("of the 100 busiest links are found", "%"),
        "network_length.lost": ("of the roads are lost, by length", "%"),
        "network_hours.profile": ("of the traffic is at other hours", "%"),
    },
}
"""Kind -> score -> its words and unit, the first one first; other kinds show the first scores of their headline."""


def measures(kind: Kind) -> dict[str, tuple[str, str]]:
    """Return the scores that a kind of release is shown with, each with its words and unit."""
    found = MEASURES.get(kind.name) or {name: (words, "") for name, words in list(kind.headline.items())[:4]}
    return dict(found)


def kind_made_by(mechanism: str, payload: Any) -> Kind:
    """Return the kind of what a mechanism made."""
    finer = NAMES[mechanism].release_kind
    return kind_named(finer) if finer else kind_of_data(payload)


def rehearsed(
    mechanism: str,
    settings: Sequence[tuple[float, Mapping[str, Any]]],
    private: Trips,
    *,
    grid: Grid | None,
    ledger: Ledger | None = None,
    runs: int = RUNS,
    seed: int | None = None,
    with_attacks: bool = True,
) -> dict[str, Any]:
    """Rehearse every setting (stop, parameters) several times, and return the board of the page.

    `ledger` notes every rehearsal. `seed` is for public stand-ins, so that their table can be made again.
    """
    stops: list[dict[str, Any]] = []
    board: dict[str, Any] = {"mechanism": mechanism, "runs": runs, "kind": "", "measures": {}, "floor": {}}
    total = len(settings) * runs
    for number, (value, parameters) in enumerate(settings):
        stop: dict[str, Any] = {"value": value, "scores": {}, "attacks": {}}
        try:
            built = build(mechanism, parameters)
            found: list[dict[str, float]] = []
            for run in range(runs):
                progress.report("rehearsing", number * runs + run, total)
                rng = noise.secure() if seed is None else noise.seeded(seed + 1000 * number + run)
                rehearsal = rehearse(built, private, ledger=ledger, rng=rng)
                kind = kind_made_by(mechanism, rehearsal.payload)
                board |= {"kind": kind.name, "measures": measures(kind)}
                pairing = None
                if rehearsal.paired and isinstance(rehearsal.payload, Trips):
                    pairing = positions(rehearsal.payload, private, None, kept=True)
                found.append(_scored(kind, rehearsal.payload, private, grid, pairing, board))
                if run == 0:
                    stop |= drawn(rehearsal.payload, grid)
                    stop["n"] = kind.n_trips(rehearsal.payload)
                    if with_attacks:
                        stop["attacks"] = _attacked(kind, rehearsal.payload, private, pairing)
            stop["scores"] = _ranges(found)
        except MurmurateError as error:
            stop["refused"] = str(error)
        stops.append(stop)
    progress.report("rehearsing", total, total)
    board |= {"stops": stops, "grid": None if grid is None else display_grid(grid).spec()}
    return board | {"original": {**_drawn_original(board["kind"], private, grid, settings, mechanism), **_sizes(private)}}


def drawn_ground(view: View, base: BaseMap | RoadNetwork | None, grid: Grid | None) -> dict[str, Any]:
    """Return the public map under all maps of a board: layers, whom to credit, size, scale, and the path of every street."""
    found = ground(view, base, grid)
    network = base.network if isinstance(base, BaseMap) else base
    once = [] if network is None else [k for k in range(network.n_links) if network.twin[k] < 0 or k < network.twin[k]]
    return {
        "ground": [[layer.kind, layer.d] for layer in found.layers],
        "credit": found.credit,
        "size": list(view.size),
        "scale": list(view.scale_bar()),
        "streets": {} if network is None else {k: lines(*link_shapes(view, network, np.array([k]))) for k in once},
    }


def window(grid: Grid | None, network: RoadNetwork | None) -> View:
    """Return the window of the maps: the public area, or the public network."""
    if grid is not None:
        return View.of(grid)
    return network_view(network) if network is not None else View(-60.0, -180.0, 75.0, 180.0)


def _sizes(private: Trips) -> dict[str, int]:
    return {"n": private.n_trips, "people": len(private.user_offsets) - 1}


def _scored(  # noqa: PLR0917
    kind: Kind, released: Any, private: Trips, grid: Grid | None, pairing: Any, board: dict[str, Any]
) -> dict[str, float]:
    """Take the few scores of the page; what is not measurable on these data is left out."""
    wanted = measures(kind)
    if not kind.n_trips(released) and kind.identifiers:
        return {}
    metrics = [name for name in dict.fromkeys(score.split(".")[0] for score in wanted) if name in kind.scores]
    taken = take_metrics(kind, released, private, grid=grid, pairing=pairing, metrics=metrics, workers=1)
    values = {score.name: score.value for score in taken.scores}
    board["floor"] |= {name: values[f"{name}.floor"] for name in wanted if f"{name}.floor" in values}
    return {name: values[name] for name in wanted if math.isfinite(values.get(name, math.nan))}


def _ranges(found: list[dict[str, float]]) -> dict[str, list[float]]:
    """Return mean, lowest and highest of each score."""
    names = dict.fromkeys(name for values in found for name in values)
    ranges = {}
    for name in names:
        values = [abs(run[name]) if name.endswith("_change") else run[name] for run in found if name in run]
        ranges[name] = [_short(float(np.mean(values))), _short(min(values)), _short(max(values))]
    return ranges


def _attacked(kind: Kind, released: Any, private: Trips, pairing: Any) -> dict[str, dict[str, Any]]:
    """Run the attacks that read this kind, and keep the result of each that a reader should see first."""
    if not kind.attacks or (kind.identifiers and not kind.n_trips(released)):
        return {}
    scores = run_attacks(kind, released, private, pairing=pairing).scores
    first = {score.name.split(".")[0]: score for score in reversed(scores)}
    first |= {score.name.split(".")[0]: score for score in scores if score.name in KEY_ATTACKS}
    return {
        score.name: {
            "words": attack_label(score.name),
            "value": _short(score.value),
            "low": None if score.low is None else _short(score.low),
            "high": None if score.high is None else _short(score.high),
            "chance": None if score.chance is None else _short(score.chance),
            "knows": score.note,
        }
        for score in first.values()
        if math.isfinite(score.value)
    }


# -- what maps are drawn from ------------------------------------------------------------------------------------------


def drawn(payload: Any, grid: Grid | None) -> dict[str, Any]:
    """Return what the maps show of a release: shares of cells in 1/1000 %, the strongest flows, a few trips, links."""
    if isinstance(payload, LinkFlows):
        return {"links": _streets(payload)}
    if not isinstance(payload, Trips) or grid is None or not payload.n_trips:
        return {}
    shown, zones = display_grid(grid), zone_grid(grid)
    side = Side(payload, shown)
    flows = strongest_flows(side, zones)
    kept = slice(0, SHOWN_FLOWS)
    pairs = zip(flows.origin[kept].tolist(), flows.destination[kept].tolist(), _thousandths(flows.share[kept]), strict=True)
    return {
        "cells": _sparse(_thousandths(visit_shares(side))),
        "flows": [list(pair) for pair in pairs],
        "trips": list(_lines(side, View.of(grid))),
    }


def _drawn_original(kind: str, private: Trips, grid: Grid | None, settings: Any, mechanism: str) -> dict[str, Any]:
    """Return the same of the originals; on roads they are matched to the network of the release first."""
    if kind != "network":
        return drawn(private, grid)
    network = build(mechanism, settings[0][1]).space
    return {"links": _streets(LinkFlows.of_drives(drives_of(private, network)))}


def _streets(flows: LinkFlows) -> list[list[int]]:
    """Return traffic of streets, both directions together, as (first link, traffic) where there is any."""
    network = flows.network
    totals = np.asarray(flows.totals, dtype=np.float64)
    there = np.arange(network.n_links)
    first = np.where((network.twin >= 0) & (network.twin < there), network.twin, there)
    both = np.bincount(first, weights=totals, minlength=network.n_links)
    used = np.flatnonzero(both > 0)
    return [[int(link), round(float(both[link]))] for link in used]


def _lines(side: Side, view: View) -> Iterator[str]:
    x, y = view.project(*side.degrees)
    for k in np.random.default_rng(0).permutation(side.n)[:SHOWN_TRIPS].tolist():
        part = slice(side.offsets[k], side.offsets[k + 1])
        # every few points are enough for a picture
        step = max(1, (part.stop - part.start) // 24)
        xs, ys = x[part][::step], y[part][::step]
        d = lines(xs, ys, np.array([0, len(xs)]))
        if d:
            yield d


def _thousandths(values: Floats) -> list[int]:
    return [int(value) for value in np.rint(1000 * np.asarray(values))]


def _sparse(values: list[int]) -> list[list[int]]:
    """Return (cell, value) of the cells that are not empty."""
    return [[cell, value] for cell, value in enumerate(values) if value]


def _short(value: float) -> float:
    """Return three digits of a number: more would be noise, and the shipped table grows."""
    return float(f"{value:.3g}") if math.isfinite(value) else value
