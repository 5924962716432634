"""How long work tells that it goes on: any room may count, only a person's window shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Sink = Callable[[str, float, float | None], None]
"""Called with what is being done, how much is done, and of how much (None where nobody knows)."""

Item = TypeVar("Item")

_sink: ContextVar[Sink | None] = ContextVar("murmurate_progress", default=None)


@contextmanager
def shown_by(sink: Sink) -> Iterator[None]:
    """Send what `report` and `track` count to `sink` while the block runs."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def report(what: str, done: float, total: float | None = None) -> None:
    """Say how far a piece of work has come; silent where nobody looks."""
    sink = _sink.get()
    if sink is not None:
        sink(what, done, total)


def track(items: Iterable[Item], what: str, total: float | None = None) -> Iterator[Item]:
    """Yield the items and count them."""
    report(what, 0, total)
    for done, item in enumerate(items, start=1):
        yield item
        report(what, done, total)
