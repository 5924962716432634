"""Check public parameters of mechanisms at construction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from murmurate.errors import ParameterError


def positive(name: str, value: float, *, at_most: float = math.inf) -> None:
    """Refuse anything but a finite number above zero (and at most `at_most`)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or not 0 < value <= at_most:
        bound = "" if at_most == math.inf else f" and at most {at_most:g}"
        raise ParameterError(f"{name} must be a finite number above 0{bound}; got {value!r}.")


def whole(name: str, value: int, *, at_least: int = 1, at_most: int = 2**62) -> None:
    """Refuse anything but a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
        top = "" if at_most == 2**62 else f" and at most {at_most:,}"
        raise ParameterError(f"{name} must be a whole number of at least {at_least:,}{top}; got {value!r}.")


def share(name: str, value: float, *, closed: bool = False) -> None:
    """Refuse anything but a number between 0 and 1 (open unless `closed`)."""
    inside = isinstance(value, (int, float)) and not isinstance(value, bool) and (0 <= value <= 1 if closed else 0 < value < 1)
    if not inside:
        raise ParameterError(f"{name} must lie between 0 and 1; got {value!r}.")


def delta_for(delta: float, people: int | None) -> None:
    """Refuse a delta that is not below 1 over the declared number of people: it could publish one of them outright.

    The rule for choosing one: at most 1 over ten times the number of people.
    """
    if people is None:
        return
    whole("people", people)
    if delta >= 1 / people:
        raise ParameterError(
            f"delta must be well below 1 over the number of people; got delta={delta:g} for {people:,} people. Give "
            f"delta={1 / (10 * people):.0e} or less."
        )


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse a word that is not known, and name the nearest one."""
    words = list(known)
    if value not in words:
        raise ParameterError(f"{name} must be one of {', '.join(words)}; got {value!r}.{closest(str(value), words)}")


def closest(word: str, known: Iterable[str]) -> str:
    """Return ' Did you mean x?' or nothing."""
    match = get_close_matches(word, list(known), n=1)
    return f" Did you mean {match[0]!r}?" if match else ""


def public_parameters(mechanism: Any) -> dict[str, Any]:
    """Return the dataclass fields of a mechanism as plain values for manifests and recipes."""
    return {field.name: plain_value(getattr(mechanism, field.name)) for field in fields(mechanism)}


def plain_value(value: Any) -> Any:
    """Return a parameter as JSON can hold it; a space becomes its spec."""
    if hasattr(value, "spec"):
        return value.spec()
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    return value
