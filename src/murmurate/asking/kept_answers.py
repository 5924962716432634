"""Noisy answers kept beside the ledger while a release is made, so that an interrupted one goes on without a second draw."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from murmurate.asking.table import Answer
from murmurate.errors import InputError

FILE = "answers.npz"


def save_answers(folder: Path, key: bytes, answers: Mapping[str, Answer]) -> None:
    """Write the answers drawn so far, and the key that decides which trips are read, whole or not at all."""
    arrays: dict[str, Any] = {"key": np.frombuffer(key, dtype=np.uint8)}
    for name, answer in answers.items():
        arrays |= {f"noisy.{name}": answer.noisy, f"deviation.{name}": np.float64(answer.deviation)}
        if answer.bins is not None:
            arrays[f"bins.{name}"] = answer.bins
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = folder / f"{FILE}.half"
    with half.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        file.flush()
        os.fsync(file.fileno())
    half.rename(folder / FILE)


def load_answers(folder: Path) -> tuple[bytes, dict[str, Answer]]:
    """Read back the key and the answers."""
    try:
        with np.load(folder / FILE, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise InputError(f"what was kept of the interrupted fit in {folder} cannot be read: {error}") from None
    names = [name.removeprefix("noisy.") for name in arrays if name.startswith("noisy.")]
    answers = {
        name: Answer(arrays[f"noisy.{name}"], float(arrays[f"deviation.{name}"]), arrays.get(f"bins.{name}")) for name in names
    }
    return arrays["key"].tobytes(), answers
