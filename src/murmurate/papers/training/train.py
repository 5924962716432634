"""The loop of private training: sample units, clip, sum, noise, update; charge first, never replay."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, log2, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core import progress
from murmurate.core.events import PoissonGaussian
from murmurate.core.parameters import one_of, positive, share, whole
from murmurate.errors import MurmurateError
from murmurate.papers.training.checkpoint import Checkpoint
from murmurate.papers.training.ghost import Arrays, Network, clipped_sum
from murmurate.papers.training.sampling import GRAMS_AT_ONCE, Grouped, chunks, group_by_unit, poisson_sample

if TYPE_CHECKING:
    from murmurate.noise import Randomness

SLACK = 1e-3
"""Noise is drawn for a sensitivity this much above the clipping norm, for what single precision and the lattice add."""

LATTICE = 2.0**-20
"""The lattice's step times the root of the number of parameters, in clipping norms: rounding moves a sum by less."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything about a private training that an accountant needs, and how the network is updated."""

    sampling: float
    steps: int
    noise_multiplier: float
    clip: float
    learning_rate: float
    optimiser: Literal["sgd", "adam"] = "sgd"
    one_gram: bool = False

    def __post_init__(self) -> None:
        if self.sampling != 1:
            share("sampling", self.sampling)
        whole("steps", self.steps)
        for name in ("noise_multiplier", "clip", "learning_rate"):
            positive(name, getattr(self, name))
        one_of("optimiser", self.optimiser, ("sgd", "adam"))

    def event(self) -> PoissonGaussian:
        """Return the whole training as the accountant sees it."""
        return PoissonGaussian(sampling=self.sampling, noise_multiplier=self.noise_multiplier, times=self.steps)


def train(
    network: Network,
    params: Arrays,
    grouped: Grouped,
    *,
    plan: Plan,
    n_expected: float,
    rng: Randomness,
    checkpoint: Path | None = None,
) -> tuple[Arrays, PoissonGaussian]:
    """Train a network; return its parameters and the event of the steps really taken (never more than planned).

    `n_expected` scales the noisy sums into means; it must be public or noisy. With a `checkpoint` folder an interrupted
    training goes on where it stopped: steps that had begun count as taken, and their noise is never drawn again.

    Guarantee: the parameters are the output of `event()`: a unit is in a batch with probability `plan.sampling`, and its
    clipped gradient moves the noisy sum by at most `plan.clip`.
    """
    import jax

    kept = Checkpoint(checkpoint, plan) if checkpoint is not None else None
    optimiser = Optimiser(plan.optimiser, plan.learning_rate)
    done = 0
    if kept is not None and (found := kept.load()) is not None:
        params, optimiser.state, done = found
    generator = rng.generator()
    batch_size = max(plan.sampling * n_expected, 1.0)
    # small batches of single grams are not padded to a large shape; the noisy size decides, so it discloses nothing new
    grams = min(GRAMS_AT_ONCE, max(64, 2 ** ceil(log2(1.25 * batch_size)))) if plan.one_gram else GRAMS_AT_ONCE
    step_sum = compiled(cast("Hashable", network), plan.clip)
    for step in progress.track(range(done, plan.steps), "training", plan.steps - done):
        if kept is not None:
            kept.begin(step)
        sums: Arrays = {}
        units = poisson_sample(grouped.n_units, plan.sampling, rng)
        for chunk in chunks(grouped, units, generator, one_gram=plan.one_gram, grams=grams):
            key = jax.random.key(int(generator.integers(2**31)))
            found_sums, _, _ = step_sum(params, chunk.columns, chunk.weight, key)
            # one chunk is its own sum; several are added in double precision
            sums = {
                name: np.asarray(value) if name not in sums else np.add(sums[name], value, dtype=np.float64)
                for name, value in found_sums.items()
            }
        sums = sums or {name: np.zeros_like(value) for name, value in params.items()}
        mean = noisy_sum(sums, clip=plan.clip, noise_multiplier=plan.noise_multiplier, rng=rng, divisor=batch_size)
        params = optimiser.update(params, mean)
        if not all(np.isfinite(value).all() for value in params.values()):
            raise MurmurateError(
                f"training diverged in step {step + 1} of {plan.steps}: parameters are no longer finite numbers. "
                "Give a smaller learning rate or more noise. What the ledger was charged stays charged."
            )
        if kept is not None:
            kept.end(step, params, optimiser.state)
    return params, plan.event()


def train_from_start(
    network: Any,
    columns: Mapping[str, NDArray[Any]],
    unit: NDArray[np.int64],
    *,
    plan: Plan,
    n_expected: float,
    rng: Randomness,
    checkpoint: Path | None,
) -> Arrays:
    """Group the grams in `columns` by `unit` and train the network on them from random parameters."""
    grouped = group_by_unit({name: values.astype(np.int32) for name, values in columns.items()}, unit)
    start = network.start(rng.generator())
    return train(network, start, grouped, plan=plan, n_expected=n_expected, rng=rng, checkpoint=checkpoint)[0]


@lru_cache(maxsize=16)
def compiled(network: Any, clip: float) -> Any:
    """Compile the clipped sum of one chunk, once for each of its few shapes."""
    import jax

    return jax.jit(partial(clipped_sum, network, clip=clip))


def noisy_sum(
    sums: dict[str, NDArray[Any]], *, clip: float, noise_multiplier: float, rng: Randomness, divisor: float = 1.0
) -> dict[str, NDArray[np.float32]]:
    """Add noise of deviation `noise_multiplier` * `clip` to each entry, everything rounded to one public lattice.

    The result is given in single precision and over `divisor`: what is done to noisy sums is post-processing.
    """
    size = sum(array.size for array in sums.values())
    step = clip * LATTICE / sqrt(max(size, 1))
    deviation = noise_multiplier * clip * (1 + SLACK) / step
    drawn = rng.normals(size)
    noisy = {}
    at = 0
    for name in sorted(sums):
        exact = np.ascontiguousarray(sums[name])
        out = np.empty(exact.shape, dtype=np.float32)
        _add(exact.reshape(-1), drawn[at : at + exact.size], (step, deviation, divisor), out.reshape(-1))
        noisy[name] = out
        at += exact.size
    return noisy


@njit(cache=True)
def _add(exact: NDArray[Any], drawn: NDArray[np.float64], scales: tuple[float, float, float], out: NDArray[np.float32]) -> None:
    step, deviation, divisor = scales
    for k in range(exact.size):
        out[k] = (np.rint(exact[k] / step) + np.rint(drawn[k] * deviation)) * step / divisor


class Optimiser:
    """Stochastic gradient descent, plain or with Adam's moments; its state is plain arrays."""

    def __init__(self, kind: Literal["sgd", "adam"], learning_rate: float, state: Arrays | None = None) -> None:
        self.kind = kind
        self.learning_rate = learning_rate
        self.state: Arrays = state or {"t": np.zeros(1)}

    def update(self, params: Arrays, gradient: Arrays) -> Arrays:
        """Return new parameters; the old ones are left as they are."""
        if self.kind == "sgd":
            return {
                name: value - np.float32(self.learning_rate) * gradient[name].astype(np.float32, copy=False)
                for name, value in params.items()
            }
        self.state["t"] = self.state["t"] + 1
        t = float(self.state["t"][0])
        new = {}
        for name, value in params.items():
            slope = gradient[name].astype(np.float32, copy=False)
            mean = self.state.get(f"mean.{name}", np.zeros_like(value)) * 0.9 + 0.1 * slope
            square = self.state.get(f"square.{name}", np.zeros_like(value)) * 0.999 + 0.001 * slope * slope
            self.state[f"mean.{name}"], self.state[f"square.{name}"] = mean, square
            step = mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
            new[name] = (value - self.learning_rate * step).astype(np.float32)
        return new
