"""Write what a page does as a recipe, as a command and in Python, to copy: all three do the same."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from murmurate.custody.recipes import to_toml
from murmurate.errors import MurmurateError
from murmurate.mechanisms import mechanism_class
from murmurate.studio.drafts import Draft
from murmurate.studio.products import every_parameter
from murmurate.studio.room import Room


@dataclass(frozen=True)
class Same:
    """Hold the recipe with every default, the command and the Python lines."""

    recipe: str
    command: str
    python: str


def same_elsewhere(room: Room, draft: Draft) -> Same | None:
    """Return the same in three forms; None before there is a file."""
    if not draft.source:
        return None
    file, ledger = draft.name or draft.source, room.ledger.url
    if not draft.mechanism:
        options = _flags(dict(draft.read))
        read = "".join(f", {name}={value!r}" for name, value in draft.read.items())
        return Same(
            "", f"murmurate inspect {shlex.quote(file)}{options}", f"import murmurate as mm\ntrips = mm.read({file!r}{read})"
        )
    try:
        # a manifest names a road file without its folder; a recipe has to find it
        places = {name: draft.parameters[name] for name in ("space", "roads") if name in draft.parameters}
        recipe = to_toml(draft.recipe(), {**every_parameter(draft.mechanism, draft.parameters), **places})
    except MurmurateError as error:
        recipe = f"# {error}"
    parts = [f"murmurate release {draft.mechanism}", f"--in {shlex.quote(file)}", "--out release"]
    parts += [f"--set {shlex.quote(f'{name}={value}')}" for name, value in draft.parameters.items() if value is not None]
    parts += [part for part in _flags({**draft.read, **draft.clean}).split("  ") if part]
    for flag, value in (("population", draft.population), ("limit", draft.limit), ("ledger", ledger)):
        parts += [f"--{flag} {shlex.quote(value)}"] if value else []
    parts += ["--accept-no-guarantee"] if draft.accept_no_guarantee else []
    kind = mechanism_class(draft.mechanism).__name__
    settings = ", ".join(f"{name}={_python(name, value)}" for name, value in draft.parameters.items())
    options = "".join(f", {name}={value!r}" for name, value in draft.read.items())
    accepted = ", accept_no_guarantee=True" if draft.accept_no_guarantee else ""
    accepted += f", declared={list(draft.declared)!r}" if draft.declared else ""
    opened = f"trips = mm.read({file!r}{options})"
    if draft.clean:
        how = f"read={dict(draft.read)!r}, clean={dict(draft.clean)!r}"
        opened = f"from murmurate.custody.sources import open_private\ntrips = open_private({file!r}, {how})"
    python = [
        "import murmurate as mm",
        opened,
        f"mechanism = mm.{kind}({settings})",
        f"with mm.Ledger({ledger!r}) as ledger:",
        f'    mm.release(mechanism, trips, ledger=ledger, out="release", population={draft.population!r}{accepted})',
    ]
    return Same(recipe, " \\\n    ".join(parts), "\n".join(python))


def _flags(read: dict[str, Any]) -> str:
    """Return the reading options as flags, two spaces before each."""
    found = []
    for name, value in read.items():
        if name == "columns":
            found += [f"--column {shlex.quote(f'{canonical}={column}')}" for canonical, column in value.items()]
        elif name == "strict":
            found.append("--strict")
        else:
            found.append(f"--{name.replace('_', '-')} {shlex.quote(str(value))}")
    return "".join(f"  {flag}" for flag in found)


def _python(name: str, value: Any) -> str:
    return f"mm.spaces.parse({value!r})" if name in ("space", "roads") and isinstance(value, str) else repr(value)
