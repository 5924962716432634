"""Draw synthetic trips from a fitted model in parts, on any number of processes. Free: a model holds noisy answers only."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from murmurate.core import progress
from murmurate.core.mechanism import Model
from murmurate.core.space import Space
from murmurate.core.trips import Trips
from murmurate.engine import Engine
from murmurate.engine.shared import opened
from murmurate.noise import Randomness

SAMPLE_TRIPS = 50_000
"""Trips of a part, where a model does not say otherwise: what is made on the way to them stays below about 200 MB."""


def samples(model: Model, n: int, rng: Randomness, engine: Engine) -> Iterator[Trips]:
    """Yield `n` synthetic trips in parts, each from a stream of its own; the same trips for any number of processes."""
    at_once = int(getattr(model, "sample_trips", SAMPLE_TRIPS))
    firsts = range(0, n, at_once)
    shared = engine.share(model) if len(firsts) > 1 else model
    # all keys at once: whoever writes the parts draws from the same stream, sooner or later after each part
    keys = rng.words(4 * len(firsts)).reshape(-1, 4)
    items = (
        (shared, first, min(at_once, n - first), key.tobytes(), engine.place(f"sample-{first}"))
        for first, key in zip(firsts, keys, strict=True)
    )
    for drawn in progress.track(engine.map(_sample_part, items), "drawing trips", len(firsts)):
        yield drawn if isinstance(drawn, Trips) else drawn.take()


@dataclass(frozen=True)
class _Spilled:
    """Trips in a file: columns of points without names, and the sizes of the trips."""

    path: Path
    first: int
    sizes: NDArray[np.int32]
    space: Space | None
    time_zone: str

    def take(self) -> Trips:
        """Read the trips; their file is gone as soon as nothing holds them."""
        with pa.memory_map(str(self.path)) as mapped:
            points = pl.DataFrame(pl.from_arrow(pa.ipc.open_file(mapped).read_all()))
        self.path.unlink()
        names = np.repeat(np.arange(self.first, self.first + len(self.sizes)), self.sizes)
        table = points.with_columns(uid=pl.Series(names), tid=pl.Series(names))
        offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        return Trips._trusted(table, space=self.space, time_zone=self.time_zone, offsets=offsets)


def _sample_part(item: tuple[Any, int, int, bytes, Path | None]) -> Trips | _Spilled:
    shared, first, size, key, place = item
    drawn: Trips = opened(shared).sample(size, Randomness(key))  # no privacy claim rests on these draws
    if place is not None:
        half = place.with_name(f"{place.name}.{secrets.token_hex(4)}")  # two workers may be at one part
        drawn.table.drop("uid", "tid").write_ipc(half, compression="uncompressed")
        half.rename(place)
        return _Spilled(place, first, np.diff(drawn.offsets).astype(np.int32), drawn.space, drawn.time_zone)
    if first == 0:
        return drawn
    table = drawn.table.with_columns(pl.col("uid", "tid") + first)  # models number their trips from 0
    return Trips._trusted(table, space=drawn.space, time_zone=drawn.time_zone)
