"""What an attacker can still learn from a release: the attacks by name, imported only when asked for.

Each is a function `(released, original, *, pairing, ...) -> list[Score]`: every score stands beside its chance level, and its
note says what the adversary knows.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from murmurate.core.parameters import closest
from murmurate.errors import ParameterError

NAMES: dict[str, str] = {
    "average": "murmurate.attacks.average:average",
    "reidentify": "murmurate.attacks.reidentify:reidentify",
    "reconstruct": "murmurate.attacks.reconstruct:reconstruct",
    "localise": "murmurate.attacks.localise_pool:localise",
}
"""Registry name -> module:function. One line an attack, one entry each in docs/attacks.md."""


def attack_function(name: str) -> Callable[..., Any]:
    """The function behind a name; an unknown name is answered with the nearest known one."""
    if name not in NAMES:
        raise ParameterError(f"no attack is called {name!r}; there are {', '.join(NAMES)}.{closest(name, NAMES)}")
    module, _, attribute = NAMES[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return found
