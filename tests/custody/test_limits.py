"""Population and limit of a file: settled once, the same for every front end."""

from __future__ import annotations

import pytest

import murmurate as mm
from murmurate.core.guarantee import DP, KAnonymity, Unit
from murmurate.custody.limits import parse_limit, population_for
from murmurate.custody.recipes import Recipe
from murmurate.errors import ParameterError
from small_town import GRID, town

PROMISE = DP(epsilon=1.0, delta=1e-6, unit=Unit(name="trip"))


def refuse(guarantee):
    raise ParameterError("nobody was to be asked")


@pytest.fixture
def ledger(tmp_path):
    with mm.Ledger(tmp_path / "ledger.sqlite") as book:
        yield book


def limits(ledger, name):
    return {limit.account: str(limit.amount) for limit in ledger.limits(name)}


def test_where_no_limit_is_set_the_front_end_is_asked_before_anything_is_written(ledger):
    with pytest.raises(ParameterError, match="asked"):
        population_for(ledger, town(20).identity, Recipe(mechanism="x"), PROMISE, ask=refuse)
    assert not ledger.populations()
    name = population_for(
        ledger, town(20).identity, Recipe(mechanism="x"), PROMISE, ask=lambda promise: parse_limit("3", promise)
    )
    assert list(limits(ledger, name)) == [("dp", "trip")]
    assert population_for(ledger, town(20).identity, Recipe(mechanism="x"), PROMISE, ask=refuse) == name


def test_going_on_without_a_limit_is_the_front_end_s_choice(ledger):
    name = population_for(ledger, town(20).identity, Recipe(mechanism="x"), PROMISE, ask=lambda promise: None)
    assert limits(ledger, name) == {}


def test_promises_that_are_never_summed_need_no_limit(ledger):
    promise = KAnonymity(k=3, radius_m=100.0)
    assert population_for(ledger, town(20).identity, Recipe(mechanism="x"), promise, ask=refuse)


def test_another_limit_than_the_one_set_is_refused(ledger):
    recipe = Recipe(mechanism="x", limit="3", population="people")
    assert population_for(ledger, town(20).identity, recipe, PROMISE, ask=refuse) == "people"
    with pytest.raises(ParameterError, match="has a limit of"):
        population_for(ledger, town(20).identity, Recipe(mechanism="x", limit="4", population="people"), PROMISE, ask=refuse)


@pytest.mark.parametrize("text", ["", "much", "dp:trip", "dp:trip:1:2:3", "dp:trip:1:x"])
def test_other_words_are_refused(text):
    with pytest.raises(ParameterError, match="--limit takes"):
        parse_limit(text, PROMISE)


@pytest.mark.parametrize("set_first", [False, True])
def test_python_says_that_no_limit_is_set_in_one_sentence(ledger, caplog, set_first):
    private = town(600)
    if set_first:
        ledger.limit(ledger.population_of(private.identity, population="riders", create=True), unit="trip", epsilon=9.0)
    mechanism = mm.Flock(epsilon=5.0, space=GRID, n_out=5)
    mm.release(mechanism, private, ledger=ledger, population="riders")
    said = [record.getMessage() for record in caplog.records if record.name == "murmurate"]
    assert len(said) == (0 if set_first else 1)
    if said:
        assert said[0].startswith("Notice: no limit is set for dp per trip of population 'riders'")
        assert "ledger.limit('riders', kind='dp', unit='trip', epsilon=...)" in said[0]
