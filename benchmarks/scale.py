"""`release flock` from a file on several engines: CPU seconds, wall seconds, memory of all processes and bytes moved.

    python benchmarks/scale.py [--points 3.6e6 3.6e7 3.6e8] [--engine serial processes:2 dask-local:2] [--in FILE] [--n-out N]
                               [--evaluate] [--roads]

Trips of 12 points in the box of a city, 25 a person, are written first (not counted), a million trips at a time; `--in`
measures a file of your own in the same box instead. `--n-out` draws so many trips whatever was read, where the disk is small: a
released point takes 55 bytes. Every run is a command of its own, and kernels are compiled by a small run before the first. The
memory of all processes counts what they share once; that of the driver, which runs the release, is its own peak. "GB moved" is
what processes read and wrote through system calls: files, pipes and sockets. The last column is the wall time of the first
engine over that of the row, so run it on a quiet machine. `--evaluate` also judges each release against its file, with all
scores, the quick attacks and the report. `--roads` measures `release road_counts` instead, which matches the trips of the
built-in city, copied under new names, to its roads.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import murmurate as mm
from murmurate.spaces.road.write import write_roads

SPACE = "grid:37.55,-122.60,37.85,-122.26:500"
"""The public box and its cells."""
POINTS_PER_TRIP, TRIPS_PER_PERSON, TRIPS_AT_ONCE = 12, 25, 1_000_000
"""Shape of the made-up trips, and how many are in memory while they are written."""


def write_trips(path: Path, n_trips: int) -> None:
    """Write trips in row groups of about 120,000 points."""
    writer = None
    for first in range(0, n_trips, TRIPS_AT_ONCE):
        n = min(TRIPS_AT_ONCE, n_trips - first)
        rng = np.random.default_rng(first)
        tid, steps = np.repeat(np.arange(first, first + n), POINTS_PER_TRIP), np.tile(np.arange(POINTS_PER_TRIP), n)
        spread = [np.repeat(rng.normal(0, scale, n), POINTS_PER_TRIP) for scale in (0.03, 0.0015, 0.03, 0.002)]
        times_s = np.repeat(rng.integers(0, 86400 * 28, n), POINTS_PER_TRIP) + steps * 60 + 1_700_000_000
        table = pa.table(
            {
                "uid": tid // TRIPS_PER_PERSON,
                "tid": tid,
                "datetime": pa.array(times_s * 1_000_000).cast(pa.timestamp("us", "UTC")),
                "lat": (37.70 + spread[0] + steps * spread[1]).round(6),
                "lng": (-122.43 + spread[2] + steps * spread[3]).round(6),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=120_000)
    if writer is not None:
        writer.close()


def write_drives(path: Path, n_points: int, roads: Path) -> None:
    """Write the trips of the built-in city as often as it takes, person by person, and its roads."""
    city = mm.demo.city(people=500, days=7, seed=8, interval_s=30)
    write_roads(city.network, roads)
    table = city.trips.table.select("uid", "tid", "datetime", pl.col("lat", "lng").cast(pl.Float64)).to_arrow()
    with pq.ParquetWriter(path, table.schema.set(0, pa.field("uid", pa.string()))) as writer:
        for copy in range(round(n_points / table.num_rows)):
            names = pc.binary_join_element_wise(table["uid"].cast(pa.string()), str(copy), "-")
            writer.write_table(table.set_column(0, "uid", names), row_group_size=120_000)


def descendants(pid: int) -> list[int]:
    """Return a process and everything it started."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            parent = int(Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def proportional_mb(pid: int) -> float:
    """Return the memory of a process, with a share of what it shares."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return 0.0


def peak_mb(pid: int) -> float:
    """Return the most memory that a process has had so far."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
    return 0.0


def moved_bytes(pid: int) -> int:
    """Return what a process has read and written so far."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar:", "wchar:")))
    return 0


def release_words(
    source: Path, engine: str, folder: Path, n_out: int | None = None, roads: Path | None = None
) -> list[str | Path]:
    return [
        "release", "road_counts" if roads else "flock", "--in", source, "--out", folder / "out",
        "--space", f"road:{roads}" if roads else SPACE, "--set", "epsilon=1", "--set", "delta=1e-7",
        "--ledger", folder / "ledger.sqlite", "--engine", engine,
        *(["--set", f"n_out={n_out}"] if n_out else []),
    ]  # fmt: skip


def evaluate_words(source: Path, engine: str, folder: Path) -> list[str | Path]:
    return [
        "evaluate", folder / "out", "--against", source, "--ledger", folder / "ledger.sqlite", "--engine", engine,
        "--html", folder / "report.html",
    ]  # fmt: skip


def measure(given: list[str | Path]) -> tuple[float, float, float, float, float]:
    """Run a command; return CPU seconds, wall seconds, peak MB of all processes and of the first of them, and GB moved."""
    words = [sys.executable, "-m", "murmurate", *given]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.time()
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak, own = [0.0], [0.0]
    moved: dict[int, int] = {}

    def watch() -> None:
        while child.poll() is None:
            running = descendants(child.pid)
            peak[0] = max(peak[0], sum(map(proportional_mb, running)))
            moved.update({pid: max(moved.get(pid, 0), moved_bytes(pid)) for pid in running})
            own[0] = max(own[0], peak_mb(child.pid))
            time.sleep(0.3)

    watching = threading.Thread(target=watch)
    watching.start()
    said = child.communicate()[1]
    watching.join()
    if child.returncode:
        raise SystemExit(said)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.time() - start, peak[0], own[0], sum(moved.values()) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=float, nargs="+", default=[3.6e6, 3.6e7])
    parser.add_argument("--engine", nargs="+", default=["serial", "processes:2", "dask-local:2"])
    parser.add_argument("--in", dest="source", type=Path)
    parser.add_argument("--n-out", type=lambda text: round(float(text)))
    parser.add_argument("--evaluate", action="store_true", help="judge each release as well")
    parser.add_argument("--roads", action="store_true", help="release road_counts instead of flock")
    parser.add_argument("--folder", type=Path, help="where files are made; default: the system's temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as home:
        roads = Path(home) / "roads.geojson" if options.roads else None

        def write(path: Path, n_points: int) -> None:
            write_drives(path, n_points, roads) if roads else write_trips(path, n_points // POINTS_PER_TRIP)

        write(Path(home) / "small.parquet", 240_000)
        with tempfile.TemporaryDirectory(dir=home) as folder:
            measure(release_words(Path(home) / "small.parquet", "serial", Path(folder), roads=roads))
        heads = ("CPU s", "wall s", "peak MB", "driver", "GB moved", "speed-up")
        print(f"{'points':>12s} {'command':8s} {'engine':14s} " + " ".join(f"{head:>8s}" for head in heads))
        for points in [0.0] if options.source else options.points:
            source = options.source or Path(home) / "trips.parquet"
            if not options.source:
                write(source, round(points))
            first: dict[str, float] = {}
            for engine in options.engine:
                with tempfile.TemporaryDirectory(dir=home) as folder:
                    runs = [release_words(source, engine, Path(folder), options.n_out, roads)]
                    runs += [evaluate_words(source, engine, Path(folder))] if options.evaluate else []
                    for words in runs:
                        cpu, wall, peak, own, moved = measure(words)
                        speed_up = first.setdefault(str(words[0]), wall) / wall
                        figures = f"{cpu:8.1f} {wall:8.1f} {peak:8.0f} {own:8.0f} {moved:8.1f} {speed_up:8.2f}"
                        print(f"{pq.read_metadata(source).num_rows:12,d} {words[0]:8s} {engine:14s} {figures}", flush=True)


if __name__ == "__main__":
    main()
