"""The published initialiser: a variational autoencoder over one-hot source, destination and hour (section 8.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from murmurate.core.space import Integers
from murmurate.papers.dp_loc.networks import cross_entropy, dense_start
from murmurate.papers.training.ghost import Arrays, Layer, Params

Array = Any
AT_ONCE = 2048
"""Trips drawn at once: an output of 10,000 cells then takes 80 MB. Set by hand."""


@dataclass(frozen=True)
class EndsVAE:
    """Encoder of 100 (ReLU) and 100 (linear) neurons, 50 latent ones, decoder of 100 (ReLU), three softmax outputs.

    The two halves of the linear layer are the mean and the logarithm of the standard deviation of the latent variables: the
    paper counts no further layer between the encoder's second one and its outputs.
    """

    n_cells: int
    hours: int
    hidden: int = 100
    latent: int = 50

    @property
    def layers(self) -> tuple[Layer, ...]:
        return (
            *(Layer(name, "table", self.hidden) for name in ("source", "destination", "hour")),
            Layer("second", "dense", 2 * self.latent),
            Layer("decoder", "dense", self.hidden),
            *(Layer(f"{name}_out", "dense", width) for name, width in self._outputs()),
        )

    def _outputs(self) -> tuple[tuple[str, int], ...]:
        return (("source", self.n_cells), ("destination", self.n_cells), ("hour", self.hours))

    def start(self, generator: np.random.Generator) -> Arrays:
        """Draw random parameters; the tables are the rows of the first dense layer, drawn as such."""
        bound = (6.0 / (2 * self.n_cells + self.hours + self.hidden)) ** 0.5
        tables = {
            f"{name}.w": generator.uniform(-bound, bound, (rows, self.hidden)).astype(np.float32)
            for name, rows in self._outputs()
        }
        dense = [("second", self.hidden, 2 * self.latent), ("decoder", self.latent, self.hidden)]
        dense += [(f"{name}_out", self.hidden, width) for name, width in self._outputs()]
        return tables | {key: value for one in dense for key, value in dense_start(generator, *one).items()}

    def losses(self, params: Params, taps: Params, columns: Params, key: Array) -> tuple[Array, Params]:
        """Return the mean cross-entropy of the three outputs plus the mean divergence of the latent variables from the prior.

        The true negative evidence bound is three times the first plus fifty times the second; it cannot fall below the joint
        entropy of source, destination and hour, which is above every loss that the paper prints.
        """
        import jax
        import jax.numpy as jnp

        given: Params = {name: columns[name] for name, _ in self._outputs()}
        first = jnp.maximum(sum(params[f"{name}.w"][columns[name]] + taps[name] for name, _ in self._outputs()), 0.0)

        def dense(name: str, inputs: Array) -> Array:
            given[name] = inputs
            return inputs @ params[f"{name}.w"] + params[f"{name}.b"] + taps[name]

        mean, log_deviation = jnp.split(dense("second", first), 2, axis=-1)
        drawn = mean + jnp.exp(log_deviation) * jax.random.normal(key, mean.shape)
        decoded = jnp.maximum(dense("decoder", drawn), 0.0)
        outputs = [cross_entropy(dense(f"{name}_out", decoded), columns[name]) for name, _ in self._outputs()]
        divergence = 0.5 * jnp.mean(mean**2 + jnp.exp(2 * log_deviation) - 1 - 2 * log_deviation, axis=-1)
        return sum(outputs) / len(outputs) + divergence, given


@dataclass(frozen=True, eq=False)
class VAEEnds:
    """The trained decoder as a distribution of the ends: sampling it is free.

    A latent vector is drawn, and each output is its most probable value, as in later public code of the authors. With `drawn`,
    outputs are drawn from their softmax distributions instead, for comparison.
    """

    params: Arrays
    """Of the decoder alone: the encoder is not needed any more."""
    drawn: bool = False

    @classmethod
    def of(cls, params: Arrays) -> VAEEnds:
        return cls({name: value for name, value in params.items() if name.startswith("decoder.") or "_out." in name})

    def sample(self, n: int, generator: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        latent = self.params["decoder.w"].shape[0]
        found: list[list[Integers]] = [[], [], []]
        for first in range(0, n, AT_ONCE):
            z = generator.standard_normal((min(AT_ONCE, n - first), latent)).astype(np.float32)
            decoded = np.maximum(z @ self.params["decoder.w"] + self.params["decoder.b"], 0.0)
            for place, name in enumerate(("source", "destination", "hour")):
                logits = decoded @ self.params[f"{name}_out.w"] + self.params[f"{name}_out.b"]
                if self.drawn:
                    logits = logits + generator.gumbel(size=logits.shape)
                found[place].append(logits.argmax(axis=1).astype(np.int64))
        source, destination, hour = (np.concatenate(parts) if parts else np.zeros(0, np.int64) for parts in found)
        return source, destination, hour

    def arrays(self) -> Arrays:
        return self.params
