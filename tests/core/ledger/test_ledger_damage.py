"""A ledger that cannot be trusted or reached spends nothing and says why."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing

import pytest

from murmurate.core.guarantee import DP, Unit
from murmurate.core.ledger import Ledger, sqlite_file, store
from murmurate.core.trips import Identity
from murmurate.errors import LedgerDamaged, LedgerError, LedgerVersion, MurmurateError

PROMISE = DP(epsilon=0.1, unit=Unit(name="user"))


def charge(ledger, release_id):
    return ledger.charge("town", PROMISE, mechanism="m", parameters={}, release_id=release_id)


def fill(address, n=5):
    with Ledger(address) as ledger:
        ledger.population_of(Identity("one", ("a", "b")), population="town", create=True)
        ledger.limit("town", epsilon=1.0)
        for k in range(n):
            charge(ledger, f"r{k}")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ledger.sqlite"
    fill(path)
    return path


def raw(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def drop_triggers(path):
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("select name from sqlite_master where type = 'trigger'")]
    raw(path, *(f"drop trigger {name}" for name in names))


@pytest.mark.parametrize("table", ["ledger", "version", "record", "people", "charged"])
@pytest.mark.parametrize("action", ["update murmurate_{0} set {1} = {1}", "delete from murmurate_{0}"])
def test_the_database_itself_refuses_changes(address, request, table, action):
    fill(address, 1)
    column = {"ledger": "purpose", "version": "since", "record": "body", "people": "hashes", "charged": "seq"}[table]
    statement = action.format(table, column)
    if address.startswith("postgresql"):
        import subprocess

        with pytest.raises(subprocess.CalledProcessError) as refused:
            request.getfixturevalue("postgres").sql(address, statement)
        assert b"append-only" in refused.value.stderr
        with pytest.raises(subprocess.CalledProcessError):
            request.getfixturevalue("postgres").sql(address, f"truncate murmurate_{table}")
    else:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw(address, statement)
    with Ledger(address) as ledger:
        assert ledger.verify().n_debits == 1


@pytest.mark.parametrize(
    "change",
    [
        "update murmurate_record set body = replace(body, '0.1', '0.01') where seq = 6",
        "update murmurate_record set who = 'nobody' where seq = 5",
        "update murmurate_record set population = 'village' where seq = 5",
        "delete from murmurate_record where seq = 6",
        "delete from murmurate_record",
        "update murmurate_record set digest = 'x' where seq = 9",
        "update murmurate_ledger set purpose = 'demo'",
        "delete from murmurate_ledger",
    ],
)
def test_a_changed_line_is_found(file, change):
    drop_triggers(file)
    raw(file, change)
    with pytest.raises(LedgerDamaged):
        Ledger(file)


def test_changes_on_a_server_are_found(postgres):
    address = postgres.new_database()
    fill(address)
    postgres.sql(
        address,
        "alter table murmurate_record disable trigger all; update murmurate_record set body = replace(body, '0.1', '0.01')",
    )
    with pytest.raises(LedgerDamaged):
        Ledger(address)


@pytest.mark.parametrize("hashes", ["x'0011223344556677'", "'words'"])
def test_changed_people_are_found(file, hashes):
    drop_triggers(file)
    raw(file, f"update murmurate_people set hashes = {hashes}")
    with Ledger(file) as ledger:
        with pytest.raises(LedgerDamaged, match="people"):
            ledger.verify()
        with pytest.raises(LedgerDamaged, match="people"):
            ledger.attach(Identity("two", ("c",)), "village", create=True)


def test_an_exchanged_key_is_found(address, request):
    """Under another key nobody is known again, and every overlap with earlier files would go unseen."""
    fill(address, 1)
    with Ledger(address) as ledger:
        if address.startswith("postgresql"):
            exchange = "update murmurate_ledger set uid_key = decode(repeat('00', 32), 'hex')"
            request.getfixturevalue("postgres").sql(address, f"alter table murmurate_ledger disable trigger all; {exchange}")
        else:
            drop_triggers(address)
            raw(address, "update murmurate_ledger set uid_key = zeroblob(32)")
        with pytest.raises(LedgerDamaged, match="key under which people are hashed"):
            ledger.verify()
    with pytest.raises(LedgerDamaged, match="key under which people are hashed"):
        Ledger(address)


@pytest.mark.parametrize(
    "change",
    [
        "drop trigger murmurate_people_no_update",
        "drop trigger murmurate_record_no_delete",
        "drop trigger murmurate_ledger_no_update; "
        "create trigger murmurate_ledger_no_update before update on murmurate_ledger begin select 1; end",
    ],
)
def test_missing_triggers_are_found(file, change):
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript(change)
    with Ledger(file) as ledger, pytest.raises(LedgerDamaged, match="append-only are gone"):
        ledger.verify()


@pytest.mark.postgres
@pytest.mark.parametrize(
    "change",
    [
        "drop trigger murmurate_people_append_only on murmurate_people",
        "alter table murmurate_record disable trigger murmurate_record_append_only",
        "create or replace function murmurate_refuse() returns trigger language plpgsql as $$ begin return null; end $$",
        "drop trigger murmurate_charged_append_only on murmurate_charged; create trigger murmurate_charged_append_only "
        "before delete on murmurate_charged for each statement execute function murmurate_refuse()",
    ],
)
def test_missing_triggers_on_a_server_are_found(postgres, change):
    address = postgres.new_database()
    fill(address, 1)
    postgres.sql(address, change)
    with Ledger(address) as ledger, pytest.raises(LedgerDamaged, match="append-only are gone"):
        ledger.verify()


def test_a_lost_list_of_charged_releases_is_found(file):
    drop_triggers(file)
    raw(file, "delete from murmurate_charged where release_id = 'r3'")
    with Ledger(file) as ledger, pytest.raises(LedgerDamaged, match="charged releases"):
        ledger.verify()


def test_a_line_lost_while_open_is_found(file):
    with Ledger(file) as ledger:
        drop_triggers(file)
        raw(file, "delete from murmurate_record where seq = 9")
        with pytest.raises(LedgerDamaged, match="was there"):
            charge(ledger, "more")


@pytest.mark.parametrize(
    "content", [b"", b"not a database, but long enough to look like some file" * 40, b"SQLite format 3\x00"]
)
def test_what_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content)
    with pytest.raises(LedgerDamaged):
        Ledger(path)
    assert path.read_bytes() == content


def test_a_lost_ledger_is_not_replaced_by_an_empty_one(file, tmp_path):
    with Ledger(file) as ledger:
        (ledger.internal_folder / "r0").mkdir()
        copy = ledger.backup(tmp_path / "copy.sqlite")
    file.unlink()
    with pytest.raises(LedgerDamaged, match="Put back a backup") as refused:
        Ledger(file)
    assert "move that folder away" in str(refused.value)
    assert not file.exists()
    copy.rename(file)
    with Ledger(file) as restored:
        assert restored.verify().n_debits == 5
        folder = restored.internal_folder
    file.unlink()
    folder.rename(tmp_path / "given up")
    with Ledger(file) as fresh:
        assert fresh.populations() == []


def test_an_empty_internal_folder_does_not_stand_in_the_way(tmp_path):
    (tmp_path / "ledger.sqlite.internal").mkdir()
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.populations() == []


def test_another_sqlite_file_is_not_taken_over(tmp_path):
    path = tmp_path / "other.sqlite"
    raw(path, "create table cats (name text)")
    with pytest.raises(LedgerDamaged, match="no ledger"):
        Ledger(path)


def test_a_folder_is_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="not a file"):
        Ledger(tmp_path)


def test_every_truncation_is_refused(file):
    whole = file.read_bytes()
    for size in (1, 50, 99, 4096, 8192, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(LedgerError):
            Ledger(file).verify()


def test_flipped_bytes_never_free_budget(file):
    """Whatever byte is hit: refused in words, or every debit is still counted."""
    whole = file.read_bytes()
    dice = random.Random(7)
    refused = 0
    for _ in range(150):
        bad = bytearray(whole)
        bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        file.write_bytes(bytes(bad))
        try:
            with Ledger(file) as ledger:
                line = next(line for line in ledger.spent("town") if line.spent.unit == "user")
        except MurmurateError:
            refused += 1
        else:
            assert (line.spent.epsilon, line.n_charges, line.limit.epsilon) == (0.5, 5, 1.0)
    assert refused > 10


def test_a_newer_version_is_refused_untouched(address, request):
    fill(address, 1)
    statement = "insert into murmurate_version values (99, 'tomorrow')"
    if address.startswith("postgresql"):
        request.getfixturevalue("postgres").sql(address, statement)
    else:
        raw(address, statement)
    with pytest.raises(LedgerVersion, match="version 99"):
        Ledger(address)


def test_a_line_of_an_unknown_kind_is_never_skipped(file):
    from murmurate.core.ledger.records import next_record

    with Ledger(file) as ledger:
        state = ledger.verify()
    line = next_record(seq=state.n_lines, previous=state.digest, who="x", kind="refund", population="town", values={})
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("insert into murmurate_record values (?,?,?,?,?,?,?,?)", tuple(line.__dict__.values()))
    with pytest.raises(LedgerVersion, match="refund"):
        Ledger(file)


def test_a_held_ledger_says_so(file, monkeypatch):
    monkeypatch.setattr(sqlite_file, "WAIT_S", 0.05)
    with Ledger(file) as ledger:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("begin immediate")
            with pytest.raises(LedgerError, match="held by another process"):
                charge(ledger, "late")
        assert ledger.verify().n_debits == 5


def test_a_held_server_says_so(postgres, monkeypatch):
    import psycopg

    address = postgres.new_database()
    fill(address, 1)
    monkeypatch.setattr(sqlite_file, "WAIT_S", 1)
    with Ledger(address) as ledger, psycopg.connect(address) as other:
        other.execute(f"select pg_advisory_xact_lock({store.LOCK})")
        with pytest.raises(LedgerError, match="held by another process"):
            charge(ledger, "late")


def test_a_full_disk_spends_nothing(file, monkeypatch):
    prepare, size = store._prepare_sqlite, file.stat().st_size // 4096

    def on_a_full_disk(connection, record):
        prepare(connection, record)
        connection.execute(f"pragma max_page_count = {size}")

    monkeypatch.setattr(store, "_prepare_sqlite", on_a_full_disk)
    with Ledger(file) as ledger:
        long = {"text": "x" * 100_000}
        with pytest.raises(LedgerError, match="disk is full"):
            ledger.charge("town", PROMISE, mechanism="m", parameters=long, release_id="late")
        assert ledger.verify().n_debits == 5


@pytest.mark.postgres
def test_a_server_user_needs_no_right_to_change_lines(postgres):
    address = postgres.new_database()
    fill(address, 1)
    name = "clerk_" + address.split("?")[0][-8:]
    postgres.sql(
        address,
        f"create role {name} login; grant select, insert on murmurate_ledger, murmurate_version, murmurate_record, "
        f"murmurate_people, murmurate_charged to {name}",
    )
    with Ledger(address.replace("postgres@", f"{name}@")) as ledger:
        charge(ledger, "by a clerk")
        assert ledger.verify().n_debits == 2


def test_a_read_only_ledger_spends_nothing(file):
    """As an ordinary user, because root may write anything."""
    file.chmod(0o444)
    file.parent.chmod(0o555)
    parents = [folder for folder in file.parents if folder.is_dir() and not folder.stat().st_mode & 0o005]
    if os.geteuid() == 0 and parents:
        for folder in parents:
            folder.chmod(folder.stat().st_mode | 0o055)
    code = _as_ordinary_user(lambda: _refused_as_read_only(file))
    file.parent.chmod(0o755)
    file.chmod(0o644)
    assert code == 0
    with Ledger(file) as ledger:
        assert ledger.verify().n_debits == 5


def _refused_as_read_only(file):
    with Ledger(file) as ledger:
        assert len(ledger.history()) == 9
        try:
            charge(ledger, "late")
        except LedgerError as error:
            return "read-only" in str(error)
    return False


def _as_ordinary_user(check):
    if os.geteuid() != 0:
        return 0 if check() else 1
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgid(65534)
            os.setuid(65534)
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_place_nobody_can_write_to(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(LedgerError, match="no ledger can be made"):
        Ledger(tmp_path / "file" / "ledger.sqlite")


def test_a_server_that_is_down_spends_nothing(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError, match="cannot be used") as refused:
        Ledger(f"postgresql://ann:secret@/x?host={tmp_path}")
    assert "secret" not in str(refused.value)


def test_a_database_that_does_not_exist(postgres):
    with pytest.raises(LedgerError, match="missing"):
        Ledger(postgres.address("nowhere"))


def test_the_password_is_never_shown(postgres):
    address = postgres.new_database().replace("postgres@", "postgres:hunter2@")
    with Ledger(address) as ledger:
        assert "hunter2" not in ledger.url + repr(ledger)
