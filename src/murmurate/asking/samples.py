"""Draw synthetic trips from a fitted model in parts, on any number of processes. Free: a model holds noisy answers only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from murmurate.core.mechanism import Model
from murmurate.core.trips import Trips
from murmurate.engine import Engine
from murmurate.engine.processes import opened
from murmurate.noise import Randomness

SAMPLE_TRIPS = 50_000
"""Trips of a part, where a model does not say otherwise: what is made on the way to them stays below about 200 MB."""


def samples(model: Model, n: int, rng: Randomness, engine: Engine) -> Iterator[Trips]:
    """Yield `n` synthetic trips in parts, each from a stream of its own; the same trips for any number of processes."""
    at_once = int(getattr(model, "sample_trips", SAMPLE_TRIPS))
    firsts = range(0, n, at_once)
    shared = engine.share(model) if len(firsts) > 1 else model
    items = ((shared, first, min(at_once, n - first), rng.words(4).tobytes()) for first in firsts)
    return engine.map(_sample_part, items)


def _sample_part(item: tuple[Any, int, int, bytes]) -> Trips:
    shared, first, size, key = item
    drawn: Trips = opened(shared).sample(size, Randomness(key))  # no privacy claim rests on these draws
    if first == 0:
        return drawn
    table = drawn.table.with_columns(pl.col("uid", "tid") + first)  # models number their trips from 0
    return Trips._trusted(table, space=drawn.space, time_zone=drawn.time_zone)
