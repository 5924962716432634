"""Names of people are hashed for the ledger where their parts lie, to the same bytes, and the key leaves no trace."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import polars as pl
import pytest

from murmurate.core.ledger import people as ledger_people
from murmurate.core.ledger.people import hash_people, pack
from murmurate.engine import engine as open_engine
from murmurate.engine import fold
from murmurate.engine.shared import SharingEngine
from murmurate.ingest import people
from murmurate.ingest.people import PeopleInParts

KEY = bytes(range(100, 132))


class TwoHere(SharingEngine):
    """Runs what would travel to two workers here, and keeps its bytes."""

    workers = 2

    def __init__(self):
        super().__init__()
        self.sent: list[bytes] = []

    def start(self, *modules, work_in=None):
        """Nothing starts."""

    def map(self, function, items):
        for item in items:
            self.sent.append(pickle.dumps((function, item)))
            again, one = pickle.loads(self.sent[-1])
            yield again(one)


@pytest.fixture(autouse=True)
def on_workers(tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(people, "SPREAD_PEOPLE", 10)
    ledger_people._hashed.cache_clear()
    yield
    ledger_people._hashed.cache_clear()


def some_names(first, last):
    return pl.Series([f"0{k}" if k % 7 == 0 else str(k) for k in range(first, last)])


def parts_of(n_people, engine=None):
    """Parts that share people, as those of whole trips do."""
    firsts = range(0, n_people, 150)
    return PeopleInParts(
        [partial(some_names, first, min(first + 200, n_people)) for first in firsts], n_people, "town/", engine
    )


def nobody_here(self):
    raise AssertionError("the names are read by the process that runs the release")


@pytest.mark.parametrize("exact", [1 << 22, 400])
def test_workers_hash_people_to_the_same_bytes(monkeypatch, exact):
    monkeypatch.setattr(ledger_people, "EXACT_PEOPLE", exact)
    monkeypatch.setattr(fold, "LARGE_BYTES", 3000)  # sums in files as well
    here = hash_people(parts_of(3000), KEY)
    assert len(here) == min(exact, 3000)
    monkeypatch.setattr(PeopleInParts, "__iter__", nobody_here)
    with TwoHere() as engine:
        assert pack(hash_people(parts_of(3000, engine), KEY)) == pack(here)
        assert engine.sent


def test_workers_in_other_processes_hash_people_to_the_same_bytes():
    here = hash_people(parts_of(900), KEY)
    with open_engine(2) as engine:
        assert pack(hash_people(parts_of(900, engine), KEY)) == pack(here)


def test_the_key_travels_in_a_private_file_that_is_deleted(monkeypatch):
    shown = []
    share = SharingEngine.share

    def watched(self, value):
        shown.append(repr(value))
        handle = share(self, value)
        assert KEY in handle.files.get(handle.name)
        assert handle.files.folder.stat().st_mode & 0o077 == 0
        return handle

    monkeypatch.setattr(SharingEngine, "share", watched)
    with TwoHere() as engine:
        hash_people(parts_of(900, engine), KEY)
        assert shown and not any(word in one for one in shown for word in (repr(KEY), str(KEY), KEY.hex()))
        assert engine.sent and not any(KEY in one for one in engine.sent)
        assert not any(KEY in path.read_bytes() for path in engine.files().folder.rglob("*") if path.is_file())


def test_few_people_are_hashed_here():
    with TwoHere() as engine:
        hashes = hash_people(parts_of(10, engine), KEY)
    assert len(hashes) == 10 and not engine.sent


def test_a_person_in_two_parts_is_found_in_any_number_of_ranges(monkeypatch):
    monkeypatch.setattr(people, "CHECKED_AT_ONCE", 10)
    monkeypatch.setattr(people, "MAX_RANGES", 4)
    parts = [partial(hashed, first, first + 100) for first in (0, 100, 200)]
    assert len(people._ranges(300)) == 4 and not people.anyone_twice(parts, 300)
    with TwoHere() as engine:
        assert people.count_people([*parts, partial(hashed, 250, 301)], 351, engine) == 301
        assert people.anyone_twice([*parts, partial(hashed, 299, 301)], 302, engine)


def hashed(first, last):
    found = people.hash_names(some_names(first, last))
    assert (np.diff(found.astype(object)) > 0).all()
    return found
