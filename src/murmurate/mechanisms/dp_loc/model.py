"""A fitted DP-Loc model: plain arrays with a schema, sampled any number of times at no further cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from murmurate.core import saved
from murmurate.core.parameters import whole
from murmurate.core.saved import MAX_WEIGHT, Range, indices, weights
from murmurate.core.space import Integers
from murmurate.core.trips import TIME, Trips
from murmurate.errors import InputError
from murmurate.mechanisms.dp_loc.routes import Arrays, CountRouter, Ends, Router
from murmurate.mechanisms.dp_loc.settings import Route
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid
from murmurate.synthesis.ends import Ends as CountedEnds
from murmurate.synthesis.moves import Neighbourhood
from murmurate.synthesis.sequences import CellTrips

if TYPE_CHECKING:
    from murmurate.noise import Randomness

FORMAT = 1
"""Version of the files of a model; raised when they change."""

ARRAYS = "arrays.npz"
"""Name of the file of arrays."""

SCHEMA = "schema.json"
"""Name of the file that says what the arrays are."""

MAX_PARAMETER = 1e4
"""Largest absolute parameter of a trained network in a saved model: activations stay finite. Far above what training gives."""

AT_ONCE = 100_000
"""Trips of a part: what is made on the way to them stays below about 300 MB."""


@dataclass(frozen=True, eq=False)
class DPLocModel:
    """A distribution of the ends, a router, and the public frame in which trips are written."""

    sample_trips: ClassVar[int] = AT_ONCE
    """Trips drawn at once; trips that share a destination share work, so parts are larger than other models'."""

    ends: Ends
    router: Router
    grid: Grid
    time_zone: str
    day: str
    slot_s: int
    hours: int
    n: float
    """Noisy number of trips the model was fitted on."""
    kinds: tuple[str, str]
    """What the ends and the moves were learned by: ("counts" or "vae", "counts" or "net")."""

    def sample(self, n: int, rng: Randomness) -> Trips:
        """Draw `n` synthetic trips."""
        parts = [part.table for part in self.batches(n, rng)]
        return Trips(pl.concat(parts), self.grid, self.time_zone)

    def batches(self, n: int, rng: Randomness, *, at_once: int = AT_ONCE) -> Iterator[Trips]:
        """Yield `n` trips a part at a time, for more than memory holds; names run on over the parts."""
        whole("n", n)
        generator = rng.generator()
        for first in range(0, n, at_once):
            triples = self.ends.sample(min(at_once, n - first), generator)
            cells = self.router.paths(*triples, generator)
            part = released_trips(
                cells, grid=self.grid, time_zone=self.time_zone, day=self.day, slot_s=self.slot_s, hours=self.hours,
                generator=generator,
            )  # fmt: skip
            names = pl.col("uid", "tid") + first
            yield Trips(part.table.with_columns(names), self.grid, self.time_zone)

    def save(self, path: Path) -> None:
        """Write arrays and their schema into the folder."""
        arrays = {f"ends.{name}": np.asarray(array) for name, array in self.ends.arrays().items()}
        arrays |= {f"moves.{name}": np.asarray(array) for name, array in self.router.arrays().items()}
        np.savez_compressed(path / ARRAYS, allow_pickle=False, **arrays)
        schema = {
            "format": FORMAT,
            "kinds": list(self.kinds),
            "space": self.grid.spec(),
            "time_zone": self.time_zone,
            "day": self.day,
            "slot_s": self.slot_s,
            "hours": self.hours,
            "n": self.n,
            "arrays": {name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in arrays.items()},
        }
        (path / SCHEMA).write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_arrays(path: Path) -> tuple[dict[str, Any], Arrays, Arrays]:
    """Schema, arrays of the ends and arrays of the moves, checked against each other; nothing is unpickled."""
    schema = saved.read_object(path / SCHEMA, "a DP-Loc model")
    if schema.get("format") != FORMAT:
        raise InputError(f"{path} holds a model of format {schema.get('format')!r}; this version reads format {FORMAT}.")
    arrays = saved.read_npz(path / ARRAYS, "a DP-Loc model")
    found = {name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in arrays.items()}
    told = saved.field(schema, "arrays", dict, path)
    if found != told:
        wrong = sorted(name for name in set(found) | set(told) if found.get(name) != told.get(name))
        raise InputError(f"{path}: these arrays are not what the schema says: {', '.join(wrong)}.")

    def part(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    return schema, part("ends."), part("moves.")


def load_model(path: Path, around: Neighbourhood, route: Route) -> DPLocModel:
    """Read back what `save` wrote; every array is checked before anything is drawn from it."""
    schema, ends_arrays, move_arrays = read_arrays(path)
    grid = parse(saved.field(schema, "space", str, path))
    if not isinstance(grid, Grid):
        raise InputError(f"{path}: the model's space {schema['space']!r} is not a grid.")
    time_zone, day = saved.calendar(schema, path)
    hours = saved.field(schema, "hours", int, path, low=1, high=24)
    slot_s = saved.field(schema, "slot_s", int, path, low=1, high=86_400)
    kinds = tuple(str(kind) for kind in saved.field(schema, "kinds", list, path))
    if 24 % hours or len(kinds) != 2:
        raise InputError(f"{path}: hours or kinds in the schema are not those of a model; the model is damaged.")
    around = replace(around, rows=grid.rows, columns=grid.columns)
    saved.check(path, ends_arrays, _ends_ranges(kinds[0], ends_arrays, grid, hours))
    saved.check(path, move_arrays, _move_ranges(kinds[1], move_arrays, around, hours))
    ends = ends_from_arrays(kinds[0], ends_arrays)
    router = router_from_arrays(kinds[1], move_arrays, around, hours, route)
    n = saved.field(schema, "n", float, path)
    return DPLocModel(ends, router, grid, time_zone, day, slot_s, hours, n, (kinds[0], kinds[1]))


def _ends_ranges(kind: str, arrays: Arrays, grid: Grid, hours: int) -> dict[str, Range]:
    """Return what the arrays of the ends may hold; those of a network are bounded alike."""
    if kind != "counts":
        return _network_ranges(arrays)
    zones = len(arrays["joint"]) if "joint" in arrays and arrays["joint"].ndim == 3 else 1
    fine = len(arrays["source_hour"]) if "source_hour" in arrays and arrays["source_hour"].ndim == 2 else zones
    fine = fine if zones and fine % zones == 0 else zones  # fine zones divide coarse ones
    by_hour, by_cell = weights(fine, hours), weights(grid.n_cells, some=True)
    return {
        "joint": weights(zones, zones, hours, some=True), "source_hour": by_hour, "destination_hour": by_hour,
        "source_cell": by_cell, "destination_cell": by_cell, "zone": indices(fine, grid.n_cells),
        "n": Range(low=-MAX_WEIGHT, high=MAX_WEIGHT, shape=()),
    }  # fmt: skip


def _move_ranges(kind: str, arrays: Arrays, around: Neighbourhood, hours: int) -> dict[str, Range]:
    """Return what the arrays of the moves may hold; parameters of a network are bounded alike."""
    sizes = Range(low=0.0, high=MAX_WEIGHT, shape=(None, hours, None), some=True)
    if kind == "relative_net":
        zones = len(arrays["net.from.w"]) if "net.from.w" in arrays and arrays["net.from.w"].ndim == 2 else 1
        return _network_ranges({name: array for name, array in arrays.items() if name.startswith("net.")}) | {
            "visits": weights(around.n_cells), "steps": weights(around.n_cells, around.n_offsets),
            "zone": indices(zones, around.n_cells), "sizes": sizes,
        }  # fmt: skip
    if kind != "counts":
        return _network_ranges(arrays)
    return {
        "towards": weights(around.n_relative, around.n_offsets), "visits": weights(around.n_cells),
        "steps": weights(around.n_cells, around.n_offsets), "sizes": sizes,
    }  # fmt: skip


def _network_ranges(arrays: Arrays) -> dict[str, Range]:
    return {name: Range(low=-MAX_PARAMETER, high=MAX_PARAMETER, shape=array.shape) for name, array in arrays.items()}


def ends_from_arrays(kind: str, arrays: Arrays) -> Ends:
    """Make the distribution of the ends that `arrays()` came from."""
    if kind == "counts":
        return CountedEnds(**{**arrays, "n": float(arrays["n"])})  # type: ignore[arg-type]
    if kind == "vae":
        from murmurate.papers.dp_loc.initialiser_vae import VAEEnds

        return VAEEnds(dict(arrays))
    raise InputError(f"the model's ends were learned by {kind!r}, which this version does not know.")


def router_from_arrays(kind: str, arrays: Arrays, around: Neighbourhood, hours: int, route: Route) -> Router:
    """Make the router that `arrays()` came from."""
    if kind == "counts":
        return CountRouter.from_arrays(arrays, around, route)
    if kind in ("relative_net", "published_net"):
        from murmurate.papers.dp_loc.net_router import PublishedRouter, RelativeRouter

        router = RelativeRouter if kind == "relative_net" else PublishedRouter
        return router.from_arrays(arrays, around, hours, route)
    raise InputError(f"the model's moves were learned by {kind!r}, which this version does not know.")


def released_trips(
    trips: CellTrips, *, grid: Grid, time_zone: str, day: str, slot_s: int, hours: int, generator: np.random.Generator
) -> Trips:
    """Turn cell sequences into trips: one row a visited cell, a slot of time apart, most of it in the trip's hour."""
    step_us = slot_s * 1_000_000
    span_us = 24 // hours * 3600 * 1_000_000
    lasts_us = trips.sizes * step_us
    room_us = np.maximum(span_us - lasts_us, 0)
    start_us = _hour_starts_us(time_zone, day, hours)[trips.hours]
    start_us = start_us + (generator.random(trips.n) * room_us // 1_000_000 * 1_000_000).astype(np.int64)
    trip = trips.trip_of_cell
    visit = np.arange(len(trips.cells)) - trips.offsets[:-1][trip]
    lat, lng = grid.centre(trips.cells)
    table = pl.DataFrame(
        {
            "uid": trip,
            "tid": trip,
            "datetime": pl.Series(start_us[trip] + visit * step_us).cast(TIME),
            "hour": trips.hours[trip] * (24 // hours),
            "lat": lat,
            "lng": lng,
            "cell": trips.cells,
        }
    )
    return Trips(table, grid, time_zone)


def _hour_starts_us(time_zone: str, day: str, hours: int) -> Integers:
    zone = ZoneInfo(time_zone)
    midnight = datetime.combine(date.fromisoformat(day), datetime.min.time())
    starts = [(midnight + timedelta(hours=24 / hours * k)).replace(tzinfo=zone) for k in range(hours)]
    return np.array([int(start.timestamp()) * 1_000_000 for start in starts], dtype=np.int64)
