"""Updates from noisy gradients: post-processing, so any rule is free."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class Optimiser:
    """Stochastic gradient descent, plain or with Adam's moments; its state is plain arrays."""

    def __init__(self, kind: Literal["sgd", "adam"], learning_rate: float, state: Arrays | None = None) -> None:
        self.kind = kind
        self.learning_rate = learning_rate
        self.state: Arrays = state or {"t": np.zeros(1)}

    def update(self, params: Arrays, gradient: Arrays) -> Arrays:
        """New parameters; the old ones are left as they are."""
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
