"""The engine of one process: this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from murmurate.engine.fold import fold

Item = TypeVar("Item")
Result = TypeVar("Result")


class Serial:
    """Runs items here, one after the other."""

    workers = 1

    def start(self, *modules: str, work_in: str | Path | None = None) -> None:
        """Do nothing: this process runs already."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to each item, in order."""
        for item in items:
            yield function(item)

    def fold(
        self,
        function: Callable[[Item], Result],
        parts: Iterable[Item],
        add: Callable[[Sequence[Result]], Result],
        describe: str | None = None,
    ) -> Result | None:
        """Apply a function to each part and add up the results, each part once."""
        return fold(self, function, parts, add, describe)

    def share(self, value: Any) -> Any:
        """Return a handle of a value that many items need; `opened` gives the value back."""
        return value

    def files(self) -> None:
        """Return where workers leave large sums: nowhere, as there are none."""

    def place(self, name: str) -> Path | None:
        """Return where another process may leave a large result: nowhere, as there is no other process."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None
