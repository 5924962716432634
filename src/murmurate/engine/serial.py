"""The engine of one process: this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Serial:
    """Runs items here, one after the other."""

    workers = 1

    def start(self, *modules: str) -> None:
        """Do nothing: this process runs already."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to each item, in order."""
        for item in items:
            yield function(item)

    def share(self, value: Any) -> Any:
        """Return a handle of a value that many items need; `opened` gives the value back."""
        return value

    def place(self, name: str) -> Path | None:
        """Return where another process may leave a large result: nowhere, as there is no other process."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None
