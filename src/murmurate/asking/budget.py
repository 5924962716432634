"""Spend one (epsilon, delta) on tables for one kind of unit; each table is drawn once."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, hypot, sqrt
from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking.clipping import dense
from murmurate.asking.sparse import draw_sparse
from murmurate.asking.table import Answer, Norm, SparseTable, Table, TreeTable
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

ROUNDING = 2.0
"""Standard deviation, in steps, that integer noise has on top of the continuous Gaussian it stands for. Integer noise of
deviation sqrt(s^2 + 4) is continuous noise of deviation s followed by a random rounding, up to a factor of 1 + 1e-33
(docs/joint-clip.md), so that the price of continuous noise holds exactly, for any number of tables and rounds."""

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
        self._levels: dict[str, _Level] = {}

    @property
    def events(self) -> tuple[Event, ...]:
        """Return what the accountant composes: one event for all tables, because their shares add up to it exactly."""
        return (Pure(epsilon=self.epsilon) if self.delta == 0 else Gaussian(noise_multiplier=self.multiplier),)

    def scale(self, share: float, limit: float = 1.0) -> float:
        """Return the scale of the noise of a table (Laplace parameter or standard deviation), in counts."""
        return self.multiplier * limit / (share if self.norm == "l1" else sqrt(share))

    def deviation(self, share: float, limit: float = 1.0) -> float:
        """Return the standard deviation of the noise of a table, in counts."""
        return self.scale(share, limit) * (sqrt(2) if self.norm == "l1" else 1.0)

    @property
    def spent(self) -> float:
        """Return the share of the budget that the tables drawn so far have used."""
        return _total(self._spent, self._levels)

    def check(self, tables: tuple[Table, ...]) -> None:
        """Refuse tables that were drawn already or would pass the budget, before anything is counted for them."""
        self._with(tables)

    def _with(self, tables: tuple[Table, ...]) -> tuple[dict[str, float], dict[str, _Level]]:
        """Shares of plain tables and levels of the tree when these tables are drawn as well."""
        spent, levels = dict(self._spent), dict(self._levels)
        for table in tables:
            if table.name in spent or table.name in levels:
                raise ContractBroken("a table is asked once", f"{table.name} was drawn already.")
            if table.joint and self.norm != "l2":
                raise ContractBroken("joint tables need Gaussian noise", f"{table.name}: pure epsilon clips tables alone.")
            if isinstance(table, TreeTable):
                if self.norm != "l1":
                    raise ContractBroken("shares add up along each path", f"{table.name}: trees need Laplace noise.")
                levels[table.name] = _level(table, levels)
            else:
                spent[table.name] = table.share
            total = _total(spent, levels)
            if not total <= 1 + TOLERANCE:
                raise ContractBroken(
                    "shares add up to the budget",
                    f"with {table.name} the tables would use {total:.6f} of the budget.",
                )
        return spent, levels

    def draw(self, table: Table, exact: Integers | tuple[Integers, Integers], rng: Randomness) -> Answer:
        """Add noise to the exact fixed-point sums of a table, once.

        `exact` holds every bin, or (bins, sums) of the bins that any unit has, as sparse tables need them.
        """
        self._spent, self._levels = self._with((table,))  # counted before the draw: what fails in it is spent all the same
        if isinstance(table, TreeTable):
            return self._draw_tree(table, exact, rng)  # type: ignore[arg-type]
        if isinstance(table, SparseTable):
            bins, values = draw_sparse(table, exact, self._step_scale(table), self.norm, rng)  # type: ignore[arg-type]
            return Answer(values / table.steps, self._deviation_of(table), bins)
        every = dense(exact, table.n_bins) if isinstance(exact, tuple) else exact
        flat = np.ascontiguousarray(every, dtype=np.int64).ravel()
        if len(flat) != table.n_bins:
            raise ContractBroken(
                "a table fits its bins", f"{table.name} has {table.n_bins:,} bins; {len(flat):,} were counted."
            )
        noise = laplace_integers if self.norm == "l1" else gaussian_integers
        noisy = noise(flat, scale=self._step_scale(table), rng=rng)
        return Answer(noisy / table.steps, self._deviation_of(table))

    def _step_scale(self, table: Table) -> float:
        """Return the scale of the noise of a table in fixed-point steps."""
        scale = self.scale(table.share, table.limit) * (1 + MARGIN) * table.steps
        return hypot(scale, ROUNDING) if self.norm == "l2" else scale

    def replay(self, table: Table, answer: Answer) -> Answer:
        """Count a table as drawn because an interrupted run has kept its answer; refuse an answer to another table."""
        sparse = isinstance(table, TreeTable | SparseTable)
        fits = (answer.bins is not None) if sparse else answer.bins is None and len(answer.noisy) == table.n_bins
        if not fits or answer.deviation != self._deviation_of(table):
            raise ContractBroken(
                "a table is asked once",
                f"the kept answer of {table.name} has another size or noise than this version asks for; fit anew.",
            )
        self._spent, self._levels = self._with((table,))
        return answer

    def _deviation_of(self, table: Table) -> float:
        share = float(table.row_share.max()) if isinstance(table, TreeTable) else table.share
        return self.deviation(share, table.limit)

    def _draw_tree(self, table: TreeTable, exact: tuple[Integers, Integers], rng: Randomness) -> Answer:
        """Draw noisy counts at or above their row's threshold; absent children are noised too, at the cost of those kept."""
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
        return Answer(values[order] / table.steps, self._deviation_of(table), all_bins[order])

    @staticmethod
    def _absent(
        table: TreeTable, group: Integers, present: Integers, noise: tuple[float, int], rng: Randomness
    ) -> tuple[Integers, Integers]:
        """Return the bins of a group of rows that nobody has and whose noise alone reaches the threshold, and their values."""
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


@dataclass(frozen=True, eq=False)
class _Level:
    """A drawn level of the tree."""

    after: str | None
    n_bins: int
    n_columns: int
    limit: float
    paths: Floats
    """[row] share of the budget used on the path from the root to the children of the row's node."""


def _level(table: TreeTable, levels: dict[str, _Level]) -> _Level:
    """Add a level to the tree. Shares add up along paths only because all levels count the same occurrences, each once."""
    clause = "shares add up along each path"
    if any(level.after == table.after for level in levels.values()):
        found = "a release has one tree with one root" if table.after is None else f"{table.after} is followed already"
        raise ContractBroken(clause, f"{table.name}: {found}.")
    paths = table.row_share.astype(np.float64)  # a copy: the mechanism's own array may change
    if table.after is not None and table.parent is not None:
        if table.after not in levels:
            raise ContractBroken(clause, f"{table.name} follows {table.after}, which was not drawn.")
        above = levels[table.after]
        if table.limit != above.limit:
            raise ContractBroken(clause, f"{table.name} needs the limit of {table.after}, {above.limit:g}.")
        if (table.parent < 0).any() or (table.parent >= above.n_bins).any():
            raise ContractBroken(clause, f"{table.name}: its nodes must be bins of {table.after}.")
        paths += above.paths[table.parent // above.n_columns]
    return _Level(table.after, table.n_bins, table.n_columns, table.limit, paths)


def _total(spent: dict[str, float], levels: dict[str, _Level]) -> float:
    return fsum(spent.values()) + max((float(level.paths.max()) for level in levels.values()), default=0.0)
