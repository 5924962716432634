"""Killed at any moment, a process may lose a release but never an acknowledged debit; crowds never pass a limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from murmurate.core.guarantee import GeoInd, Unit
from murmurate.core.ledger import Ledger
from murmurate.core.trips import Identity
from murmurate.errors import InsufficientBudget, LedgerError

PROMISE = GeoInd(epsilon_per_m=0.001, unit=Unit(name="user"))
PROGRAM = Path(__file__).with_name("charging.py")


def found(address, limit):
    with Ledger(address) as ledger:
        ledger.population_of(Identity("one", ("a",)), population="town", create=True)
        ledger.limit("town", kind="geoind", epsilon_per_m=limit)


def run(*arguments):
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def debits(address):
    with Ledger(address) as ledger:
        assert ledger.verify().n_lines == len(ledger.history())
        return [entry.details["release_id"] for entry in ledger.history() if entry.what == "debit"]


def test_32_processes_use_a_limit_up_and_never_pass_it(address):
    found(address, 0.096)
    outcome = run("crowd", address, 32)
    assert outcome["codes"] == [0] * 32
    acknowledged = [release_id for each in outcome["acknowledged"] for release_id in each]
    assert len(acknowledged) == 96
    assert sorted(acknowledged) == sorted(debits(address))
    with Ledger(address) as ledger, pytest.raises(InsufficientBudget):
        ledger.charge("town", GeoInd(epsilon_per_m=1e-9, unit=Unit(name="user")), mechanism="m", parameters={}, release_id="x")


def test_killed_processes_lose_no_debit(address):
    found(address, 1000.0)
    outcome = run("killed", address, 40, 11)
    assert outcome["killed"] == 40
    kept = debits(address)
    assert set(outcome["acknowledged"]) <= set(kept)
    assert len(outcome["acknowledged"]) >= 20
    # at most the one charge in flight when the process died was written without being acknowledged
    assert len(kept) - len(outcome["acknowledged"]) <= 40
    with Ledger(address) as ledger:
        ledger.charge("town", PROMISE, mechanism="m", parameters={}, release_id="afterwards")


@pytest.mark.postgres
def test_a_crashed_server_loses_no_debit(postgres, tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path))
    address = postgres.new_database()
    found(address, 1000.0)
    acknowledged, stopped = [], []

    def charge_on():
        with Ledger(address) as ledger:
            for k in range(100_000):
                try:
                    ledger.charge("town", PROMISE, mechanism="m", parameters={}, release_id=f"{k}")
                except LedgerError as error:
                    stopped.append(error)
                    return
                acknowledged.append(f"{k}")

    worker = threading.Thread(target=charge_on)
    worker.start()
    while len(acknowledged) < 5 and worker.is_alive():
        time.sleep(0.01)
    postgres.stop("immediate")
    worker.join(60)
    postgres.start()
    assert stopped
    assert len(acknowledged) >= 5
    kept = debits(address)
    assert set(acknowledged) <= set(kept)
    assert len(kept) <= len(acknowledged) + 1


def open_at_once(address):
    """What twelve who open a new ledger together find, and what they are refused with."""
    made, wrong = [], []

    def open_it():
        try:
            with Ledger(address) as ledger:
                made.append((ledger.ledger_id, ledger.population_of(Identity("one", ("a",)), create=True)))
        except LedgerError as error:
            wrong.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made, wrong


def test_first_comers_make_one_ledger(address):
    """They agree on it, and none sees it half made."""
    made, wrong = open_at_once(address)
    assert not wrong
    assert len(made) == 12
    assert len(set(made)) == 1
    if not address.startswith("postgresql"):
        assert [item.name for item in Path(address).parent.iterdir()] == ["ledger.sqlite"]


def test_first_comers_on_a_file_system_without_links(tmp_path, monkeypatch):
    """The name is reserved before the file has its content: refused for a moment, but never a second ledger."""

    def refuse(*_):
        raise PermissionError(1, "this file system has no links")

    monkeypatch.setattr(os, "link", refuse)
    made, wrong = open_at_once(str(tmp_path / "ledger.sqlite"))
    assert len(set(made)) == 1
    assert all("0 bytes" in str(error) for error in wrong)
    assert [item.name for item in tmp_path.iterdir()] == ["ledger.sqlite"]
