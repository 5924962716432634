"""Keep the state of a ledger up to date: reading checks every new line once, writing holds the lock throughout."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from murmurate.core.ledger.last_seen import LastSeen
from murmurate.core.ledger.records import REMEDY, Record, next_record
from murmurate.core.ledger.state import State
from murmurate.core.ledger.store import Store
from murmurate.errors import LedgerDamaged


class Page:
    """One locked transaction: the state as of now, and the lines being added to it."""

    def __init__(self, store: Store, connection: sa.Connection, state: State, who: str) -> None:
        self.connection = connection
        self.state = state
        self._store = store
        self._who = who
        self.last = (state.seq, state.digest)
        """Number and hash of the last line, those being added included."""

    def append(self, kind: str, population: str | None, values: dict[str, Any]) -> Record:
        """Add a line; it counts for others, and for the state here, only once the transaction has ended well."""
        seq, digest = self.last
        line = next_record(seq=seq, previous=digest, who=self._who, kind=kind, population=population, values=values)
        self._store.append(self.connection, line)
        self.last = (line.seq, line.digest)
        return line


class Book:
    """A store and its state; one thread at a time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._state = store.new_state()
        self._seen = None if store.in_memory else LastSeen(store.ledger_id, store.shown)
        self._one_at_a_time = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[State]:
        """Yield the current state."""
        with self.looking() as (state, _):
            yield state

    @contextmanager
    def looking(self) -> Iterator[tuple[State, sa.Connection]]:
        """Yield the current state, and a reading transaction for what it does not hold."""
        with self.connected() as connection:
            self._catch_up(connection)
            yield self._state, connection

    @contextmanager
    def writing(self, who: str) -> Iterator[Page]:
        """Yield the current state, with nobody else writing until the block ends; an error leaves nothing written."""
        with self._one_at_a_time, self.store.writing() as connection:
            self._catch_up(connection)
            page = Page(self.store, connection, self._state, who)
            yield page
        if self._seen is not None:
            self._seen.note(*page.last)

    @contextmanager
    def connected(self) -> Iterator[sa.Connection]:
        """Yield a reading transaction, for what the state does not hold."""
        with self._one_at_a_time, self.store.reading() as connection:
            yield connection

    def _catch_up(self, connection: sa.Connection) -> None:
        """Take the lines others wrote; the last line known must still be there, or the file was put back from a copy."""
        known = self._state.seq
        lines = self.store.read_after(connection, max(0, known - 1))
        if known:
            if not lines or (lines[0].seq, lines[0].digest) != (known, self._state.digest):
                raise LedgerDamaged(f"line {known} of the ledger was there and is not any more. {REMEDY}")
            lines = lines[1:]
        elif not lines:
            raise LedgerDamaged(f"the ledger has lost all its lines. {REMEDY}")
        for line in lines:
            self._state.take(line)
            if self._seen is not None:
                self._seen.check(line)
        self._state.refuse_unrecorded_key()
        if self._seen is not None:
            self._seen.check_end(self._state.seq)
            self._seen.note(self._state.seq, self._state.digest)
