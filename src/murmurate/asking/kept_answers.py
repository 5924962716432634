"""Keep noisy answers beside the ledger while a fit runs, so that an interrupted one goes on without a second draw."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from murmurate.asking.table import Answer
from murmurate.errors import InputError

FILE = "answers.npz"
"""Name of the file of answers in the folder of an unfinished fit."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder for one process and one fit: two at once would each draw the noise of the next round.

    Windows cannot lock folders; there nobody is refused.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.name == "nt":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another process is at the fit in {folder}; wait for it, or end it first.") from None
        yield
    finally:
        os.close(handle)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and on the disk before anything that follows."""
    half = path.with_name(f".{path.name}")
    with half.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)
    if os.name != "nt":  # the new name as well: a lost one would let a resumed fit draw again
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write plain arrays durably."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_durably(path, content.getvalue())


def save_answers(folder: Path, key: bytes, answers: Mapping[str, Answer]) -> None:
    """Write the answers drawn so far, and the key that decides which trips are read."""
    arrays: dict[str, Any] = {"key": np.frombuffer(key, dtype=np.uint8)}
    for name, answer in answers.items():
        arrays |= {f"noisy.{name}": answer.noisy, f"deviation.{name}": np.float64(answer.deviation)}
        if answer.bins is not None:
            arrays[f"bins.{name}"] = answer.bins
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    save_arrays(folder / FILE, arrays)


def load_answers(folder: Path) -> tuple[bytes, dict[str, Answer]]:
    """Read back the key and the answers."""
    try:
        with (folder / FILE).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        names = [name.removeprefix("noisy.") for name in arrays if name.startswith("noisy.")]
        answers = {
            name: Answer(arrays[f"noisy.{name}"], float(arrays[f"deviation.{name}"]), arrays.get(f"bins.{name}"))
            for name in names
        }
        return arrays["key"].tobytes(), answers
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(f"what was kept of the interrupted fit in {folder} cannot be read: {error}") from None
