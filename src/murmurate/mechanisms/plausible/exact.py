"""Exact sums of the statistics, without noise: for the variants that read the trips themselves.

`own` never comes here; its sums are made and noised by the asking core. `own-tested` draws its own noise on these sums and is
charged for it; `own-seeded` uses them as they are and promises nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from murmurate.asking import Answer, Budget
from murmurate.core.mechanism import Rng
from murmurate.core.space import Integers
from murmurate.mechanisms.plausible.statistics import LIBRARY_SHARES, SHARES, contributions, tables_of
from murmurate.profiles.days import DailyTraces
from murmurate.spaces.grid import Grid


def exact_sums(days: DailyTraces, grid: Grid) -> dict[str, Integers]:
    """Add up what all people contribute to every statistic, in fixed-point steps of `UNIT`; private."""
    rows = contributions(days, grid)
    sums = {table.name: np.zeros(table.n_bins, dtype=np.int64) for table in tables_of(grid, {**SHARES, **LIBRARY_SHARES})}
    for name, total in sums.items():
        np.add.at(total, rows[name].bin, rows[name].weight)
    return sums


def measured(
    days: DailyTraces, grid: Grid, *, epsilon: float, rng: Rng, shares: Mapping[str, int] = SHARES
) -> dict[str, Answer]:
    """Draw noise on the sums of days that are in memory: what `own` would measure of them with this epsilon."""
    sums, budget = exact_sums(days, grid), Budget(epsilon=epsilon)
    return {table.name: budget.draw(table, sums[table.name], rng) for table in tables_of(grid, shares)}
