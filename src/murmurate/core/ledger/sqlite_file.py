"""Create, check and copy a ledger in one SQLite file."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable
from pathlib import Path

from murmurate.errors import LedgerDamaged, LedgerError

WAIT_S = 120.0
"""Seconds that a process waits for others that are charging. Set by hand."""


def refuse_damaged(path: Path) -> None:
    """Refuse what SQLite itself would take for a new ledger with a fresh budget; it finds all other damage.

    The file is never opened here: closing it would drop the locks another thread of this process holds on it.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be read: {error.strerror or error}.") from None
    if not path.is_file():
        raise LedgerError(f"the ledger {path} is not a file; give a file name, or a postgresql:// address.")
    if size == 0:
        raise LedgerDamaged(
            f"the ledger {path} is empty (0 bytes), so its debits are lost. Put back a backup, or name a new file."
        )


def internal_folder_beside(path: Path) -> Path:
    """Return the folder for what only the custodian may see of this ledger's releases."""
    return path.with_name(f"{path.name}.internal")


def refuse_lost(path: Path) -> None:
    """Refuse to make a new ledger, with a fresh budget, where releases show that there was one."""
    folder = internal_folder_beside(path)
    try:
        holds_releases = any(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:  # a zero byte in a name is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise LedgerError(f"{folder} cannot be looked into: {reason}. Make it readable to you.") from None
    if holds_releases and not path.exists():  # else somebody made the ledger, and a release, while we looked
        raise LedgerDamaged(
            f"the ledger {path} is not there, but {folder} holds releases charged to it: its debits are lost, and a new "
            "ledger would let them be spent again. Put back a backup of the ledger, or, if it was given up for good, move "
            "that folder away. Nothing was spent."
        )


def create_whole(path: Path, fill: Callable[[Path], None]) -> bool:
    """Make a file under another name, fill it, and only then give it its own; False where somebody else was first."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            fill(draft)
            made = _give_name(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(path.parent)
        return made
    except OSError as error:
        raise LedgerError(
            f"no ledger can be made at {path}: {error.strerror or error}. Name a place you may write to."
        ) from None


def _give_name(draft: Path, path: Path) -> bool:
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links: reserve the name, so that nobody's debits are ever replaced
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        os.replace(draft, path)
    return True


def copy_consistent(source: Path, target: Path) -> None:
    """Copy the file as of one moment, while others may be charging."""
    with (
        contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT_S)) as reading,
        contextlib.closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing)


def check_pages(path: Path) -> None:
    """Run SQLite's own full check of the file."""
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT_S)) as connection:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
    if found != ["ok"]:
        raise LedgerDamaged(f"the ledger {path} is damaged: {'; '.join(found)}. Put back a backup.")


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut."""
    with contextlib.suppress(OSError):  # not every system lets folders be opened; the file itself is already safe
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
