"""CPU time of every metric on San Francisco taxis, and our kernels beside what a user would pick instead, in one run.

    python benchmarks/metrics.py [--noise 100] [--trips 123757] [--workers 2]

The release is the originals with planar Laplace noise of scale `--noise` metres, on 250 m cells. The data folder is
MURMURATE_DATA, or shared/data beside the project.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from murmurate.core.trips import Trips
from murmurate.judging.review import evaluate
from murmurate.metrics import METRICS, measure
from murmurate.metrics.compare import compare
from murmurate.metrics.flows import earth_mover_m
from murmurate.metrics.hausdorff import paired
from murmurate.metrics.patterns import mine
from murmurate.spaces.grid import Grid

BOX = (37.6017, -122.5158, 37.8112, -122.3527)


def cpu() -> float:
    """CPU seconds of this process and of its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def timed(function, *arguments, repeats: int = 1):
    start = cpu()
    for _ in range(repeats):
        result = function(*arguments)
    return result, (cpu() - start) / repeats


def taxis(trips: int) -> Trips:
    folder = Path(os.environ.get("MURMURATE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    file = folder / "sf_taxi_dploc200_trips.parquet"
    if not file.is_file():
        sys.exit(f"{file.name} is not here; set MURMURATE_DATA to the folder of real data.")
    table = pl.read_parquet(file).select(
        uid=pl.col("user_id").cast(pl.String), tid="trip_id", datetime="t", lat="lat", lng="lon"
    )
    return Trips(table.filter(pl.col("tid") < trips), space=Grid(*BOX, 250), time_zone="America/Los_Angeles")


def noised(trips: Trips, scale_m: float) -> Trips:
    rng = np.random.default_rng(0)
    radius, angle = rng.gamma(2, scale_m, trips.n_points), rng.uniform(0, 2 * np.pi, trips.n_points)
    metre = 1 / 111_195
    return trips.with_columns(
        {
            "lat": trips.lat + radius * np.sin(angle) * metre,
            "lng": trips.lng + radius * np.cos(angle) * metre / np.cos(np.radians(37.7)),
        }
    )


def each_metric(original: Trips, released: Trips) -> None:
    """Shared arrays (cells, lengths, hours) count for the metric that asks first."""
    pairing = np.arange(released.n_trips)
    small = compare(released.take_trips(np.arange(50)), original.take_trips(np.arange(50)), pairing=pairing[:50])
    for name in METRICS:
        measure(name, small)  # compile or load the kernels
    comparison = compare(released, original, pairing=pairing)
    total = 0.0
    for name in METRICS:
        scores, seconds = timed(measure, name, comparison)
        total += seconds
        print(f"{name:24s} {seconds:7.2f} s   {scores[0].name} = {scores[0].value:.4g} {scores[0].unit}")
    print(f"{'all, one process':24s} {total:7.2f} s")


def whole_set(original: Trips, released: Trips, workers: int) -> None:
    start, wall = cpu(), time.perf_counter()
    evaluate(released, original, pairing=np.arange(released.n_trips), workers=workers)
    print(f"evaluate, {workers} workers: {cpu() - start:.1f} s CPU, {time.perf_counter() - wall:.1f} s on the clock")


def beside_others(original: Trips, released: Trips) -> None:
    from scipy.spatial.distance import directed_hausdorff

    comparison = compare(released, original)
    one, other = comparison.sides
    chosen = np.arange(2000)
    _, ours = timed(paired, one.track, chosen, other.track, chosen, repeats=20)

    few = [compare(side.trips.take_trips(chosen), side.trips.take_trips(chosen)).original for side in comparison.sides]
    lines = [[np.column_stack(side.xy)[a:b] for a, b in pairwise(side.offsets)] for side in few]
    _, theirs = timed(
        lambda: [max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) for a, b in zip(*lines, strict=True)]
    )
    print(f"Hausdorff, 2,000 pairs: {ours * 1e3:.1f} ms; scipy directed twice (points only) {theirs / ours:.0f} x")

    for backend in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")
    import ot

    rng = np.random.default_rng(1)
    a, b = (side.ends_xy[rng.choice(side.n, 2000, replace=False)] for side in comparison.sides)
    value, ours = timed(earth_mover_m, a, b)

    def with_pot():
        cost = ot.dist(a[:, :2], b[:, :2], metric="euclidean") + ot.dist(a[:, 2:], b[:, 2:], metric="euclidean")
        return ot.emd2([], [], cost, numItermax=10**7)

    same, theirs = timed(with_pot)
    print(f"EMD, 2,000 pairs: {ours:.2f} s; POT {theirs / ours:.1f} x (values {value:.3f} and {same:.3f} m)")

    _, ours = timed(lambda: mine([side.merged for side in comparison.sides]))

    def with_counter():
        counters = []
        for side in comparison.sides:
            counter: Counter[tuple[int, ...]] = Counter()
            cells, offsets = side.merged
            cells = cells.tolist()
            for first, last in pairwise(offsets.tolist()):
                for size in (2, 3, 4):
                    counter.update(tuple(cells[at : at + size]) for at in range(first, last - size + 1))
            counters.append(counter.most_common(100))
        return counters

    _, theirs = timed(with_counter)
    print(f"patterns of 2 to 4 cells, all trips: {ours:.2f} s; a plain Counter {theirs / ours:.1f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, default=100.0, help="scale in metres")
    parser.add_argument("--trips", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    original = taxis(arguments.trips)
    released = noised(original, arguments.noise)
    print(f"{original.n_trips:,} trips, {original.n_points:,} points, noise {arguments.noise:g} m")
    each_metric(original, released)
    beside_others(original, released)
    whole_set(original, released, arguments.workers)


if __name__ == "__main__":
    main()
