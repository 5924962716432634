"""The fitted model of `own`: rhythm, map and public grid as plain arrays; any number of days for one charge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.asking.table import Answers
from murmurate.core import saved
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import whole
from murmurate.core.saved import MAX_LOG_WEIGHT, Range, indices, weights
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.plausible.library import LibraryRhythm, PatternLibrary, fit_library
from murmurate.mechanisms.plausible.patterns import AGES, BLOCKS, KINDS, ROLES, TRAITS, kinds_of
from murmurate.mechanisms.plausible.placing import MOST_PLACES, Map, distances_between, fit_map
from murmurate.mechanisms.plausible.rhythm import Rhythm, fit_rhythm, people_counted
from murmurate.mechanisms.plausible.statistics import JUMP_BINS, TO_ROLES
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

MAX_STEPS = 1440
"""Most steps of a day: one a minute."""

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
        values = saved.read_object(path / SCHEMA, "a model of plausible days")
        if values.get("format") != FORMAT:
            raise InputError(f"{path} holds a model of format {values.get('format')!r}; this version reads {FORMAT!r}.")
        kind: type[Any] = LibraryRhythm if values.get("rhythm") == "library" else Rhythm
        arrays = saved.read_npz(path / ARRAYS, "a model of plausible days")
        grid = parse(saved.field(values, "grid", str, path))
        if not isinstance(grid, Grid):
            raise InputError(f"{path}: the model's space {values['grid']!r} is not a grid.")
        saved.check(path, arrays, _ranges(kind, arrays, grid))
        if kind is LibraryRhythm and not _sound_library(arrays["label"], arrays["share"]):
            raise InputError(f"{path}: the days of this model's library are not ordered by kind; the model is damaged.")
        time_zone, _ = saved.calendar(values, path, day=False)
        own: dict[str, Any] = {name: arrays[name] for name in _RHYTHMS[kind]}
        if kind is Rhythm:
            own["steps"] = saved.field(values, "steps", int, path, low=2, high=MAX_STEPS)
            own["ceiling"] = saved.field(values, "ceiling", float, path, low=-MAX_LOG_WEIGHT, high=MAX_LOG_WEIGHT)
        cells = arrays["cells"]
        main, other = (arrays[name].astype(np.float64) for name in ("main", "other"))  # a kernel takes one or the other
        placing = Map(cells, main, other, arrays["pull"], distances_between(grid, cells))
        return cls(grid, time_zone, kind(**own), placing)


_RHYTHMS: dict[type[Any], tuple[str, ...]] = {
    Rhythm: ("start", "hazard", "heading", "tilt"),
    LibraryRhythm: ("label", "share"),
}
"""Arrays of each kind of rhythm."""


def _ranges(kind: type[Any], arrays: Mapping[str, NDArray[Any]], grid: Grid) -> dict[str, Range]:
    """Return what every array of a saved model may hold; "pull" holds the weights of distances."""
    cells = arrays.get("cells", np.zeros(0))
    n = min(len(cells), MOST_PLACES) if cells.ndim == 1 else None
    shares = Range(low=0.0, high=1.0, shape=(n,), some=True)
    placing = {"cells": indices(grid.n_cells, n), "main": shares, "other": shares, "pull": weights(JUMP_BINS)}
    if kind is LibraryRhythm:
        steps = arrays["label"].shape[-1] if arrays.get("label", np.zeros(())).ndim == 2 else 1
        return placing | {
            "label": indices(min(steps, MAX_STEPS), None, steps),
            "share": Range(low=0.0, high=1.0, shape=(KINDS,), some=True),
        }
    return placing | {
        "start": Range(low=0.0, high=1.0, shape=(ROLES,), some=True),
        "hazard": Range(low=0.0, high=1.0, shape=(ROLES, AGES, BLOCKS)),
        "heading": weights(ROLES, TO_ROLES, some=True),
        "tilt": Range(low=-MAX_LOG_WEIGHT, high=MAX_LOG_WEIGHT, shape=(sum(TRAITS),)),
    }


def _sound_library(label: NDArray[Any], share: NDArray[Any]) -> bool:
    """Check that patterns are ordered by kind, and that no kind without a pattern has a share."""
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
