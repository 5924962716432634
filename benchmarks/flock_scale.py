"""flock at 0.1, 1 and 10 million trips: CPU seconds and peak memory, each size in a process of its own.

    python benchmarks/flock_scale.py [--trips 100000 1000000 10000000] [--epsilon 1] [--delta 1e-6]

Private trips are those of the built-in city, repeated under new names and moved by up to 100 m; making them is not counted.
Fitting starts from trips in memory. Drawn trips are taken a batch at a time and dropped, as a writer would. `--most-fitted`
fits larger sizes on fewer trips, where memory would not hold the private table.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import polars as pl

import murmurate as mm
from murmurate import noise
from murmurate.core.trips import Trips
from murmurate.mechanisms import build

GIB = 1024**2
"""Kilobytes, as ru_maxrss counts on Linux."""


def private_trips(n: int) -> tuple[Trips, object]:
    """Trips of the built-in city, copied under new names."""
    city = mm.demo.city(people=500, days=7, seed=8, interval_s=60)
    once = city.trips
    grid = city.spaces()["grid"]
    copies = -(-n // once.n_trips)
    table = once.table.select("datetime", "lat", "lng").with_columns(
        pl.col("lat").cast(pl.Float64), pl.col("lng").cast(pl.Float64)
    )
    rng = np.random.default_rng(1)
    parts = []
    for copy in range(copies):
        shift = rng.uniform(-1, 1, (2, once.n_trips)) * 0.001
        trip = once.point_trip + copy * once.n_trips
        parts.append(
            table.with_columns(
                uid=pl.Series(trip),
                tid=pl.Series(trip),
                lat=pl.col("lat") + shift[0][once.point_trip],
                lng=pl.col("lng") + shift[1][once.point_trip],
            ).filter(pl.Series(trip) < n)
        )
    return Trips(pl.concat(parts), time_zone=once.time_zone), grid


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB


def measure(n: int, fitted: int, epsilon: float, delta: float) -> dict[str, float]:
    """One size, in this process."""
    small, grid = private_trips(20_000)
    flock = build("flock", {"epsilon": epsilon, "delta": delta, "space": grid})
    next(fitted(flock, small, noise.seeded(1)).batches(2_000, noise.seeded(1)))  # compile
    private, grid = private_trips(fitted)
    before = peak_gib()
    start = time.process_time()
    model = fitted(flock, private, noise.seeded(2))
    fit_s, fit_gib = time.process_time() - start, peak_gib()
    points = private.n_points
    del private
    start = time.process_time()
    drawn = sum(part.n_trips for part in model.batches(n, noise.seeded(3)))
    return {
        "trips": drawn, "fitted": fitted, "points": points, "input_gib": before, "fit_s": fit_s, "fit_gib": fit_gib,
        "draw_s": time.process_time() - start, "peak_gib": peak_gib(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trips", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--most-fitted", type=int, default=10_000_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--one", action="store_true", help="measure the first size in this process and print it as JSON")
    options = parser.parse_args()
    if options.one:
        n = options.trips[0]
        print(json.dumps(measure(n, min(n, options.most_fitted), options.epsilon, options.delta)))
        return
    print(f"{'trips':>12s} {'fitted on':>12s} {'points':>12s} {'input GiB':>10s} {'fit s':>8s} {'draw s':>8s} {'peak GiB':>9s}")
    for n in options.trips:
        words = [sys.executable, __file__, "--one", "--trips", str(n), "--most-fitted", str(options.most_fitted)]
        words += ["--epsilon", str(options.epsilon), "--delta", str(options.delta)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        row = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{row['trips']:12,d} {row['fitted']:12,d} {row['points']:12,d} {row['input_gib']:10.2f} {row['fit_s']:8.1f} "
            f"{row['draw_s']:8.1f} {max(row['peak_gib'], row['fit_gib']):9.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
