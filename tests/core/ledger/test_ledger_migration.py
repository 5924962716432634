"""A ledger of an older version is copied, then led to this one with every debit it had."""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from murmurate.core.guarantee import DP, Unit
from murmurate.core.ledger import Ledger, schema
from murmurate.core.ledger.store import address as as_url
from murmurate.errors import InsufficientBudget, LedgerDamaged, LedgerError

_SPEC = importlib.util.spec_from_file_location("version_1", Path(__file__).with_name("version_1.py"))
version_1 = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(version_1)


@pytest.fixture
def old(address):
    engine = sa.create_engine(as_url(address), poolclass=sa.pool.NullPool)
    version_1.write(engine)
    engine.dispose()
    return address


def backups(tmp_path):
    return [*tmp_path.glob("ledger.sqlite.v1.*.backup"), *(tmp_path / "state" / "backups").glob("old.v1.*.sqlite")]


def versions(path):
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("select version from murmurate_version")]


def test_version_1_becomes_the_current_one_and_loses_nothing(old, tmp_path):
    with Ledger(old) as ledger:
        assert ledger.verify().n_debits == 2
        assert ledger.ledger_id == "old"
        with pytest.raises(InsufficientBudget):
            ledger.charge("town", DP(epsilon=0.5, unit=Unit(name="user")), mechanism="m", parameters={}, release_id="r2")
        ledger.charge("town", DP(epsilon=0.4, unit=Unit(name="user")), mechanism="m", parameters={}, release_id="r2")
    [copy] = backups(tmp_path)
    assert versions(copy) == [1]
    with Ledger(old) as again:
        assert again.verify().n_debits == 3
    assert len(backups(tmp_path)) == 1


def test_the_key_of_an_older_ledger_is_vouched_for_from_now_on(old, request):
    with Ledger(old) as ledger:
        assert [entry.what for entry in ledger.history()].count("uid_key") == 1
    exchange = "update murmurate_ledger set uid_key = uid_key || uid_key"
    if old.startswith("postgresql"):
        request.getfixturevalue("postgres").sql(old, f"alter table murmurate_ledger disable trigger all; {exchange}")
    else:
        with closing(sqlite3.connect(old)) as connection, connection:
            connection.execute("drop trigger murmurate_ledger_no_update")
            connection.execute(exchange)
    with pytest.raises(LedgerDamaged, match="key under which people are hashed"):
        Ledger(old)


@pytest.mark.parametrize("damage", ["DELETE FROM murmurate_record", "UPDATE murmurate_record SET who = 'bo' WHERE seq = 4"])
def test_a_damaged_older_ledger_is_not_led_on(old, damage):
    engine = sa.create_engine(as_url(old), poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text(damage))
    with pytest.raises(LedgerDamaged):
        Ledger(old)
    with engine.begin() as connection:
        assert schema.found_version(connection) == 1
    engine.dispose()


def test_the_copy_kept_before_is_whole(old, tmp_path):
    Ledger(old).close()
    [copy] = backups(tmp_path)
    with Ledger(copy) as restored:
        assert restored.verify().n_debits == 2


def test_a_migration_that_fails_leaves_the_old_ledger(old, monkeypatch):
    def break_off(connection):
        schema.CHARGED.create(connection)
        raise sa.exc.OperationalError("", {}, Exception("the disk is full"))

    with monkeypatch.context() as broken:
        broken.setitem(schema.STEPS, 1, break_off)
        with pytest.raises(LedgerError, match="disk is full"):
            Ledger(old)
    with Ledger(old) as ledger:
        assert ledger.verify().n_debits == 2


def test_a_version_that_never_was(tmp_path):
    path = tmp_path / "ledger.sqlite"
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.pool.NullPool)
    version_1.write(engine)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE murmurate_version SET version = 0"))
    engine.dispose()
    with pytest.raises(LedgerDamaged, match="never was"):
        Ledger(path)
