"""Hooks of the documentation site: pages generated from the code, and links to files of the repository beside docs/."""

from __future__ import annotations

import re

import typer.main
from mkdocs.structure.files import File, Files

import murmurate
from murmurate.cli import app
from murmurate.mechanisms import NAMES, mechanism_class
from murmurate.mechanisms.parameters import parameters

BESIDE = re.compile(r"\]\((?:\.\./)+((?:README|CONTRIBUTING|CHANGELOG|LICENSE|src|tests|scripts|benchmarks|studies)[^)]*)\)")
"""Links out of docs/, which the site does not hold."""


def on_files(files: Files, config) -> Files:
    """Add the generated pages."""
    for name, text in {"commands": commands(), "parameters": parameter_tables(), "python": python()}.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Name files that lie beside docs/ instead of linking them."""
    return BESIDE.sub(r"] (`\1` in the repository)", markdown)


def commands() -> str:
    """Return one table of options for each command, from the command line itself."""
    root = typer.main.get_command(app)
    parts = ["# Commands\n\nGenerated from the command line; `murmurate COMMAND --help` says the same.\n"]
    for name, command in _commands(root):
        parts.append(f"## murmurate {name}\n\n{(command.help or '').strip()}\n\n| option | default | meaning |\n|---|---|---|")
        for option in command.params:
            named = option.opts if option.param_type_name == "option" else [getattr(option, "metavar", None) or option.name.upper()]
            words = ", ".join(f"`{_cell(word)}`" for word in named)
            default = "" if option.default in (None, False, ()) or callable(option.default) else f"`{option.default}`"
            parts.append(f"| {words} | {default} | {_cell(getattr(option, 'help', None) or '')} |")
        parts.append("")
    return "\n".join(parts)


def _commands(group, before: str = ""):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def parameter_tables() -> str:
    """Return one table of parameters for each mechanism, from its class."""
    parts = ["# Parameters\n\nGenerated from the code; `murmurate release MECHANISM --help` says the same.\n"]
    for name in NAMES:
        about = (mechanism_class(name).__doc__ or "").strip().partition("\n")[0]
        parts.append(f"## {name}\n\n{about} See [its page](../mechanisms/{name}.md).\n\n| parameter | default | meaning |\n|---|---|---|")
        parts += [f"| `{entry.name}` | `{entry.default}` | {_cell(entry.meaning)} |" for entry in parameters(name)]
        parts.append("")
    return "\n".join(parts)


def python() -> str:
    """Return the reference of the public names, from their docstrings."""
    places = murmurate._PLACES
    parts = ["# Python\n\n`import murmurate as mm`. Generated from docstrings.\n"]
    parts += [f"## mm.{name}\n\n::: {module}.{name}\n" for name, module in places.items()]
    return "\n".join(parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
