"""A fitted n-gram model: the tree as plain arrays, sampled at no further cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from murmurate.core import saved
from murmurate.core.parameters import whole
from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.ngram.tree import Tree
from murmurate.mechanisms.ngram.walk import walk_sequences

if TYPE_CHECKING:
    from murmurate.noise import Randomness

FORMAT = 1
"""Version of the files of a model; raised when they change."""

FIELDS = ("parent", "symbol", "level", "count", "suffix", "start")
"""Arrays of the tree that are stored."""


@dataclass(frozen=True, eq=False)
class NGramModel:
    """Noisy grams over public places."""

    tree: Tree
    places: Places
    l_max: int
    time_zone: str

    @property
    def n(self) -> float:
        """Return the noisy number of trips: the count of the terminal symbol, 0 where it did not pass its threshold."""
        first = slice(int(self.tree.start[0]), int(self.tree.start[1]))
        ends = self.tree.symbol[first] == self.places.n_cells
        return float(self.tree.count[first][ends].sum())

    def sample(self, n: int, rng: Randomness) -> Trips:
        """Draw `n` synthetic trips; n-grams know no time, so they have none."""
        whole("n", n)
        cells, offsets = walk_sequences(
            self.tree, n=n, n_symbols=self.places.n_cells + 1, longest=self.l_max - 1, generator=rng.generator()
        )
        trip = np.repeat(np.arange(n), np.diff(offsets))
        lat, lng = self.places.centre(cells)
        table = pl.DataFrame({"uid": trip, "tid": trip, "lat": lat, "lng": lng, "cell": cells})
        return Trips(table, self.places, self.time_zone)

    def save(self, path: Path) -> None:
        """Write arrays and their schema into the folder."""
        np.savez_compressed(path / "arrays.npz", allow_pickle=False, **{name: getattr(self.tree, name) for name in FIELDS})
        schema = {"format": FORMAT, "space": self.places.spec(), "l_max": self.l_max, "time_zone": self.time_zone}
        (path / "schema.json").write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load_model(path: Path, places: Places) -> NGramModel:
    """Read back what `save` wrote for these places; nothing is unpickled."""
    schema = saved.read_object(path / "schema.json", "an n-gram model")
    if schema.get("format") != FORMAT:
        raise InputError(f"{path} holds a model of format {schema.get('format')!r}; this version reads format {FORMAT}.")
    l_max = saved.field(schema, "l_max", int, path, low=3, high=10_000)
    time_zone, _ = saved.calendar(schema, path, day=False)
    arrays = saved.read_npz(path / "arrays.npz", "an n-gram model")
    _check_tree(path, arrays, places)
    return NGramModel(Tree(**arrays), places, l_max, time_zone)


def _check_tree(path: Path, arrays: saved.Arrays, places: Places) -> None:
    """Refuse arrays that are no tree: parents and suffixes come before their node, so that no walk can go in circles."""
    nodes = len(arrays["parent"]) if arrays.get("parent", np.zeros(())).ndim == 1 else 0
    inner = {name: values[1:] if name not in ("start",) else values for name, values in arrays.items() if values.ndim == 1}
    earlier = saved.indices(max(nodes, 1), nodes - 1)
    ranges = {
        "parent": earlier, "suffix": earlier, "symbol": saved.indices(places.n_cells + 1, nodes - 1),
        "level": saved.Range(low=1, high=nodes, shape=(nodes - 1,), kind="i"),
        "count": saved.weights(nodes - 1),  # that of the root is infinite
        "start": saved.Range(low=1, high=nodes, shape=(nodes + 1,), kind="i", ascending=True),
    }  # fmt: skip
    saved.check(path, inner, ranges)
    node = np.arange(1, nodes)
    later = [name for name in ("parent", "suffix") if (inner[name] >= node).any()]
    if later:
        raise InputError(f"{path}: {' and '.join(later)} point to later nodes, so this is no tree; the model is damaged.")
