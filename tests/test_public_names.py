"""The public surface: every name is there, the list is complete, and importing it is light."""

from __future__ import annotations

import subprocess
import sys

import pytest

import murmurate as mm
from murmurate import mechanisms


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


HEAVY = ("numpy", "polars", "numba", "jax", "scipy", "pandas", "sqlalchemy", "pyarrow")


def test_importing_brings_no_heavy_package():
    script = f"import sys, murmurate, murmurate.cli; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
