"""Define the tables, the triggers that make them append-only, and the steps from one version of them to the next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from murmurate.core.ledger.people import key_digest
from murmurate.core.ledger.records import REMEDY, Record, default_who, next_record
from murmurate.errors import LedgerDamaged

VERSION = 3
"""Version of the tables below; `STEPS` lead older ones to it."""

METADATA = sa.MetaData()
"""Collects the tables below, so that they are created together."""

IDENTITY = sa.Table(
    "murmurate_ledger",
    METADATA,
    sa.Column("ledger_id", sa.Text, primary_key=True),
    sa.Column("purpose", sa.Text, nullable=False),
    sa.Column("uid_key", sa.LargeBinary, nullable=False),
)
"""One row: which ledger this is, whether it is real or a demo, and the key under which people are hashed."""

VERSIONS = sa.Table(
    "murmurate_version",
    METADATA,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("since", sa.Text, nullable=False),
)
"""One row a version; the highest counts."""

RECORDS = sa.Table(
    "murmurate_record",
    METADATA,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("population", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
)
"""The history itself; everything else is derived from it."""

PEOPLE = sa.Table(
    "murmurate_people",
    METADATA,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("hashes", sa.LargeBinary, nullable=False),
)
"""For each attachment, the sorted keyed hashes of its people, eight bytes each."""

CHARGED = sa.Table(
    "murmurate_charged",
    METADATA,
    sa.Column("release_id", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False, unique=True),
)
"""Since version 2: the database itself refuses a second charge under one release id."""

TABLES = (IDENTITY, VERSIONS, RECORDS, PEOPLE, CHARGED)
"""All tables, in the order in which a backup copies them."""


def create(connection: sa.Connection) -> None:
    """Make the tables of the current version, empty but for the version."""
    METADATA.create_all(connection)
    for table in TABLES:
        make_append_only(connection, table)
    note_version(connection, VERSION)


def identity(connection: sa.Connection) -> Any:
    """Return the one row that says which ledger this is."""
    rows = connection.execute(sa.select(IDENTITY)).all()
    if len(rows) != 1:
        raise LedgerDamaged(f"the ledger has {len(rows)} identities instead of one. Put back a backup.")
    if not isinstance(rows[0].uid_key, bytes):  # SQLite does not insist
        raise LedgerDamaged("the key under which people are hashed is not a key. Put back a backup.")
    return rows[0]


def note_version(connection: sa.Connection, version: int) -> None:
    """Record that the tables now are of this version."""
    connection.execute(VERSIONS.insert().values(version=version, since=datetime.now(UTC).isoformat(timespec="seconds")))


def make_append_only(connection: sa.Connection, table: sa.Table) -> None:
    """Add triggers with which the database refuses every UPDATE and DELETE."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            f"CREATE OR REPLACE FUNCTION murmurate_refuse() RETURNS trigger LANGUAGE plpgsql AS $${_REFUSE}$$"
        )
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {table.name}_append_only ON {table.name}")
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table.name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table.name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION murmurate_refuse()"
        )
        return
    for name, statement in _sqlite_triggers(table).items():
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}")
        connection.exec_driver_sql(statement)


_REFUSE = " BEGIN RAISE EXCEPTION 'the ledger is append-only'; END "
"""Body of the PostgreSQL trigger function that refuses changes."""

_ON_SERVER = sa.text(
    "SELECT count(*) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
    "WHERE t.tgrelid = to_regclass(:table) AND t.tgname = :name AND t.tgenabled IN ('O', 'A') "
    "AND t.tgtype = 58 AND t.tgqual IS NULL AND CAST(t.tgattr AS text) = '' "  # 58: statement, before update/delete/truncate
    "AND p.proname = 'murmurate_refuse' AND p.prosrc = :body"
)
"""Counts the triggers of a PostgreSQL table that are unchanged and enabled."""


def _sqlite_triggers(table: sa.Table) -> dict[str, str]:
    return {
        f"{table.name}_no_{action.lower()}": f"CREATE TRIGGER {table.name}_no_{action.lower()} BEFORE {action} ON {table.name} "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for action in ("UPDATE", "DELETE")
    }


def is_append_only(connection: sa.Connection, table: sa.Table) -> bool:
    """Return whether the triggers of `make_append_only` are there, unchanged and enabled."""
    if connection.dialect.name == "postgresql":
        trigger = {"table": table.name, "name": f"{table.name}_append_only", "body": _REFUSE}
        return bool(connection.execute(_ON_SERVER, trigger).scalar_one())
    found = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
    return _sqlite_triggers(table).items() <= {row.name: row.sql for row in found}.items()


def refuse_unguarded(connection: sa.Connection) -> None:
    """Raise where lines could be changed or removed without the database minding."""
    if open_ := [table.name for table in TABLES if not is_append_only(connection, table)]:
        raise LedgerDamaged(
            f"the triggers that keep {', '.join(open_)} append-only are gone, changed or switched off: somebody prepared to "
            f"change the ledger. {REMEDY}"
        )


def _to_version_2(connection: sa.Connection) -> None:
    """Add the table of charged releases, with which the database keeps release ids unique."""
    CHARGED.create(connection)
    rows = connection.execute(sa.select(RECORDS).where(RECORDS.c.kind == "debit").order_by(RECORDS.c.seq))
    for record in [Record(*row) for row in rows]:
        connection.execute(CHARGED.insert().values(release_id=record.values["release_id"], seq=record.seq))
    make_append_only(connection, CHARGED)


def _to_version_3(connection: sa.Connection) -> None:
    """Add a line with the hash of the key, and missing triggers; a broken chain is refused."""
    owner = identity(connection)
    seq, digest = 0, owner.ledger_id
    for row in connection.execute(sa.select(RECORDS).order_by(RECORDS.c.seq)).all():
        record = Record(*row)
        record.check_follows(seq, digest)
        seq, digest = record.seq, record.digest
    if not seq:
        raise LedgerDamaged(f"the ledger has lost all its lines. {REMEDY}")
    values = {"uid_key_sha256": key_digest(owner.uid_key)}
    line = next_record(seq=seq, previous=digest, who=default_who(), kind="uid_key", population=None, values=values)
    connection.execute(RECORDS.insert().values(**line.__dict__))
    for table in TABLES:
        if not is_append_only(connection, table):
            make_append_only(connection, table)


STEPS: dict[int, Callable[[sa.Connection], None]] = {1: _to_version_2, 2: _to_version_3}
"""Migrations from each version to the next."""


def found_version(connection: sa.Connection) -> int | None:
    """Return the version of the tables here; None where there are none."""
    if not sa.inspect(connection).has_table(VERSIONS.name):
        return None
    return connection.execute(sa.select(sa.func.max(VERSIONS.c.version))).scalar_one_or_none()


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring older tables to the current version, inside the caller's transaction."""
    if version not in STEPS:
        raise LedgerDamaged(f"the ledger says it is of version {version}, which never was. Put back a backup.")
    while version < VERSION:
        STEPS[version](connection)
        version += 1
        note_version(connection, version)
