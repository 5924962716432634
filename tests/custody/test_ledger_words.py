"""The ledger in words: refusals say which account, why and what fits; people and populations are named once."""

import pytest

from murmurate.core.guarantee import DP, Unit
from murmurate.core.ledger import Ledger
from murmurate.core.trips import Identity
from murmurate.errors import InsufficientBudget, LedgerError, PopulationOverlap
from murmurate.ingest.cleaning import described

TEN = tuple(str(number) for number in range(10))


@pytest.fixture
def ledger():
    with Ledger.in_memory() as book:
        book.attach(Identity("first", TEN), "taxis", create=True)
        yield book


def charge(ledger, epsilon, unit="user"):
    promise = DP(epsilon=epsilon, unit=Unit(name=unit))
    ledger.charge("taxis", promise, mechanism="flock", parameters={}, release_id=f"{epsilon}{unit}")


def test_a_refusal_says_what_would_fit(ledger):
    ledger.limit("taxis", unit="user", epsilon=1.0)
    charge(ledger, 0.75)
    with pytest.raises(InsufficientBudget, match=r"About epsilon 0\.25 per user would fit"):
        charge(ledger, 0.5)
    with pytest.raises(InsufficientBudget, match="murmurate ledger limit taxis --unit user"):
        charge(ledger, 0.5)


def test_a_refusal_names_the_finer_account_and_why(ledger):
    ledger.limit("taxis", unit="user", epsilon=5.0)
    ledger.limit("taxis", unit="trip", epsilon=1.0)
    with pytest.raises(InsufficientBudget, match="charged there as two changes") as refused:
        charge(ledger, 1.0)
    assert "About epsilon 0.5 per user would fit" in str(refused.value)


def test_spellings_of_the_same_people_overlap(ledger):
    odd = tuple(f" 00{name}.0\u200b" for name in TEN)
    with pytest.raises(PopulationOverlap, match="--people taxi-2024") as refused:
        ledger.attach(Identity("second", odd), "others", create=True)
    assert "--override-overlap" in str(refused.value)
    assert "--population taxis" in str(refused.value)


def test_a_namespace_tells_people_apart(ledger):
    other = described(Identity("second", TEN), {}, {}, "taxi-2024")
    ledger.attach(other, "others", create=True)
    with pytest.raises(PopulationOverlap):
        ledger.attach(described(Identity("third", TEN), {}, {}, "taxi-2024"), "again", create=True)


@pytest.mark.parametrize("name", ["taxis ", "ta\nxis", "ta\u200bxis", "ta\x1b[31mxis"])
def test_names_of_populations_can_be_seen(name, ledger):
    with pytest.raises(LedgerError, match="visible characters"):
        ledger.attach(Identity("second", ("x",)), name, create=True)
