"""Count one table with differential privacy, here and with PipelineDP: CPU seconds of each, in one run.

    python benchmarks/count_peers.py [--trips 1e5] [--runner local spark]

The table is the number of trips that start in each cell of a public grid, one trip being the unit, with Laplace noise at
epsilon 1. We begin with the points of whole trips and find the cells; PipelineDP is given the cell of each trip, found
before the clock starts. Each counts a hundred trips first, so that compiling kernels and starting Spark do not count.
PipelineDP (`pip install pipeline-dp`, and `pyspark` for its Spark runner) is no dependency: without it our own figure
is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from murmurate import noise
from murmurate.asking import Budget, Round, Table
from murmurate.asking.rounds import Asking
from murmurate.asking.table import once
from murmurate.core.guarantee import DP, Unit
from murmurate.core.trips import Trips
from murmurate.spaces.grid import Grid
from scale import descendants

GRID = Grid(37.55, -122.60, 37.85, -122.26, 500)
"""The public box and its cells."""
EPSILON = 1.0
"""Of both."""


class StartCells:
    """Counts the cells in which trips start."""

    name = "start_cells"

    def guarantee(self) -> DP:
        return DP(epsilon=EPSILON, unit=Unit(name="trip"))

    def budget(self) -> Budget:
        return Budget(epsilon=EPSILON)

    def ask(self, answers: dict, facts: object) -> Round | None:
        table = Table(name="starts", n_bins=GRID.n_cells, share=1.0)
        return None if answers else Round(tables=(table,), prepare=start_cells, contribute=count_cells)

    def model(self, answers: dict, facts: object, rng: object) -> np.ndarray:
        return answers["starts"].noisy


def start_cells(part):
    first = part.trips.offsets[:-1]
    cell = GRID.locate(part.trips.lat[first], part.trips.lng[first])
    return part.unit[cell >= 0], cell[cell >= 0]


def count_cells(prepared):
    return {"starts": once(*prepared)}


def trips(n: int, points: int = 12) -> Trips:
    """Make trips in the box, 25 a person."""
    rng = np.random.default_rng(0)
    tid, steps = np.repeat(np.arange(n), points), np.tile(np.arange(points), n)
    lat = np.repeat(37.70 + rng.normal(0, 0.03, n), points) + steps * np.repeat(rng.normal(0, 0.0015, n), points)
    lng = np.repeat(-122.43 + rng.normal(0, 0.03, n), points) + steps * np.repeat(rng.normal(0, 0.002, n), points)
    return Trips(pl.DataFrame({"uid": tid // 25, "tid": tid, "lat": lat.round(6), "lng": lng.round(6)}))


def ours(private: Trips) -> np.ndarray:
    return Asking(StartCells(), private, noise.secure()).run()


def pipeline_dp_counts(rows: list[tuple[int, int]], runner: str) -> np.ndarray:
    """Count with PipelineDP; rows are (trip, cell)."""
    import pipeline_dp

    if runner == "spark":
        from pyspark import SparkConf, SparkContext

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        context = SparkContext.getOrCreate(SparkConf().setMaster("local[2]"))
        context.setLogLevel("OFF")
        backend, rows = pipeline_dp.SparkRDDBackend(context), context.parallelize(rows)
    else:
        backend = pipeline_dp.LocalBackend()
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=1e-12)
    engine = pipeline_dp.DPEngine(accountant, backend)
    counting = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE, metrics=[pipeline_dp.Metrics.COUNT],
        max_partitions_contributed=1, max_contributions_per_partition=1,
    )  # fmt: skip
    columns = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: 0
    )
    found = engine.aggregate(rows, counting, columns, public_partitions=list(range(GRID.n_cells)))
    accountant.compute_budgets()
    counts = np.zeros(GRID.n_cells)
    for cell, metrics in found.collect() if runner == "spark" else found:
        counts[cell] = metrics.count
    return counts


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of everything it started, ended or not."""
    total = 0
    for pid in descendants(os.getpid()):
        with suppress(OSError):
            total += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def timed(count) -> tuple[float, np.ndarray]:
    """Return CPU seconds, and the counts."""
    start = cpu_seconds()
    counts = count()
    return max(0.01, cpu_seconds() - start), counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trips", type=float, default=1e5)
    parser.add_argument("--runner", nargs="+", default=["local"], choices=["local", "spark"])
    options = parser.parse_args()
    ours(trips(100))
    private = trips(int(options.trips))
    first = private.offsets[:-1]
    cells = GRID.locate(private.lat[first], private.lng[first])
    exact = np.bincount(cells[cells >= 0], minlength=GRID.n_cells)
    rows = [(k, int(cell)) for k, cell in enumerate(cells) if cell >= 0]
    mine, counts = timed(partial(ours, private))
    print(f"{'murmurate':14s} {mine:8.2f} CPU s  mean error {np.abs(counts - exact).mean():.2f}", flush=True)
    for runner in options.runner:
        try:
            pipeline_dp_counts(rows[:100], runner)
            theirs, counts = timed(partial(pipeline_dp_counts, rows, runner))
        except ImportError as missing:
            print(f"PipelineDP on {runner}: not installed ({missing.name})")
            continue
        error = np.abs(counts - exact).mean()
        print(f"PipelineDP {runner:5s} {theirs:6.2f} CPU s  mean error {error:.2f}  {theirs / mine:.0f} times ours", flush=True)


if __name__ == "__main__":
    main()
