"""Hand values and large results from process to process through private files."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from murmurate.core.work import WorkFolder
from murmurate.engine.fold import fold

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Shared:
    """Where a shared value lies."""

    path: Path


_last: tuple[Path, Any] | None = None


def opened(handle: Any) -> Any:
    """Return the value behind a handle of `share`; the last one read is kept in this process."""
    global _last  # noqa: PLW0603  one value a process, so that a model is read once and not once a part
    if not isinstance(handle, Shared):
        return handle
    if _last is None or _last[0] != handle.path:
        with handle.path.open("rb") as file:
            _last = handle.path, pickle.load(file)  # noqa: S301  written by this very run, in a folder only it may open
    return _last[1]


class SharingEngine:
    """What engines of several processes have in common: a work folder that all of them can open, and a context."""

    workers: int

    def __init__(self) -> None:
        self._folder: WorkFolder | None = None
        self._work_in: Path | None = None
        self._shared = 0
        self._users = 0

    def fold(
        self,
        function: Callable[[Item], Result],
        parts: Iterable[Item],
        add: Callable[[Sequence[Result]], Result],
        describe: str | None = None,
    ) -> Result | None:
        """Apply a function to each part and add up the results, each part once."""
        return fold(self, function, parts, add, describe)  # type: ignore[arg-type]

    def share(self, value: Any) -> Shared:
        """Write a value that many items need to a private file once; each worker reads it once, by `opened`."""
        self._shared += 1
        path = self.place(f"shared-{self._shared}")
        with path.open("wb") as file:
            pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
        return Shared(path)

    def place(self, name: str) -> Path:
        """Return where a worker may leave a large result: a file is cheaper than a pipe."""
        self._folder = self._folder or WorkFolder(self._work_in)
        return self._folder.path / name

    def end(self) -> None:
        """End the workers."""

    def __enter__(self) -> Self:
        self._users += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._users -= 1
        if self._users:
            return
        self.end()
        if self._folder is not None:
            self._folder.close()
            self._folder = None
