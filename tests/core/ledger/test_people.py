"""Sets of hashed people, whole below a threshold and samples above it, which err towards people being the same."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.core.ledger import Ledger, people
from murmurate.core.ledger.people import hash_people, is_sample, overlap, union
from murmurate.core.trips import Identity
from murmurate.errors import PopulationOverlap

KEY = b"k" * 32


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(people, "EXACT_PEOPLE", 2000)
    monkeypatch.setattr(people, "HASHED_AT_ONCE", 700)
    people._hashed.cache_clear()
    yield
    people._hashed.cache_clear()


def named(first, last):
    return hash_people(tuple(str(k) for k in range(first, last)), KEY)


def test_few_people_are_compared_exactly():
    assert overlap(named(0, 100), named(90, 290)) == 0.1
    assert overlap(named(0, 100), named(100, 300)) == 0.0
    assert len(union([named(0, 100), named(50, 150)])) == 150
    assert not is_sample(named(0, 100))


def test_a_sample_of_many_people_is_the_same_however_they_are_grouped(small_samples):
    whole = named(0, 20_000)
    assert is_sample(whole) and len(whole) == 2000
    parts = [named(first, first + 1500) for first in range(0, 20_000, 1500)]
    assert np.array_equal(union(parts)[: len(whole)], named(0, 21_000))
    assert np.array_equal(union([union(parts[:5]), union(parts[5:])]), union(parts))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.25, 0.6, 1.0])
@pytest.mark.parametrize("size", [1000, 30_000])
def test_an_estimated_overlap_is_never_too_small(small_samples, share, size):
    """The bound holds with probability 1 - 1e-6 each; the hashes are fixed by the key."""
    many = named(0, 60_000)
    other = named(60_000 - round(share * size), 60_000 - round(share * size) + size)
    found = overlap(other, many)
    assert found >= share and found > 0
    if size == 30_000:
        assert found <= share + 0.12, "as near as a sample of this size can say"


def test_a_small_file_that_a_sample_cannot_tell_apart_counts_as_the_same_people(small_samples):
    assert overlap(named(100_000, 100_010), named(0, 100_000)) >= people.OVERLAP


def test_a_ledger_tells_samples_of_the_same_people_and_of_others_apart(small_samples):
    def file(name, first, last):
        return Identity(name, tuple(str(k) for k in range(first, last)))

    with Ledger.in_memory() as ledger:
        for k in range(3):  # the population is the union of its files
            ledger.attach(file(f"town {k}", 5000 * k, 5000 * k + 6000), "town", create=True)
        ledger.attach(file("others", 40_000, 60_000), "others", create=True)
        with pytest.raises(PopulationOverlap, match="town"):
            ledger.attach(file("half of them", 10_000, 22_000), "elsewhere", create=True)
        assert ledger.verify().n_lines > 5
