"""A fitted n-gram model: the tree as plain arrays, sampled at no further cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from murmurate.core.parameters import whole
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.ngram.tree import Tree
from murmurate.mechanisms.ngram.walk import walk_sequences
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid

if TYPE_CHECKING:
    from murmurate.noise import Randomness

FORMAT = 1
"""Version of the files of a model; raised when they change."""

FIELDS = ("parent", "symbol", "level", "count", "suffix", "start")
"""Arrays of the tree that are stored."""


@dataclass(frozen=True, eq=False)
class NGramModel:
    """Noisy grams over the cells of a public grid."""

    tree: Tree
    grid: Grid
    l_max: int
    time_zone: str

    @property
    def n(self) -> float:
        """Return the noisy number of trips: the count of the terminal symbol, 0 where it did not pass its threshold."""
        first = slice(int(self.tree.start[0]), int(self.tree.start[1]))
        ends = self.tree.symbol[first] == self.grid.n_cells
        return float(self.tree.count[first][ends].sum())

    def sample(self, n: int, rng: Randomness) -> Trips:
        """Draw `n` synthetic trips; n-grams know no time, so they have none."""
        whole("n", n)
        cells, offsets = walk_sequences(
            self.tree, n=n, n_symbols=self.grid.n_cells + 1, longest=self.l_max - 1, generator=rng.generator()
        )
        trip = np.repeat(np.arange(n), np.diff(offsets))
        lat, lng = self.grid.centre(cells)
        table = pl.DataFrame({"uid": trip, "tid": trip, "lat": lat, "lng": lng, "cell": cells})
        return Trips(table, self.grid, self.time_zone)

    def save(self, path: Path) -> None:
        """Write arrays and their schema into the folder."""
        np.savez_compressed(path / "arrays.npz", allow_pickle=False, **{name: getattr(self.tree, name) for name in FIELDS})
        schema = {"format": FORMAT, "space": self.grid.spec(), "l_max": self.l_max, "time_zone": self.time_zone}
        (path / "schema.json").write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load_model(path: Path) -> NGramModel:
    """Read back what `save` wrote; nothing is unpickled."""
    try:
        schema = json.loads((path / "schema.json").read_text(encoding="utf-8"))
        with np.load(path / "arrays.npz", allow_pickle=False) as stored:
            tree = Tree(**{name: stored[name] for name in FIELDS})
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} does not hold an n-gram model: {error}") from None
    grid = parse(str(schema.get("space")))
    if schema.get("format") != FORMAT or not isinstance(grid, Grid):
        raise InputError(f"{path} holds a model of format {schema.get('format')!r}; this version reads format {FORMAT}.")
    return NGramModel(tree, grid, int(schema["l_max"]), str(schema["time_zone"]))
