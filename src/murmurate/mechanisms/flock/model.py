"""Sample a fitted flock any number of times, with or without a condition, and save and load it as plain arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core import saved
from murmurate.core.parameters import whole
from murmurate.core.saved import MAX_LOG_WEIGHT, MAX_WEIGHT, Range, indices, weights
from murmurate.core.trips import TIME, Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.flock.base_model import BaseModel, Flags
from murmurate.mechanisms.flock.ends import EndsPool, Outlines
from murmurate.mechanisms.flock.estimates import candidate_log_weights, resample
from murmurate.mechanisms.flock.fitting import Fitted
from murmurate.mechanisms.flock.mask import MAX_PARTS, Mask
from murmurate.mechanisms.flock.rounds import CANDIDATES_PER_TRIP
from murmurate.mechanisms.flock.shapes import Pace, times_us
from murmurate.mechanisms.flock.tables import (
    N_DIAMETERS,
    N_SPEED_ROWS,
    N_SPEEDS,
    Zones,
    table_bins,
    trip_contributions,
    zone_table_bins,
)
from murmurate.mechanisms.flock.tracks import Frame, Tracks
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid
from murmurate.synthesis.moves import MoveWeights
from murmurate.synthesis.sizes import CoupledSizes, Sizes, n_rings_of

if TYPE_CHECKING:
    from murmurate.noise import Randomness

BATCH_TRIPS = 50_000
"""Trips drawn at once, to bound memory. Chosen by hand."""
FORMAT = 5
"""Version of the saved files; raised when names or meanings of arrays change."""
KIND = "flock"
"""Name of the mechanism in the schema of saved files."""
ARRAYS = "arrays.npz"
"""File name of the arrays."""
SCHEMA = "schema.json"
"""File name of the schema."""
ENDS_ARRAYS = ("source", "destination", "hour", "cumulative")
"""Arrays of the pool of ends that are saved."""
MAX_CELLS = 1000
"""Largest `max_cells` of a saved model, as for the mechanism's parameter."""
MAX_DEPTH = 12
"""Most halvings of zones in a saved model. Set by hand: fits use at most 8, and a table of pairs has 4^depth bins."""
MIN_SIZE_M, MAX_SIZE_M = 1e-3, 1e8
"""Least and largest diameter or length of a trip in a saved model, in metres: above zero, and beyond the size of the Earth."""
MIN_FAVOUR = 1e-12
"""Least weight of a visit among those of a trip in a saved model: above zero, because a trip divides by their sum."""
Arrays = dict[str, NDArray[Any]]
"""Arrays by name."""


@dataclass(frozen=True, eq=False)
class FlockModel:
    """A fitted flock, with the time zone and the fictional day of released trips."""

    fitted: Fitted
    time_zone: str
    day: str

    @property
    def n(self) -> float:
        """Return the noisy number of trips the model was fitted on."""
        return self.fitted.n

    @property
    def grid(self) -> Grid:
        """Return the grid of released cells."""
        return self.fitted.base.frame.grid

    def sample(
        self,
        n: int,
        rng: Randomness,
        *,
        hour: int | None = None,
        origin: Sequence[int] | None = None,
        destination: Sequence[int] | None = None,
    ) -> Trips:
        """Draw `n` synthetic trips; optionally only those of an hour of day, or from or to given cells of the grid."""
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
        at_once: int = BATCH_TRIPS,
    ) -> Iterator[Trips]:
        """Draw the same trips a part at a time, for more trips than memory holds; names run on over the parts."""
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
        """Return the pool of ends that meet the conditions; raise ParameterError where there are none."""
        pool, hours = self.fitted.base.ends, self.fitted.base.frame.hours
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
        """Draw candidates and keep `n` of them by weight, in random order and without equal copies."""
        fitted = self.fitted
        base = fitted.base
        candidates = base.draw(CANDIDATES_PER_TRIP * n, generator, ends)
        shown = trip_contributions(list(fitted.log_weights), candidates, base.frame, fitted.zones, fitted.norm)
        chosen = resample(candidate_log_weights(shown, fitted.log_weights, candidates.n), n, generator)
        again = np.concatenate([[False], chosen[1:] == chosen[:-1]])
        order = generator.permutation(n)
        return separate_copies(candidates.take(chosen), again, base.frame, generator).take(order)

    def _released(self, tracks: Tracks, first: int, generator: np.random.Generator) -> Trips:
        """Convert tracks to trips with times, hours, degrees and cells; names start at `first`."""
        frame, pace = self.fitted.base.frame, self.fitted.pace
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


def separate_copies(tracks: Tracks, again: Flags, frame: Frame, generator: np.random.Generator) -> Tracks:
    """Move the points of repeated trips within their grid cells, so that no two released trips are equal."""
    if not again.any():
        return tracks
    point = np.repeat(again, np.diff(tracks.offsets))
    same = np.concatenate([[False], (np.diff(tracks.y) == 0) & (np.diff(tracks.x) == 0)])
    same[tracks.offsets[:-1]] = False
    y, x = tracks.y.copy(), tracks.x.copy()
    for values, top in ((y, frame.top[0]), (x, frame.top[1])):
        low = np.minimum(np.floor(values), np.ceil(top) - 1)
        moved = np.where(point, low + np.minimum(top - low, 1.0) * generator.random(len(values)), values)
        index = np.maximum.accumulate(np.where(same & point, 0, np.arange(len(values))))
        values[:] = moved[index]
    y, x = frame.settled(y, x)
    return replace(tracks, y=y, x=x)


def write_model(path: Path, fitted: Fitted, *, time_zone: str, day: str) -> None:
    """Write arrays and schema into the folder."""
    base, frame, zones = fitted.base, fitted.base.frame, fitted.zones
    arrays: Arrays = {
        **{f"ends.{name}": getattr(base.ends, name) for name in ENDS_ARRAYS},
        "moves.towards": base.weights.towards.astype(np.float32),
        "moves.visits": base.weights.visits.astype(np.float32),
        "moves.steps": base.weights.steps.astype(np.float32),
        "visits": base.visits,
        "inside": base.inside,
        "repeats": base.repeats,
        "zone": zones.zone,
        "favour": zones.favour,
        **{f"log_weight.{name}": values for name, values in fitted.log_weights.items()},
    }
    arrays |= {f"outlines.{name}": values.astype(np.float32) for name, values in vars(base.ends.outlines).items()}
    if base.sizes is not None:
        arrays |= {"sizes": base.sizes.sizes.table, "expected_sizes": base.sizes.expected}
    if fitted.pace is not None:
        arrays["pace"] = fitted.pace.table
    if frame.mask is not None:
        arrays["mask"] = frame.mask.open.astype(np.uint8)
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
            "parts": 0 if frame.mask is None else frame.mask.parts,
        },
        "depths": {name: getattr(zones, name) for name in ("fine", "by_hour", "pairs", "pairs_hour")},
        "detail": base.detail,
        "norm": fitted.norm,
        "n": fitted.n,
        "time_zone": time_zone,
        "day": day,
        "arrays": _describe(arrays),
    }
    (path / SCHEMA).write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_model(path: Path) -> tuple[Fitted, str, str]:
    """Read a saved model, its time zone and its day, without unpickling, and check it against the schema."""
    schema = saved.read_object(path / SCHEMA, "a flock model")
    if schema.get("kind") != KIND or schema.get("format") != FORMAT:
        raise InputError(
            f"{path} holds a model of kind {schema.get('kind')!r} and format {schema.get('format')!r}; this reads kind "
            f"{KIND!r} and format {FORMAT}."
        )
    arrays = saved.read_npz(path / ARRAYS, "a flock model")
    if _describe(arrays) != schema.get("arrays"):
        raise InputError(f"{path}: the arrays are not what the schema says.", "The files belong to different models.")
    time_zone, day = saved.calendar(schema, path)
    frame, depths, parts = _public_parts(schema, path)
    norm, n = saved.field(schema, "norm", str, path), saved.field(schema, "n", float, path)
    detail = saved.field(schema, "detail", float, path, low=0.0, high=1.0)
    if norm not in ("l1", "l2"):
        raise InputError(f"{path}: norm in the schema is neither l1 nor l2; the model is damaged.")
    saved.check(path, arrays, _ranges(arrays, frame, depths, parts))
    if parts:
        frame = replace(frame, mask=Mask(arrays["mask"].astype(bool), parts))
    outlines = Outlines(*(arrays[f"outlines.{field.name}"].astype(np.float64) for field in fields(Outlines)))
    sizes = CoupledSizes(arrays["expected_sizes"], Sizes(arrays["sizes"], frame.columns, 1)) if "sizes" in arrays else None
    base = BaseModel(
        frame=frame,
        ends=EndsPool(**{name: arrays[f"ends.{name}"] for name in ENDS_ARRAYS}, outlines=outlines),
        weights=MoveWeights(*(arrays[f"moves.{name}"] for name in ("towards", "visits", "steps"))),
        sizes=sizes,
        visits=arrays["visits"],
        inside=arrays["inside"],
        repeats=arrays["repeats"],
        detail=detail,
    )
    log_weights = {
        name.removeprefix("log_weight."): values for name, values in arrays.items() if name.startswith("log_weight.")
    }
    pace = Pace(arrays["pace"]) if "pace" in arrays else None
    return Fitted(base, Zones(arrays["zone"], **depths, favour=arrays["favour"]), log_weights, norm, n, pace), time_zone, day


def _public_parts(schema: dict[str, Any], path: Path) -> tuple[Frame, dict[str, int], int]:
    """Return the frame, the depths of the zones and the parts of the mask (0: none) of a schema, every number in its range."""
    grid = parse(saved.field(schema, "space", str, path))
    if not isinstance(grid, Grid):
        raise InputError(f"{path}: the model's space {schema['space']!r} is not a grid.")
    given, depths = saved.field(schema, "frame", dict, path), saved.field(schema, "depths", dict, path)
    most = max(grid.rows, grid.columns)
    limits = {"block": (1, most), "reach": (1, most), "hours": (1, 24), "max_cells": (2, MAX_CELLS)}
    whole_numbers = {name: saved.field(given, name, int, path, low=low, high=high) for name, (low, high) in limits.items()}
    if 24 % whole_numbers["hours"]:
        raise InputError(f"{path}: hours in the schema do not divide a day; the model is damaged.")
    stride = saved.field(given, "stride", float, path, low=0.0, high=1e6)
    fine = saved.field(depths, "fine", int, path, low=0, high=MAX_DEPTH)
    coarser = {name: saved.field(depths, name, int, path, low=0, high=fine) for name in ("by_hour", "pairs", "pairs_hour")}
    parts = saved.field(given, "parts", int, path, low=0, high=MAX_PARTS)
    return Frame(grid=grid, stride=stride, **whole_numbers), {"fine": fine, **coarser}, parts


def _ranges(arrays: Arrays, frame: Frame, depths: dict[str, int], parts: int) -> dict[str, Range]:
    """Return what every array of a model may hold, given the public parts of its schema."""
    n_cells, hours, around = frame.grid.n_cells, frame.hours, frame.around
    pool = len(arrays["ends.source"]) if arrays.get("ends.source", np.zeros(())).ndim == 1 else None
    ranges = {
        "ends.source": indices(n_cells, pool),
        "ends.destination": indices(n_cells, pool),
        "ends.hour": indices(hours, pool),
        "ends.cumulative": Range(low=0.0, high=MAX_WEIGHT, shape=(pool,), ascending=True, some=True),
        "moves.towards": weights(around.n_relative, around.n_offsets),
        "moves.visits": weights(frame.n_coarse),
        "moves.steps": weights(frame.n_coarse, around.n_offsets),
        "visits": weights(frame.n_coarse, some=True),
        "inside": weights(n_cells, some=True),
        "repeats": Range(low=0.0, high=1.0, shape=(N_DIAMETERS,)),
        "zone": indices(2 ** depths["fine"], n_cells),
        "favour": Range(low=MIN_FAVOUR, high=MAX_WEIGHT, shape=(frame.n_coarse,)),
    }
    for name, edge in zip(("first_y", "first_x", "last_y", "last_x"), (*frame.top, *frame.top), strict=True):
        ranges[f"outlines.{name}"] = Range(low=0.0, high=float(np.nextafter(np.float32(edge), np.inf)), shape=(pool,))
    for name in ("diameter_m", "length_m"):
        ranges[f"outlines.{name}"] = Range(low=MIN_SIZE_M, high=MAX_SIZE_M, shape=(pool,))
    if "sizes" in arrays or "expected_sizes" in arrays:
        n_rings = n_rings_of(frame.rows, frame.columns)
        ranges["sizes"] = weights(n_rings, hours, frame.max_cells, some=True)
        ranges["expected_sizes"] = weights(n_rings, frame.max_cells, some=True)
    if parts:
        shape = frame.grid.rows * parts, frame.grid.columns * parts
        ranges["mask"] = Range(low=0, high=1, shape=shape, kind="u", some=True)
    if "pace" in arrays:
        ranges["pace"] = weights(N_SPEED_ROWS, hours, N_SPEEDS, some=True)
    bins = table_bins(frame) | zone_table_bins(hours, depths)
    for name in arrays:
        table = name.removeprefix("log_weight.")
        if table != name and table in bins:
            ranges[name] = Range(low=-MAX_LOG_WEIGHT, high=MAX_LOG_WEIGHT, shape=(bins[table],))
    return ranges


def _describe(arrays: Arrays) -> dict[str, dict[str, Any]]:
    """Return shape and type of each array."""
    return {name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in arrays.items()}
