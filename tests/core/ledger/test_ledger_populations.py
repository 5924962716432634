"""Budgets belong to people: a changed, split or renamed file finds the budget its people already have."""

from __future__ import annotations

import sqlite3

import pytest

from murmurate.core.guarantee import DP, Unit
from murmurate.core.ledger import Ledger
from murmurate.core.ledger.people import hash_people, overlap, pack, unpack
from murmurate.core.trips import Identity
from murmurate.errors import InsufficientBudget, LedgerError, ParameterError, PopulationOverlap, UnknownPopulation

PROMISE = DP(epsilon=1.0, unit=Unit(name="user"))


def people(first, last):
    return tuple(f"taxi {k}" for k in range(first, last))


@pytest.fixture
def ledger(address):
    with Ledger(address) as made:
        made.population_of(Identity("one", people(0, 100)), population="taxis", create=True)
        yield made


def test_a_known_file_finds_its_population(ledger, address):
    with Ledger(address) as other:
        assert other.population_of(Identity("one", people(0, 100)), create=False) == "taxis"
        assert other.population_of(Identity("one", people(0, 100)), population="taxis", create=True) == "taxis"
        with pytest.raises(LedgerError, match="one budget"):
            other.population_of(Identity("one", people(0, 100)), population="others", create=True)


def test_an_unknown_file_must_be_attached(ledger):
    changed = Identity("changed", people(0, 100))
    with pytest.raises(UnknownPopulation, match="ledger attach"):
        ledger.population_of(changed, create=False)
    with pytest.raises(UnknownPopulation, match="ledger attach"):
        ledger.population_of(changed, population="taxis", create=False)
    ledger.attach(changed, "taxis")
    assert ledger.population_of(changed, create=False) == "taxis"


def test_a_slightly_changed_file_gets_no_fresh_budget(ledger):
    ledger.limit("taxis", epsilon=1.0)
    ledger.charge("taxis", PROMISE, mechanism="m", parameters={}, release_id="r0")
    changed = Identity("changed", people(1, 101))
    with pytest.raises(PopulationOverlap) as refused:
        ledger.population_of(changed, create=True)
    assert refused.value.population == "taxis"
    assert refused.value.share == pytest.approx(0.99)
    ledger.attach(changed, "taxis")
    with pytest.raises(InsufficientBudget):
        ledger.charge(ledger.population_of(changed, create=False), PROMISE, mechanism="m", parameters={}, release_id="r1")


@pytest.mark.parametrize(
    ("first", "last", "refused"),
    [(0, 10, True), (80, 180, True), (81, 181, False), (98, 108, True), (99, 109, False), (100, 200, False), (0, 10_000, True)],
)
def test_overlap_counts_in_the_smaller_set(ledger, first, last, refused):
    file = Identity("other", people(first, last))
    if refused:
        with pytest.raises(PopulationOverlap):
            ledger.attach(file, "new", create=True)
        assert ledger.populations() == ["taxis"]
    else:
        assert ledger.attach(file, "new", create=True) == "new"


def test_overlap_is_with_all_files_of_a_population_together(ledger):
    ledger.attach(Identity("two", people(100, 200)), "taxis")
    with pytest.raises(PopulationOverlap) as refused:
        ledger.attach(Identity("three", people(90, 110)), "new", create=True)
    assert refused.value.share == 1.0


def test_small_overlaps_add_up_over_the_files_of_a_population(ledger):
    """Ten taxis in a crowd of others are let through once, and not ten times."""

    def with_ten_taxis(k):
        return Identity(f"part {k}", people(10 * k, 10 * k + 10) + tuple(f"bus {k} {j}" for j in range(90)))

    ledger.attach(with_ten_taxis(0), "buses", create=True)
    before = ledger.history()
    with pytest.raises(PopulationOverlap) as refused:
        ledger.attach(with_ten_taxis(1), "buses")
    assert (refused.value.population, refused.value.share) == ("taxis", 0.2)
    with pytest.raises(PopulationOverlap):
        ledger.population_of(with_ten_taxis(1), population="buses", create=True)
    assert ledger.history() == before
    ledger.attach(with_ten_taxis(1), "buses", override_overlap=True)
    assert ledger.history("buses")[-1].details["overridden_overlap"] == [{"population": "taxis", "share": 0.2}]


def test_a_small_file_within_a_large_population_is_still_looked_at_alone(ledger):
    ledger.attach(Identity("many", tuple(f"bus {k}" for k in range(1000))), "buses", create=True)
    with pytest.raises(PopulationOverlap) as refused:
        ledger.attach(Identity("few", people(0, 5)), "buses")
    assert refused.value.share == 1.0


def test_after_an_override_files_that_bring_nobody_over_are_let_in(ledger):
    ledger.attach(Identity("again", people(0, 50)), "others", create=True, override_overlap=True)
    ledger.attach(Identity("more", tuple(f"bus {k}" for k in range(50))), "others")
    with pytest.raises(PopulationOverlap):
        ledger.attach(Identity("one taxi", (*people(99, 100), *(f"tram {k}" for k in range(50)))), "others")


def test_a_file_read_by_another_column_is_attached_again(ledger):
    """First by a column of row numbers, then by that of the people: they must be known from then on."""
    by_row = Identity("two", tuple(f"row {k}" for k in range(40)))
    by_person = Identity("two", tuple(f"bus {k}" for k in range(40)))
    assert ledger.population_of(by_row, population="buses", create=True) == "buses"
    with pytest.raises(UnknownPopulation, match="other people"):
        ledger.population_of(by_person, create=False)
    for _ in range(2):
        assert ledger.population_of(by_person, create=True) == "buses"
    assert ledger.population_of(by_person, create=False) == ledger.population_of(by_row, create=False) == "buses"
    attached = [entry.details for entry in ledger.history("buses") if entry.what == "attached"]
    assert [details["fingerprint"] for details in attached] == ["two", "two"]
    assert attached[0]["people_digest"] != attached[1]["people_digest"]
    with pytest.raises(PopulationOverlap):
        ledger.attach(Identity("three", by_person.uids), "elsewhere", create=True)
    with pytest.raises(LedgerError, match="one budget"):
        ledger.attach(Identity("two", ("somebody",)), "elsewhere", create=True)
    assert ledger.verify().n_lines == len(ledger.history())


def test_reading_by_another_column_does_not_get_round_the_overlap_check(ledger):
    ledger.population_of(Identity("copy", tuple(f"row {k}" for k in range(40))), population="fresh", create=True)
    with pytest.raises(PopulationOverlap):
        ledger.population_of(Identity("copy", people(0, 100)), create=True)
    with pytest.raises(PopulationOverlap):
        ledger.attach(Identity("copy", people(0, 100)), "fresh")


def test_an_override_is_recorded(ledger):
    name = ledger.population_of(Identity("again", people(0, 50)), create=True, override_overlap=True)
    assert name.startswith("population-")
    entry = ledger.history(name)[-1]
    assert entry.details["overridden_overlap"] == [{"population": "taxis", "share": 1.0}]
    assert ledger.history("taxis")[-1].details["overridden_overlap"] == []


def test_attaching_to_a_population_that_is_not_there(ledger):
    with pytest.raises(UnknownPopulation, match="Did you mean 'taxis'"):
        ledger.attach(Identity("two", ("x",)), "taxi")
    with pytest.raises(ParameterError, match="name"):
        ledger.attach(Identity("two", ("x",)), "  ", create=True)
    with pytest.raises(LedgerError, match="one budget"):
        ledger.attach(Identity("one", people(0, 100)), "elsewhere", create=True)


def test_a_file_without_people_overlaps_nobody(ledger):
    assert ledger.attach(Identity("empty", ()), "nobody", create=True) == "nobody"


def test_made_up_names_say_nothing_of_the_file():
    names = set()
    for _ in range(2):
        with Ledger.in_memory() as ledger:
            names.add(ledger.population_of(Identity("abcdef0123456789", ("ann",)), create=True))
    assert len(names) == 2


def test_no_uid_is_stored(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.population_of(Identity("one", ("Ann-Marie-Unmistakable", "Bo")), create=True)
    assert b"Unmistakable" not in path.read_bytes()
    with sqlite3.connect(path) as raw:
        assert len(raw.execute("select hashes from murmurate_people").fetchone()[0]) == 16
    raw.close()


def test_hashes_are_keyed_sorted_and_packed():
    first, second = hash_people(("a", "b", "a"), b"k" * 32), hash_people(("a", "b"), b"l" * 32)
    assert len(first) == 2
    assert overlap(first, second) == 0
    assert list(first) == sorted(first)
    assert overlap(first, unpack(pack(first))) == 1
    assert len(pack(first)) == 16
