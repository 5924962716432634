"""Describe what a mechanism may measure on private trips: tables of counts, in rounds. No exact count reaches this module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from murmurate.core.parameters import positive, whole
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import ContractBroken

Norm = Literal["l1", "l2"]
"""How the size of a unit's contribution is measured: L1 under Laplace noise, L2 under Gaussian noise."""

STEPS = 1 << 12
"""Fixed-point steps of one count, where a table does not say otherwise. Fractions are rounded down to a step, so that no
unit ever adds more than its limit, and Gaussian noise stays far above the 20 steps that its accountant needs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A table of counts to be measured once. Everything in it is public or follows from earlier noisy answers."""

    name: str
    n_bins: int
    share: float
    """Share of the budget this table gets; the shares of all tables of a release add up to one at most."""
    limit: float = 1.0
    """Largest norm of what one unit may add, in counts. A larger contribution is scaled down to it."""
    joint: bool = False
    """Clip a unit over all joint tables of the round at once (docs/joint-clip.md): its `share * (norm / limit)^2` summed over
    these tables stays within the sum of their shares, and one weight scales all its rows. Needs Gaussian noise."""
    steps: int = STEPS
    """Fixed-point steps of one count."""

    def __post_init__(self) -> None:
        whole("n_bins", self.n_bins)
        positive("share", self.share)
        positive("limit", self.limit)
        whole("steps", self.steps)


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeTable(Table):
    """Counts of the children of tree nodes, of which only clear ones are answered.

    Bin `row * n_columns + column` counts child `column` of the node of that row. Each row has a share of its own. What one
    unit adds consists of occurrences, at most `limit` of them, and each follows one path from the root. So shares add up
    along each path; they need not add up over all nodes. Only bins whose noisy count reaches the row's threshold are
    answered, absent children included.
    """

    n_columns: int
    row_share: Floats
    threshold: Integers
    """[row] least noisy count that is answered, in counts."""
    after: str | None = None
    """Name of the table of the level above; None for the root's children."""
    parent: Integers | None = None
    """[row] bin of the node in that table."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.joint:
            raise ContractBroken("shares add up along each path", f"{self.name}: levels of a tree are not clipped jointly.")
        n_rows = len(self.row_share)
        rooted = self.after is None and self.parent is None
        if n_rows * self.n_columns != self.n_bins or len(self.threshold) != n_rows:
            raise ContractBroken("a table fits its bins", f"{self.name}: rows, thresholds or shares do not fit.")
        if not ((self.row_share > 0) & (self.row_share <= 1)).all():
            raise ContractBroken("shares add up along each path", f"{self.name}: shares of rows lie between 0 and 1.")
        if self.threshold.dtype.kind != "i" or (self.threshold < 1).any():
            raise ContractBroken("absent bins are noised as well", f"{self.name}: a threshold is a whole number from 1 on.")
        if not rooted and (self.after is None or self.parent is None or len(self.parent) != n_rows):
            raise ContractBroken("shares add up along each path", f"{self.name}: each row needs the bin of its node.")


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseTable(Table):
    """Counts of very many bins, of which only clear ones are answered.

    Bin `row * n_columns + column` is answered if its noisy count reaches the threshold of its row. Empty bins are noised as
    all others, at the cost of those that pass: the answer has the distribution of a full table whose lower counts are hidden.
    A unit is clipped and a share is paid as for every table.
    """

    n_columns: int
    threshold: Integers
    """[row] least noisy count that is answered, in counts."""
    steps: int = 1 << 6
    """Fixed-point steps of one count; few, because the tail of the noise is added up step by step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.threshold) * self.n_columns != self.n_bins:
            raise ContractBroken("a table fits its bins", f"{self.name}: rows and thresholds do not fit.")
        if self.threshold.dtype.kind != "i" or (self.threshold < 1).any():
            raise ContractBroken("absent bins are noised as well", f"{self.name}: a threshold is a whole number from 1 on.")


@dataclass(frozen=True, eq=False)
class Answer:
    """Noisy counts of a table."""

    noisy: Floats
    """[bin] noisy counts; of a `TreeTable` or `SparseTable` only those in `bins`."""
    deviation: float
    """Standard deviation of the noise of each count."""
    bins: Integers | None = None
    """Bins of the noisy counts of a `TreeTable` or `SparseTable`, ascending."""


Answers = Mapping[str, Answer]
"""Noisy counts by table name."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of the input without reading a row: which columns it has and where hours are local."""

    carries: frozenset[str]
    """time, coordinates, cell, link, hour."""
    time_zone: str = "UTC"

    @property
    def has_time(self) -> bool:
        """Return whether every point has a time."""
        return "time" in self.carries


@dataclass(frozen=True, eq=False)
class Part:
    """Some people's bounded trips, all of each person's, and the unit that each trip belongs to."""

    trips: Trips
    unit: Integers
    """[trip] position (0, 1, ...) of its unit in this part."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """What units add to a table: rows of (unit, bin, weight), weights in fixed-point steps.

    A unit's rows must follow from its own trips, public parameters and earlier answers alone. Rows of the same unit and bin
    are added up before the unit's norm is taken.
    """

    unit: Integers
    bin: Integers
    weight: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """Tables that are measured together, and how a part of the people contributes to them.

    `prepare` and `contribute` are pure, importable functions or frozen dataclasses, because parts are counted in other
    processes. They may look at each unit by itself only: no minimum, maximum, mean, order or coding over a part.
    """

    tables: tuple[Table, ...]
    prepare: Callable[[Part], Any]
    contribute: Callable[[Any], Mapping[str, Contributions]]
    keep: str | None = None
    """Name under which what `prepare` made is kept for later rounds of the same name; None: it is made again."""
    cut: Callable[[Any], Iterable[Any]] | None = None
    """Cuts what `prepare` made into pieces of whole units, so that only the rows of one piece are in memory at a time."""

    def __post_init__(self) -> None:
        names = [table.name for table in self.tables]
        if not names or len(set(names)) < len(names):
            raise ContractBroken("a table is asked once", f"a round needs tables with names of their own; got {names}.")


def once(unit: Integers, bins: Integers, *, steps: int = STEPS) -> Contributions:
    """Let each row add one count to one bin."""
    return Contributions(unit, bins, np.full(len(bins), steps, dtype=np.int64))
