"""The next-cell networks: the published one, and one that also sees where the destination lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from murmurate.papers.training.ghost import Arrays, Layer, Params

Array = Any


@dataclass(frozen=True)
class PublishedNet:
    """Section 8.3.2: cell and destination in one embedding, the hour as a number, 200 neurons, one class a neighbour."""

    n_cells: int
    n_offsets: int
    hours: int
    embedding: int = 50
    hidden: int = 200

    @property
    def layers(self) -> tuple[Layer, ...]:
        return (
            Layer("place", "table", self.embedding, looks=2),
            Layer("hidden", "dense", self.hidden),
            Layer("out", "dense", self.n_offsets),
        )

    def start(self, generator: np.random.Generator) -> Arrays:
        """Draw random parameters, as the usual initialisers of embeddings and dense layers draw them."""
        return {
            "place.w": generator.uniform(-0.05, 0.05, (self.n_cells, self.embedding)).astype(np.float32),
            **dense_start(generator, "hidden", 2 * self.embedding + 1, self.hidden),
            **dense_start(generator, "out", self.hidden, self.n_offsets),
        }

    def losses(self, params: Params, taps: Params, columns: Params, key: Array) -> tuple[Array, Params]:
        import jax.numpy as jnp

        rows = jnp.stack([columns["cell"], columns["destination"]], axis=-1)
        place = params["place.w"][rows] + taps["place"]
        hour = columns["hour"][..., None].astype(jnp.float32) / self.hours
        given = jnp.concatenate([place[..., 0, :], place[..., 1, :], hour], axis=-1)
        hidden = _relu(given @ params["hidden.w"] + params["hidden.b"] + taps["hidden"])
        logits = hidden @ params["out.w"] + params["out.b"] + taps["out"]
        return cross_entropy(logits, columns["offset"]), {"place": rows, "hidden": given, "out": hidden}

    def logits(self, params: Params, cell: Array, destination: Array, hour: Array) -> Array:
        """Return logits of the neighbours of each cell; nothing but matrix products on what two small tables give."""
        import jax.numpy as jnp

        width = self.embedding
        from_cell = params["place.w"] @ params["hidden.w"][:width]
        to = params["place.w"] @ params["hidden.w"][width : 2 * width]
        at = (hour.astype(jnp.float32) / self.hours)[..., None] * params["hidden.w"][-1]
        hidden = _relu(from_cell[cell] + to[destination] + at + params["hidden.b"])
        return hidden @ params["out.w"] + params["out.b"]


@dataclass(frozen=True)
class RelativeNet:
    """Zones of the cell and of the destination, the hour and where the destination lies, added up; 128 neurons.

    Where the destination lies also speaks to the classes directly, so that its direction is learned first.
    """

    n_zones: int
    n_relative: int
    n_offsets: int
    hours: int
    hidden: int = 128

    @property
    def layers(self) -> tuple[Layer, ...]:
        return (
            Layer("from", "table", self.hidden),
            Layer("to", "table", self.hidden),
            Layer("hour", "table", self.hidden),
            Layer("way", "table", self.hidden),
            Layer("direct", "table", self.n_offsets),
            Layer("out", "dense", self.n_offsets),
        )

    def start(self, generator: np.random.Generator) -> Arrays:
        """Draw random parameters; tables are small, so that the direction of the destination counts first."""
        sizes = {"from": self.n_zones, "to": self.n_zones, "hour": self.hours, "way": self.n_relative}
        tables = {f"{name}.w": generator.normal(0, 0.1, (n, self.hidden)).astype(np.float32) for name, n in sizes.items()}
        return {
            **tables,
            "direct.w": np.zeros((self.n_relative, self.n_offsets), dtype=np.float32),
            **dense_start(generator, "out", self.hidden, self.n_offsets),
        }

    def losses(self, params: Params, taps: Params, columns: Params, key: Array) -> tuple[Array, Params]:
        rows = {name: columns[name] for name in ("from", "to", "hour", "way")}
        hidden = _relu(sum(params[f"{name}.w"][row] + taps[name] for name, row in rows.items()))
        logits = hidden @ params["out.w"] + params["out.b"] + taps["out"]
        logits = logits + params["direct.w"][columns["way"]] + taps["direct"]
        return cross_entropy(logits, columns["offset"]), {**rows, "direct": columns["way"], "out": hidden}

    def logits(self, params: Params, rows: Params) -> Array:
        """Return logits of the neighbours, given the rows of each table."""
        hidden = _relu(sum(params[f"{name}.w"][row] for name, row in rows.items()))
        return hidden @ params["out.w"] + params["out.b"] + params["direct.w"][rows["way"]]


def dense_start(generator: np.random.Generator, name: str, inputs: int, outputs: int) -> Arrays:
    """Draw Glorot's uniform weights and no bias."""
    bound = (6.0 / (inputs + outputs)) ** 0.5
    return {
        f"{name}.w": generator.uniform(-bound, bound, (inputs, outputs)).astype(np.float32),
        f"{name}.b": np.zeros(outputs, dtype=np.float32),
    }


def cross_entropy(logits: Array, wanted: Array) -> Array:
    """Return minus the logarithm of the probability of the wanted class."""
    import jax
    import jax.numpy as jnp

    picked = jnp.take_along_axis(logits, wanted[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - picked


def _relu(values: Array) -> Array:
    import jax.numpy as jnp

    return jnp.maximum(values, 0.0)
