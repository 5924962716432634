"""Let workers write and hash the files of a folder; each file is complete or absent."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from murmurate.core import progress
from murmurate.engine.protocol import Engine

UNFINISHED = ".unfinished"
"""Subfolder in which workers write; a file is moved out of it when it is complete."""


@dataclass(frozen=True)
class Written:
    """The SHA-256 of a file, and where it is if not in its folder."""

    sha256: str
    elsewhere: Path | None


@dataclass(frozen=True)
class NewFile:
    """A file to write, for the worker that writes it."""

    path: Path
    place: Path | None
    """Where to write it if the worker cannot open its folder; None in the process that made the folder."""

    def write(self, content: Callable[[Path], None]) -> Written:
        """Write and hash it. Writing it again gives the same bytes."""
        folder, place = self.path.parent / UNFINISHED, self.place
        there = folder.is_dir() or place is None
        half = (folder / self.path.name if place is None or there else place).with_suffix(f".{secrets.token_hex(4)}")
        content(half)
        with half.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if place is not None and not there:
            return Written(digest, half)
        half.replace(self.path)  # complete or absent
        return Written(digest, None)


class Item(Protocol):
    """What a worker needs to write a file."""

    @property
    def file(self) -> NewFile:
        """The file."""
        ...


One = TypeVar("One", bound=Item)


def new_files(engine: Engine, folder: Path, n: int) -> list[NewFile]:
    """Return the files part-00000.parquet, ... of a folder."""
    return [NewFile(folder / name, engine.place(name)) for name in (f"part-{k:05d}.parquet" for k in range(n))]


def write_files(
    engine: Engine, function: Callable[[One], Written], items: Sequence[One], folder: Path, describe: str
) -> dict[str, str]:
    """Make a folder, let workers write its files, and return their SHA-256 by name."""
    (folder / UNFINISHED).mkdir(parents=True)
    hashes: dict[str, str] = {}
    settled: list[Future[None]] = []
    written = progress.track(engine.map(function, items), describe, len(items))
    with ThreadPoolExecutor(1) as settling:  # files reach the disk while workers write the next ones
        for item, one in zip(items, written, strict=True):
            path = item.file.path
            if one.elsewhere is not None:
                shutil.move(one.elsewhere, path)
            hashes[path.name] = one.sha256
            settled.append(settling.submit(_settle, path))
    for one_file in settled:
        one_file.result()  # raises if the disk could not keep a file
    shutil.rmtree(folder / UNFINISHED)
    return hashes


def _settle(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
