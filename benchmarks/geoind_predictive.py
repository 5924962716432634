"""Prediction: speed against a plain Python loop, accuracy against geoind and anchors, and a hunt for overspending.

python benchmarks/geoind_predictive.py [--points N] [--traces N] [--people N]
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable

import numpy as np
import polars as pl

import murmurate as mm
from murmurate import noise
from murmurate.core.trips import Trips
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.mechanisms.geoind_anchors import AnchoredGeoIndistinguishability
from murmurate.mechanisms.geoind_predictive import PredictiveGeoIndistinguishability
from murmurate.metrics.hausdorff import paired
from murmurate.spaces import Plane

CELLS = [
    (25.0, 1.0),
    (100.0, 0.5),
    (100.0, 1.0),
    (300.0, 0.5),
    (300.0, 1.0),
    (300.0, 2.0),
    (500.0, 0.5),
    (500.0, 2.0),
    (1000.0, 1.0),
]
PLANE = Plane(60.17, 24.94)


def python_loop(traces: list[list[tuple[float, float]]], epsilon: float, radius_m: float) -> list[list[tuple[float, float]]]:
    """The study's mechanism as one would write it first: a parrot, a test, noise, one point after the other, in metres."""
    reports = []
    for points in traces:
        remaining = epsilon * len(points) + 0.1
        ratio, last_test = 0.1 / epsilon, 0.1
        out: list[tuple[float, float]] = []
        for at, (x, y) in enumerate(points):
            noise_budget = epsilon if at == 0 else remaining / (len(points) - at) / (1 + ratio)
            if at > 0:
                test = noise_budget * ratio
                threshold = last_test / test * radius_m
                threshold += random.expovariate(test / radius_m) * random.choice((-1, 1))
                last_test = test
                remaining -= test
                if math.dist((x, y), out[-1]) <= threshold:
                    out.append(out[-1])
                    continue
            remaining -= noise_budget
            angle, length = random.uniform(0, 2 * math.pi), random.gammavariate(2, radius_m / noise_budget)
            out.append((x + length * math.cos(angle), y + length * math.sin(angle)))
        reports.append(out)
    return reports


def walks(points: int, each: int = 50) -> Trips:
    """Random walks of about 100 m a step."""
    rng = np.random.default_rng(1)
    n = max(1, points // each)
    x, y = (np.cumsum(rng.normal(0, 70, (n, each)), axis=1).ravel() for _ in range(2))
    lat, lng = PLANE.from_xy(x, y)
    trip = np.repeat(np.arange(n), each)
    trips = Trips(pl.DataFrame({"uid": trip, "tid": trip, "lat": lat, "lng": lng}))
    trips.offsets  # noqa: B018  found once, before anything is timed
    return trips


def per_cpu_second(work: Callable[[], object], points: int, repeats: int = 3) -> float:
    work()
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return points / best


def speeds(points: int) -> None:
    trips = walks(points)
    few = trips.take_trips(np.arange(min(trips.n_trips, 1_000)))
    lists = [
        list(zip(*(values[first:last].tolist() for values in PLANE.to_xy(few.lat, few.lng)), strict=True))
        for first, last in zip(few.offsets[:-1], few.offsets[1:], strict=True)
    ]
    rng = noise.secure()
    terms = {"epsilon": 1.0, "radius_m": 300.0, "interval_s": 15.0}
    kinds = {
        "own, 15 s (the pace decides)": PredictiveGeoIndistinguishability(**terms),
        "own, 15 s, plane lattice": PredictiveGeoIndistinguishability(**terms, space=PLANE),
        "own, a test at every point": PredictiveGeoIndistinguishability(**terms, stride=1.0),
        "as published": PredictiveGeoIndistinguishability(**terms, variant="as_published"),
    }
    loop = per_cpu_second(lambda: python_loop(lists, 1.0, 300.0), few.n_points, 1)
    print(f"\n{'':34}{'points per CPU s':>18}{'times the loop':>16}")
    for name, mechanism in kinds.items():
        rate = per_cpu_second(lambda mechanism=mechanism: mechanism.run(trips, rng), trips.n_points)
        print(f"{name:34}{rate:18,.0f}{rate / loop:15.0f}x")
    print(f"{'plain Python loop (as published)':34}{loop:18,.0f}{1:15.0f}x")


def hausdorff(private: Trips, released: Trips) -> float:
    every = np.arange(private.n_trips)
    track, other = ((trips.lat, trips.lng, trips.offsets) for trips in (private, released))
    return float(paired(track, every, other, every).mean())


def accuracy(people: int) -> None:
    trips = mm.demo.city(people=people, interval_s=15).trips
    budget = np.diff(trips.offsets)
    rng = noise.secure()
    print(f"\nMean Hausdorff distance in metres, {trips.n_trips:,} trips of the demo city every 15 s, equal budgets")
    names = ("geoind", "smoothed", "predictive", "smoothed", "anchors", "spent", "gain")
    print(f"{'radius, epsilon':>16}" + "".join(f"{name:>12}" for name in names))
    for radius_m, epsilon in CELLS:
        terms = {"epsilon": epsilon, "radius_m": radius_m, "max_points": 200}
        own = PredictiveGeoIndistinguishability(**terms)
        found = [
            hausdorff(trips, mechanism.apply(trips, rng))
            for mechanism in (
                GeoIndistinguishability(**terms),
                GeoIndistinguishability(**terms, smooth=True),
                own,
                PredictiveGeoIndistinguishability(**terms, smooth=True),
                AnchoredGeoIndistinguishability(**terms),
            )
        ]
        spent = own.run(trips, rng)[3].sum() / (epsilon * budget.sum())
        cell = f"{radius_m:g}, {epsilon:g}"
        print(f"{cell:>16}" + "".join(f"{value:12,.0f}" for value in found) + f"{spent:12.3f}{found[0] / found[2]:11.1f}x")


def adversary(n: int, seed: int) -> Trips:
    """Traces made to break accounts: still, leaping, still then leaping, drifting just about as far as tests allow, wild."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 41, n)
    trip = np.repeat(np.arange(n), size)
    kind, reach = np.repeat(rng.integers(0, 5, n), size), np.repeat(10 ** rng.uniform(0, 5, n), size)
    step = np.arange(len(trip)) - np.repeat(np.r_[0, np.cumsum(size)[:-1]], size)
    leap = reach * np.where(step % 2 == 0, 1, -1)
    kinds = {0: 0 * reach, 1: leap, 2: np.where(step > 15, leap, 0), 3: step * reach / 40}
    x = np.select([kind == one for one in kinds], list(kinds.values()), rng.normal(0, 1, len(trip)) * reach)
    lat, lng = PLANE.from_xy(x, rng.normal(0, 1, len(trip)))
    return Trips(pl.DataFrame({"uid": trip, "tid": trip, "lat": lat, "lng": lng}))


def hunt(n: int) -> None:
    """Every trace under every rule: the most that any of them spent, as a share of its budget."""
    rules = {
        "default pace": {"interval_s": 15.0},
        "a test at every point": {"stride": 1.0},
        "running rate, dear tests": {"stride": 1.0, "running_rate": True, "c_theta": 1.6},
        "running rate, generous": {"stride": 1.7, "running_rate": True, "eta": 0.1, "gamma": 0.2},
        "fixed utility": {"stride": 1.0, "manager": "fixed_utility", "accuracy_m": 150.0},
        "linear": {"stride": 2.0, "predictor": "linear"},
    }
    each = -(-n // len(rules))
    traces, worst = 0, 0.0
    for seed, (name, changes) in enumerate(rules.items()):
        most, done = 0.0, 0
        while done < each:
            trips = adversary(min(50_000, each - done), 1000 * seed + done)
            mechanism = PredictiveGeoIndistinguishability(epsilon=0.7, radius_m=300.0, max_points=40, **changes)
            spent = mechanism.run(trips, noise.secure())[3]
            most = max(most, float((spent / (0.7 * np.diff(trips.offsets))).max()))
            if (spent > 0.7 * np.diff(trips.offsets)).any():
                raise SystemExit(f"{name}: a trace spent more than its budget")
            done += trips.n_trips
        traces, worst = traces + done, max(worst, most)
        print(f"{name:34}{done:12,} traces, most spent {most:.9f} of the budget")
    print(f"{traces:,} random and adversarial traces, none over its budget (most: {worst:.9f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=4_000_000)
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=200)
    arguments = parser.parse_args()
    speeds(arguments.points)
    accuracy(arguments.people)
    print()
    hunt(arguments.traces)


if __name__ == "__main__":
    main()
