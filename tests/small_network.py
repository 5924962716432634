"""A small network for tests: two tables and a dense layer, one of the tables looked up twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.papers.training.ghost import Layer
from murmurate.papers.training.sampling import group_by_unit


@dataclass(frozen=True)
class SmallNet:
    rows: int = 6
    hidden: int = 4
    classes: int = 3

    @property
    def layers(self):
        return (
            Layer("twice", "table", self.hidden, looks=2),
            Layer("once", "table", self.hidden),
            Layer("out", "dense", self.classes),
        )

    def start(self, generator):
        return {
            "twice.w": generator.normal(0, 0.5, (self.rows, self.hidden)).astype(np.float32),
            "once.w": generator.normal(0, 0.5, (self.rows, self.hidden)).astype(np.float32),
            "out.w": generator.normal(0, 0.5, (self.hidden, self.classes)).astype(np.float32),
            "out.b": np.zeros(self.classes, dtype=np.float32),
        }

    def losses(self, params, taps, columns, key):
        import jax
        import jax.numpy as jnp

        pair = jnp.stack([columns["a"], columns["b"]], axis=-1)
        both = params["twice.w"][pair] + taps["twice"]
        hidden = jnp.tanh(both[..., 0, :] - both[..., 1, :] + params["once.w"][columns["c"]] + taps["once"])
        logits = hidden @ params["out.w"] + params["out.b"] + taps["out"]
        picked = jnp.take_along_axis(logits, columns["y"][..., None], axis=-1)[..., 0]
        return jax.nn.logsumexp(logits, axis=-1) - picked, {"twice": pair, "once": columns["c"], "out": hidden}


def some_units(n_units, seed=1, most=5):
    generator = np.random.default_rng(seed)
    unit = np.repeat(np.arange(n_units), generator.integers(1, most + 1, n_units))
    columns = {name: generator.integers(0, 6, len(unit)).astype(np.int32) for name in "abc"}
    columns["y"] = generator.integers(0, 3, len(unit)).astype(np.int32)
    return group_by_unit(columns, unit)
