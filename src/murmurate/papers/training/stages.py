"""Stages of a fit that may be interrupted: each spends its noise once, and what came out of it is kept.

Kept on the custodian's side, in a folder that only the custodian can read. A stage is written down as begun before it draws. A
stage that had begun and did not finish is lost: drawing again would spend its budget twice, so a new fit (and charge) is asked
for. Trainings inside a fit keep their own steps, see `checkpoint`.
"""

from __future__ import annotations

import fcntl
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import numpy as np
from numpy.typing import NDArray

from murmurate.errors import InputError
from murmurate.papers.training.checkpoint import write_durably

FACTS = "facts.json"
LOCK = "lock"


def _held(folder: Path) -> TextIO:
    """The folder for this fit alone, as long as the file is open: two at once would each draw the noise of the next stage."""
    file = (folder / LOCK).open("w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(f"another process is at the fit in {folder}; wait for it, or end it first.") from None
    return file


class Stages:
    """The stages of one fit in a folder, this fit's alone while it is open; or in none: then every stage is simply done."""

    def __init__(self, folder: Path | None, facts: Mapping[str, Any]) -> None:
        self.folder = folder
        self._facts = facts
        self._lock: TextIO | None = None

    def __enter__(self) -> Self:
        if self.folder is not None:
            self._take(self.folder)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._lock is not None:
            self._lock.close()

    def _take(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _held(folder)
        told = json.dumps(dict(self._facts), sort_keys=True, default=str)
        known = folder / FACTS
        if known.exists() and known.read_text(encoding="utf-8") != told:
            self._lock.close()
            raise InputError(f"{folder} belongs to a fit with other parameters; use an empty folder.")
        if not known.exists():
            write_durably(known, told.encode())

    def training(self, name: str) -> Path | None:
        """The folder of a training's own checkpoint."""
        return None if self.folder is None else self.folder / name

    def once(self, name: str, make: Callable[[], Mapping[str, NDArray[Any]]]) -> Mapping[str, NDArray[Any]]:
        """What the stage gives, drawn now or kept from before the interruption."""
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
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_durably(result, buffer.getvalue())
        return arrays
