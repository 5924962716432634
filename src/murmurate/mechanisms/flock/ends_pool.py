"""Where trips start and end: a pool of weighted (source, destination, hour) triples that show the noisy tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from murmurate.asking import Answer, Norm
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.estimates import fit_pulls, log_weights
from murmurate.mechanisms.flock.gravity import fit_gravity, placed
from murmurate.mechanisms.flock.shapes import Shapes
from murmurate.mechanisms.flock.tables import DIAMETERS, Parts, Zones, diameter_bin, end_bins, once_each, shared
from murmurate.mechanisms.flock.tracks import End, Frame
from murmurate.synthesis.ends import Ends, draw_within

TABLES = ("pairs", "pairs_hour", "source_hour", "destination_hour")


@dataclass(frozen=True, eq=False)
class Ways:
    """Places of both ends in fine cells, and how far and how long the way between them goes."""

    first_y: Floats
    first_x: Floats
    last_y: Floats
    last_x: Floats
    diameter_m: Floats
    length_m: Floats

    def take(self, at: Integers | NDArray[np.bool_]) -> Ways:
        return Ways(*(getattr(self, field.name)[at] for field in fields(self)))

    def moved(self, top: tuple[float, float], generator: np.random.Generator) -> Ways:
        """Both ends moved by the same amount, each within its fine cell and the box, so that no two draws are the same."""
        places = []
        for one, other, edge in ((self.first_y, self.last_y, top[0]), (self.first_x, self.last_x, top[1])):
            least = np.maximum(np.floor(one) - one, np.floor(other) - other)
            most = np.minimum(np.minimum(np.floor(one) + 1, edge) - one, np.minimum(np.floor(other) + 1, edge) - other)
            by = least + np.maximum(most - least, 0.0) * generator.random(len(one))
            places.append((one + by, other + by))
        (first_y, last_y), (first_x, last_x) = places
        return Ways(first_y, first_x, last_y, last_x, self.diameter_m, self.length_m)


@dataclass(frozen=True, eq=False)
class DrawnEnds:
    """Fine cells of both ends and hours of drawn trips, and their ways where these were drawn first."""

    source: Integers
    destination: Integers
    hour: Integers
    ways: Ways | None


@dataclass(frozen=True, eq=False)
class EndsPool:
    """Triples of fine cells and hour with cumulative weights, those that are alike together; drawing from it costs nothing."""

    source: Integers
    destination: Integers
    hour: Integers
    cumulative: Floats
    ways: Ways | None = None

    def sample(self, n: int, generator: np.random.Generator) -> DrawnEnds:
        """`n` of them, by weight and in the order of the pool: each stretch of it gives as many as it should, but for one."""
        even = (np.arange(n) + generator.random()) / n
        at = np.searchsorted(self.cumulative, even * self.cumulative[-1], side="right")
        at = np.minimum(at, len(self.cumulative) - 1)
        ways = None if self.ways is None else self.ways.take(at)
        return DrawnEnds(self.source[at], self.destination[at], self.hour[at], ways)

    def where(self, keep: NDArray[np.bool_]) -> EndsPool:
        """Those that meet a condition."""
        weight = np.diff(self.cumulative, prepend=0.0)[keep]
        ways = None if self.ways is None else self.ways.take(keep)
        return EndsPool(self.source[keep], self.destination[keep], self.hour[keep], np.cumsum(weight), ways)


def independent_pool(  # noqa: PLR0917
    ends: Ends, answers: Mapping[str, Answer], frame: Frame, zones: Zones, n: float, size: int, generator: np.random.Generator
) -> EndsPool:
    """Draw independent ends, and weigh them until pairs, hours and distances are those of the noisy tables."""
    source, destination, hour = ends.sample(size, generator)
    apart = diameter_bin(_apart_m(source, destination, frame, generator))
    distances = {"apart": (once_each(apart, DIAMETERS), answers["apart"])}
    weight = _weights(End(source, destination, hour), distances, answers, frame, zones, n)
    order = np.lexsort((apart, zones.zone[destination], zones.zone[source], hour))
    return EndsPool(source[order], destination[order], hour[order], np.cumsum(weight[order]))


def gravity_pool(  # noqa: PLR0917
    shapes: Shapes,
    inside: Floats,
    hours: tuple[Floats, Floats],
    answers: Mapping[str, Answer],
    frame: Frame,
    zones: Zones,
    norm: Norm,
    n: float,
    size: int,
    generator: np.random.Generator,
) -> EndsPool:
    """Draw how far trips go, then ends that far apart, then an hour; weigh them until pairs, ends and hours agree.

    `inside` is the belief about ends by fine cell, `hours` that about [zone, hour] of either end.
    """
    walked: Floats = np.bincount(
        frame.walked_of(np.arange(frame.grid.n_cells)), weights=inside, minlength=frame.n_walked
    ).astype(float)
    gravity = fit_gravity(frame, walked, shapes.apart(generator))
    diameter_m, apart_m, length_m = shapes.draw(size, generator)
    first, last = gravity.sample(apart_m, generator)
    first_y, first_x, last_y, last_x = placed(frame, inside, first, last, apart_m, generator)
    source, destination = frame.fine_at(first_y, first_x), frame.fine_at(last_y, last_x)
    hour = np.zeros(size, dtype=np.int64)
    if frame.hours > 1:
        by_hour = [table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12) for table in hours]
        whole = np.maximum((hours[0] + hours[1]).sum(axis=0), 1e-9)
        at = zones.at(source, zones.by_hour), zones.at(destination, zones.by_hour)
        given = by_hour[0][at[0]] * by_hour[1][at[1]] / (whole / whole.sum())
        hour = draw_within(given + 1e-12, np.arange(size, dtype=np.int64), generator)
    extra = {}
    if "ends" in answers:
        both, owner = np.column_stack([source, destination]).ravel(), np.repeat(np.arange(size, dtype=np.int64), 2)
        extra["ends"] = (shared(frame.walked_of(both), owner, frame.n_walked, norm), answers["ends"])
    weight = _weights(End(source, destination, hour), extra, answers, frame, zones, n)
    ways = Ways(first_y, first_x, last_y, last_x, diameter_m, length_m)
    order = np.lexsort((diameter_m, hour, zones.at(destination, zones.pairs), zones.at(source, zones.pairs)))
    return EndsPool(source[order], destination[order], hour[order], np.cumsum(weight[order]), ways.take(order))


def _weights(  # noqa: PLR0917
    drawn: End,
    extra: Mapping[str, tuple[Parts, Answer]],
    answers: Mapping[str, Answer],
    frame: Frame,
    zones: Zones,
    n: float,
) -> Floats:
    """Of drawn ends, so that they show the tables over ends and those given beside them."""
    size = len(drawn.source)
    asked = {name: answers[name] for name in TABLES if name in answers}
    if "apart" in extra:
        table = answers["pairs"].noisy.reshape(2**zones.pairs, -1)
        deviation = answers["pairs"].deviation * len(table) ** 0.5
        asked["sources"] = Answer(table.sum(axis=1), deviation)
        asked["destinations"] = Answer(table.sum(axis=0), deviation)
    bins = end_bins(drawn, frame, zones, set(asked))
    shown = {name: once_each(at, n_bins) for name, (at, n_bins) in bins.items()}
    for name, (part, answer) in extra.items():
        shown[name], asked[name] = part, answer
    pulls = fit_pulls(shown, asked, n, size)
    return np.exp(log_weights(shown, pulls, size, most=6.0))


def _apart_m(source: Integers, destination: Integers, frame: Frame, generator: np.random.Generator) -> Floats:
    """Metres between places drawn in two cells."""
    columns = frame.grid.columns
    aside = generator.random((2, len(source))) - generator.random((2, len(source)))
    north = destination // columns - source // columns + aside[0]
    return np.hypot(north, destination % columns - source % columns + aside[1]) * frame.grid.cell_m
