"""Read what a user wants released from flags or a TOML recipe, and write it with every default visible."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from murmurate.core.parameters import closest, whole
from murmurate.errors import InputError, ParameterError

KEYS = {"in": "source", "set": "parameters"} | {
    name: name
    for name in ("mechanism", "out", "ledger", "population", "limit", "link", "keep_ids", "accept_no_guarantee", "read")
}
"""What a recipe file may hold, and the field of `Recipe` that each key fills."""
READ_KEYS = ("layout", "time_zone", "local_zone", "time_format", "columns", "strict")
"""What its section [read] may hold: options of `murmurate.read`."""
DEFAULT_INTERVAL_S = 60.0
"""Seconds between points that `advice` assumes where `interval_s` is not set. Set by hand."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Hold the settings of one release as a user gave them."""

    mechanism: str
    source: str | None = None
    out: str | None = None
    ledger: str | None = None
    population: str | None = None
    limit: str | None = None
    link: str = "none"
    keep_ids: bool = False
    accept_no_guarantee: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from a TOML file; unknown keys are refused with the nearest known one."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} is not a recipe that can be read: {error}.") from None
    for keys, known, where in ((values, KEYS, ""), (values.get("read", {}), READ_KEYS, " under [read]")):
        unknown = [key for key in keys if key not in known]
        if unknown:
            raise InputError(
                f"{path} has unknown keys{where}: {', '.join(unknown)}.{closest(unknown[0], known)}",
                remedy=f"known keys{where} are {', '.join(known)}",
            )
    if "mechanism" not in values:
        raise InputError(f"{path} names no mechanism.", remedy='add a line such as mechanism = "geoind"')
    if "limit" in values:
        values["limit"] = str(values["limit"])
    return Recipe(**{KEYS[key]: value for key, value in values.items()})


def gather(
    what: str,
    *,
    settings: Sequence[str] | None = None,
    space: str | None = None,
    read: Mapping[str, Any] | None = None,
    **flags: Any,
) -> Recipe:
    """Return the recipe of a file or of a bare mechanism, with the flags put over it."""
    base = read_recipe(Path(what)) if what.endswith(".toml") else Recipe(mechanism=what)
    parameters = {**base.parameters, **parse_settings(settings or []), **({"space": space} if space else {})}
    said = {name: value for name, value in flags.items() if value}
    return replace(base, **said, parameters=parameters, read={**base.read, **(read or {})})


def build_mechanism(recipe: Recipe) -> tuple[Any, int | None]:
    """Build the mechanism; return it with the seed of a test or demo (which is no parameter of any mechanism)."""
    from murmurate.mechanisms import build

    parameters = dict(recipe.parameters)
    seed = parameters.pop("seed", None)
    if seed is not None:
        whole("seed", seed, at_least=0)
    return build(recipe.mechanism, parameters), seed


def advice(mechanism: Any) -> list[str]:
    """Say which geo-indistinguishable mechanism errs least at this radius, epsilon and sampling; from public numbers alone."""
    from murmurate.mechanisms.geoind_terms import GeoIndTerms

    if not isinstance(mechanism, GeoIndTerms):
        return []
    from murmurate.mechanisms.advice import advise

    interval_s = mechanism.interval_s or DEFAULT_INTERVAL_S
    said = "" if mechanism.interval_s else f" (points taken to be {interval_s:g} s apart; say so with --set interval_s=...)"
    found = advise(radius_m=mechanism.radius_m, epsilon=mechanism.epsilon, interval_s=interval_s, speed_kmh=mechanism.speed_kmh)
    return [f"Advice: {found.words()}{said}"]


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Read `name=value` pairs as typed values: numbers, true, false, none, [lists], or words.

    >>> parse_settings(["epsilon=1", "space=plane:60.17,24.94", "memo=true"])
    {'epsilon': 1, 'space': 'plane:60.17,24.94', 'memo': True}
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ParameterError(f"--set takes name=value; got {pair!r}.")
        values[name.strip()] = parse_value(text.strip())
    return values


def parse_value(text: str) -> Any:
    """Read one value as TOML writes it; what TOML does not know is a word, and `none` is None."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        try:
            return float(text)  # 1e-6, nan and inf in every spelling: the mechanism refuses what it cannot mean
        except ValueError:
            return text


def to_toml(recipe: Recipe, parameters: Mapping[str, Any]) -> str:
    """Write the recipe as TOML, with every parameter of the mechanism."""
    lines = [f'mechanism = "{recipe.mechanism}"']
    for key in ("in", "out", "ledger", "population", "limit"):
        value = getattr(recipe, KEYS[key])
        lines.append(f"{key} = {_toml(value)}" if value is not None else f"# {key} = ")
    lines += [f"{key} = {_toml(getattr(recipe, key))}" for key in ("link", "keep_ids", "accept_no_guarantee")]
    lines += ["", "[set]"]
    lines += [f"{name} = {_toml(value)}" if value is not None else f"# {name} = none" for name, value in parameters.items()]
    if recipe.read:
        lines += ["", "[read]", *(f"{name} = {_toml(value)}" for name, value in recipe.read.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)
