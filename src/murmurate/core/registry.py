"""Register mechanisms, metrics, attacks, kinds of release and figures by name; they are imported when first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

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


class Registry(dict[str, EntryT]):
    """Names and their entries, in the order they were registered.

    >>> numbers = Registry("number", {"pi": Entry("math:pi")})
    >>> numbers.load("pi"), "pi" in numbers, list(numbers)
    (3.141592653589793, True, ['pi'])
    >>> numbers.load("pie")
    Traceback (most recent call last):
    murmurate.errors.ParameterError: no number is called 'pie'; there are pi. Did you mean 'pi'?
    """

    def __init__(self, what: str, entries: Mapping[str, EntryT]) -> None:
        super().__init__(entries)
        self.what = what

    def __missing__(self, name: str) -> EntryT:
        raise ParameterError(f"no {self.what} is called {name!r}; there are {', '.join(self)}.{closest(name, self)}")

    def load(self, name: str) -> Any:
        """Import and return the thing of this name."""
        return self[name].load()

    def about(self) -> list[tuple[str, str]]:
        """Return (name, first line of its docstring) of everything that is registered."""
        return [(name, (entry.load().__doc__ or "").strip().partition("\n")[0]) for name, entry in self.items()]

    def register(self, name: str, entry: EntryT) -> None:
        """Add an entry under a new name; a name that is taken is refused."""
        if name in self:
            raise ParameterError(f"a {self.what} called {name!r} is registered already; choose another name.")
        self[name] = entry

    @contextmanager
    def also(self, name: str, entry: EntryT) -> Iterator[None]:
        """Register a thing for the length of a block."""
        self.register(name, entry)
        try:
            yield
        finally:
            del self[name]
