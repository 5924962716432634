"""Read what a user wants released from flags or a TOML recipe, and write it with every default visible."""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from murmurate.core.parameters import closest, whole
from murmurate.errors import Fault, InputError, ParameterError

KEYS = {"in": "source", "set": "parameters"} | {
    name: name
    for name in (
        "mechanism",
        "out",
        "ledger",
        "population",
        "people",
        "limit",
        "link",
        "keep_ids",
        "accept_no_guarantee",
        "declared",
        "format",
        "engine",
        "work",
        "read",
        "clean",
    )
}
"""What a recipe file may hold, and the field of `Recipe` that each key fills."""
READ_KEYS = (
    "layout",
    "time_zone",
    "local_zone",
    "time_format",
    "time_unit",
    "columns",
    "strict",
    "encoding",
)
"""What its section [read] may hold: options of `murmurate.read`."""
CLEAN_KEYS = ("max_speed_kmh", "occupied", "split_gap_s", "split_stay_s", "stay_m", "min_points")
"""What its section [clean] may hold: settings of `murmurate.ingest.cleaning`."""
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
    people: str | None = None
    """Namespace of the people in the file, where several files number other people alike."""
    limit: str | None = None
    link: str = "none"
    keep_ids: bool = False
    accept_no_guarantee: bool = False
    declared: Sequence[str] = ()
    """What was looked up in the data and declared public; published with the release."""
    format: Sequence[str] = ()
    """Formats beside the release's own: csv, geojson, gpkg."""
    engine: str | None = None
    work: str | None = None
    """Folder or address for private work files, or "none" for no copy of any row."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)
    clean: Mapping[str, Any] = field(default_factory=dict)


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from a TOML file; unknown keys are refused with the nearest known one."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except (OSError, ValueError, RecursionError) as error:  # a number of thousands of digits is no TOMLDecodeError
        raise InputError(f"{path} is not a recipe that can be read: {error}.") from None
    faults = [*_key_faults(values), *_type_faults(values)]
    if "mechanism" not in values:
        faults.append('it names no mechanism; add a line such as mechanism = "flock"')
    if faults:
        raise InputError([Fault(fault, file=str(path)) for fault in faults])
    if "limit" in values:
        values["limit"] = str(values["limit"])
    if isinstance(values.get("format"), str):
        values["format"] = [values["format"]]
    return Recipe(**{KEYS[key]: value for key, value in values.items()})


def _key_faults(values: Mapping[str, Any]) -> list[str]:
    """Return a sentence for every key that is not known, with the nearest that is."""
    faults = []
    for section, known in (("", KEYS), ("read", READ_KEYS), ("clean", CLEAN_KEYS)):
        found = values.get(section, {}) if section else values
        where = f" under [{section}]" if section else ""
        if not isinstance(found, Mapping):
            faults.append(f"[{section}] must be a section of its own, not {found!r:.40}")
            continue
        unknown = [key for key in found if key not in known]
        if unknown:
            hint = closest(unknown[0], known)
            faults.append(f"unknown keys{where}: {', '.join(unknown)}.{hint} Known keys{where} are {', '.join(known)}")
    return faults


def _type_faults(values: Mapping[str, Any]) -> list[str]:
    """Return a sentence for every value of a kind that its key cannot have."""
    words = ("mechanism", "in", "out", "ledger", "population", "people", "link", "engine", "work")
    faults = [
        f"{key} must be text in quotes, not {values[key]!r:.40}" for key in words if not isinstance(values.get(key, ""), str)
    ]
    flags = [key for key in ("keep_ids", "accept_no_guarantee") if not isinstance(values.get(key, False), bool)]
    faults += [f"{key} must be true or false, not {values[key]!r:.40}" for key in flags]
    if not isinstance(values.get("set", {}), Mapping):
        faults.append(f"[set] must be a section of its own, not {values['set']!r:.40}")
    lists = (("declared", "a list of sentences"), ("format", 'a format such as "csv", or a list of formats'))
    for key, meant in lists:
        found = [values[key]] if key == "format" and isinstance(values.get(key), str) else values.get(key, [])
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            faults.append(f"{key} must be {meant}, not {found!r:.40}")
    clean = values.get("clean", {})
    if isinstance(clean, Mapping) and all(key in CLEAN_KEYS for key in clean):
        from murmurate.ingest.cleaning import Cleaning

        try:
            Cleaning.of(clean)
        except ParameterError as error:
            faults.append(f"under [clean]: {error}")
    return faults


def gather(
    what: str,
    *,
    settings: Sequence[str] | None = None,
    space: str | None = None,
    read: Mapping[str, Any] | None = None,
    clean: Mapping[str, Any] | None = None,
    **flags: Any,
) -> Recipe:
    """Return the recipe of a file or of a bare mechanism, with the flags put over it."""
    base = read_recipe(Path(what)) if what.endswith(".toml") else Recipe(mechanism=what)
    parameters = {**base.parameters, **parse_settings(settings or []), **({"space": space} if space else {})}
    said = {name: value for name, value in flags.items() if value}
    opening = {**base.read, **(read or {})}
    return replace(base, **said, parameters=parameters, read=opening, clean={**base.clean, **(clean or {})})


def build_mechanism(recipe: Recipe) -> tuple[Any, int | None]:
    """Build the mechanism; return it with the seed of a test or demo (which is no parameter of any mechanism)."""
    from murmurate.mechanisms import NAMES, build

    parameters = dict(recipe.parameters)
    seed = parameters.pop("seed", None)
    if seed is not None:
        whole("seed", seed, at_least=0)
    try:
        return build(recipe.mechanism, parameters), seed
    except ParameterError as error:
        if recipe.mechanism in NAMES:
            error.add_note(
                f"Parameters are given as --set name=value, such as --set epsilon=1, or under [set] in a recipe; "
                f"`murmurate release {recipe.mechanism} --help` lists them."
            )
        raise


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
    except (ValueError, RecursionError):
        try:
            return float(text)  # 1e-6, nan and inf in every spelling: the mechanism refuses what it cannot mean
        except ValueError:
            return text


def to_toml(recipe: Recipe, parameters: Mapping[str, Any]) -> str:
    """Write the recipe as TOML, with every parameter of the mechanism."""
    lines = [f'mechanism = "{recipe.mechanism}"']
    for key in ("in", "out", "ledger", "population", "people", "limit", "engine", "work"):
        value = getattr(recipe, KEYS[key])
        lines.append(f"{key} = {_toml(value)}" if value is not None else f"# {key} = ")
    lines += [f"{key} = {_toml(getattr(recipe, key))}" for key in ("link", "keep_ids", "accept_no_guarantee")]
    lines += [f"{key} = {_toml(list(found))}" for key in ("declared", "format") if (found := getattr(recipe, key))]
    lines += ["", "[set]"]
    lines += [f"{name} = {_toml(value)}" if value is not None else f"# {name} = none" for name, value in parameters.items()]
    return "\n".join([*lines, *_sections(recipe)]) + "\n"


def commented(recipe: Recipe, reasons: Sequence[str]) -> str:
    """Write a recipe that runs as it is, with the reasons as comments and only what is set."""
    lines = ["# A recipe for `murmurate release`. Run it with: murmurate release THIS_FILE --out DIR", "#"]
    for reason in reasons:
        lines += textwrap.wrap(reason, 118, initial_indent="# - ", subsequent_indent="#   ")
    lines += ["", f"mechanism = {_toml(recipe.mechanism)}"]
    lines.append(f"in = {_toml(recipe.source)}" if recipe.source else '# in = "the file to read"')
    if recipe.limit:
        lines.append(
            f"limit = {_toml(recipe.limit)}  # the most that may ever be spent on these people: kind:unit:epsilon[:delta]"
        )
    if recipe.declared:
        lines.append("# Looked up in the data and declared public by you; published with the release:")
        lines += ["declared = [", *(f"    {_toml(sentence)}," for sentence in recipe.declared), "]"]
    lines += ["", "[set]", *(f"{name} = {_toml(value)}" for name, value in recipe.parameters.items())]
    return "\n".join([*lines, *_sections(recipe)]) + "\n"


def _sections(recipe: Recipe) -> list[str]:
    lines: list[str] = []
    for title, values in (("read", recipe.read), ("clean", recipe.clean)):
        if values:
            lines += ["", f"[{title}]", *(f"{_key(name)} = {_toml(value)}" for name, value in values.items())]
    return lines


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)
