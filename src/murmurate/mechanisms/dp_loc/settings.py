"""What a variant stands for: the published reading or our own, as plain settings with the rules behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Initialiser = Literal["counts", "vae"]
NextCell = Literal["counts", "net"]
Route = Literal["sampled", "most_probable"]


@dataclass(frozen=True, kw_only=True)
class Training:
    """How one network is trained; every value is public and none is read from private data."""

    sampling: float
    """Probability with which a unit is in a step's batch."""
    epochs: float
    clip: float
    learning_rate: float
    optimiser: Literal["sgd", "adam"]
    one_gram: bool
    """One gram of each sampled unit, as published, or all of them."""

    @property
    def steps(self) -> int:
        return max(1, round(self.epochs / self.sampling))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The choices behind a variant, after the user's own were put in."""

    initialiser: Initialiser
    next_cell: NextCell
    route: Route
    reach: int | None
    """Cells a step may cross; None: from the public speed limit."""
    relative: bool
    """Whether the network also sees where the destination lies, and calibration follows."""
    ends_training: Training
    moves_training: Training

    @property
    def uses_networks(self) -> bool:
        """Return whether ends or moves are learned by a network."""
        return self.initialiser == "vae" or self.next_cell == "net"


AS_PUBLISHED = Settings(
    initialiser="vae",
    next_cell="net",
    route="most_probable",
    reach=5,
    relative=False,
    ends_training=Training(sampling=1 / 608, epochs=15, clip=1.0, learning_rate=0.2, optimiser="sgd", one_gram=True),
    moves_training=Training(sampling=1 / 608, epochs=15, clip=3.0, learning_rate=0.1, optimiser="sgd", one_gram=True),
)
"""The publication's own choices: 15 epochs of batches of 200 of some 121,000 trips; learning rates of its section 8.5 for
epsilon 1, others in `PUBLISHED_RATES`."""

OWN = Settings(
    initialiser="counts",
    next_cell="counts",
    route="sampled",
    reach=None,
    relative=True,
    ends_training=Training(sampling=1 / 60, epochs=10, clip=1.0, learning_rate=0.005, optimiser="adam", one_gram=False),
    moves_training=Training(sampling=1 / 60, epochs=10, clip=1.0, learning_rate=0.005, optimiser="adam", one_gram=False),
)
"""Our choices. Networks are trained with large batches and few steps: about a third less noise at the same epsilon, and a
twentieth of the time."""

VARIANTS = {"own": OWN, "as_published": AS_PUBLISHED}
"""Settings by the word a user gives for `variant`."""

PUBLISHED_RATES = {1.0: (0.2, 0.1), 2.0: (0.5, 0.15)}
"""Learning rates of the ends and of the moves by epsilon, from section 8.5; the largest epsilon that is not above counts."""


def variant_of(name: str, epsilon: float) -> Settings:
    """Return the settings behind a variant; as published, learning rates go with epsilon."""
    if name != "as_published":
        return VARIANTS[name]
    ends, moves = PUBLISHED_RATES[max((known for known in PUBLISHED_RATES if known <= epsilon), default=1.0)]
    return replace(
        AS_PUBLISHED,
        ends_training=replace(AS_PUBLISHED.ends_training, learning_rate=ends),
        moves_training=replace(AS_PUBLISHED.moves_training, learning_rate=moves),
    )
