"""Explain database errors, and tell damage from other failures; nothing was spent in any of these."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from murmurate.errors import LedgerDamaged, LedgerError

_KNOWN: tuple[tuple[str, type[LedgerError], str], ...] = (
    ("not a database", LedgerDamaged, "is not a ledger (not an SQLite file). Name the right file, or put back a backup"),
    ("malformed", LedgerDamaged, "is damaged. Put back a backup"),
    ("could not decode", LedgerDamaged, "is damaged. Put back a backup"),
    ("no such table", LedgerDamaged, "lacks a table. Put back a backup"),
    ("no such column", LedgerDamaged, "lacks a column. Put back a backup"),
    ("readonly", LedgerError, "is read-only, so no debit can be recorded. Make it and its folder writable"),
    ("locked", LedgerError, "is held by another process. Wait for it to finish, then try again"),
    ("lock timeout", LedgerError, "is held by another process. Wait for it to finish, then try again"),
    ("disk is full", LedgerError, "cannot grow: the disk is full. Make room, then try again"),
    ("disk i/o", LedgerError, "cannot be written: the disk reports an error. Check the disk"),
    ("unable to open", LedgerError, "cannot be opened. Check that its folder exists and that you may write there"),
    ("append-only", LedgerError, "is append-only: lines are never changed or removed"),
    ("permission denied", LedgerError, "may not be used by this database user. Grant it SELECT and INSERT on murmurate_*"),
    ("does not exist", LedgerError, "lacks a table, or the database itself is missing. Create it, or put back a backup"),
)
"""Words in a database's error (lower case), the error to raise, and its meaning with a remedy; the first match counts."""


@contextmanager
def explained(ledger: str) -> Iterator[None]:
    """Turn any failure of the database into a LedgerError that says what to do."""
    try:
        yield
    except UnicodeError as error:  # SQLite hands on text that is not text
        raise LedgerDamaged(f"the ledger {ledger} is damaged: {error}. Put back a backup; nothing was spent.") from error
    except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
        reason = str(getattr(error, "orig", None) or error).strip()
        for words, kind, meaning in _KNOWN:
            if words in reason.lower():
                raise kind(
                    f"the ledger {ledger} {meaning}; nothing was spent. (The database says: {_one_line(reason)})"
                ) from error
        raise LedgerError(
            f"the ledger {ledger} cannot be used, so nothing may be released; if this happened while a charge was being "
            f"written, `murmurate ledger show` tells whether it stands. (The database says: {_one_line(reason)})"
        ) from error


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
