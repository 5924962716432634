"""What there is to choose from: mechanisms, metrics and attacks with a line about each."""

from __future__ import annotations

from importlib import import_module

from murmurate.core.parameters import one_of


def names(what: str) -> list[tuple[str, str]]:
    """(name, first line of its docstring) of every registered thing of a kind."""
    one_of("what to list", what, ("mechanisms", "metrics", "attacks"))
    registry: dict[str, str] = import_module(f"murmurate.{what}").NAMES
    rows = []
    for name, place in registry.items():
        module, _, attribute = place.partition(":")
        about = getattr(import_module(module), attribute).__doc__ or ""
        rows.append((name, about.strip().splitlines()[0] if about.strip() else ""))
    return rows
