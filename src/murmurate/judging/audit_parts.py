"""Parts of audits: what generators and testers are, a trained tester, planted faults that were caught, forks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from murmurate.core.mechanism import Rng
from murmurate.core.space import Floats


class Generator(Protocol):
    """Makes outputs of a mechanism for one of two neighbouring inputs."""

    def __call__(self, side: int, n: int, rng: Rng) -> Floats:
        """Return [run, number] outputs for side 0 (with the canary) or 1."""
        ...


class Tester(Protocol):
    """Turns outputs into one number each, large where they look like side 0."""

    def __call__(self, outputs: Floats) -> Floats:
        """Return one number for each run."""
        ...


@dataclass(frozen=True)
class Twin:
    """A copy of the mechanism with a planted fault, and which test caught it."""

    fault: str
    caught_by: str
    """Empty where no test did."""
    words: str = ""


def trained(inside: Floats, outside: Floats) -> Tester:
    """Train a linear discriminant on outputs of both sides; each column is weighed by how far its means lie apart."""
    spread = (inside.var(axis=0) + outside.var(axis=0)) / 2 + 1e-12
    weight = (inside.mean(axis=0) - outside.mean(axis=0)) / spread
    return lambda outputs: np.asarray(outputs @ weight)


def fork_repeats(words: Callable[[int], Any]) -> bool:
    """Whether a forked child draws the same words as its parent after the parent has drawn some."""
    words(4)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:  # nothing but a draw happens here, so that no thread of the parent is missed
        try:
            os.write(theirs, np.asarray(words(4)).tobytes())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return bool(told == np.asarray(words(4)).tobytes())
