"""Store the lines in one SQLite file or one PostgreSQL database: open, lock and append."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool, StaticPool

from murmurate.core.ledger import schema, sqlite_file
from murmurate.core.ledger.people import key_digest
from murmurate.core.ledger.records import Record, default_who, next_record
from murmurate.core.ledger.schema import IDENTITY, RECORDS
from murmurate.core.ledger.state import State
from murmurate.core.work import state_folder
from murmurate.errors import LedgerDamaged, LedgerError, LedgerVersion, MissingPart

LOCK = 0x6D75726D
"""Number of the advisory lock of writers on a PostgreSQL server, one per database: the letters murm."""

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


def address(url_or_path: str | Path | None) -> sa.URL:
    """Parse a path, sqlite:///path or postgresql://... into one kind of address."""
    text = str(state_folder() / "ledger.sqlite") if url_or_path is None else str(url_or_path)
    if "://" not in text:
        return _file_address(text)
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise LedgerError(
            "the ledger's address cannot be read; give a path, sqlite:///path or postgresql://user@host/database."
        ) from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database and not url.query:
        return _file_address(url.database)
    raise LedgerError(
        f"a ledger lives in a SQLite file (sqlite:///path) or in PostgreSQL (postgresql://...); got {url.drivername}://."
    )


def work_folder(url_or_path: str | Path | None) -> Path:
    """Return the folder for private work files of releases charged to this ledger: beside its file, or in the state folder."""
    url = address(url_or_path)
    if url.database and url.drivername == "sqlite" and Path(url.database).parent.is_dir():
        return Path(url.database).with_name(f"{Path(url.database).name}.work")
    return state_folder() / "work"


def _file_address(path: str) -> sa.URL:
    if path == ":memory:":
        raise LedgerError("a ledger in memory forgets what was spent; for demos there is Ledger.in_memory().")
    return sa.URL.create("sqlite", database=str(Path(path).expanduser().absolute()))


class Store:
    """Opens, makes or migrates the tables; hands out locked transactions. It knows nothing of budgets."""

    def __init__(self, url: sa.URL, *, purpose: str) -> None:
        self.url = url
        self.in_memory = url.database is None and url.drivername == "sqlite"
        self.path = Path(url.database) if url.drivername == "sqlite" and url.database else None
        self.shown = url.render_as_string(hide_password=True)
        if self.path is not None and not self.path.exists():
            sqlite_file.refuse_lost(self.path)
            sqlite_file.create_whole(self.path, lambda draft: _fill_new(draft, purpose))
        if self.path is not None:
            sqlite_file.refuse_damaged(self.path)
        self.engine = _engine(url)
        with _explained(self.shown):
            found = self._open(purpose)
        self.ledger_id, self.purpose, self.uid_key = found.ledger_id, found.purpose, found.uid_key

    def new_state(self, connection: sa.Connection | None = None) -> State:
        """Return a state before the first line; with a connection, of the identity as it stands in the database now."""
        if connection is None:
            return State(self.ledger_id, self.purpose, key_digest(self.uid_key))
        found = schema.identity(connection)
        return State(found.ledger_id, found.purpose, key_digest(found.uid_key))

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Yield a transaction that sees one state of the ledger."""
        with _explained(self.shown), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Yield an exclusive transaction; what it appended is on disk when it ends without error."""
        with _explained(self.shown), self._to_write() as connection, connection.begin():
            _lock(connection)
            yield connection

    def read_after(self, connection: sa.Connection, seq: int) -> list[Record]:
        """Return the lines after line `seq`, in order."""
        rows = connection.execute(sa.select(RECORDS).where(RECORDS.c.seq > seq).order_by(RECORDS.c.seq))
        return [Record(*row) for row in rows]

    def append(self, connection: sa.Connection, record: Record) -> None:
        """Write the next line."""
        connection.execute(RECORDS.insert().values(**record.__dict__))

    def write_backup(self, connection: sa.Connection, target: Path) -> None:
        """Write the ledger as of one moment to one SQLite file, itself a ledger; an existing file is never replaced."""

        def fill(draft: Path) -> None:
            if self.path is not None:
                sqlite_file.copy_consistent(self.path, draft)
            else:
                _copy_rows(connection, draft)

        target = target.expanduser().absolute()
        if target.exists() or not sqlite_file.create_whole(target, fill):
            raise LedgerError(f"the backup {target} exists already; name a new file.")

    def close(self) -> None:
        """Close the database."""
        self.engine.dispose()

    def _to_write(self) -> sa.Connection:
        return self.engine.connect().execution_options(ledger_write=True)

    def _open(self, purpose: str) -> Any:
        with self.engine.connect() as connection, connection.begin():
            version = schema.found_version(connection)
        if version is None:
            if self.path is not None:
                raise LedgerDamaged(f"{self.path} is an SQLite file but no ledger. Name the right file, or a new one.")
            self._create_tables(purpose)
        elif version > schema.VERSION:
            raise LedgerVersion(
                f"the ledger {self.shown} is of version {version}; this Murmurate knows up to {schema.VERSION}. "
                "Update Murmurate; nothing was changed or spent."
            )
        elif version < schema.VERSION:
            self._migrate()
        with self.engine.connect() as connection, connection.begin():
            return schema.identity(connection)

    def _create_tables(self, purpose: str) -> None:
        """Create the tables in a database that holds no ledger, unless somebody else was first."""
        with self._to_write() as connection, connection.begin():
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
            if schema.found_version(connection) is None:
                schema.create(connection)
                _write_identity(connection, purpose)

    def _migrate(self) -> None:
        """Keep a copy of the older tables, then bring them to this version in one transaction."""
        with self._to_write() as connection, connection.begin():
            _lock(connection)
            version = schema.found_version(connection)
            if version is not None and version < schema.VERSION:
                self._copy_before_migration(connection, version)
                schema.migrate(connection, version)

    def _copy_before_migration(self, connection: sa.Connection, version: int) -> None:
        """Keep the older tables beside the ledger (for a server: in the state folder) before they are changed."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        if self.path is not None:
            target = self.path.with_name(f"{self.path.name}.v{version}.{stamp}.backup")
        else:
            ledger_id = connection.execute(sa.select(IDENTITY.c.ledger_id)).scalar_one()
            target = state_folder() / "backups" / f"{ledger_id}.v{version}.{stamp}.sqlite"
        self.write_backup(connection, target)


@contextmanager
def _explained(ledger: str) -> Iterator[None]:
    """Turn any failure of the database into a LedgerError that says what to do."""
    try:
        yield
    except UnicodeError as error:  # SQLite hands on text that is not text
        raise LedgerDamaged(f"the ledger {ledger} is damaged: {error}. Put back a backup; nothing was spent.") from error
    except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        for words, kind, meaning in _KNOWN:
            if words in reason.lower():
                raise kind(f"the ledger {ledger} {meaning}; nothing was spent. (The database says: {reason[:300]})") from error
        raise LedgerError(
            f"the ledger {ledger} cannot be used, so nothing may be released; if this happened while a charge was being "
            f"written, `murmurate ledger show` tells whether it stands. (The database says: {reason[:300]})"
        ) from error


def _copy_rows(connection: sa.Connection, draft: Path) -> None:
    """Copy table by table; lines first, so that nothing is copied that belongs to a line after the last one copied."""
    there = set(sa.inspect(connection).get_table_names())
    lines = connection.execute(sa.select(RECORDS).order_by(RECORDS.c.seq)).mappings().all()
    last = lines[-1]["seq"] if lines else 0
    engine = _engine(sa.URL.create("sqlite", database=str(draft)))
    with engine.begin() as copy:
        for table in schema.TABLES:
            if table.name not in there:
                continue
            table.create(copy)
            chosen = sa.select(table).where(table.c.seq <= last) if "seq" in table.c else sa.select(table)
            rows = lines if table is RECORDS else connection.execute(chosen).mappings().all()
            if rows:
                copy.execute(table.insert(), [dict(row) for row in rows])
            schema.make_append_only(copy, table)
    engine.dispose()


def _fill_new(draft: Path, purpose: str) -> None:
    engine = _engine(sa.URL.create("sqlite", database=str(draft)))
    with _explained(str(draft)), engine.connect().execution_options(ledger_write=True) as connection, connection.begin():
        schema.create(connection)
        _write_identity(connection, purpose)
    engine.dispose()


def _write_identity(connection: sa.Connection, purpose: str) -> None:
    ledger_id, uid_key = secrets.token_hex(16), secrets.token_bytes(32)
    connection.execute(IDENTITY.insert().values(ledger_id=ledger_id, purpose=purpose, uid_key=uid_key))
    first = next_record(
        seq=0,
        previous=ledger_id,
        who=default_who(),
        kind="created",
        population=None,
        values={"ledger_id": ledger_id, "purpose": purpose, "uid_key_sha256": key_digest(uid_key)},
    )
    connection.execute(RECORDS.insert().values(**first.__dict__))


def _lock(connection: sa.Connection) -> None:
    """Lock out other writers; on SQLite, BEGIN IMMEDIATE has done it already."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{int(sqlite_file.WAIT_S)}s'")
        connection.exec_driver_sql("SET LOCAL synchronous_commit = on")  # a server may have it off by default
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")  # needs no right to change the tables


def _engine(url: sa.URL) -> sa.Engine:
    """Create the engine, without a pool for files and servers, so that nothing is shared with a forked process."""
    if url.drivername == "sqlite":
        in_memory = url.database is None
        engine = sa.create_engine(
            url,
            poolclass=StaticPool if in_memory else NullPool,
            connect_args={"timeout": sqlite_file.WAIT_S, "check_same_thread": False},
        )
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        return sa.create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 10}, isolation_level="READ COMMITTED")
    except ModuleNotFoundError:
        raise MissingPart("a PostgreSQL ledger needs psycopg: pip install 'murmurate[postgres]'.") from None


def _prepare_sqlite(connection: Any, _: object) -> None:
    """Let commits wait for the disk, the folder included, and begin transactions explicitly."""
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA trusted_schema = OFF")


def _begin_sqlite(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("ledger_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
