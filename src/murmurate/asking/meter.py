"""Compute exactly, without noise, which share of its guarantee a measured mechanism spends on one unit, table by table.

The answers of one run are fixed. The same rounds are then counted exactly on both of two neighbouring inputs. Each table's
change, measured in its norm over its noise, is what the unit costs there. The sum over all tables and rounds must never pass
the promise. For Laplace noise this is the exact worst-case privacy loss given these answers, for Gaussian noise the exact
squared sensitivity over variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from murmurate.asking.bounding import new_key
from murmurate.asking.clipping import Sums, add, dense
from murmurate.asking.rounds import Asking, Measured, facts_of
from murmurate.asking.table import Answer, SparseTable, Table, TreeTable

if TYPE_CHECKING:
    from murmurate.noise import Randomness


@dataclass(frozen=True)
class Counted:
    """One table, and its exact sums on each input."""

    table: Table
    sums: tuple[Sums, ...]

    def exact(self, side: int) -> Any:
        """Return the sums of one input as a budget takes them for a draw."""
        return self.sums[side] if isinstance(self.table, TreeTable | SparseTable) else dense(self.sums[side], self.table.n_bins)

    def cost(self, norm: str) -> float:
        """Return the share of the budget that the change between the first two inputs uses."""
        table = self.table
        bins, change = add([self.sums[0], (self.sums[1][0], -self.sums[1][1])], table.n_bins)
        size = np.abs(change) / (table.limit * table.steps)
        if isinstance(table, TreeTable):
            return float((size * table.row_share[bins // table.n_columns]).sum())
        return table.share * float(size.sum() if norm == "l1" else (size**2).sum())


def counted(mechanism: Measured, inputs: tuple[Any, ...], rng: Randomness) -> list[Counted]:
    """Run the mechanism on the first input, then count every round it asked on all inputs exactly. For tests and audits."""
    budget, facts, key = mechanism.budget(), facts_of(inputs[0]), new_key(rng)
    if budget is None:
        raise ValueError(f"{mechanism.name} is not measured with these settings.")
    Asking(mechanism, inputs[0], rng).check_promise(budget)
    answers: dict[str, Answer] = {}
    found: list[Counted] = []
    while (asked := mechanism.ask(dict(answers), facts)) is not None:
        sides = [Asking(mechanism, private, rng, key=key).exact(asked, budget.norm) for private in inputs]
        for table in asked.tables:
            found.append(Counted(table, tuple(side[table.name] for side in sides)))
            answers[table.name] = budget.draw(table, found[-1].exact(0), rng)
    return found


def spent_share(mechanism: Measured, private: Any, neighbour: Any, rng: Randomness) -> dict[str, float]:
    """Return the share of the promise that the difference between two inputs uses, by table; their sum must not pass one."""
    budget = mechanism.budget()
    norm = "l1" if budget is None else budget.norm
    return {one.table.name: one.cost(norm) for one in counted(mechanism, (private, neighbour), rng)}
