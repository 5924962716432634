"""A limit may ask for two people: page, command line and Python refuse one signature in the same words."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from murmurate.cli import app
from murmurate.core.guarantee import DP, Unit
from murmurate.core.ledger import Ledger
from murmurate.core.trips import Identity
from murmurate.errors import GuaranteeRefused

PROMISE = DP(epsilon=0.5, unit=Unit(name="user_day"))


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.db") as found:
        found.population_of(Identity("f", ("a", "b")), population="town", create=True)
        yield found


def charge(ledger, release_id, *signed):
    return ledger.charge("town", PROMISE, mechanism="flock", parameters={}, release_id=release_id, signed=signed)


def test_one_name_is_not_two(ledger, tmp_path):
    words = ["ledger", "limit", "town", "--unit", "user_day", "--epsilon", "3", "--two-people", "--why", "rule 4"]
    told = CliRunner().invoke(app, [*words, "--ledger", str(tmp_path / "ledger.db")])
    assert told.exit_code == 0 and "two people must sign" in told.output
    for signed in ((), ("Ann",), ("Ann", "ann "), ("Ann", " ")):
        with pytest.raises(GuaranteeRefused, match="asks for two people"):
            charge(ledger, "r1", *signed)
    assert ledger.spent("town")[0].n_charges == 0, "nothing was spent"
    charge(ledger, "r1", "Ann", "Bo")
    lines = {entry.what: entry.details for entry in ledger.history()}
    assert lines["debit"]["signed"] == ["Ann", "Bo"] and lines["limit"]["why"] == "rule 4"
    assert ledger.verify().n_debits == 1


def test_a_later_limit_may_take_it_back(ledger):
    ledger.limit("town", unit="user_day", epsilon=3.0, two_people=True)
    assert ledger.limits("town")[0].two_people
    ledger.limit("town", unit="user_day", epsilon=3.0)
    charge(ledger, "r2")
    assert not ledger.limits("town")[0].two_people


def test_a_coarser_release_falls_under_it_too(ledger):
    ledger.limit("town", unit="user", epsilon=3.0)
    ledger.limit("town", unit="trip", epsilon=9.0, two_people=True)
    with pytest.raises(GuaranteeRefused, match="asks for two people"):
        ledger.charge("town", DP(epsilon=0.5, unit=Unit(name="user")), mechanism="flock", parameters={}, release_id="r3")
