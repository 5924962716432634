"""One shape for everything that is found by its name."""

from __future__ import annotations

import pytest

from murmurate.core.registry import Entry, Registry
from murmurate.errors import ParameterError


@pytest.fixture
def registry():
    return Registry("thing", {"mean": Entry("statistics:mean"), "missing": Entry("no_such_module:x")})


def test_a_thing_is_imported_when_asked_for(registry):
    assert registry.load("mean")([1, 3]) == 2
    with pytest.raises(ModuleNotFoundError):
        registry.load("missing")


def test_an_unknown_name_is_answered_with_the_nearest(registry):
    with pytest.raises(ParameterError, match=r"no thing is called 'meen'; there are mean, missing\. Did you mean 'mean'"):
        registry.load("meen")
    assert "meen" not in registry


def test_what_is_registered_is_listed_with_its_first_line():
    assert Registry("thing", {"mean": Entry("statistics:mean")}).about() == [
        ("mean", "Return the sample arithmetic mean of data.")
    ]


def test_a_thing_may_be_added_and_taken_away(registry):
    with registry.also("mine", Entry(len)):
        assert registry.load("mine") is len and list(registry)[-1] == "mine"
        with pytest.raises(ParameterError, match="registered already"):
            registry.register("mine", Entry(max))
    assert "mine" not in registry and len(registry) == 2
