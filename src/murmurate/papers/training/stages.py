"""Stages of a fit that may be interrupted: each spends its noise once, and what came out of it is kept.

Kept on the custodian's side, in a folder that only the custodian can read. A stage is written down as begun before it draws. A
stage that had begun and did not finish is lost: drawing again would spend its budget twice, so a new fit (and charge) is asked
for. Trainings inside a fit keep their own steps, see `checkpoint`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from murmurate.asking.kept_answers import alone, save_arrays, write_durably
from murmurate.errors import InputError

FACTS = "facts.json"
"""Name of the file that holds the public parameters of the fit: a folder is never continued with others."""


class Stages:
    """The stages of one fit in a folder, this fit's alone while it is open; or in none: then every stage is simply done."""

    def __init__(self, folder: Path | None, facts: Mapping[str, Any]) -> None:
        self.folder = folder
        self._facts = facts
        self._held = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as held:
            if self.folder is not None:
                held.enter_context(alone(self.folder))
                self._check_facts(self.folder / FACTS)
            self._held = held.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    def _check_facts(self, known: Path) -> None:
        facts = json.dumps(dict(self._facts), sort_keys=True, default=str)
        if not known.exists():
            write_durably(known, facts.encode())
        elif known.read_text(encoding="utf-8") != facts:
            raise InputError(f"{known.parent} belongs to a fit with other parameters; use an empty folder.")

    def training(self, name: str) -> Path | None:
        """Return the folder of a training's own checkpoint."""
        return None if self.folder is None else self.folder / name

    def once(self, name: str, make: Callable[[], Mapping[str, NDArray[Any]]]) -> Mapping[str, NDArray[Any]]:
        """Return what the stage gives, drawn now or kept from before the interruption."""
        if self.folder is None:
            return make()
        result, begun = self.folder / f"{name}.npz", self.folder / f"{name}.begun"
        if result.exists():
            with np.load(result, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}
        if begun.exists():
            raise InputError(
                f"{self.folder} holds a fit that stopped while it measured its {name}; their noise cannot be drawn again.",
                "Start a new fit in an empty folder. What the ledger was charged stays charged.",
            )
        write_durably(begun, b"")
        arrays = {key: np.asarray(value) for key, value in make().items()}
        save_arrays(result, arrays)
        return arrays
