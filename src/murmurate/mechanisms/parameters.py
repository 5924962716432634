"""List the public parameters of a mechanism with defaults and meanings, from its own source."""

from __future__ import annotations

import ast
import inspect
from dataclasses import MISSING, Field, dataclass, fields
from textwrap import dedent
from typing import Any

from murmurate.core.parameters import plain_value
from murmurate.mechanisms import mechanism_class

COMMON = {
    "epsilon": "privacy budget of one unit; smaller is safer and noisier",
    "delta": "probability with which the promise may fail; 0 promises without exception",
    "unit": "whom to protect: trip, user_day (a person's day) or user (a person)",
    "space": "public places: grid:SOUTH,WEST,NORTH,EAST:CELL_M, road:FILE and others; see docs/spaces.md",
    "n_out": "trips to draw; without it, as many as a noisy count says",
    "max_trips": "most trips read of one unit; the rest are left out before the mechanism sees them",
    "max_points": "most points read of one unit",
    "radius_m": "distance within which places are hidden, in metres",
    "variant": "own (sound, the default) or as_published (the paper's reading)",
    "k": "size of the groups",
    "roads": "public road network, road:FILE, whose nearest road points are moved to",
    "link": "which released trips share a pseudonym",
    "seed": "for tests and demos only: whoever knows it can take the noise off",
}
"""Meanings of parameters that mechanisms share, where their own source says nothing."""


@dataclass(frozen=True)
class Parameter:
    """Hold one parameter in words."""

    name: str
    default: str
    """As typed; `required` where there is none."""
    meaning: str


def parameters(name: str) -> list[Parameter]:
    """Return the parameters of a mechanism in the order of its class."""
    kind = mechanism_class(name)
    own: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("murmurate"):
            own |= _field_words(base)
    return [Parameter(field.name, _default(field), own.get(field.name) or COMMON.get(field.name, "")) for field in fields(kind)]


def _default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        value = plain_value(field.default)
        return "none" if value in (None, "") else str(value).lower() if isinstance(value, bool) else str(value)
    return "required" if field.default_factory is MISSING else str(plain_value(field.default_factory()))


def _field_words(kind: type[Any]) -> dict[str, str]:
    """Return the sentence below each field of a class."""
    tree = ast.parse(dedent(inspect.getsource(kind))).body[0]
    if not isinstance(tree, ast.ClassDef):
        return {}
    words = {}
    for node, following in zip(tree.body, tree.body[1:], strict=False):
        if not (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)):
            continue
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            words[node.target.id] = " ".join(str(following.value.value).split())
    return words
