"""What an engine can do, whoever runs the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from murmurate.core.work_files import WorkFiles

Item = TypeVar("Item")
Result = TypeVar("Result")


@runtime_checkable
class Engine(Protocol):
    """Runs pure functions over parts. A part may run more than once; its result is used once.

    Used as a context manager, which ends what it started.
    """

    @property
    def workers(self) -> int:
        """Return how many parts run at a time."""
        ...

    def start(self, *modules: str, work_in: str | Path | None = None) -> None:
        """Start the workers while this process goes on, and let them import these modules.

        `work_in` is the folder or the store for private work files, which every worker must be able to open; default: the
        state folder.
        """
        ...

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to each item; results come in the order of the items."""
        ...

    def fold(
        self,
        function: Callable[[Item], Result],
        parts: Iterable[Item],
        add: Callable[[Sequence[Result]], Result],
        describe: str | None = None,
    ) -> Result | None:
        """Apply a function to each part and add up the results, each part once; `describe` names the work for progress."""
        ...

    def share(self, value: Any) -> Any:
        """Return a handle of a value that many items need; `opened` gives the value back in any process."""
        ...

    def files(self) -> WorkFiles | None:
        """Return where workers leave large sums; None where there is no other process."""
        ...

    def place(self, name: str) -> Path | None:
        """Return where a worker may leave a large result; None where there is no other process, or no folder of all of them."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
