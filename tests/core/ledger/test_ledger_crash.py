"""Killed at any moment, a process may lose a release but never an acknowledged debit; crowds never pass a limit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from murmurate.core.guarantee import GeoInd, Unit
from murmurate.core.ledger import Ledger
from murmurate.core.trips import Identity
from murmurate.errors import InsufficientBudget, LedgerDamaged, LedgerError
from small_town import town

PROMISE = GeoInd(epsilon_per_m=0.001, unit=Unit(name="user"))
PROGRAM = Path(__file__).with_name("charging.py")
KILLS = int(os.environ.get("MURMURATE_KILLS", "40"))
"""Processes that are killed in each test of it; `scripts/ledger-fire` sets more."""
CHARGES = int(os.environ.get("MURMURATE_CHARGES", "96"))
"""Charges for which a crowd has a budget."""
CHARGES_EACH = 200
"""Most charges of one population of a crowd: composing them takes time in proportion."""


def found(address, limit, name="town"):
    with Ledger(address) as ledger:
        ledger.population_of(Identity(name, (name,)), population=name, create=True)
        ledger.limit(name, kind="geoind", epsilon_per_m=limit)


def run(*arguments, cwd=None):
    paths = os.pathsep.join(map(str, (PROGRAM.parents[2], *filter(None, [os.environ.get("PYTHONPATH")]))))
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    patience = 300 + KILLS + CHARGES
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=patience, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def debits(address):
    with Ledger(address) as ledger:
        assert ledger.verify().n_lines == len(ledger.history())
        return [entry.details["release_id"] for entry in ledger.history() if entry.what == "debit"]


def test_32_processes_use_a_limit_up_and_never_pass_it(address):
    for k in range(-(-CHARGES // CHARGES_EACH)):
        found(address, 0.001 * min(CHARGES, CHARGES_EACH), f"town {k}")
    outcome = run("crowd", address, 32)
    assert outcome["codes"] == [0] * 32
    acknowledged = [release_id for each in outcome["acknowledged"] for release_id in each]
    print(f"{len(acknowledged)} of {CHARGES} charges by 32 processes")
    assert len(acknowledged) == CHARGES
    assert sorted(acknowledged) == sorted(debits(address))
    tiny = GeoInd(epsilon_per_m=1e-9, unit=Unit(name="user"))
    with Ledger(address) as ledger, pytest.raises(InsufficientBudget):
        ledger.charge("town 0", tiny, mechanism="m", parameters={}, release_id="x")


def test_killed_processes_lose_no_debit(address):
    found(address, 1000.0)
    outcome = run("killed", address, KILLS, 11)
    assert outcome["killed"] == KILLS
    kept = debits(address)
    lost = set(outcome["acknowledged"]) - set(kept)
    print(f"{KILLS} killed while charging, {len(kept)} debits, {len(lost)} lost")
    assert not lost
    assert len(outcome["acknowledged"]) >= KILLS // 2
    # at most the one charge in flight when the process died was written without being acknowledged
    assert len(kept) - len(outcome["acknowledged"]) <= KILLS
    with Ledger(address) as ledger:
        ledger.charge("town", PROMISE, mechanism="m", parameters={}, release_id="afterwards")


def test_killed_releases_lose_no_debit_and_leave_nothing_half_made(address, tmp_path):
    """Through the whole door: whatever folder is there was charged and is whole; what was acknowledged is there."""
    from murmurate.judging.checking import verify

    n, out = KILLS // 2 if KILLS > 40 else 4, tmp_path / "out"  # as many on each of two databases
    out.mkdir()
    with Ledger(address) as ledger:
        ledger.population_of(town(20).identity, population="town", create=True)
        ledger.limit("town", kind="geoind", unit="trip", epsilon_per_m=1000.0)
    outcome = run("released", address, n, 12, cwd=out)
    assert outcome["killed"] == n
    kept = set(debits(address))
    made = {}
    with Ledger(address) as ledger:
        for folder in out.glob("t*"):
            made[json.loads((folder / "manifest.json").read_text())["release_id"]] = folder
            if len(made) <= 20:
                verify(folder, ledger=ledger)
    lost = (set(outcome["acknowledged"]) | set(made)) - kept
    print(f"{n} killed while releasing, {len(made)} releases, {len(kept)} debits, {len(lost)} lost")
    assert not lost
    assert set(outcome["acknowledged"]) <= set(made)
    assert len(outcome["acknowledged"]) >= n // 2


@pytest.mark.postgres
def test_a_crashed_server_loses_no_debit(postgres, tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path))
    for _ in range(KILLS // 20 if KILLS > 40 else 1):
        _crash_the_server(postgres)


def _crash_the_server(postgres):
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


def test_a_file_that_cannot_grow_spends_nothing(tmp_path):
    """As on a full disk: the system refuses to make the file larger, in the middle of a charge."""
    address = tmp_path / "ledger.sqlite"
    found(address, 1000.0)
    program = (
        "import resource, signal, sys\n"
        "from murmurate.core.guarantee import GeoInd, Unit\n"
        "from murmurate.core.ledger import Ledger\n"
        "from murmurate.errors import LedgerError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "promise = GeoInd(epsilon_per_m=0.001, unit=Unit(name='user'))\n"
        "with Ledger(sys.argv[1]) as ledger:\n"
        "    ledger.charge('town', promise, mechanism='m', parameters={}, release_id='first')\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "    try:\n"
        "        ledger.charge('town', promise, mechanism='m', parameters={'long': 'x' * 200_000}, release_id='late')\n"
        "    except LedgerError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(address)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cannot" in done.stdout
    assert debits(address) == ["first"]


def test_a_clock_that_is_set_back_changes_no_sum(address, monkeypatch):
    """Order is by number, and accounts do not look at the time."""
    from datetime import UTC, datetime

    from murmurate.core.ledger import records

    class Clock:
        now_is = datetime(2030, 1, 1, tzinfo=UTC)

        @classmethod
        def now(cls, _zone):
            return cls.now_is

    monkeypatch.setattr(records, "datetime", Clock)
    found(address, 0.002)
    with Ledger(address) as ledger:
        ledger.charge("town", PROMISE, mechanism="m", parameters={}, release_id="r1")
        Clock.now_is = datetime(2001, 1, 1, tzinfo=UTC)
        ledger.charge("town", PROMISE, mechanism="m", parameters={}, release_id="r2")
        with pytest.raises(InsufficientBudget):
            ledger.charge("town", PROMISE, mechanism="m", parameters={}, release_id="r3")
        assert [entry.seq for entry in ledger.history()] == sorted(entry.seq for entry in ledger.history())
    assert debits(address) == ["r1", "r2"]


def test_an_older_copy_that_is_put_back_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    address, copy = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite"
    found(address, 0.001)
    shutil.copy(address, copy)
    with Ledger(address) as ledger:
        ledger.charge("town", PROMISE, mechanism="m", parameters={}, release_id="r1")
    with Ledger(copy) as elsewhere:  # a copy that is only looked at, under its own name, is no fault
        assert len(elsewhere.history()) == 4
    shutil.copy(copy, address)
    with pytest.raises(LedgerDamaged, match="older copy was put in its place"):
        Ledger(address)
    with Ledger(copy) as elsewhere:  # grown again as long as the newer one was, by other lines
        elsewhere.charge("town", PROMISE, mechanism="m", parameters={}, release_id="r2")
    shutil.copy(copy, address)
    with pytest.raises(LedgerDamaged, match="is not the one that was there") as refused:
        Ledger(address)
    Path(str(refused.value).partition("then delete ")[2].partition(", and")[0]).unlink()
    with Ledger(address) as ledger:
        assert ledger.verify().n_debits == 1


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
        assert {item.name for item in Path(address).parent.iterdir()} - {"state"} == {"ledger.sqlite"}


def test_first_comers_on_a_file_system_without_links(tmp_path, monkeypatch):
    """The name is reserved before the file has its content: refused for a moment, but never a second ledger."""

    def refuse(*_):
        raise PermissionError(1, "this file system has no links")

    monkeypatch.setattr(os, "link", refuse)
    made, wrong = open_at_once(str(tmp_path / "ledger.sqlite"))
    assert len(set(made)) == 1
    assert all("0 bytes" in str(error) for error in wrong)
    assert [item.name for item in tmp_path.iterdir()] == ["ledger.sqlite"]
