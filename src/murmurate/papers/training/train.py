"""The loop of private training: sample units, clip, sum, noise, update; charge first, never replay."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from murmurate.core import progress
from murmurate.core.events import PoissonGaussian
from murmurate.core.parameters import one_of, positive, share, whole
from murmurate.errors import MurmurateError
from murmurate.papers.training.checkpoint import Checkpoint
from murmurate.papers.training.ghost import Network, clipped_sum
from murmurate.papers.training.noise_step import noisy_sum
from murmurate.papers.training.optimise import Arrays, Optimiser
from murmurate.papers.training.sampling import GRAMS_AT_ONCE, Grouped, chunks, poisson_sample

if TYPE_CHECKING:
    from murmurate.noise import Randomness


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
        """The whole training as the accountant sees it."""
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
    """Trained parameters, and the event of the steps that were really taken (never more than planned).

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
    # small batches of single grams are not padded to a large shape; the noisy size decides, so it tells nothing new
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


@lru_cache(maxsize=16)
def compiled(network: Any, clip: float) -> Any:
    """The clipped sum of one chunk, compiled once for each of its few shapes."""
    import jax

    return jax.jit(partial(clipped_sum, network, clip=clip))
