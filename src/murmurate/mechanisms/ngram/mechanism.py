"""NGRAM: trips from noisy variable-length grams, under pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from murmurate.asking import Budget, Facts, Round
from murmurate.asking.table import Answers
from murmurate.core.guarantee import DP, Unit
from murmurate.core.parameters import positive, whole
from murmurate.core.space import Places
from murmurate.errors import ParameterError
from murmurate.mechanisms.ngram.counting import CountLevel, ReadSequences
from murmurate.mechanisms.ngram.model import NGramModel, load_model
from murmurate.mechanisms.ngram.tree import Growth
from murmurate.spaces import parse_specs
from murmurate.synthesis.frames import check_unit

if TYPE_CHECKING:
    from murmurate.noise import Randomness


@dataclass(frozen=True, kw_only=True)
class NGram:
    """Count n-grams of visited places with Laplace noise and draw sequences from those above the noise.

    Guarantee
        epsilon-differential privacy for one unit, add or remove. A trip is cut to `l_max` symbols, so it changes the
        counts of each level by at most `l_max`, and the budgets along any path of the tree add to epsilon.

    >>> from murmurate.spaces import Grid
    >>> NGram(epsilon=1.0, space=Grid(60.1, 24.8, 60.3, 25.1, 1000)).guarantee().delta
    0.0
    """

    name: ClassVar[str] = "ngram"
    needs: ClassVar[frozenset[str]] = frozenset({"time", "coordinates"})
    emits: ClassVar[tuple[str, ...]] = ("lat", "lng", "cell")
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[dict[str, Any]] = {"epsilon": 2.0, "space": "grid", "n_out": 1000}

    epsilon: float
    """The budget of one unit; smaller protects more."""
    space: Places
    """The public places that are the symbols of grams: grid:..., hex:..., zones:FILE or stops:FILE."""
    unit: str = "trip"
    """Whose presence is protected: "trip", "user_day" or "user"."""
    max_trips: int | None = None
    """Trips read of each person or person-day; needed where the unit is not the trip."""
    n_out: int | None = None
    """Trips to release; None: the noisy count of trip ends (1 where that count is not clear of its noise)."""
    l_max: int = 20
    """Symbols kept of a trip, its end included; the rest is cut off."""
    n_max: int = 5
    """The longest gram."""
    slot_s: int = 60
    """Seconds of a time slot; the most frequent cell of each is visited."""

    def __post_init__(self) -> None:
        parse_specs(self)
        positive("epsilon", self.epsilon, at_most=100)
        check_unit(self.unit, self.max_trips)
        if self.n_out is not None:
            whole("n_out", self.n_out)
        whole("l_max", self.l_max, at_least=3, at_most=10_000)
        whole("n_max", self.n_max, at_most=20)
        whole("slot_s", self.slot_s, at_most=3600)
        if not isinstance(self.space, Places):
            raise ParameterError(
                "ngram works on places: give --space grid:SOUTH,WEST,NORTH,EAST:CELL_M, hex:..., zones:FILE or stops:FILE; "
                f"got {self.space!r}."
            )

    def bounds(self) -> Unit:
        """Return the unit and its public bound."""
        return Unit(name=self.unit, max_trips=self.max_trips)  # type: ignore[arg-type]

    def guarantee(self) -> DP:
        """Return pure epsilon for the unit."""
        return DP(
            epsilon=self.epsilon,
            unit=self.bounds(),
            assumptions=("the places, l_max and n_max are public and were not chosen by looking at these data",),
        )

    def statement(self) -> tuple[str, ...]:
        return (
            f"These are synthetic sequences of public places ({self.space.describe()}): no row belongs to a person.",
            f"They follow frequent sequences of up to {self.n_max} cells. Trips were cut to {self.l_max - 1} cells; times and "
            "destinations were not learned.",
        )

    def expected_error(self) -> str:
        scale = self.l_max * (self.max_trips or 1) * self.n_max / self.epsilon
        return (
            f"Cells are counted with Laplace noise of scale about {scale:.0f} visits, and cells visited fewer than about "
            f"{scale * np.log(max(self.space.n_cells / 2, 2)):.0f} times are usually lost."
        )

    # -- measuring and drawing -----------------------------------------------------------------------------------------

    def budget(self) -> Budget:
        """Return Laplace noise for the whole epsilon."""
        return Budget(epsilon=self.epsilon)

    def ask(self, answers: Answers, facts: Facts) -> Round | None:
        """Ask for the next level of the tree; None where no node is expected to have clear children."""
        tree = self._growth().grow(answers)
        if tree.next_table is None:
            return None
        return Round(
            tables=(tree.next_table,),
            prepare=ReadSequences(places=self.space, slot_s=self.slot_s, l_max=self.l_max),
            contribute=CountLevel.of(tree, len(answers)),
            keep="sequences",
        )

    def model(self, answers: Answers, facts: Facts, rng: Randomness) -> NGramModel:
        """Make the model that the noisy counts show; it can be sampled for free."""
        return NGramModel(self._growth().grow(answers).finished(), self.space, self.l_max, facts.time_zone)

    def _growth(self) -> Growth:
        return Growth(
            n_symbols=self.space.n_cells + 1, n_max=self.n_max, epsilon=self.epsilon,
            limit=float(self.l_max * (self.max_trips or 1)),
        )  # fmt: skip

    def load(self, path: Path) -> NGramModel:
        """Read back a saved model."""
        return load_model(path, self.space)
