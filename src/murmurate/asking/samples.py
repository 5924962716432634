"""Draw synthetic trips from a fitted model in parts, on any number of processes. Free: a model holds noisy answers only."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from murmurate.core import progress
from murmurate.core.mechanism import Model
from murmurate.core.pseudonyms import write_drawn
from murmurate.core.space import Space
from murmurate.core.trips import Trips
from murmurate.engine import Engine
from murmurate.engine.shared import give_back_memory, keep_freed_memory, opened
from murmurate.engine.written_files import NewFile, Written, new_files, write_files
from murmurate.errors import EngineError
from murmurate.noise import Randomness

SAMPLE_TRIPS = 50_000
"""Trips drawn at once, where a model does not say otherwise: what is made on the way to them stays below about 200 MB."""

ONE_FILE_TRIPS = 1_000_000
"""Up to this many trips are written to one file by one process; more go to a folder of files, each written by a worker. Set by
hand: one process writes a million trips in about two seconds."""

MAX_FILES = 1_000
"""Most files in a folder of trips. More trips make larger files: those who open a folder look into each of them."""


@dataclass(frozen=True)
class Samples:
    """Synthetic trips that are drawn when somebody goes over them; the same for any engine and number of workers."""

    model: Model
    n: int
    rng: Randomness
    engine: Engine

    def __iter__(self) -> Iterator[Trips]:
        """Yield the trips in parts, each from a stream of its own."""
        firsts = range(0, self.n, self._at_once)
        shared = self.engine.share(self.model) if len(firsts) > 1 else self.model
        # all keys at once: whoever writes the parts draws from the same stream, sooner or later after each part
        keys = self.rng.words(4 * len(firsts)).reshape(-1, 4)
        items = (
            (shared, first, min(self._at_once, self.n - first), key.tobytes(), self.engine.place(f"sample-{first}"))
            for first, key in zip(firsts, keys, strict=True)
        )
        results = progress.track(self.engine.map(_sample_part, items), "drawing trips", len(firsts))
        n_parts = 0
        for n_parts, drawn in enumerate(results, start=1):
            if n_parts > len(firsts):
                break
            yield drawn if isinstance(drawn, Trips) else drawn.take()
        if n_parts != len(firsts):
            raise EngineError("a part of the drawn trips came twice or not at all.", "Run it again.")

    def write_to(self, path: Path, *, emits: Sequence[str], keep_ids: bool = False) -> dict[str, str]:
        """Write the trips: to one file or, above `ONE_FILE_TRIPS`, to a folder of that name with files part-00000.parquet, ...

        Returns the SHA-256 of each file in the folder, by its name; nothing where there is one file. Each file is written and
        hashed by the worker that drew its trips. Which trips a file holds depends on `n` alone, and its bytes on the stream.
        """
        if self.n <= ONE_FILE_TRIPS:
            write_drawn(((part, self.rng) for part in self), path, emits=emits, keep_ids=keep_ids)
            return {}
        firsts = range(0, self.n, self._at_once)
        keys = self.rng.words(8 * len(firsts)).reshape(-1, 8)
        batches = [
            _Batch(first, min(self._at_once, self.n - first), key.tobytes()) for first, key in zip(firsts, keys, strict=True)
        ]
        each = -(-len(batches) // MAX_FILES)
        shared = self.engine.share(self.model)
        give_back_memory()  # of the copy that was written for the workers
        items = [
            _File(shared, tuple(batches[k * each : (k + 1) * each]), file, tuple(emits), keep_ids)
            for k, file in enumerate(new_files(self.engine, path, -(-len(batches) // each)))
        ]
        return write_files(self.engine, _write_file, items, path, "drawing trips")

    @property
    def _at_once(self) -> int:
        return int(getattr(self.model, "sample_trips", SAMPLE_TRIPS))


@dataclass(frozen=True)
class _Batch:
    """Trips that are drawn at once."""

    first: int
    size: int
    keys: bytes
    """Of the stream that draws the trips, and of the one that names them."""


@dataclass(frozen=True)
class _File:
    """A file of a folder of trips, for the worker that writes it."""

    model: Any
    batches: tuple[_Batch, ...]
    file: NewFile
    emits: tuple[str, ...]
    keep_ids: bool


def _write_file(one: _File) -> Written:
    """Draw, write and hash one file."""
    if one.file.place is not None:  # in a worker, which nobody else uses
        keep_freed_memory()
    model = opened(one.model)

    def parts() -> Iterator[tuple[Trips, Randomness]]:
        for batch in one.batches:
            yield _sampled(model, batch.first, batch.size, batch.keys[:32]), Randomness(batch.keys[32:])

    return one.file.write(lambda path: write_drawn(parts(), path, emits=one.emits, keep_ids=one.keep_ids))


def _sampled(model: Any, first: int, size: int, key: bytes) -> Trips:
    drawn: Trips = model.sample(size, Randomness(key))  # no privacy claim rests on these draws
    if first == 0:
        return drawn
    table = drawn.table.with_columns(pl.col("uid", "tid") + first)  # models number their trips from 0
    return Trips._trusted(table, space=drawn.space, time_zone=drawn.time_zone, offsets=drawn.offsets)


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
    if place is None:
        return _sampled(opened(shared), first, size, key)
    drawn = _sampled(opened(shared), 0, size, key)
    half = place.with_name(f"{place.name}.{secrets.token_hex(4)}")  # two workers may be at one part
    drawn.table.drop("uid", "tid").write_ipc(half, compression="uncompressed")
    half.rename(place)
    return _Spilled(place, first, np.diff(drawn.offsets).astype(np.int32), drawn.space, drawn.time_zone)
