"""Copy a ledger into one SQLite file that is a ledger itself."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from murmurate.core.ledger import schema, sqlite_file
from murmurate.errors import LedgerError

if TYPE_CHECKING:
    from murmurate.core.ledger.store import Store


def write_backup(store: Store, connection: sa.Connection, target: Path) -> None:
    """Write the ledger as of one moment, while others may be charging; an existing file is never replaced."""
    target = target.expanduser().absolute()
    made = not target.exists() and sqlite_file.create_whole(target, lambda draft: _fill(store, connection, draft))
    if not made:
        raise LedgerError(f"the backup {target} exists already; name a new file.")


def copy_before_migration(store: Store, connection: sa.Connection, version: int) -> Path:
    """Keep the older tables beside the ledger (for a server: in the state folder) before they are changed."""
    from murmurate.core.work import state_folder

    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    if store.path is not None:
        target = store.path.with_name(f"{store.path.name}.v{version}.{stamp}.backup")
    else:
        ledger_id = connection.execute(sa.select(schema.IDENTITY.c.ledger_id)).scalar_one()
        target = state_folder() / "backups" / f"{ledger_id}.v{version}.{stamp}.sqlite"
    write_backup(store, connection, target)
    return target


def _fill(store: Store, connection: sa.Connection, draft: Path) -> None:
    if store.path is not None:
        sqlite_file.copy_consistent(store.path, draft)
    else:
        _copy_rows(connection, draft)


def _copy_rows(connection: sa.Connection, draft: Path) -> None:
    """Copy table by table; lines first, so that nothing is copied that belongs to a line after the last one copied."""
    there = set(sa.inspect(connection).get_table_names())
    lines = connection.execute(sa.select(schema.RECORDS).order_by(schema.RECORDS.c.seq)).mappings().all()
    last = lines[-1]["seq"] if lines else 0
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(draft)), poolclass=sa.pool.NullPool)
    with closing(engine.raw_connection()) as raw:
        raw.cursor().execute("PRAGMA synchronous = EXTRA")
    with engine.begin() as copy:
        for table in schema.TABLES:
            if table.name not in there:
                continue
            table.create(copy)
            chosen = sa.select(table).where(table.c.seq <= last) if "seq" in table.c else sa.select(table)
            rows = lines if table is schema.RECORDS else connection.execute(chosen).mappings().all()
            if rows:
                copy.execute(table.insert(), [dict(row) for row in rows])
            schema.make_append_only(copy, table)
    engine.dispose()
