"""geoind from Parquet to Parquet: points per CPU second and peak memory, beside a plain Python loop in the same run.

    python benchmarks/geoind_files.py [--points 20000000] [--mechanism geoind] [--engine serial processes:2]

The input has ordinary columns (uid, tid, datetime, lat, lng), whole people together. Everything is counted: start-up,
reading, validation, fingerprint, charge, noise, shuffling, pseudonyms, writing. "driver" are CPU seconds of the process that
runs the release; the peak is that of all processes, what they share counted once. The loop reads and writes with pyarrow and
adds planar Laplace noise point by point, on a sample; its figure is extrapolated and says so.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scale import descendants, proportional_mb

POINTS_PER_TRIP = 50
TRIPS_PER_PERSON = 20


def write_input(path: Path, points: int) -> None:
    """Random walks in whole people, a million points at a time."""
    rng = np.random.default_rng(1)
    schema = pa.schema(
        [
            ("uid", pa.string()),
            ("tid", pa.int64()),
            ("datetime", pa.timestamp("ms", "UTC")),
            ("lat", pa.float64()),
            ("lng", pa.float64()),
        ]
    )
    people_per_batch = 1_000_000 // (POINTS_PER_TRIP * TRIPS_PER_PERSON)
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, points, 1_000_000):
            trips = people_per_batch * TRIPS_PER_PERSON
            person = first // (POINTS_PER_TRIP * TRIPS_PER_PERSON) + np.arange(people_per_batch)
            steps = np.cumsum(rng.normal(0, 1e-4, (2, trips, POINTS_PER_TRIP)), axis=2)
            steps += rng.normal(0, 0.03, (2, trips, 1))  # trips begin all over a city
            uid = np.char.add("person", np.char.zfill(person.astype(str), 8))
            codes = pa.array(np.repeat(np.arange(people_per_batch, dtype=np.int32), POINTS_PER_TRIP * TRIPS_PER_PERSON))
            tid = np.tile(np.repeat(np.arange(TRIPS_PER_PERSON), POINTS_PER_TRIP), people_per_batch)
            at = 1_700_000_000_000 + tid * 3_600_000 + np.tile(np.arange(POINTS_PER_TRIP) * 15_000, trips)
            writer.write_table(
                pa.Table.from_arrays(
                    [
                        pa.DictionaryArray.from_arrays(codes, pa.array(uid.tolist())).cast(pa.string()),
                        pa.array(tid),
                        pa.array(at).cast(pa.timestamp("ms", "UTC")),
                        pa.array(np.round(60 + steps[0].ravel(), 6)),
                        pa.array(np.round(24 + 2 * steps[1].ravel(), 6)),  # a degree of longitude is half as long there
                    ],
                    schema=schema,
                )
            )


def ours(source: Path, folder: Path, mechanism: str, engine: str) -> tuple[float, float, float]:
    """Return CPU seconds of all processes and of the driver, and peak MB, of one `murmurate release` as a user runs it."""
    words = [
        sys.executable, "-m", "murmurate", "release", mechanism, "--in", str(source), "--out", str(folder / "release"),
        "--ledger", str(folder / "ledger.sqlite"), "--engine", engine, "--set", "epsilon=1", "--set", "radius_m=200",
        "--set", f"max_points={POINTS_PER_TRIP}", "--confirm", "publish with weak protection",  # made-up trips
    ]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = driver = 0.0
    while child.poll() is None:
        peak = max(peak, sum(map(proportional_mb, descendants(child.pid))))
        driver = max(driver, own_cpu_s(child.pid))
        time.sleep(0.1)
    if child.returncode:
        raise SystemExit(f"murmurate ended with {child.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, driver, peak


def own_cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process itself has used so far."""
    with suppress(OSError):
        ticks = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def n_released(folder: Path) -> int:
    """Return the points of a release, in one file or in a folder of them."""
    data = folder / "release" / "data.parquet"
    return sum(pq.read_metadata(file).num_rows for file in (data.iterdir() if data.is_dir() else [data]))


def plain_loop(source: Path, folder: Path, sample: int) -> float:
    """CPU seconds of a loop over `sample` points, files included."""
    began = time.process_time()
    table = next(pq.ParquetFile(source).iter_batches(sample)).to_pydict()
    draw = random.SystemRandom()
    for k in range(len(table["lat"])):
        angle, radius = draw.uniform(0, 2 * math.pi), -200.0 * math.log(draw.random() * draw.random())
        table["lat"][k] += radius * math.sin(angle) / 111_195
        table["lng"][k] += radius * math.cos(angle) / (111_195 * math.cos(math.radians(table["lat"][k])))
    pq.write_table(pa.table(table), folder / "loop.parquet")
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20_000_000)
    parser.add_argument("--mechanism", default="geoind", help="geoind, geoind_anchors or geoind_predictive")
    parser.add_argument("--engine", nargs="+", default=["serial"])
    parser.add_argument("--folder", type=Path, help="where files are made; default: the system's temporary folder")
    given = parser.parse_args()
    points = given.points
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        source = Path(name) / "trips.parquet"
        write_input(source, points)
        sample = min(points, 200_000)
        loop = plain_loop(source, Path(name), sample) / sample * points
        print(f"{'':28}{'CPU s':>10}{'driver':>10}{'M points / CPU s':>20}{'peak MB':>10}{'slower':>10}")
        for engine in given.engine:
            with tempfile.TemporaryDirectory(dir=name) as run:
                seconds, driver, peak = ours(source, Path(run), given.mechanism, engine)
                speed = n_released(Path(run)) / seconds / 1e6
            label = f"{given.mechanism} {engine}"
            print(f"{label:28}{seconds:10.2f}{driver:10.2f}{speed:20.2f}{peak:10.0f}{1:10.0f}", flush=True)
        print(f"{'plain loop (extrapolated)':28}{loop:10.1f}{'':10}{points / loop / 1e6:20.3f}{'':10}{loop / seconds:10.0f}")


if __name__ == "__main__":
    main()
