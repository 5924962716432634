"""Every registered attack: found by its name, documented, beside chance, with what the adversary knows."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest

from murmurate.attacks import NAMES, attacks_of
from murmurate.errors import InputError, ParameterError
from murmurate.judging.review import attack
from small_town import town

DOCS = Path(__file__).resolve().parents[2] / "docs" / "attacks.md"


@pytest.mark.parametrize("name", NAMES)
def test_an_attack_is_a_function_of_released_and_original(name):
    parameters = inspect.signature(NAMES.load(name)).parameters
    assert list(parameters)[:2] == ["released", "original"]
    assert parameters["pairing"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "seed" in parameters
    assert NAMES.load(name).__doc__


@pytest.mark.parametrize("name", NAMES)
def test_every_attack_has_an_entry_that_says_what_it_is(name):
    entries = dict(re.findall(r"^## `(\w+)`.*?\n(.*?)(?=^## |\Z)", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    assert name in entries, f"docs/attacks.md has no entry for {name}"
    for word in ("Adversary", "Does", "Scores", "Chance", "Needs", "Says nothing about"):
        assert f"**{word}**" in entries[name], f"{name} does not tell: {word}"


def test_no_entry_is_left_of_an_attack_that_is_gone():
    assert set(re.findall(r"^## `(\w+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE)) == set(NAMES)


def test_an_unknown_attack_is_answered_with_the_nearest():
    with pytest.raises(ParameterError, match="Did you mean 'reidentify'"):
        NAMES.load("reidentfy")


@pytest.fixture(scope="module")
def trips():
    return town(n=120)


def test_all_attacks_at_once(trips):
    found = attack(trips, trips, pairing=np.arange(120))
    assert set(found.skipped) <= {"localise", "reconstruct", "membership"}  # for whole days, for counts, for synthetic trips
    names = [score.name for score in found]
    assert len(set(names)) == len(names)
    assert {name.split(".")[0] for name in names} == set(attacks_of("trips")) - set(found.skipped)
    for score in found:
        assert score.note
        assert score.family
        assert score.chance is not None
        assert score.better in ("closer_to_chance", "higher")
    written = json.loads(json.dumps(found.to_json()))
    assert written["scores"][0].keys() >= {"name", "value", "low", "high", "better", "chance"}
    assert written["trips"] == {"original": 120, "released": 120}


def test_without_pairing_linking_and_averaging_say_why_they_were_not_run(trips):
    found = attack(trips, trips)
    for name in ("average", "reidentify"):
        assert "not paired" in found.skipped[name]


def test_options_go_to_their_attack(trips):
    found = attack(trips, trips, pairing=np.arange(120), attacks=["reidentify"], options={"reidentify": {"known": (3,)}})
    assert {score.name.rsplit("_", 1)[1] for score in found} == {"k3"}
    with pytest.raises(ParameterError, match="not run: average"):
        attack(trips, trips, attacks=["reidentify"], options={"average": {}})


def test_an_empty_side_is_refused(trips):
    with pytest.raises(InputError, match="released side has no trip"):
        attack(trips.take_trips(np.zeros(120, dtype=bool)), trips)
