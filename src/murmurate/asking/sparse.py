"""Draw the noisy counts of a sparse table: bins that somebody has, and empty ones whose noise alone passes the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking.table import Norm, SparseTable
from murmurate.core.space import Integers
from murmurate.noise import gaussian_integers, laplace_integers
from murmurate.noise.sparse import gaussian_survivors, laplace_survivors

if TYPE_CHECKING:
    from murmurate.noise import Randomness


def draw_sparse(
    table: SparseTable, exact: tuple[Integers, Integers], scale: float, norm: Norm, rng: Randomness
) -> tuple[Integers, Integers]:
    """Return bins, ascending, and noisy sums that reach the threshold of their row; `scale` is in steps, as the sums are."""
    bins, sums = exact
    add_noise, draw_absent = (laplace_integers, laplace_survivors) if norm == "l1" else (gaussian_integers, gaussian_survivors)
    limit = table.threshold * table.steps
    values = add_noise(sums, scale=scale, rng=rng)
    there = values >= limit[bins // table.n_columns]
    found, kept = [bins[there]], [values[there]]
    for least in np.unique(limit).tolist():
        rows = np.flatnonzero(limit == least)
        present = bins[limit[bins // table.n_columns] == least]
        # number the bins of these rows one after the other, and leave out those that somebody has
        position = np.searchsorted(rows, present // table.n_columns) * table.n_columns + present % table.n_columns
        places, above = draw_absent(len(rows) * table.n_columns - len(present), scale=scale, threshold=least, rng=rng)
        places = places + np.searchsorted(position - np.arange(len(position)), places, side="right")
        found.append(rows[places // table.n_columns] * table.n_columns + places % table.n_columns)
        kept.append(above)
    all_bins, all_values = np.concatenate(found), np.concatenate(kept)
    order = np.argsort(all_bins, kind="stable")
    return all_bins[order], all_values[order]
