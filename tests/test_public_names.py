"""The public surface: every name is there, the list is complete, and importing it is light."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import murmurate as mm
from murmurate import mechanisms

ROOT = Path(__file__).resolve().parent.parent


def test_every_name_can_be_had():
    for name in mm.__all__:
        assert getattr(mm, name) is not None
    assert set(mm.__all__) <= set(dir(mm))


def test_every_mechanism_is_among_them():
    for name in mechanisms.NAMES:
        kind = mechanisms.mechanism_class(name)
        assert getattr(mm, kind.__name__) is kind


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match="release"):
        _ = mm.relase


def test_functions_stay_functions_whatever_is_imported():
    script = (
        "import murmurate as mm, murmurate.judging.review, murmurate.cli; assert callable(mm.evaluate) and callable(mm.attack)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def checked(tmp_path, lines):
    """What mypy says of a script that imports murmurate."""
    script = tmp_path / "script.py"
    script.write_text("\n".join(["import murmurate as mm", *lines]) + "\n")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent",
         "--cache-dir", str(tmp_path), "--config-file", str(ROOT / "pyproject.toml"), str(script)],
        check=False, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )  # fmt: skip
    return found.stdout


def test_type_checkers_see_every_public_name_and_no_other(tmp_path):
    uses = [f"reveal_type(mm.{name})" for name in mm.__all__]
    told = checked(tmp_path, [*uses, "mm.relase", 'mm.DP(epsilon="much")']).splitlines()
    revealed = [line for line in told if "Revealed type is" in line]
    assert len(revealed) == len(uses) and not [line for line in revealed if line.endswith('is "Any"')]
    errors = [line for line in told if " error: " in line]
    assert len(errors) == 3 and "relase" in errors[0], "the misspelt name, the missing unit and the wrong epsilon, nothing else"


def test_the_names_for_type_checkers_are_the_public_ones():
    tree = ast.parse(Path(mm.__file__).read_text(encoding="utf-8"))
    (static,) = [node for node in tree.body if isinstance(node, ast.If)]
    listed = {alias.asname for node in static.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert listed | {"__version__"} == set(mm.__all__)


HEAVY = ("numpy", "polars", "numba", "jax", "scipy", "pandas", "sqlalchemy", "pyarrow")


def test_importing_brings_no_heavy_package():
    script = f"import sys, murmurate, murmurate.cli; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
