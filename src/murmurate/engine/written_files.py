"""Let workers write and hash the files of a folder; each file is complete or absent."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from murmurate.core import progress
from murmurate.core.work_files import WorkFiles
from murmurate.engine.protocol import Engine

UNFINISHED = ".unfinished"
"""Subfolder in which workers write; a file is moved out of it when it is complete."""


@dataclass(frozen=True)
class Written:
    """The SHA-256 of a file, and where it is if not in its folder."""

    sha256: str
    elsewhere: Path | str | None
    """A path, or a name in the object store of the engine."""


@dataclass(frozen=True)
class NewFile:
    """A file to write, for the worker that writes it."""

    path: Path
    place: Path | None
    """Where to write it if the worker cannot open its folder; None in the process that made the folder, and with a store."""
    store: WorkFiles | None = None
    """The engine's object store, where it has one and no folder."""

    def write(self, content: Callable[[Path], None]) -> Written:
        """Write and hash it. Writing it again gives the same bytes."""
        folder, place = self.path.parent / UNFINISHED, self.place
        if self.store is not None and not folder.is_dir():
            return self._write_to_store(self.store, content)
        there = folder.is_dir() or place is None
        half = (folder / self.path.name if place is None or there else place).with_suffix(f".{secrets.token_hex(4)}")
        content(half)
        with half.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if place is not None and not there:
            return Written(digest, half)
        half.replace(self.path)  # complete or absent
        return Written(digest, None)

    def _write_to_store(self, store: WorkFiles, content: Callable[[Path], None]) -> Written:
        name = f"file-{secrets.token_hex(8)}"
        with tempfile.TemporaryDirectory() as folder:  # what is released, nothing private
            path = Path(folder, self.path.name)
            content(path)
            made = path.read_bytes()
        store.put(name, made)
        return Written(hashlib.sha256(made).hexdigest(), name)


class Item(Protocol):
    """What a worker needs to write a file."""

    @property
    def file(self) -> NewFile:
        """The file."""
        ...


One = TypeVar("One", bound=Item)


def new_files(engine: Engine, folder: Path, n: int) -> list[NewFile]:
    """Return the files part-00000.parquet, ... of a folder."""
    there = folder.absolute()  # workers may have another current folder
    files = engine.files()
    store = files if files is not None and files.folder is None else None
    return [NewFile(there / name, engine.place(name), store) for name in (f"part-{k:05d}.parquet" for k in range(n))]


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
            if isinstance(one.elsewhere, str) and item.file.store is not None:
                path.write_bytes(item.file.store.get(one.elsewhere))
                item.file.store.remove([one.elsewhere])
            elif one.elsewhere is not None:
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
