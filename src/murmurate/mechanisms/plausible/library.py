"""A public library of day patterns, whose rhythms replace those estimated from private days."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.asking.table import Answers
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Identity, Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.plausible.patterns import (
    KINDS,
    MAIN,
    MOST_SHIFT,
    SECOND,
    Labels,
    jittered,
    kinds_of,
    label_days,
)
from murmurate.mechanisms.plausible.rhythm import shrunk
from murmurate.mechanisms.plausible.statistics import laplace_scale
from murmurate.profiles.days import STEPS, daily_traces
from murmurate.spaces.grid import Grid

BUILT_IN = "city"
"""Name of the library of days of the built-in city, whose people do not exist."""

_CITY = {"people": 500, "days": 6, "seed": 900, "interval_s": 300}
"""The built-in city whose days make up that library: people, days of each, seed, seconds between points."""

_CITY_CELL_M = 500.0
"""Side of the cells its days are read over, in metres."""

FEWEST = 100
"""Least number of patterns of a library: single days of a smaller one would be recognised in a release. Set by hand."""

HASH_DIGITS = 12
"""Hexadecimal digits of a library's hash in manifests: enough to distinguish libraries, short enough to read."""


@dataclass(frozen=True, eq=False)
class PatternLibrary:
    """Holds days without their geography; public by declaration of whoever names it."""

    name: str
    label: Labels
    """[pattern, step]"""
    identity: Identity | None = None
    """Fingerprint of the file and its people, by which `release()` checks that they are no private data."""

    def __post_init__(self) -> None:
        if len(self.label) < FEWEST:
            raise ParameterError(
                f"a library needs at least {FEWEST} whole days, so that none is known again at sight; {self.name} has "
                f"{len(self.label):,}."
            )

    @classmethod
    def of(cls, public: Trips, name: str, *, cell_m: float, steps: int = STEPS) -> PatternLibrary:
        """Read the whole days of public trips, over cells as large as those of the grid they will be placed on."""
        if not (public.has_time and public.has_coordinates and public.n_points):
            raise ParameterError(f"a library is made of trips with times and coordinates; {name} has none.")
        grid = _grid_over(public, cell_m)
        return cls(name, label_days(daily_traces(public, grid, grid.n_cells, steps=steps).place)[0], public.identity)

    @cached_property
    def digest(self) -> str:
        """Return a short hash of the library's days."""
        return hashlib.sha256(np.ascontiguousarray(self.label, dtype="<i2").tobytes()).hexdigest()[:HASH_DIGITS]

    def spec(self) -> str:
        """Return name and hash, for manifests; never the folder it lies in."""
        return f"{Path(self.name).name}#{self.digest}"


def named_library(words: str, *, cell_m: float, steps: int) -> PatternLibrary | str:
    """Return the library behind `city`, a file of trips, or `NAME#HASH` as manifests have it.

    One named by its hash whose file is not here stays a string: everything but fitting can do without it.
    """
    name, hashed, digest = words.rpartition("#")
    if not hashed or len(digest) != HASH_DIGITS or Path(words).exists():
        name, digest = words, ""
    if digest and name != BUILT_IN and not Path(name).exists():
        return words
    found = _built_in(steps) if name == BUILT_IN else _from_file(name, cell_m, steps)
    if digest and found.digest != digest:
        raise ParameterError(f"{name} holds other days than the library meant: its hash is {found.digest}, not {digest}.")
    return found


@lru_cache(maxsize=2)
def _built_in(steps: int) -> PatternLibrary:
    from murmurate.demo import city

    library = PatternLibrary.of(city(**_CITY).trips, BUILT_IN, cell_m=_CITY_CELL_M, steps=steps)
    return replace(library, identity=None)  # nobody lives there


@lru_cache(maxsize=4)
def _from_file(path: str, cell_m: float, steps: int) -> PatternLibrary:
    from murmurate.ingest.read import read

    try:
        public = read(path)
    except InputError as error:
        raise ParameterError(f"the library {path!r} cannot be read: {error}") from None
    return PatternLibrary.of(public, path, cell_m=cell_m, steps=steps)


def _grid_over(public: Trips, cell_m: float) -> Grid:
    """Return a grid over all points; they are public."""
    pad = 1e-3
    south, north = float(public.lat.min()) - pad, float(public.lat.max()) + pad
    west, east = float(public.lng.min()) - pad, float(public.lng.max()) + pad
    return Grid(max(-90.0, south), max(-180.0, west), min(90.0, north), min(180.0, east), cell_m)


# -- drawing from it --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LibraryRhythm:
    """Patterns of a library, each kind of day as often as it was measured to be; none is given out as it stands."""

    label: Labels
    """[pattern, step], ordered by kind."""
    share: Floats
    """[kind] of drawn days; 0 where the library has none."""

    @property
    def steps(self) -> int:
        return self.label.shape[1]

    @cached_property
    def _first(self) -> Integers:
        """Return the position of the first pattern of each kind, and the end."""
        return np.searchsorted(kinds_of(self.label), np.arange(KINDS + 1))

    def draw(self, n: int, generator: np.random.Generator) -> tuple[Labels, Integers]:
        """Draw `n` patterns: the first part of one day of the library, the rest of another of its kind, changes moved a little.

        Two days join where both are at their main place. Whoever holds the library would know its days again otherwise.
        """
        kind = np.searchsorted(np.cumsum(self.share), generator.random(n) * self.share.sum(), side="right")
        kind = np.minimum(kind, KINDS - 1)
        low, size = self._first[kind], np.diff(self._first)[kind]
        one, two = (low + (generator.random(n) * size).astype(np.int64) for _ in range(2))
        joined = _joined(self.label[one], self.label[two], generator)
        label, _, n_labels = label_days(jittered(joined, MOST_SHIFT, generator))
        return label, n_labels


def fit_library(noisy: Answers, library: PatternLibrary, *, people: float) -> LibraryRhythm:
    """Estimate how often each kind occurs: the noisy histogram, shrunk towards the library's own as far as noise hides it."""
    kind = kinds_of(library.label)
    count = np.bincount(kind, minlength=KINDS)
    own = np.maximum(count, 0.5) / np.maximum(count, 0.5).sum()
    share = shrunk(noisy["kinds"].noisy, own, scale=laplace_scale(noisy["kinds"]), people=people)
    share = np.where(count > 0, share, 0.0)
    return LibraryRhythm(library.label[np.argsort(kind, kind="stable")], share / share.sum())


@njit(cache=True)
def _joined(one: Labels, two: Labels, generator: np.random.Generator) -> NDArray[np.int32]:
    """Join each row of `one` up to a step at which both are at their main place, then `two`; other places stay apart."""
    out = one.astype(np.int32)
    steps = one.shape[1]
    meets = np.empty(steps, dtype=np.int64)
    for row in range(len(one)):
        n = 0
        for step in range(1, steps):
            if one[row, step] == MAIN and two[row, step] == MAIN:
                meets[n] = step
                n += 1
        if n == 0:
            continue
        apart = one[row].max()
        for step in range(meets[int(generator.random() * n)], steps):
            label = two[row, step]
            out[row, step] = label if label <= SECOND else label + apart
    return out
