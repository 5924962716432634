"""The fitted model of `own`: rhythm, map and public grid as plain arrays; any number of days for one charge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.asking.table import Answers
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import whole
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.plausible.library import LibraryRhythm, PatternLibrary, fit_library
from murmurate.mechanisms.plausible.patterns import KINDS, kinds_of
from murmurate.mechanisms.plausible.placing import Map, distances_between, fit_map
from murmurate.mechanisms.plausible.rhythm import Rhythm, fit_rhythm, people_counted
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid

FICTITIOUS_DAY = (2001, 1, 1)
"""Year, month and day that released days are dated to: a Monday on which none of them took place."""

ARRAYS = "model.npz"
"""File of the arrays of a saved model."""

SCHEMA = "model.json"
"""File of its other values."""

FORMAT = "plausible-1"
"""Version of both files; others are refused."""

_AT_ONCE = 20_000
"""Days drawn at a time, so that scratch memory does not grow with their number."""


@dataclass(frozen=True, eq=False)
class DayModel:
    """Draws days of a population without its people; everything in it follows from noisy statistics."""

    grid: Grid
    time_zone: str
    rhythm: Rhythm | LibraryRhythm
    map: Map

    @classmethod
    def fit(
        cls,
        noisy: Answers,
        grid: Grid,
        *,
        steps: int,
        time_zone: str,
        rng: Rng,
        library: PatternLibrary | None = None,
    ) -> DayModel:
        """Estimate the model from noisy statistics; no private value is read here."""
        generator = rng.generator()
        people = people_counted(noisy)
        rhythm = (
            fit_rhythm(noisy, steps=steps, generator=generator)
            if library is None
            else fit_library(noisy, library, people=people)
        )
        return cls(grid, time_zone, rhythm, fit_map(noisy, grid, rhythm, people=people, generator=generator))

    def places(self, n: int, rng: Rng) -> NDArray[np.int32]:
        """Draw [trace, step], the cells of `n` synthetic days."""
        whole("n_out", n)
        generator = rng.generator()
        parts = []
        for first in range(0, n, _AT_ONCE):
            label, n_labels = self.rhythm.draw(min(_AT_ONCE, n - first), generator)
            parts.append(self.map.place(label, n_labels, generator))
        return np.concatenate(parts)

    def sample(self, n: int, rng: Rng) -> Trips:
        """Draw `n` synthetic days as trips: one point a step on a day that never was."""
        return as_trips(self.places(n, rng), self.grid, self.time_zone)

    def save(self, path: Path) -> None:
        """Write `model.npz` and `model.json` into a folder."""
        own = {name: getattr(self.rhythm, name) for name in _RHYTHMS[type(self.rhythm)]}
        own |= {"cells": self.map.cells, "main": self.map.main, "other": self.map.other, "pull": self.map.distance_weight}
        np.savez_compressed(path / ARRAYS, allow_pickle=False, **own)
        values = {
            "format": FORMAT,
            "grid": self.grid.spec(),
            "time_zone": self.time_zone,
            "steps": self.rhythm.steps,
            "rhythm": "chain" if isinstance(self.rhythm, Rhythm) else "library",
            "ceiling": self.rhythm.ceiling if isinstance(self.rhythm, Rhythm) else 0.0,
        }
        (path / SCHEMA).write_text(json.dumps(values, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> DayModel:
        """Read back what `save` wrote; anything else is refused."""
        try:
            values = json.loads((path / SCHEMA).read_text(encoding="utf-8"))
            kind: type[Any] = LibraryRhythm if values.get("rhythm") == "library" else Rhythm
            shapes = _RHYTHMS[kind] | _MAP_ARRAYS
            with np.load(path / ARRAYS, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in shapes}
            found = values["format"]
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise InputError(f"{path} does not hold a model of plausible days: {error}.") from None
        if found != FORMAT:
            raise InputError(f"{path} holds a model of format {found!r}; this version reads {FORMAT!r}.")
        grid = parse(values["grid"])
        wrong = [name for name, dimensions in shapes.items() if arrays[name].ndim != dimensions]
        if wrong or not isinstance(grid, Grid) or not _sound(arrays, grid):
            raise InputError(f"{path}: the arrays of this model are not of the shapes and ranges a model has.")
        own: dict[str, Any] = {name: arrays[name] for name in _RHYTHMS[kind]}
        own |= {} if kind is LibraryRhythm else {"steps": int(values["steps"]), "ceiling": float(values["ceiling"])}
        cells = arrays["cells"]
        placing = Map(cells, arrays["main"], arrays["other"], arrays["pull"], distances_between(grid, cells))
        return cls(grid, str(values["time_zone"]), kind(**own), placing)


_RHYTHMS: dict[type[Any], dict[str, int]] = {
    Rhythm: {"start": 1, "hazard": 3, "heading": 2, "tilt": 1},
    LibraryRhythm: {"label": 2, "share": 1},
}
"""Arrays of each kind of rhythm, and their dimensions."""

_MAP_ARRAYS = {"cells": 1, "main": 1, "other": 1, "pull": 1}
"""Arrays of the map in a file, and their dimensions; "pull" holds the weights of distances."""


def _sound(arrays: dict[str, NDArray[Any]], grid: Grid) -> bool:
    """Check types, ranges and lengths of the arrays of a file."""
    cells = arrays["cells"]
    floats = [part for name, part in arrays.items() if name not in ("cells", "label")]
    label = arrays.get("label")
    return (
        cells.dtype == np.int32
        and len(cells) > 0
        and int(cells.min()) >= 0
        and int(cells.max()) < grid.n_cells
        and len(arrays["main"]) == len(arrays["other"]) == len(cells)
        and all(part.dtype == np.float64 and bool(np.isfinite(part).all()) for part in floats)
        and (label is None or _sound_library(label, arrays["share"]))
    )


def _sound_library(label: NDArray[Any], share: NDArray[Any]) -> bool:
    """Check that labels are below the number of steps and ordered by kind, and that no kind without a pattern has a share."""
    if label.dtype != np.int16 or not label.size or label.min() < 0 or label.max() >= label.shape[1] or len(share) != KINDS:
        return False
    kind = kinds_of(label)
    count = np.bincount(kind, minlength=KINDS)
    return bool((np.diff(kind) >= 0).all() and share.min() >= 0 and share[count > 0].sum() > 0 and not share[count == 0].any())


def as_trips(place: NDArray[np.int32], grid: Grid, time_zone: str) -> Trips:
    """Return synthetic days [trace, step] as trips of people who do not exist, on a day that never was."""
    n, steps = place.shape
    midnight = datetime(*FICTITIOUS_DAY, tzinfo=ZoneInfo(time_zone)).astimezone(UTC)
    first_us = int(midnight.timestamp()) * 1_000_000
    at_us = first_us + np.arange(steps, dtype=np.int64) * 86_400_000_000 // steps
    trace = np.repeat(np.arange(n, dtype=np.int64), steps)
    cell = place.ravel().astype(np.int64)
    lat, lng = grid.centre(cell)
    table = pl.DataFrame(
        {
            "uid": trace,
            "tid": trace,
            "datetime": pl.Series(np.tile(at_us, n)).cast(pl.Datetime("us", "UTC")),
            "lat": lat,
            "lng": lng,
            "cell": cell,
        }
    )
    return Trips(table, grid, time_zone)
