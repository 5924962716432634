"""Usage classes against true labels, and how fast the location graph is, as ratios against scipy's assignment in one run.

python benchmarks/plausible_speed.py [--data DIR]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

import murmurate as mm
from murmurate.papers.plausible.agreement import agreement
from murmurate.papers.plausible.places import most_visited
from murmurate.profiles.classes import LocationGraph, location_graph, usage_classes
from murmurate.profiles.days import from_array
from murmurate.profiles.mobility import Profiles, profiles_of, profiles_of_rows


def show(title: str, rows: list[tuple[object, ...]]) -> None:
    print(f"\n## {title}")
    for row in rows:
        print("| " + " | ".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row) + " |", flush=True)


def classes_agree(folder: Path | None) -> None:
    city = mm.demo.city(people=400, days=14, seed=5, interval_s=600)
    labels = np.unique(city.truth.places["label"].to_numpy(), return_inverse=True)[1]
    graph = location_graph(profiles_of(from_array(city.daily.place, len(labels)), periods=8))
    found = usage_classes(graph)
    lat, lng = (city.daily.places[name].to_numpy()[graph.place] for name in ("lat", "lng"))
    quarter = 2 * (lat > np.median(lat)) + (lng > np.median(lng))
    rows: list[tuple[object, ...]] = [
        ("city, 400 people, 14 days: classes", int(found.max()) + 1),
        ("agreement (AMI) with true labels", agreement(found, labels[graph.place])),
        ("with quarters of the city", agreement(found, quarter)),
    ]
    if folder is not None:
        place, category, bounds = foursquare(folder)
        graph = location_graph(profiles_of_rows(place, bounds, len(category), periods=8))
        found = usage_classes(graph)
        rows.append(
            ("Foursquare New York, venues, AMI with categories", len(graph.place), agreement(found, category[graph.place]))
        )
    show("usage classes", rows)


def foursquare(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Days of at least three check-ins as 24 steps, the last check-in held, over the 400 most visited venues."""
    table = pl.read_parquet(folder / "foursquare_nyc_weekly.parquet")
    table = table.with_columns(venue=pl.struct("lat", "lon").rank("dense") - 1)
    top = table.group_by("venue").agg(pl.len(), pl.col("category").mode().first()).sort("len", descending=True).head(400)
    number = {venue: k for k, venue in enumerate(top["venue"].to_list())}
    table = table.filter(pl.col("venue").is_in(top["venue"].implode())).sort("user_id", "trip_id", "day_of_week", "hour")
    rows, people = [], []
    for (user, _, _), part in table.group_by(["user_id", "trip_id", "day_of_week"], maintain_order=True):
        if part.height >= 2:
            hours, venues = part["hour"].to_numpy(), [number[venue] for venue in part["venue"].to_list()]
            at = np.maximum(np.searchsorted(hours, np.arange(24), side="right") - 1, 0)
            rows.append(np.array(venues, dtype=np.int32)[at])
            people.append(user)
    starts = [k for k in range(len(people)) if k == 0 or people[k] != people[k - 1]]
    return np.array(rows), top["category"].to_numpy(), np.array([*starts, len(people)])


def speed() -> None:
    city = mm.demo.city(people=10_000, days=3, seed=9, interval_s=600)
    grid = city.grid(400)
    lat, lng = (city.daily.places[name].to_numpy() for name in ("lat", "lng"))
    days, _ = most_visited(from_array(grid.locate(lat, lng)[city.daily.place], grid.n_cells), grid, 400)
    few = profiles_of(days.take(days.person < 200))
    location_graph(profiles_of(days.take(days.person < 4)), level="moves")  # compiled before the clock starts
    location_graph(profiles_of(days.take(days.person < 4)))
    matrix = np.random.default_rng(0).random((400, 400))
    one = seconds(lambda: linear_sum_assignment(matrix, maximize=True))
    visits = seconds(lambda: location_graph(few))
    moves = seconds(lambda: location_graph(few, level="moves"))
    pairs = 200 * 199
    show(
        "speed (CPU seconds, one thread)",
        [
            ("one 400 x 400 assignment by scipy", one),
            ("graph of 200 people, 400 places, eq. 10, all pairs", visits, f"{pairs * one / visits:.0f} x scipy's 400 x 400"),
            ("the same, eq. 11 by local search", moves),
        ],
    )
    for people in (1500, 10_000):
        approximation(profiles_of(days.take(days.person < people)), people)


def approximation(profiles: Profiles, people: int) -> None:
    """Drawn pairs against all pairs: edges of the graph, and the classes that follow from it."""
    start = time.process_time()
    exact = location_graph(profiles)
    rows: list[tuple[object, ...]] = [("pairs", "CPU s", "correlation of edges", "error of edges", "AMI of 20 classes", "of 5")]
    took = time.process_time() - start
    found = {n: usage_classes(exact, n_classes=n) for n in (20, 5)}
    starts = [agreement(part, usage_classes(exact, n_classes=n, seed=1)) for n, part in found.items()]
    rows.append((f"all {exact.n_pairs:,}, another start", took, 1.0, 0.0, *starts))
    for most in (20_000, 100_000, 500_000, 2_000_000):
        if most < exact.n_pairs:
            start = time.process_time()
            drawn = location_graph(profiles, most_pairs=most, seed=3)
            took = time.process_time() - start
            one, two = affinity(exact), affinity(drawn)
            far = float(np.abs(one - two).sum() / one.sum())
            same = [agreement(part, usage_classes(drawn, n_classes=n)) for n, part in found.items()]
            rows.append((f"{most:,} drawn", took, float(np.corrcoef(one.ravel(), two.ravel())[0, 1]), far, *same))
    show(f"graph of {people:,} people, {len(exact.place)} places: all pairs against drawn ones", rows)


def affinity(graph: LocationGraph) -> np.ndarray:
    return np.divide(graph.weight, graph.chances, out=np.zeros_like(graph.weight), where=graph.chances > 0)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("MURMURATE_DATA"))
    folder = parser.parse_args().data
    classes_agree(Path(folder) if folder else None)
    speed()


if __name__ == "__main__":
    main()
