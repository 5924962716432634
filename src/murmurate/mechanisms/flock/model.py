"""Sample a fitted flock any number of times, with or without a condition, and save and load it as plain arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.parameters import whole
from murmurate.core.trips import TIME, Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.flock.base_model import BaseLaw, apart_again
from murmurate.mechanisms.flock.ends import EndsPool, Ways
from murmurate.mechanisms.flock.estimates import log_weights, resample
from murmurate.mechanisms.flock.fitting import Fitted
from murmurate.mechanisms.flock.rounds import CANDIDATES
from murmurate.mechanisms.flock.shapes import Pace, Shapes, times_us
from murmurate.mechanisms.flock.tables import Zones, parts
from murmurate.mechanisms.flock.tracks import Frame, Tracks
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid
from murmurate.synthesis.moves import MoveWeights
from murmurate.synthesis.sizes import Sizes

if TYPE_CHECKING:
    from murmurate.noise import Randomness

AT_ONCE = 50_000


@dataclass(frozen=True, eq=False)
class FlockModel:
    """What was fitted, and the public frame in which trips are written."""

    fitted: Fitted
    time_zone: str
    day: str

    @property
    def n(self) -> float:
        """Noisy number of trips the model was fitted on."""
        return self.fitted.n

    @property
    def grid(self) -> Grid:
        return self.fitted.law.frame.grid

    def sample(
        self,
        n: int,
        rng: Randomness,
        *,
        hour: int | None = None,
        origin: Sequence[int] | None = None,
        destination: Sequence[int] | None = None,
    ) -> Trips:
        """`n` synthetic trips; only those of an hour of day, from cells of the grid, or to cells of it, where asked."""
        made = list(self.batches(n, rng, hour=hour, origin=origin, destination=destination))
        return Trips(pl.concat([part.table for part in made]), self.grid, self.time_zone)

    def batches(
        self,
        n: int,
        rng: Randomness,
        *,
        hour: int | None = None,
        origin: Sequence[int] | None = None,
        destination: Sequence[int] | None = None,
        at_once: int = AT_ONCE,
    ) -> Iterator[Trips]:
        """The same a part at a time, for more trips than memory holds; names run on over the parts."""
        whole("n", n)
        ends = self._ends(hour, origin, destination)
        generator = rng.generator()
        for first in range(0, n, at_once):
            size = min(at_once, n - first)
            tracks = self._tracks(size, ends, generator)
            yield self._released(tracks, first, generator)

    def save(self, path: Path) -> None:
        """Write arrays and their schema into the folder."""
        write_model(path, self.fitted, time_zone=self.time_zone, day=self.day)

    def _ends(self, hour: int | None, origin: Sequence[int] | None, destination: Sequence[int] | None) -> EndsPool:
        pool, hours = self.fitted.law.ends, self.fitted.law.frame.hours
        keep = np.ones(len(pool.source), dtype=bool)
        if hour is not None:
            whole("hour", hour, at_least=0, at_most=23)
            if hours == 1:
                raise ParameterError("this model was fitted without hours of day; fit it on trips with times and hours=24.")
            keep &= pool.hour == hour * hours // 24
        for cells, have in ((origin, pool.source), (destination, pool.destination)):
            if cells is not None:
                keep &= np.isin(have, self.grid.locate(*self.grid.centre(np.asarray(cells, dtype=np.int64))))
        if not keep.any():
            raise ParameterError("the model holds no trip that meets this condition; ask for more cells or another hour.")
        return pool if keep.all() else pool.where(keep)

    def _tracks(self, n: int, ends: EndsPool, generator: np.random.Generator) -> Tracks:
        fitted = self.fitted
        law = fitted.law
        times = CANDIDATES["fine" if law.counted else "coarse"]
        candidates = law.draw(times * n, generator, ends)
        shown = parts(list(fitted.pulls), candidates, law.frame, fitted.zones, fitted.norm)
        chosen = resample(log_weights(shown, fitted.pulls, candidates.n), n, generator)
        again = np.concatenate([[False], chosen[1:] == chosen[:-1]])
        order = generator.permutation(n)
        return apart_again(candidates.take(chosen), again, law.frame, generator).take(order)

    def _released(self, tracks: Tracks, first: int, generator: np.random.Generator) -> Trips:
        frame, pace = self.fitted.law.frame, self.fitted.pace
        trip = np.repeat(np.arange(tracks.n, dtype=np.int64), np.diff(tracks.offsets)) + first
        lat, lng = frame.degrees(tracks.y, tracks.x)
        columns: dict[str, Any] = {"uid": trip, "tid": trip}
        if pace is not None:
            seconds = pace.seconds(tracks, generator)
            when = times_us(tracks, seconds, time_zone=self.time_zone, day=self.day, generator=generator, hours=frame.hours)
            columns["datetime"] = pl.Series(when).cast(TIME)
        if frame.hours > 1:
            columns["hour"] = tracks.walks.hours[trip - first] * (24 // frame.hours)
        columns |= {"lat": lat, "lng": lng, "cell": frame.grid.locate(lat, lng)}
        return Trips(pl.DataFrame(columns), frame.grid, self.time_zone)


FORMAT = 2
KIND = "flock"
ARRAYS = "arrays.npz"
SCHEMA = "schema.json"

Arrays = dict[str, NDArray[Any]]


def write_model(path: Path, fitted: Fitted, *, time_zone: str, day: str) -> None:
    """Arrays and schema into the folder."""
    law, frame, zones = fitted.law, fitted.law.frame, fitted.zones
    arrays: Arrays = {
        "ends.source": law.ends.source,
        "ends.destination": law.ends.destination,
        "ends.hour": law.ends.hour,
        "ends.cumulative": law.ends.cumulative,
        "moves.towards": law.weights.towards.astype(np.float32),
        "moves.visits": law.weights.visits.astype(np.float32),
        "moves.steps": law.weights.steps.astype(np.float32),
        "visits": law.visits,
        "inside": law.inside,
        "shapes.diameter": law.shapes.diameter,
        "shapes.ratios": law.shapes.ratios,
        "repeats": law.repeats,
        "zone": zones.zone,
        **{f"pull.{name}": values for name, values in fitted.pulls.items()},
    }
    if law.ends.ways is not None:
        arrays |= {f"ways.{field.name}": getattr(law.ends.ways, field.name).astype(np.float32) for field in fields(Ways)}
    if law.sizes is not None:
        arrays["sizes"] = law.sizes.table
    if fitted.pace is not None:
        arrays["pace"] = fitted.pace.table
    np.savez_compressed(path / ARRAYS, allow_pickle=False, **arrays)
    schema = {
        "kind": KIND,
        "format": FORMAT,
        "space": frame.grid.spec(),
        "frame": {
            "block": frame.block,
            "reach": frame.reach,
            "hours": frame.hours,
            "max_cells": frame.max_cells,
            "stride": frame.stride,
        },
        "depths": {name: getattr(zones, name) for name in ("fine", "by_hour", "pairs", "pairs_hour")},
        "norm": fitted.norm,
        "n": fitted.n,
        "time_zone": time_zone,
        "day": day,
        "arrays": _described(arrays),
    }
    (path / SCHEMA).write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_model(path: Path) -> tuple[Fitted, str, str]:
    """What `write_model` wrote, with time zone and day; nothing is unpickled and everything is checked against the schema."""
    try:
        schema = json.loads((path / SCHEMA).read_text(encoding="utf-8"))
        with np.load(path / ARRAYS, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} does not hold a flock model: {error}") from None
    if schema.get("kind") != KIND or schema.get("format") != FORMAT:
        raise InputError(
            f"{path} holds a model of kind {schema.get('kind')!r} and format {schema.get('format')!r}; this reads kind "
            f"{KIND!r} and format {FORMAT}."
        )
    if _described(arrays) != schema["arrays"]:
        raise InputError(f"{path}: the arrays are not what the schema says.", "The files belong to different models.")
    grid = parse(schema["space"])
    if not isinstance(grid, Grid):
        raise InputError(f"{path}: the model's space {schema['space']!r} is not a grid.")
    frame = Frame(grid=grid, **schema["frame"])
    ways = None
    if "ways.length_m" in arrays:
        ways = Ways(*(arrays[f"ways.{field.name}"].astype(np.float64) for field in fields(Ways)))
    law = BaseLaw(
        frame=frame,
        ends=EndsPool(arrays["ends.source"], arrays["ends.destination"], arrays["ends.hour"], arrays["ends.cumulative"], ways),
        weights=MoveWeights(*(arrays[f"moves.{name}"] for name in ("towards", "visits", "steps"))),
        sizes=Sizes(arrays["sizes"], frame.columns, 1) if "sizes" in arrays else None,
        visits=arrays["visits"],
        inside=arrays["inside"],
        shapes=Shapes(arrays["shapes.diameter"], arrays["shapes.ratios"]),
        repeats=arrays["repeats"],
    )
    pulls = {name.removeprefix("pull."): values for name, values in arrays.items() if name.startswith("pull.")}
    pace = Pace(arrays["pace"]) if "pace" in arrays else None
    fitted = Fitted(law, Zones(arrays["zone"], **schema["depths"]), pulls, schema["norm"], schema["n"], pace)
    return fitted, schema["time_zone"], schema["day"]


def _described(arrays: Arrays) -> dict[str, dict[str, Any]]:
    return {name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in arrays.items()}
