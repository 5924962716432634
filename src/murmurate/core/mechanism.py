"""Protocols of mechanisms and fitted models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from murmurate.core.guarantee import Guarantee
from murmurate.core.trips import Trips

Rng = Any
"""A `murmurate.noise.Randomness`; core does not import noise."""


@runtime_checkable
class Payload(Protocol):
    """What a mechanism returns when it is not `Trips`: it writes its own files into the release folder."""

    kind: ClassVar[str]

    def write(self, folder: Path) -> None:
        """Write the files of this payload; called on a temporary folder that is renamed at the end."""


@runtime_checkable
class Mechanism(Protocol):
    """A frozen keyword-only dataclass of public parameters.

    `name` is the registry name, the CLI word, the file and the docs page. `needs` lists what the trips must carry
    ("time", "coordinates", "cell", "link"). `emits` lists the columns beside uid and tid that may leave; `release()` drops
    every other one. `paired` says that each released trip keeps the uid and tid of one original (`release()` replaces both
    by pseudonyms). `local` says that `apply` on each person's trips alone gives the same distribution, so that `release()`
    may pass partitions of people through it. `example` holds settings of a demo size; the space "plane", "grid" or "road"
    in it stands for that of the data at hand. A mechanism that also reads data declared public lists their `Identity` in
    `declared_public`; `release()` refuses those of a known population.
    """

    name: ClassVar[str]
    emits: ClassVar[tuple[str, ...]]
    paired: ClassVar[bool]
    local: ClassVar[bool]
    example: ClassVar[Mapping[str, Any]]

    @property
    def needs(self) -> frozenset[str]:
        """What the trips must carry; it may follow from the parameters."""

    def guarantee(self) -> Guarantee:
        """Return the promise, from the parameters alone."""

    def statement(self) -> Sequence[str]:
        """Return sentences for `statement.md`: what is and is not protected; from the parameters alone."""

    def expected_error(self) -> str:
        """Return one sentence for `ledger plan`: how far off a user should expect the release to be."""


@runtime_checkable
class Applied(Mechanism, Protocol):
    """A mechanism that is handed bounded private trips; those that read noisy tables alone are `asking.rounds.Measured`."""

    def apply(self, private: Trips, rng: Rng) -> Trips | Payload:
        """Read bounded private trips, return what may leave. Called by `release()` after the charge, never before."""


@runtime_checkable
class Model(Protocol):
    """A fitted model: plain arrays with a schema; sampling is free post-processing."""

    def sample(self, n: int, rng: Rng) -> Trips | Payload:
        """Draw `n` synthetic trips."""

    def save(self, path: Path) -> None:
        """Write plain arrays and their schema; never a pickle."""


@runtime_checkable
class Learner(Mechanism, Protocol):
    """A mechanism that learns a model, which is saved once and sampled any number of times."""

    def load(self, path: Path) -> Model:
        """Read back what `Model.save` wrote."""
