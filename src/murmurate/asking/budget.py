"""Budget: one (epsilon, delta) for one kind of unit, spent on tables that are each drawn once."""

from __future__ import annotations

from math import fsum, sqrt
from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking.table import Answer, Norm, Table, TreeTable
from murmurate.core.accounting import solve_noise_multiplier
from murmurate.core.events import Event, Gaussian, Pure
from murmurate.core.space import Floats, Integers
from murmurate.errors import ContractBroken
from murmurate.noise import gaussian_integers, laplace_integers
from murmurate.noise.sparse import laplace_survivors

if TYPE_CHECKING:
    from murmurate.noise import Randomness

MARGIN = 1e-10
"""Relative noise above what the shares need, so that floating-point rounding of shares and norms never passes the promise."""

TOLERANCE = 1e-11
"""Rounding allowed in a sum of shares; well below `MARGIN`."""


class Budget:
    """Noise for all tables of a release: Laplace (delta = 0) or Gaussian noise, whose shares add up to (epsilon, delta).

    Guarantee: where one unit adds at most a table's `limit` in `norm`, all draws together are (epsilon, delta)-differentially
    private. Under Laplace noise a table with share s costs s * epsilon. Under Gaussian noise it costs s / sigma^2 in squared
    sensitivity over variance, and these add up to one Gaussian mechanism with noise multiplier sigma, also where later
    tables depend on earlier answers.

    >>> budget = Budget(epsilon=1.0)
    >>> round(budget.deviation(0.5), 3), budget.norm
    (2.828, 'l1')
    """

    def __init__(self, *, epsilon: float, delta: float = 0.0) -> None:
        """Take `epsilon` and `delta` of the promise."""
        self.epsilon, self.delta = float(epsilon), float(delta)
        if delta == 0:
            self.norm: Norm = "l1"
            self.multiplier = 1 / self.epsilon
        else:
            self.norm = "l2"
            self.multiplier = solve_noise_multiplier("gaussian", epsilon=self.epsilon, delta=self.delta)
        self._spent: dict[str, float] = {}
        self._paths: dict[str, Floats] = {}
        self._columns: dict[str, int] = {}

    @property
    def events(self) -> tuple[Event, ...]:
        """What the accountant composes: all tables together are one event, because their shares add up to it exactly."""
        return (Pure(epsilon=self.epsilon) if self.delta == 0 else Gaussian(noise_multiplier=self.multiplier),)

    def scale(self, share: float, limit: float = 1.0) -> float:
        """Scale of the noise of a table (Laplace parameter or standard deviation), in counts."""
        return self.multiplier * limit / (share if self.norm == "l1" else sqrt(share))

    def deviation(self, share: float, limit: float = 1.0) -> float:
        """Standard deviation of the noise of a table, in counts."""
        return self.scale(share, limit) * (sqrt(2) if self.norm == "l1" else 1.0)

    @property
    def spent(self) -> float:
        """Share of the budget that the tables drawn so far have used."""
        return fsum(self._spent.values()) + max((float(paths.max()) for paths in self._paths.values()), default=0.0)

    def check(self, tables: tuple[Table, ...]) -> None:
        """Refuse tables that were drawn already or would pass the budget, before anything is counted for them."""
        spent, paths = dict(self._spent), dict(self._paths)
        columns = dict(self._columns)
        for table in tables:
            if table.name in self._spent or table.name in self._paths:
                raise ContractBroken("a table is asked once", f"{table.name} was drawn already.")
            if isinstance(table, TreeTable):
                paths[table.name] = _path_shares(table, paths, columns)
                columns[table.name] = table.n_columns
                if self.norm != "l1":
                    raise ContractBroken("shares add up along each path", f"{table.name}: trees need Laplace noise.")
            else:
                spent[table.name] = table.share
            total = fsum(spent.values()) + max((float(path.max()) for path in paths.values()), default=0.0)
            if total > 1 + TOLERANCE:
                raise ContractBroken(
                    "shares add up to the budget",
                    f"with {table.name} the tables would use {total:.6f} of the budget.",
                )

    def draw(self, table: Table, exact: Integers | tuple[Integers, Integers], rng: Randomness, *, threads: int = 1) -> Answer:
        """Add noise to the exact fixed-point sums of a table, once.

        `exact` holds every bin; for a `TreeTable` it is (bins, sums) of the bins that any unit has. Secure noise is drawn
        by this many `threads`.
        """
        self.replay(table)  # counted before the draw: what fails in it is spent all the same
        if isinstance(table, TreeTable):
            return self._draw_tree(table, exact, rng)  # type: ignore[arg-type]
        flat = np.ascontiguousarray(exact, dtype=np.int64).ravel()
        if len(flat) != table.n_bins:
            raise ContractBroken(
                "a table fits its bins", f"{table.name} has {table.n_bins:,} bins; {len(flat):,} were counted."
            )
        noise = laplace_integers if self.norm == "l1" else gaussian_integers
        scale = self.scale(table.share, table.limit) * (1 + MARGIN)
        noisy = noise(flat, scale=scale * table.steps, rng=rng, threads=threads) / table.steps
        return Answer(noisy, self.deviation(table.share, table.limit))

    def replay(self, table: Table) -> None:
        """Count a table as drawn: before its noise is drawn, or because an interrupted run has kept its answer."""
        self.check((table,))
        if isinstance(table, TreeTable):
            self._paths[table.name] = _path_shares(table, self._paths, self._columns)
            self._columns[table.name] = table.n_columns
        else:
            self._spent[table.name] = table.share

    def _draw_tree(self, table: TreeTable, exact: tuple[Integers, Integers], rng: Randomness) -> Answer:
        """Noisy counts at or above their row's threshold; absent children are noised as well, at the cost of those kept."""
        bins, sums = exact
        row = bins // table.n_columns
        kept_bins, kept = [], []
        for share in np.unique(table.row_share):
            scale = self.scale(float(share), table.limit) * (1 + MARGIN)
            rows = np.flatnonzero(table.row_share == share)
            for threshold in np.unique(table.threshold[rows]):
                group = rows[table.threshold[rows] == threshold]
                mine = np.isin(row, group)
                values = laplace_integers(sums[mine], scale=scale * table.steps, rng=rng)
                there = values >= threshold * table.steps
                kept_bins.append(bins[mine][there])
                kept.append(values[there])
                places, above = self._absent(table, group, bins[mine], (scale, int(threshold)), rng)
                kept_bins.append(places)
                kept.append(above)
        all_bins, values = np.concatenate(kept_bins), np.concatenate(kept)
        order = np.argsort(all_bins, kind="stable")
        return Answer(values[order] / table.steps, self.deviation(float(table.row_share.max()), table.limit), all_bins[order])

    @staticmethod
    def _absent(
        table: TreeTable, group: Integers, present: Integers, noise: tuple[float, int], rng: Randomness
    ) -> tuple[Integers, Integers]:
        """Bins of a group of rows that nobody has and whose noise alone reaches the threshold, and their values."""
        scale, threshold = noise
        row = present // table.n_columns
        shown = np.searchsorted(row, group, side="right") - np.searchsorted(row, group)
        absent = table.n_columns - shown
        places, above = laplace_survivors(
            int(absent.sum()), scale=scale * table.steps, threshold=threshold * table.steps, rng=rng
        )
        ends = np.cumsum(absent)
        index = np.searchsorted(ends, places, side="right")
        rank = places - (ends - absent)[index]
        found = np.empty(len(places), dtype=np.int64)
        for k, (one, at) in enumerate(zip(group[index].tolist(), rank.tolist(), strict=True)):
            low, high = np.searchsorted(present, [one * table.n_columns, (one + 1) * table.n_columns])
            column = present[low:high] - one * table.n_columns
            # the rank-th absent column lies behind as many present ones as stand before it
            found[k] = one * table.n_columns + at + np.searchsorted(column - np.arange(len(column)), at, side="right")
        return found, above


def _path_shares(table: TreeTable, paths: dict[str, Floats], columns: dict[str, int]) -> Floats:
    """[row] share of the budget used on the path from the root to the children of each row's node."""
    if table.after is None or table.parent is None:
        return table.row_share
    if table.after not in paths:
        raise ContractBroken("shares add up along each path", f"{table.name} follows {table.after}, which was not drawn.")
    return np.asarray(table.row_share + paths[table.after][table.parent // columns[table.after]])
