"""Hand values and large results from process to process through private files."""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa

from murmurate.core.work import WorkFolder
from murmurate.core.work_files import WorkFiles
from murmurate.engine.fold import fold

Item = TypeVar("Item")
Result = TypeVar("Result")


KEPT_BYTES = 256 << 20
"""Freed memory that a worker keeps: about what it needs to draw a part. Getting it anew for every array, as is usual, takes a
fifth of the time of drawing trips."""
HEAP_BYTES = 32 << 20
"""Arrays up to this size come from the memory that is kept; the C library allows no more. Larger ones are given back."""
HELD_BYTES = 300 << 20
"""Memory that a worker may hold between two parts of a file that it reads: what a part needs, and packages it has loaded."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Names of two settings of `mallopt` in the GNU C library."""


@dataclass(frozen=True)
class Shared:
    """Where a shared value lies."""

    files: WorkFiles
    name: str


_last: tuple[Shared, Any] | None = None


def opened(handle: Any) -> Any:
    """Return the value behind a handle of `share`; the last one read is kept in this process."""
    global _last  # noqa: PLW0603  one value a process, so that a model is read once and not once a part
    if not isinstance(handle, Shared):
        return handle
    if _last is None or _last[0] != handle:
        _last = None
        give_back_memory()  # of the work before, which had a value of its own
        _last = handle, pickle.loads(handle.files.get(handle.name))  # noqa: S301  written by this very run, for it alone
    return _last[1]


def forget(handle: Any) -> None:
    """Delete the file of a shared value that must not lie there longer than it is needed."""
    if isinstance(handle, Shared):
        handle.files.remove([handle.name])


def keep_freed_memory() -> None:
    """Let this process use freed memory again instead of giving it back; for work that makes the same arrays often.

    Nothing happens where the C library is not GNU's.
    """
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            set_option = ctypes.CDLL(None).mallopt
            set_option(_M_TRIM_THRESHOLD, KEPT_BYTES)
            set_option(_M_MMAP_THRESHOLD, HEAP_BYTES)


def give_back_memory(above: int = 0) -> None:
    """Return freed memory of this process to the system where it holds more than so many bytes of its own.

    The C library keeps what lies between small things that are still used. Parts of a large file let that grow without end.
    """
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):
        resident, shared = Path("/proc/self/statm").read_text().split()[1:3]
        if (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE") > above:
            pa.default_memory_pool().release_unused()
            ctypes.CDLL(None).malloc_trim(0)


class SharingEngine:
    """What engines of several processes have in common: a work folder that all of them can open, and a context."""

    workers: int

    def __init__(self) -> None:
        self._folder: WorkFolder | None = None
        self._work_in: str | Path | None = None
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
        name = f"shared-{self._shared}"
        self.files().put(name, pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
        return Shared(self.files(), name)

    def files(self) -> WorkFiles:
        """Return where workers find tasks and leave large results."""
        return self._work().files

    def place(self, name: str) -> Path | None:
        """Return where a worker may leave a large result: a file is cheaper than a pipe. None where files are elsewhere."""
        folder = self.files().folder
        return None if folder is None else folder / name

    def _work(self) -> WorkFolder:
        self._folder = self._folder or WorkFolder(self._work_in)
        return self._folder

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
