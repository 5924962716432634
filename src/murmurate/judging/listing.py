"""What there is to choose from: mechanisms, metrics and attacks with a line about each."""

from __future__ import annotations

from typing import Any

from murmurate import attacks, mechanisms, metrics
from murmurate.core.parameters import one_of
from murmurate.core.registry import Registry

REGISTRIES: dict[str, Registry[Any]] = {
    "mechanisms": mechanisms.NAMES,
    "metrics": metrics.METRICS,
    "attacks": attacks.NAMES,
}
"""What `murmurate list` takes, and where its names are kept."""


def names(what: str) -> list[tuple[str, str]]:
    """(name, first line of its docstring) of every registered thing of a kind."""
    one_of("what to list", what, REGISTRIES)
    return REGISTRIES[what].about()
