"""Where trips start and end: a pool of weighted (source, destination, hour) triples that show the noisy tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.frame import Frame
from murmurate.mechanisms.flock.tables import DIAMETERS, End, Parts, Zones, diameter_bin, end_bins
from murmurate.mechanisms.flock.tilt import Answer, fit_pulls, log_weights
from murmurate.synthesis.ends import Ends
from murmurate.synthesis.measure import ONE

TABLES = ("pairs", "pairs_hour", "source_hour", "destination_hour")


@dataclass(frozen=True, eq=False)
class EndsPool:
    """Triples of fine cells and hour with cumulative weights; drawing from it costs nothing."""

    source: Integers
    destination: Integers
    hour: Integers
    cumulative: Floats

    def sample(self, n: int, generator: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        """`n` triples."""
        at = np.searchsorted(self.cumulative, generator.random(n) * self.cumulative[-1], side="right")
        at = np.minimum(at, len(self.cumulative) - 1)
        return self.source[at], self.destination[at], self.hour[at]

    def where(self, keep: NDArray[np.bool_]) -> EndsPool:
        """The triples that meet a condition."""
        weight = np.diff(self.cumulative, prepend=0.0)[keep]
        return EndsPool(self.source[keep], self.destination[keep], self.hour[keep], np.cumsum(weight))


def fit_pool(  # noqa: PLR0917
    ends: Ends, answers: Mapping[str, Answer], frame: Frame, zones: Zones, n: float, size: int, generator: np.random.Generator
) -> EndsPool:
    """Draw independent ends, and weigh them until pairs, hours and distances are those of the noisy tables."""
    source, destination, hour = ends.sample(size, generator)
    pairs = answers["pairs"]
    table = pairs.noisy.reshape(2**zones.pairs, -1)
    deviation = pairs.deviation * len(table) ** 0.5
    asked = {name: answers[name] for name in (*TABLES, "apart") if name in answers}
    asked["sources"] = Answer(table.sum(axis=1), deviation)
    asked["destinations"] = Answer(table.sum(axis=0), deviation)
    trip = np.arange(size, dtype=np.int64)
    full = np.full(size, ONE, dtype=np.int64)
    bins = end_bins(End(source, destination, hour), frame, zones, set(asked))
    shown = {name: Parts(trip, at, full, n_bins) for name, (at, n_bins) in bins.items()}
    shown["apart"] = Parts(trip, diameter_bin(_apart_m(source, destination, frame, generator)), full, DIAMETERS)
    pulls = fit_pulls(shown, asked, n, size)
    weight = np.exp(log_weights(shown, pulls, size, most=6.0))
    return EndsPool(source, destination, hour, np.cumsum(weight))


def _apart_m(source: Integers, destination: Integers, frame: Frame, generator: np.random.Generator) -> Floats:
    """Metres between places drawn in two cells."""
    columns = frame.grid.columns
    aside = generator.random((2, len(source))) - generator.random((2, len(source)))
    north = destination // columns - source // columns + aside[0]
    return np.hypot(north, destination % columns - source % columns + aside[1]) * frame.grid.cell_m
