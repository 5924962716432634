"""A fitted DP-Loc model: plain arrays with a schema, sampled any number of times at no further cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from murmurate.core.parameters import whole
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.dp_loc.protocols import Arrays, Ends, Router
from murmurate.mechanisms.dp_loc.released import released_trips
from murmurate.spaces.grid import Grid

if TYPE_CHECKING:
    from murmurate.noise import Randomness

FORMAT = 1
ARRAYS = "arrays.npz"
SCHEMA = "schema.json"
AT_ONCE = 100_000


@dataclass(frozen=True, eq=False)
class DPLocModel:
    """A law of the ends, a router, and the public frame in which trips are written."""

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
        """`n` synthetic trips."""
        parts = [part.table for part in self.batches(n, rng)]
        return Trips(pl.concat(parts), self.grid, self.time_zone)

    def batches(self, n: int, rng: Randomness, *, at_once: int = AT_ONCE) -> Iterator[Trips]:
        """The same a part at a time, for more trips than memory holds; names run on over the parts."""
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
    try:
        schema = json.loads((path / SCHEMA).read_text(encoding="utf-8"))
        with np.load(path / ARRAYS, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} does not hold a DP-Loc model: {error}") from None
    if schema.get("format") != FORMAT:
        raise InputError(f"{path} holds a model of format {schema.get('format')!r}; this version reads format {FORMAT}.")
    found = {name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in arrays.items()}
    if found != schema["arrays"]:
        wrong = sorted(name for name in set(found) | set(schema["arrays"]) if found.get(name) != schema["arrays"].get(name))
        raise InputError(f"{path}: these arrays are not what the schema says: {', '.join(wrong)}.")

    def part(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    return schema, part("ends."), part("moves.")
