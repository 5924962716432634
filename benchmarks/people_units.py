"""flock's promises to people: taxi-days and taxis of San Francisco, and persons of the built-in city, on cells of 500 m.

    python benchmarks/people_units.py [--cases cab-day cab-day-2 cab city-person trip] [--seeds 800 801 802]

Each release is compared with all trips by three scores: divergence of trip sizes by hour (JSD), earth mover's distance of pairs
of ends by hour (m), and how many of the 100 most frequent patterns are kept (%). The last columns are the bars that the release
is held to. The data folder is MURMURATE_DATA, or shared/data beside the project.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from functools import cache

import numpy as np

import murmurate as mm
from murmurate import noise
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import to_cells
from murmurate.judging.review import evaluate
from murmurate.mechanisms import build
from murmurate.spaces.grid import Grid
from synthesis import SAN_FRANCISCO, THREE, read

CELL_M = 500.0
PEOPLE, DAYS, CITY_SEED = 20_000, 7, 8


@dataclass(frozen=True)
class Case:
    """One promise, and the scores it is held to: JSD at most, m at most, % at least."""

    data: str
    unit: str
    epsilon: float
    delta: float
    bars: tuple[float | None, float | None, float | None]


CASES = {
    "cab-day": Case("sf", "user_day", 1.0, 1e-6, (0.022, 2300, 75)),
    "cab-day-2": Case("sf", "user_day", 2.0, 1e-6, (0.018, 2050, 80)),
    "cab": Case("sf", "user", 10.0, 2.5e-5, (None, None, 60)),
    "city-person": Case("city", "user", 1.0, 1e-6, (0.03, None, 72)),
    "trip": Case("sf", "trip", 1.0, 1e-6, (None, None, None)),
}


@cache
def load(data: str) -> tuple[Trips, Grid]:
    """Return all trips and the grid."""
    if data == "city":
        city = mm.demo.city(people=PEOPLE, days=DAYS, seed=CITY_SEED, interval_s=60)
        box = city.spaces()["grid"]
        return city.trips, Grid(box.south, box.west, box.north, box.east, CELL_M)
    trips = read("sf_taxi_dploc200_trips.parquet", SAN_FRANCISCO, "America/Los_Angeles")
    if trips is None:
        sys.exit("sf_taxi_dploc200_trips.parquet is not here; set MURMURATE_DATA to the folder of real data.")
    return trips, Grid(*SAN_FRANCISCO, CELL_M)


@cache
def cells_of(data: str) -> Trips:
    """Return the originals as cells by hour."""
    trips, grid = load(data)
    return to_cells(trips, grid, hour=True)


def measured(case: Case, seed: int) -> tuple[list[float], float]:
    """Return the three scores of one release, and the CPU seconds of making it."""
    trips, grid = load(case.data)
    flock = build("flock", {"epsilon": case.epsilon, "delta": case.delta, "unit": case.unit, "space": grid})
    began = time.process_time()
    released = mm.rehearse(flock, trips, rng=noise.seeded(seed)).payload
    took = time.process_time() - began
    drawn = to_cells(released, grid, hour=True) if "cell" not in released.columns else released
    drawn = to_cells(drawn, grid, slot_s=None) if "hour" in drawn.columns else drawn
    found = evaluate(drawn, cells_of(case.data), grid=grid, metrics=["trip_size", "od_emd", "patterns"], workers=1, seed=seed)
    return [found[name].value * (100 if "%" in title else 1) for title, name in THREE.items()], took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[800, 801, 802])
    options = parser.parse_args()
    for name in options.cases:
        case, rows = CASES[name], []
        for seed in options.seeds:
            scores, took = measured(case, seed)
            rows.append(scores)
            jsd, emd, top = scores
            print(f"{name:12} seed {seed}  {jsd:.4f}  {emd:,.0f} m  {top:.0f} %  {took:.1f} CPU s", flush=True)
        mean = np.mean(rows, axis=0)
        held = [bar is None or (value >= bar if "%" in title else value <= bar)
                for title, value, bar in zip(THREE, mean, case.bars, strict=True)]  # fmt: skip
        words = ", ".join(
            f"{title} {'no bar' if bar is None else f'{bar:g} ' + ('holds' if ok else 'does not hold')}"
            for title, bar, ok in zip(THREE, case.bars, held, strict=True)
        )
        print(f"{name:12} mean of {len(rows)}  {mean[0]:.4f}  {mean[1]:,.0f} m  {mean[2]:.1f} %  ({words})", flush=True)


if __name__ == "__main__":
    main()
