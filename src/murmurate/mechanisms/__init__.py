"""The mechanisms by name; each is one file or folder, imported only when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from murmurate.core.parameters import closest
from murmurate.errors import ParameterError

NAMES: dict[str, str] = {
    "geoind": "murmurate.mechanisms.geoind:GeoIndistinguishability",
}
"""Registry name -> module:class. One line a mechanism."""


def mechanism_class(name: str) -> type[Any]:
    """The class behind a name; an unknown name is answered with the nearest known one."""
    if name not in NAMES:
        raise ParameterError(f"no mechanism is called {name!r}; there are {', '.join(NAMES)}.{closest(name, NAMES)}")
    module, _, attribute = NAMES[name].partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found
