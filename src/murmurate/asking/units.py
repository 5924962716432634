"""Measure, with noise, how many trips units have. If no bound on trips is given, the clip follows from this table.

A unit adds one count to one bin, whatever its trips, so this table needs no bound itself. It costs about 1 % of the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.asking.table import Answer, Contributions, Table, once
from murmurate.core.space import Floats, Integers

TABLE = "units"
"""Name of the table."""

SHARE = 0.01
"""Its share of the budget. The clip barely matters between the .05 and .8 quantile of the norms (San Francisco, built-in city),
so a rough median is enough."""

EDGES = np.unique(np.round(2.0 ** (np.arange(33) / 2)).astype(np.int64))
"""Largest number of trips (or links driven) of each bin: 1, 2, 3, 4, 6, 8, 11, 16, ..., each about 1.4 times the one before.
The last bin, 65,536, holds units with more too."""

CLEAR_SDS = 2.5
"""Noisy counts of units below this many standard deviations count as none in quantiles: an empty bin passes in 1 of 160 tables.
Set by hand."""

TAIL = 8
"""No quantile passes this many times the median, so that noise in the bins of very busy units cannot. Set by hand."""

COLLISION_POWER = 0.75
"""Norm of the sum of m trips in a table, as a power of m: .5 where all are in different bins, 1 where all are in one. Half-way,
as measured on San Francisco taxis and the built-in city."""


WINDOW = 5
"""Neighbouring bins, a factor of 5.6 in trips, among which the units are sought where no single bin is clear. Set by hand."""


def units_table(share: float = SHARE) -> Table:
    """Ask for the number of units by their number of trips."""
    return Table(name=TABLE, n_bins=len(EDGES), share=share)


def count_units(unit: Integers) -> Contributions:
    """Let each unit add one count to the bin of its number of trips; `unit` names the unit of each trip."""
    units, trips = np.unique(unit, return_counts=True)
    return once(units, np.minimum(np.searchsorted(EDGES, trips), len(EDGES) - 1))


@dataclass(frozen=True, eq=False)
class TripsPerUnit:
    """What a noisy table of units says: rough numbers, to choose clips and sizes by."""

    answer: Answer

    @property
    def _clear(self) -> Floats:
        """Return [bin] units, of bins that are clear of their noise; of the fullest `WINDOW` of bins where none is."""
        noisy = self.answer.noisy
        clear = np.where(noisy > CLEAR_SDS * self.answer.deviation, noisy, 0.0)
        if clear.any():
            return clear
        middle = int(np.argmax(np.convolve(noisy, np.ones(WINDOW), mode="same")))
        near = np.abs(np.arange(len(noisy)) - middle) <= WINDOW // 2
        found = np.where(near, np.maximum(noisy, 0.0), 0.0)
        return found if found.any() else (np.arange(len(noisy)) == np.argmax(noisy)).astype(np.float64)

    def quantile(self, share: float) -> int:
        """Return the number of trips that this share of the units does not pass, rounded up to the edge of its bin."""
        below = np.cumsum(self._clear)
        median, wanted = (int(EDGES[np.searchsorted(below, at * below[-1])]) for at in (0.5, share))
        return min(wanted, TAIL * median)

    def clip(self) -> float:
        """Return a norm for joint tables, in counts: what a unit with the median number of trips adds."""
        return float(self.quantile(0.5)) ** COLLISION_POWER

    def trips(self, most: int) -> float:
        """Estimate the number of trips of units with up to `most` trips; at least 1."""
        middle = (EDGES + np.concatenate([[0], EDGES[:-1]]) + 1) / 2
        return max(float((self.answer.noisy * middle)[most >= EDGES].sum()), 1.0)
