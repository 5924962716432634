"""Kill workers in every phase of whole releases and compare what comes out with an undisturbed one, byte by byte.

    python benchmarks/killed_runs.py [--runs 50] [--engine processes:2 dask-local:2 local[2]] [--trips 3000]

Each run releases `flock` from the same file with the same test stream on an engine, while one worker is ended by SIGKILL at a
random moment of one phase: reading rows that stand person by person, sorting rows that do not, counting one of the rounds, or
drawing trips. A run passes if the released file is the one that one process makes and the ledger holds one debit. Prints the
kills by the phase in which they fell, the charges lost and the releases that differ. The releases of an engine share its
cluster.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

import murmurate as mm
from murmurate import noise
from murmurate.core import progress
from murmurate.engine import Engine, engine
from murmurate.ingest import stream
from murmurate.mechanisms.flock import Flock
from murmurate.mechanisms.flock.model import FlockModel
from murmurate.spaces.grid import Grid

PARTS = 16
"""Parts of the file, about: each of two workers has several, so that some are lost and some are done when one dies."""
WAITS = 200
"""Times that a worker to kill is looked for, every 50 ms."""
GRID = Grid(37.55, -122.60, 37.85, -122.26, 3000)
"""Coarse cells: what is tested is who counts, not what."""
PHASES = ("reading", "sorting", "counting n", "counting ends", "counting visits", "drawing trips")
"""Where workers are killed, one phase a run, in turn."""


def write_trips(path: Path, n: int, points: int = 12) -> None:
    """Write trips in the box, 25 a person, in small row groups; and beside them the same rows in any order."""
    rng = np.random.default_rng(0)
    tid, steps = np.repeat(np.arange(n), points), np.tile(np.arange(points), n)
    times = np.repeat(rng.integers(0, 86400 * 28, n), points) + steps * 60 + 1_700_000_000
    lat = np.repeat(37.70 + rng.normal(0, 0.03, n), points) + steps * np.repeat(rng.normal(0, 0.0015, n), points)
    lng = np.repeat(-122.43 + rng.normal(0, 0.03, n), points) + steps * np.repeat(rng.normal(0, 0.002, n), points)
    rows = pl.DataFrame(
        {"uid": tid // 25, "tid": tid, "datetime": pl.Series(times * 1_000_000).cast(pl.Datetime("us", "UTC")),
         "lat": lat.round(6), "lng": lng.round(6)}
    )  # fmt: skip
    rows.write_parquet(path, row_group_size=n * points // 40)
    mixed = rows.sample(fraction=1, shuffle=True, seed=0)
    mixed.write_parquet(path.with_name("mixed.parquet"), row_group_size=n * points // 40)


def workers_of(pid: int) -> list[int]:
    """Return the processes that run parts: started by Dask, or forked from a process of ours or of Spark's."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parent = int(Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(name))
    found, waiting = [], list(children.get(pid, []))
    while waiting:
        child = waiting.pop()
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{child}/cmdline").read_text()
            forking = "forkserver" in words or "pyspark.daemon" in words
            found += children.get(child, []) if forking else [child] if "spawn_main" in words else []
            waiting += [] if forking else children.get(child, [])
    return found


class Killer:
    """Ends one worker soon after a phase has begun."""

    def __init__(self, phase: str, rng: random.Random) -> None:
        self.phase, self.delay_s = phase, rng.uniform(0.0, 1.0 if phase == "sorting" else 0.25)
        self.fell_in: str | None = None
        """The phase in which a worker was killed."""
        self._rng = rng
        self._now = ""
        self._armed: threading.Thread | None = None

    def enter(self, phase: str) -> None:
        """Note that a phase begins."""
        self._now = phase
        if phase == self.phase and self._armed is None:
            self._armed = threading.Thread(target=self._kill, daemon=True)
            self._armed.start()

    def _kill(self) -> None:
        time.sleep(self.delay_s)
        for _ in range(WAITS):
            for worker in self._rng.sample(found := workers_of(os.getpid()), len(found)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    self.fell_in = self._now
                    return
            time.sleep(0.05)  # those of the run before are still being started again

    def enough(self) -> None:
        """Wait for a kill that is under way, so that it does not fall in the next run."""
        if self._armed is not None:
            self._armed.join()


def one_run(path: Path, folder: Path, running: Engine, killer: Killer | None) -> tuple[bytes, int]:
    """Release once; return the released bytes and the number of finished debits."""
    mechanism = Flock(epsilon=5.0, space=GRID, n_out=1200)

    def seen(what: str, done: float, total: float | None) -> None:
        if killer is not None and done == 0:
            killer.enter(what)

    with mm.Ledger.in_memory() as ledger, progress.shown_by(seen):
        mixed = killer is not None and killer.phase == "sorting"
        seen("sorting" if mixed else "reading", 0, None)
        source = path.with_name("mixed.parquet") if mixed else path
        n_rows = pq.read_metadata(source).num_rows
        with stream.scan(source, points_per_partition=n_rows // PARTS, work_dir=folder, engine=running) as parts:
            made = mm.release(mechanism, parts, ledger=ledger, out=folder / "out", rng=noise.seeded(7), engine=running)
        seen("the end", 0, None)
        debits = [entry for entry in ledger.history() if entry.what == "debit"]
        return (made.folder / "data.parquet").read_bytes(), len(debits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--engine", nargs="+", default=["processes:2", "dask-local:2"])
    parser.add_argument("--trips", type=int, default=3000)
    options = parser.parse_args()
    FlockModel.sample_trips = 100  # type: ignore[misc]  so that drawing has parts to lose
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "trips.parquet"
        write_trips(path, options.trips)
        with engine("serial") as here, tempfile.TemporaryDirectory(dir=home) as folder:
            truth, charged = one_run(path, Path(folder), here, None)
        for word in options.engine:
            rng = random.Random(1)
            kills: Counter[str] = Counter()
            wrong = lost = 0
            start = time.time()
            with engine(word) as running:
                running.start(work_in=Path(home))
                for k in range(options.runs):
                    killer = Killer(PHASES[k % len(PHASES)], rng)
                    with tempfile.TemporaryDirectory(dir=home) as folder:
                        try:
                            found, debits = one_run(path, Path(folder), running, killer)
                            killer.enough()
                        except Exception as error:  # noqa: BLE001  whatever ends a charged release counts
                            lost += 1
                            print(f"run {k} ({killer.phase}) was lost: {error}", flush=True)
                            continue
                    wrong += found != truth or debits != charged
                    print(f"{word}, run {k + 1}: {killer.phase}, killed in {killer.fell_in}; {wrong} differ", flush=True)
                    kills.update([killer.fell_in] if killer.fell_in else [])
            seconds = time.time() - start
            print(
                f"{word}: {options.runs} runs, {sum(kills.values())} with a worker killed {dict(kills)}; "
                f"{lost} charges lost, {wrong} releases differ; {seconds:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
