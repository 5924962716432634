"""What there is to choose from: mechanisms, metrics and attacks with a line about each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from murmurate.core.parameters import one_of


def names(what: str) -> list[tuple[str, str]]:
    """(name, first line of its docstring) of every registered thing of a kind."""
    one_of("what to list", what, ("mechanisms", "metrics", "attacks"))
    return [(name, (found.__doc__ or "").strip().partition("\n")[0]) for name, found in _registered(what).items()]


def _registered(what: str) -> dict[str, Callable[..., Any]]:
    """The things of a kind by name; each kind keeps its own registry."""
    from murmurate import attacks, mechanisms, metrics

    if what == "metrics":
        return {name: metric.function(name) for name, metric in metrics.METRICS.items()}
    if what == "attacks":
        return {name: attacks.attack_function(name) for name in attacks.NAMES}
    return {name: mechanisms.mechanism_class(name) for name in mechanisms.NAMES}
