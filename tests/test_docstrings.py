"""The examples in docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import murmurate

MODULES = [
    found.name for found in pkgutil.walk_packages(murmurate.__path__, "murmurate.") if not found.name.endswith("__main__")
]


def examples_of(module: ModuleType) -> doctest.TestResults:
    return doctest.testmod(module, verbose=False)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, capsys):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] == "murmurate":
            raise
        pytest.skip(f"{missing.name} is not installed")
    found = examples_of(module)
    assert found.failed == 0, capsys.readouterr().out


def test_a_wrong_example_is_caught(capsys):
    wrong = ModuleType("wrong", ">>> 1 + 1\n3\n")
    assert examples_of(wrong) == (1, 1)
    assert "Expected" in capsys.readouterr().out


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder()
    sample = importlib.import_module("murmurate.spaces")
    assert sum(len(found.examples) for found in finder.find(sample)) >= 2 and len(MODULES) > 200
