"""Report progress of long tasks. Any module may report; only interactive front ends display it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Sink = Callable[[str, float, float | None], None]
"""Called with the task, how much is done, and of how much (None where unknown)."""

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
    """Report how far a task has come; does nothing without a sink."""
    sink = _sink.get()
    if sink is not None:
        sink(what, done, total)


def track(items: Iterable[Item], what: str, total: float | None = None) -> Iterator[Item]:
    """Yield the items and count them."""
    report(what, 0, total)
    for done, item in enumerate(items, start=1):
        yield item
        report(what, done, total)
