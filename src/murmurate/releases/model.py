"""Model: what a mechanism learned, as plain arrays in a folder of their own; `sample` draws trips from it."""

from __future__ import annotations

from pathlib import Path

from murmurate.core.space import Space
from murmurate.releases.kind import Kind
from murmurate.spaces.road.storage import load

MODEL = "model"
"""The folder, inside the release, that `Model.save` writes to."""
NETWORK = "network.npz"
"""The road network that a model on roads saves there."""


class FittedModel(Kind):
    """A model; its samples are what is measured and attacked."""

    name = "model"
    title = "A model"
    sampled = True
    no_attack = "a model is judged by the trips drawn from it; sample it first."

    def carried_space(self, folder: Path) -> Space | None:
        path = folder / MODEL / NETWORK
        return load(path) if path.is_file() else super().carried_space(folder)
