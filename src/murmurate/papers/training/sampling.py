"""True Poisson sampling of units, and their grams laid out in a few fixed shapes so that compilers work once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.parameters import share
from murmurate.core.space import Integers

if TYPE_CHECKING:
    from murmurate.noise import Randomness

WIDTHS = (1, 8, 16, 32, 64, 128, 256)
"""Grams a unit may have in a chunk; a unit with more than the last gives a random choice of that many."""

GRAMS_AT_ONCE = 4096
"""Grams of a chunk, padding included: enough to keep the processor busy, few enough for its caches. Set by hand."""


@dataclass(frozen=True, eq=False)
class Grouped:
    """Grams grouped by unit: those of unit u are rows offsets[u]:offsets[u + 1] of every column."""

    columns: Mapping[str, NDArray[Any]]
    offsets: Integers

    @property
    def n_units(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some units of a batch: columns [units, grams], and the weight of each gram (0 where there is none).

    The weights of a unit sum to 1, so that its loss is the mean over its grams; a unit of padding has none.
    """

    columns: dict[str, NDArray[Any]]
    weight: NDArray[np.float32]


def group_by_unit(columns: Mapping[str, NDArray[Any]], unit: Integers) -> Grouped:
    """Grams sorted by their unit; units without a gram do not appear."""
    order = np.argsort(unit, kind="stable")
    _, counts = np.unique(unit, return_counts=True)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Grouped({name: values[order] for name, values in columns.items()}, offsets)


def poisson_sample(n: int, sampling: float, rng: Randomness) -> Integers:
    """Draw each of `n` units with probability `sampling` (rounded down to a multiple of 2^-64), independently."""
    if sampling == 1:
        return np.arange(n, dtype=np.int64)
    share("sampling", sampling)
    return np.flatnonzero(rng.words(n) < np.uint64(int(sampling * 2.0**64))).astype(np.int64)


def chunks(
    grouped: Grouped, units: Integers, generator: np.random.Generator, *, one_gram: bool = False, grams: int = GRAMS_AT_ONCE
) -> Iterator[Chunk]:
    """Yield all the sampled units in chunks of a few fixed shapes; none is ever left out."""
    starts, sizes = grouped.offsets[units], grouped.offsets[units + 1] - grouped.offsets[units]
    if one_gram:
        starts = starts + (generator.random(len(units)) * sizes).astype(np.int64)
        sizes = np.ones_like(sizes)
    width_of = np.searchsorted(WIDTHS, np.minimum(sizes, WIDTHS[-1]))
    for index in np.unique(width_of):
        width = WIDTHS[index]
        rows = grams // width
        members = np.flatnonzero(width_of == index)
        for first in range(0, len(members), rows):
            chosen = members[first : first + rows]
            yield _padded(grouped, starts[chosen], sizes[chosen], (rows, width), generator)


def _padded(
    grouped: Grouped, starts: Integers, sizes: Integers, shape: tuple[int, int], generator: np.random.Generator
) -> Chunk:
    rows, width = shape
    start, size = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    start[: len(starts)], size[: len(sizes)] = starts, sizes
    place = np.arange(width)[None, :]
    index = start[:, None] + np.minimum(place, np.maximum(size - 1, 0)[:, None])
    for long in np.flatnonzero(size > width):
        index[long] = start[long] + generator.choice(size[long], width, replace=False)
    kept = np.minimum(size, width)[:, None]
    weight = ((place < kept) / np.maximum(kept, 1)).astype(np.float32)
    return Chunk({name: values[index] for name, values in grouped.columns.items()}, weight)
