"""Registry: things by name, imported only when asked for; mechanisms, metrics, attacks, kinds of release and figures use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from murmurate.core.parameters import closest
from murmurate.errors import ParameterError


@dataclass(frozen=True)
class Entry:
    """Where a registered thing is; subclasses add facts that are read without importing it."""

    place: Any
    """"module:attribute", or the thing itself where it was registered at run time."""

    def load(self) -> Any:
        """Import the thing."""
        if not isinstance(self.place, str):
            return self.place
        module, _, attribute = self.place.partition(":")
        return getattr(import_module(module), attribute)


EntryT = TypeVar("EntryT", bound=Entry)


class Registry(Generic[EntryT]):
    """Names and their entries, in the order they were registered.

    >>> numbers = Registry("number", {"pi": Entry("math:pi")})
    >>> numbers.load("pi"), "pi" in numbers, list(numbers)
    (3.141592653589793, True, ['pi'])
    >>> numbers.load("pie")
    Traceback (most recent call last):
    murmurate.errors.ParameterError: no number is called 'pie'; there are pi. Did you mean 'pi'?
    """

    def __init__(self, what: str, entries: Mapping[str, EntryT]) -> None:
        self.what = what
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> EntryT:
        """The entry of a name; an unknown name is answered with the nearest known one."""
        if name not in self._entries:
            known = ", ".join(self._entries)
            raise ParameterError(f"no {self.what} is called {name!r}; there are {known}.{closest(name, self._entries)}")
        return self._entries[name]

    def items(self) -> Iterator[tuple[str, EntryT]]:
        """Names with their entries."""
        return iter(self._entries.items())

    def load(self, name: str) -> Any:
        """The thing behind a name."""
        return self[name].load()

    def about(self) -> list[tuple[str, str]]:
        """(name, first line of its docstring) of everything that is registered."""
        return [(name, (entry.load().__doc__ or "").strip().partition("\n")[0]) for name, entry in self.items()]

    def register(self, name: str, entry: EntryT) -> None:
        """Add a thing of one's own; a name that is taken is refused."""
        if name in self._entries:
            raise ParameterError(f"a {self.what} called {name!r} is registered already; choose another name.")
        self._entries[name] = entry

    @contextmanager
    def also(self, name: str, entry: EntryT) -> Iterator[None]:
        """Register a thing for the length of a block."""
        self.register(name, entry)
        try:
            yield
        finally:
            del self._entries[name]
