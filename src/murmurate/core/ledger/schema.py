"""The tables, the triggers that make them append-only, and the steps from one version of them to the next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import sqlalchemy as sa

from murmurate.core.ledger.records import Record
from murmurate.errors import LedgerDamaged

VERSION = 2

METADATA = sa.MetaData()

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


def create(connection: sa.Connection) -> None:
    """Make the tables of the current version, empty but for the version."""
    METADATA.create_all(connection)
    for table in TABLES:
        make_append_only(connection, table)
    note_version(connection, VERSION)


def note_version(connection: sa.Connection, version: int) -> None:
    """Say that the tables now are of this version."""
    connection.execute(VERSIONS.insert().values(version=version, since=datetime.now(UTC).isoformat(timespec="seconds")))


def make_append_only(connection: sa.Connection, table: sa.Table) -> None:
    """Let the database itself refuse every UPDATE and DELETE."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            "CREATE OR REPLACE FUNCTION murmurate_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"
        )
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table.name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table.name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION murmurate_refuse()"
        )
        return
    for action in ("UPDATE", "DELETE"):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table.name}_no_{action.lower()} BEFORE {action} ON {table.name} "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )


def _to_version_2(connection: sa.Connection) -> None:
    """Version 1 left the uniqueness of release ids to the program; version 2 lets the database hold it."""
    CHARGED.create(connection)
    rows = connection.execute(sa.select(RECORDS).where(RECORDS.c.kind == "debit").order_by(RECORDS.c.seq))
    for record in [Record(*row) for row in rows]:
        connection.execute(CHARGED.insert().values(release_id=record.values["release_id"], seq=record.seq))
    make_append_only(connection, CHARGED)


STEPS: dict[int, Callable[[sa.Connection], None]] = {1: _to_version_2}
"""From this version to the next."""


def found_version(connection: sa.Connection) -> int | None:
    """The version of the tables here; None where there are none."""
    if not sa.inspect(connection).has_table(VERSIONS.name):
        return None
    return connection.execute(sa.select(sa.func.max(VERSIONS.c.version))).scalar_one_or_none()


def migrate(connection: sa.Connection, version: int) -> None:
    """Lead older tables to the current version, inside the caller's transaction."""
    if version not in STEPS:
        raise LedgerDamaged(f"the ledger says it is of version {version}, which never was. Put back a backup.")
    while version < VERSION:
        STEPS[version](connection)
        version += 1
        note_version(connection, version)
