"""Imports point down: a room never looks into one above it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "murmurate"

LAYERS = [
    {"errors", "__init__"},
    {"core"},
    {"spaces", "noise", "engine"},
    {"asking"},
    {"ingest", "demo", "profiles", "synthesis"},
    {"mechanisms", "metrics", "papers"},
    {"attacks"},
    {"releases", "exports"},
    {"custody"},
    {"judging"},
    {"report"},
    {"studio"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
APART = {"mechanisms", "metrics"}
"""Rooms of one layer that may not import each other; the other rooms of a layer may."""
LOOSE = {"__init__.py", "__main__.py", "errors.py"}
"""The files that may lie outside every room."""


def rooms_imported(source: str, package: tuple[str, ...]) -> set[str]:
    """The rooms that a module's imports reach, absolute and relative ones; `package` is where the module lies, as in
    ("murmurate", "core")."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = [*start, *(node.module.split(".") if node.module else ())]
            names = [".".join([*module, alias.name]) for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        parts = [name.split(".") for name in names]
        found |= {part[1] for part in parts if part[0] == "murmurate" and len(part) > 1 and part[1] in LEVEL}
    return found


def violations(imports: dict[str, set[str]]) -> list[str]:
    return [
        f"{room} imports {other}"
        for room, others in imports.items()
        for other in sorted(others - {room})
        if LEVEL[other] > LEVEL[room] or {room, other} == APART
    ]


def imports_of_the_house() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE)
        room = inside.parts[0].removesuffix(".py")
        package = ("murmurate", *inside.parts[:-1])
        found.setdefault(room, set()).update(rooms_imported(path.read_text(encoding="utf-8"), package))
    found.pop("__init__")  # the list of public names, imported when asked for
    return found


def test_every_room_has_a_level():
    assert not set(imports_of_the_house()) - set(LEVEL)


def test_imports_point_down():
    assert violations(imports_of_the_house()) == []


def test_a_planted_fault_is_noticed():
    assert violations({"core": {"mechanisms"}}) == ["core imports mechanisms"]
    assert violations({"metrics": {"mechanisms"}}) == ["metrics imports mechanisms"]
    assert violations({"mechanisms": {"metrics"}}) == ["mechanisms imports metrics"]


@pytest.mark.parametrize(
    ("line", "package", "room"),
    [
        ("import murmurate.cli.show", ("murmurate", "core"), "cli"),
        ("from murmurate import report", ("murmurate", "core"), "report"),
        ("from murmurate.report import page", ("murmurate", "core"), "report"),
        ("from .. import report", ("murmurate", "core"), "report"),
        ("from ..report import page", ("murmurate", "core"), "report"),
        ("from ...report.page import Promise", ("murmurate", "core", "ledger"), "report"),
        ("def later():\n    from ..report import page", ("murmurate", "core"), "report"),
        ("from . import trips", ("murmurate", "core"), "core"),
        ("from .trips import Trips", ("murmurate", "core"), "core"),
    ],
)
def test_imports_are_seen_in_every_spelling(line, package, room):
    assert rooms_imported(line, package) == {room}


def test_nothing_lies_outside_the_rooms():
    assert {path.name for path in SOURCE.glob("*.py")} <= LOOSE


def test_files_stay_small():
    long = {
        str(path.relative_to(SOURCE)): count
        for path in SOURCE.rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}


def test_no_room_without_a_name():
    assert not [path for path in SOURCE.rglob("*.py") if path.stem in {"utils", "util", "helpers", "common", "misc", "base"}]


def unexplained(source: str) -> list[str]:
    """Module-level constants without a docstring right below them."""
    body = ast.parse(source).body
    found = []
    for node, following in zip(body, [*body[1:], None], strict=True):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        names = [name.id for name in ast.walk(target) if isinstance(name, ast.Name)] if target is not None else []
        constants = [name for name in names if re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name)]
        told = isinstance(following, ast.Expr) and isinstance(getattr(following.value, "value", None), str)
        found += [] if told else constants
    return found


def test_every_constant_is_explained():
    missing = {str(path.relative_to(SOURCE)): unexplained(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    assert {path: names for path, names in missing.items() if names} == {}


def test_an_unexplained_constant_is_noticed():
    assert unexplained('FEW = 3\n"""Trips."""\nMANY = 4\nlow = 1\n') == ["MANY"]
