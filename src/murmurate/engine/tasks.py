"""Parts as opaque tasks for engines that others operate: nothing private in a name, a log or a dashboard.

Engines such as Dask print the arguments of a task that failed, and its error. A task here shows as a number; its content and
its error travel as bytes. Each task checks that its worker runs the same packages and can open the work folder.
"""

from __future__ import annotations

import pickle
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from murmurate.core.work_files import WorkFiles
from murmurate.errors import EngineError

PACKAGES = ("murmurate", "numpy", "polars", "pyarrow", "numba", "scipy")
"""Packages that must have one version on every worker: they decide which integers are counted and which trips are drawn."""
INLINE_BYTES = 1 << 20
"""Larger tasks go through a private file: schedulers keep the messages they pass on."""


@dataclass(frozen=True, repr=False)
class Task:
    """A function and its item for a worker somewhere; shows its number alone."""

    number: int
    content: bytes | str
    """The pickled function and item, or the name of the file that holds them."""
    files: WorkFiles
    versions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<part {self.number}>"


@dataclass(frozen=True, repr=False)
class Outcome:
    """What became of a task; shows its number alone."""

    number: int
    content: bytes
    """The pickled result or, where `failed`, the error."""
    failed: bool

    def __repr__(self) -> str:
        return f"<outcome {self.number}>"

    def result(self, number: int) -> Any:
        """Return the result of this number, or raise what went wrong on the worker."""
        if self.number != number:
            raise EngineError(f"part {number} of the work came back as part {self.number}.", "Run it again.")
        value = pickle.loads(self.content)  # noqa: S301  from a worker of this very run
        if self.failed:
            raise value
        return value


def task(number: int, function: Callable[[Any], Any], item: Any, files: WorkFiles) -> Task:
    """Pack a function and its item; large ones into a private file."""
    content: bytes | str = pickle.dumps((function, item), protocol=pickle.HIGHEST_PROTOCOL)
    if isinstance(content, bytes) and len(content) > INLINE_BYTES:
        name = f"task-{secrets.token_hex(8)}"
        files.put(name, content)
        content = name
    return Task(number, content, files, versions())


def run(one: Task) -> Outcome:
    """Run a task in the process of a worker; what goes wrong comes back as a value, so that the engine logs nothing of it."""
    try:
        _check(one)
        content = one.files.get(one.content) if isinstance(one.content, str) else one.content
        function, item = pickle.loads(content)  # noqa: S301  from the process that asked for this work
        return Outcome(one.number, pickle.dumps(function(item), protocol=pickle.HIGHEST_PROTOCOL), failed=False)
    except Exception as error:  # noqa: BLE001  raised again where the work was asked for
        return Outcome(one.number, _pickled(error), failed=True)


@lru_cache(maxsize=1)
def versions() -> tuple[str, ...]:
    """Return the versions of Python and of the packages that must agree."""
    return (f"python {sys.version_info[0]}.{sys.version_info[1]}", *(f"{name} {_version(name)}" for name in PACKAGES))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def check_versions(expected: tuple[str, ...], found: tuple[str, ...]) -> None:
    """Refuse a worker whose `versions` are not those of the process that asks for the work."""
    differ = [f"{its} (expected {mine})" for mine, its in zip(expected, found, strict=True) if mine != its]
    if differ:
        raise EngineError(
            f"a worker runs other versions: {', '.join(differ)}.",
            "Install the same versions on every worker, then run it again.",
        )


def _check(one: Task) -> None:
    check_versions(one.versions, versions())
    if one.files.folder is not None and not one.files.folder.is_dir():
        raise EngineError(
            "a worker cannot open the folder for private work files.",
            "Put the ledger, or MURMURATE_STATE, on a disk that every worker can open, and run workers under this account; or "
            "name an object store with --work.",
        )


def _pickled(error: Exception) -> bytes:
    try:
        content = pickle.dumps(error, protocol=pickle.HIGHEST_PROTOCOL)
        pickle.loads(content)  # noqa: S301  made in the line above
    except Exception:  # noqa: BLE001  an error of another maker that cannot travel: its kind is all that is told
        return pickle.dumps(
            EngineError(f"a part of the work failed with {type(error).__name__}.", "Run it with --engine serial.")
        )
    return content
