"""Run as a program: processes that charge one ledger at the same time, or are killed while they do.

    charging.py crowd ADDRESS N_PROCESSES          every process charges until it is refused; prints what each got
    charging.py killed ADDRESS N_TRIALS SEED       a process that charges is killed at a random moment, N_TRIALS times; prints
                                                   what had been acknowledged by then
    charging.py released ADDRESS N_TRIALS SEED     the same for a process that makes whole releases, in folders beside the
                                                   working one

Children are forked from one process that has imported everything, because importing costs more than charging.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time

from murmurate.core.guarantee import GeoInd, Unit
from murmurate.core.ledger import Ledger
from murmurate.errors import InsufficientBudget

PROMISE = GeoInd(epsilon_per_m=0.001, unit=Unit(name="user"))


def forked(work, *arguments) -> tuple[int, int]:
    """A child's process id and the pipe it writes to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            work(writing, *arguments)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    return child, reading


def charge_until(writing: int, address: str, name: str) -> None:
    """Charge every population until all have refused; a line is written for each charge once it has been acknowledged."""
    with Ledger(address, who=name) as ledger:
        for population in ledger.populations():
            for k in range(100_000):
                release_id = f"{name}-{population}-{k}"
                try:
                    ledger.charge(population, PROMISE, mechanism="m", parameters={}, release_id=release_id)
                except InsufficientBudget:
                    break
                os.write(writing, f"{release_id}\n".encode())


def release_until(writing: int, address: str, name: str) -> None:
    """Make releases; a line is written for each once it is there."""
    trips = town(20)  # made here: threads of polars do not survive a fork
    mechanism = mm.GeoIndistinguishability(epsilon=0.001, radius_m=200.0, max_points=10)
    with Ledger(address, who=name) as ledger:
        for k in range(100_000):
            made = mm.release(
                mechanism, trips, ledger=ledger, out=f"{name}-{k}", population="town", keep_pairing=False, rng=noise.secure()
            )
            os.write(writing, f"{made.manifest.release_id}\n".encode())


def drain(reading: int) -> list[str]:
    found = b""
    while part := os.read(reading, 65536):
        found += part
    os.close(reading)
    return [line.decode() for line in found.split(b"\n")[:-1]]


def crowd(address: str, n_processes: int) -> None:
    children = [forked(charge_until, address, f"p{k}") for k in range(n_processes)]
    acknowledged = [drain(reading) for _, reading in children]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _ in children]
    print(json.dumps({"acknowledged": acknowledged, "codes": codes}))


def killed(address: str, n_trials: int, seed: int, work=charge_until, longest_s: float = 0.04) -> None:
    dice = random.Random(seed)
    acknowledged: list[str] = []
    n_killed = 0
    for trial in range(n_trials):
        child, reading = forked(work, address, f"t{trial}")
        if trial % 2:  # half of them die within their first charges, half while opening or at any time soon after
            select.select([reading], [], [], 240)
        time.sleep(dice.uniform(0, longest_s))
        os.kill(child, signal.SIGKILL)
        n_killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        acknowledged += drain(reading)
    print(json.dumps({"acknowledged": acknowledged, "killed": n_killed}))


if __name__ == "__main__":
    Ledger(sys.argv[2]).close()  # loads the database driver before anything is forked
    if sys.argv[1] == "crowd":
        crowd(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "released":
        import murmurate as mm
        from murmurate import noise
        from small_town import town

        killed(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), release_until, 0.2)
    else:
        killed(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
