"""Estimate what a release of a file takes of the machine: CPU, disk and memory, before anything is read or spent.

Only the size of the file is looked up. What a point costs is probed on made-up trips in the public space of the mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from murmurate import noise
from murmurate.asking.rounds import Asking, facts_of, is_measured
from murmurate.core.mechanism import Payload
from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.engine import Engine, cores
from murmurate.errors import MurmurateError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.read import find_files
from murmurate.ingest.stream import expected_rows

PROBE_TRIPS, PROBE_POINTS = 10_000, 12
"""Trips of the probe and points of each: enough to count for a tenth of a second. Set by hand."""
FEW_TRIPS = 5_000
"""Trips of the run that shows what does not depend on the size: enough that noise does not leave a mechanism without any."""
READ_S = {"parquet": 0.15e-6}
"""CPU seconds to read, check and sort a point, measured on 36 million points; other formats take `OTHER_READ_S`."""
OTHER_READ_S = 1e-6
"""CPU seconds to read a point of text, set by hand."""
PART_BYTES, SORTED_BYTES, RELEASED_BYTES = 24, 24, 55
"""Bytes of a point: in a part, again while a file in any order is sorted, and in the release."""
BASE_MB, WORKER_MB = 590, 220
"""Memory of the process that runs a release, and of each worker beside it: measured with `flock` at 36 million points."""
ONE_MACHINE_S = 24 * 3600
"""One machine is enough where it is done in a day."""


@dataclass(frozen=True)
class Cost:
    """What a release takes of the machine, about."""

    points: int
    cpu_s: float
    disk_bytes: int
    memory_mb: float
    workers: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "one_machine": self.one_machine}

    @property
    def one_machine(self) -> bool:
        """Whether the processors of this machine are done within a day."""
        return self.cpu_s / cores() <= ONE_MACHINE_S

    def words(self) -> str:
        """Say it in a sentence or two."""
        enough = (
            "One machine is enough: --engine processes:N with its number of cores is the cheapest."
            if self.one_machine
            else f"One machine of {cores()} cores takes {self.cpu_s / cores() / 86400:,.0f} days; a cluster of "
            f"{int(np.ceil(self.cpu_s / ONE_MACHINE_S)):,} cores takes a day."
        )
        cpu = f"{self.cpu_s:,.0f} CPU seconds" if self.cpu_s < 3600 else f"{self.cpu_s / 3600:,.1f} CPU hours"
        return (
            f"About {cpu} for {self.points:,} points, {self.disk_bytes / 1e9:,.1f} GB of disk for "
            f"private parts and the release, {self.memory_mb / 1000:,.1f} GB of memory with {self.workers} workers. {enough}"
        )


def machine_cost(mechanism: Any, source: str, read: Mapping[str, Any], running: Engine) -> Cost | None:
    """Estimate the cost of releasing a file; None where the mechanism cannot be probed on made-up trips."""
    try:
        fixed_s, point_s, drawn_s, drawn_points = _probed(mechanism)
    except MurmurateError:
        return None
    files = find_files(source, ReadOptions(**read), ReadReport())
    points = expected_rows(files)
    reading_s = sum(READ_S.get(file.kind, OTHER_READ_S) * expected_rows([file]) for file in files)
    n_out = getattr(mechanism, "n_out", None)
    released = n_out * drawn_points if n_out and drawn_points else points if drawn_points else 0
    workers = running.workers
    return Cost(
        points=points,
        cpu_s=fixed_s + reading_s + point_s * points + drawn_s * released,
        disk_bytes=round((PART_BYTES + SORTED_BYTES) * points + RELEASED_BYTES * released),
        memory_mb=BASE_MB + (WORKER_MB * workers if workers > 1 else 0),
        workers=workers,
    )


def _probed(mechanism: Any) -> tuple[float, float, float, float]:
    """Return CPU seconds of a run, of a counted point and of a drawn point, and the points of a drawn trip (0: none drawn)."""
    few, many = _made_up(mechanism, FEW_TRIPS), _made_up(mechanism, PROBE_TRIPS)
    if not is_measured(mechanism):
        if not mechanism.local:
            raise MurmurateError("this mechanism reads all trips at once.")
        rng = noise.seeded(1)
        mechanism.apply(few, rng)
        return 0.0, _seconds(lambda: mechanism.apply(many, rng)) / many.n_points, 0.0, PROBE_POINTS
    start = time.process_time()
    asking = Asking(mechanism, few, noise.secure())
    model = asking.run()
    fixed_s = time.process_time() - start
    counted = _seconds(lambda: _count_again(mechanism, many, asking.answers)) / many.n_points
    if isinstance(model, Payload):
        return fixed_s, counted, 0.0, 0.0
    rng = noise.seeded(1)
    model.sample(FEW_TRIPS, rng)
    drawn: list[Trips] = []
    drawing_s = _seconds(lambda: drawn.append(model.sample(PROBE_TRIPS, rng)))
    n_points = max(1, drawn[0].n_points)
    return fixed_s, counted, drawing_s / n_points, n_points / PROBE_TRIPS


def _count_again(mechanism: Any, trips: Trips, answers: dict[str, Any]) -> None:
    """Count every round of a run that was made, on other trips."""
    asking = Asking(mechanism, trips, noise.seeded(1), key=b"probe")
    norm = mechanism.budget().norm
    known: dict[str, Any] = {}
    while (asked := mechanism.ask(dict(known), facts_of(trips))) is not None:
        asking.exact(asked, norm)
        known |= {table.name: answers[table.name] for table in asked.tables}


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _made_up(mechanism: Any, n: int) -> Trips:
    """Return trips between random places of the mechanism's public space, one a person."""
    space = getattr(mechanism, "space", None)
    south, west, north, east = space.box if isinstance(space, Places) else (60.1, 24.8, 60.3, 25.1)
    rng = np.random.default_rng(1)
    ends = [rng.uniform(low, high, (2, n)) for low, high in ((south, north), (west, east))]
    along = np.tile(np.arange(PROBE_POINTS) / PROBE_POINTS, n)
    lat, lng = (np.repeat(first, PROBE_POINTS) * (1 - along) + np.repeat(last, PROBE_POINTS) * along for first, last in ends)
    start_s = np.repeat(rng.integers(0, 7 * 86400, n), PROBE_POINTS) + 1_700_000_000
    times = pl.Series((start_s + np.tile(np.arange(PROBE_POINTS), n) * 60) * 1_000_000).cast(pl.Datetime("us", "UTC"))
    tid = np.repeat(np.arange(n), PROBE_POINTS)
    return Trips(pl.DataFrame({"uid": tid, "tid": tid, "datetime": times, "lat": lat.round(6), "lng": lng.round(6)}))
