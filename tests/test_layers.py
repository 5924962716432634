"""Imports point down: a room never looks into one above it."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "murmurate"

LAYERS = [
    {"errors", "__init__"},
    {"core"},
    {"spaces", "noise", "engine"},
    {"asking"},
    {"ingest", "demo", "profiles", "synthesis", "training"},
    {"mechanisms", "metrics"},
    {"releases"},
    {"custody"},
    {"attacks"},
    {"judging"},
    {"report"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
APART = {("mechanisms", "metrics"), ("metrics", "mechanisms")}
MAY_SHARE = {"spaces", "noise", "engine", "ingest", "demo", "profiles", "synthesis", "training"}


def rooms_imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "murmurate":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "murmurate"]
        for name in names:
            parts = name.split(".")
            if len(parts) > 1 and (parts[1] in LEVEL):
                found.add(parts[1])
    return found


def violations(imports: dict[str, set[str]]) -> list[str]:
    wrong = []
    for room, others in imports.items():
        for other in others - {room}:
            below = LEVEL[other] < LEVEL[room] or (LEVEL[other] == LEVEL[room] and {room, other} <= MAY_SHARE)
            if not below or (room, other) in APART:
                wrong.append(f"{room} imports {other}")
    return wrong


def imports_of_the_house() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        found.setdefault(room, set()).update(rooms_imported(path))
    found.pop("__init__")  # the list of public names, imported when asked for
    return found


def test_every_room_has_a_level():
    assert not set(imports_of_the_house()) - set(LEVEL)


def test_imports_point_down():
    assert violations(imports_of_the_house()) == []


def test_a_planted_fault_is_noticed():
    assert violations({"core": {"mechanisms"}}) == ["core imports mechanisms"]
    assert violations({"metrics": {"mechanisms"}}) == ["metrics imports mechanisms"]


def test_files_stay_small():
    long = {
        str(path.relative_to(SOURCE)): count
        for path in SOURCE.rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}


def test_no_room_without_a_name():
    assert not [path for path in SOURCE.rglob("*.py") if path.stem in {"utils", "util", "helpers", "common", "misc", "base"}]
