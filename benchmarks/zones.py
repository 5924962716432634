"""What places cost: nine million pairs of zones, and hexagons and zones beside a grid of as many cells.

    python benchmarks/zones.py            # both tables, about two minutes

CPU seconds of one release, from trips in memory to the written folder, in a process of its own; data are made here.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import murmurate as mm
from murmurate import noise
from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.mechanisms.ngram import NGram
from murmurate.mechanisms.od_counts import ODCounts
from murmurate.spaces.grid import Grid
from murmurate.spaces.hexes import Hexes
from murmurate.spaces.places import write_places
from murmurate.spaces.zones import Zones

BOX = (37.60, -122.52, 37.82, -122.35)
"""The area: a box of about 24 by 15 km."""

START = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e6)
"""First moment of the made-up trips, in microseconds."""


def made_trips(n_trips: int, points: int, seed: int = 1) -> Trips:
    """Make straight trips between places of uneven popularity, `points` a minute apart."""
    draw = np.random.default_rng(seed)
    hubs = draw.uniform(BOX[:2], BOX[2:], (60, 2))
    ends = hubs[draw.zipf(1.5, (n_trips, 2)) % 60] + draw.normal(0, 0.008, (n_trips, 2, 2))
    ends = np.clip(ends, np.array(BOX[:2]) + 1e-6, np.array(BOX[2:]) - 1e-6)
    share = np.linspace(0, 1, points)[None, :, None]
    way = (ends[:, :1] * (1 - share) + ends[:, 1:] * share).reshape(-1, 2)
    start = START + draw.integers(0, 14 * 86400, n_trips) * 1_000_000
    time_us = (start[:, None] + np.arange(points) * 60_000_000).ravel()
    trip = np.repeat(np.arange(n_trips), points)
    table = pl.DataFrame({"uid": trip // 5, "tid": trip, "datetime": time_us, "lat": way[:, 0], "lng": way[:, 1]})
    return Trips(table.with_columns(pl.col("datetime").cast(pl.Datetime("us", "UTC"))))


def places_named(kind: str, n_cells: int) -> Places:
    """Return about this many places of a kind over the box; zones are hexagons as polygons of a file."""
    if kind == "grid":
        return Grid(*BOX, (24_400 * 15_000 / n_cells) ** 0.5)
    hexes = Hexes(8, *BOX)
    if kind == "hex":
        return hexes
    with tempfile.TemporaryDirectory() as folder:
        write_places(hexes, Path(folder) / "zones.geojson")
        return Zones.read(Path(folder) / "zones.geojson")


def measure(mechanism: str, kind: str, n_cells: int, n_trips: int) -> dict[str, Any]:
    """Release once on one kind of place in this process; a first, small release compiles."""

    def released(space: Places, trips: Trips) -> None:
        built: Any = ODCounts(epsilon=1.0, space=space)
        if mechanism == "ngram":
            built = NGram(epsilon=1.0, space=space, n_out=n_trips)
        with tempfile.TemporaryDirectory() as folder:
            mm.release(built, trips, ledger=mm.Ledger.in_memory(), out=Path(folder) / "release", rng=noise.seeded(1))

    released(places_named("grid", 100), made_trips(200, 10))
    places, trips = places_named(kind, n_cells), made_trips(n_trips, 2 if mechanism == "od_counts" else 10)
    before = time.process_time()
    released(places, trips)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"cells": places.n_cells, "cpu_s": time.process_time() - before, "peak_gb": peak}


CASES = [
    ("od_counts", "grid", 3000, 500_000),
    ("od_counts", "grid", 532, 120_000), ("od_counts", "hex", 532, 120_000), ("od_counts", "zones", 532, 120_000),
    ("ngram", "grid", 532, 50_000), ("ngram", "hex", 532, 50_000), ("ngram", "zones", 532, 50_000),
]  # fmt: skip
"""Mechanism, places, number of cells and of trips."""


def main() -> None:
    """Measure every case in a process of its own and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", type=int, help="measure one case in this process")
    case = parser.parse_args().case
    if case is not None:
        print(json.dumps(measure(*CASES[case])))
        return
    print(
        "| mechanism | places | cells | pairs | trips | CPU s | beside the grid | peak GB |\n|---|---|---|---|---|---|---|---|"
    )
    grid: dict[tuple[str, int], float] = {}
    for number, (mechanism, kind, n_cells, n_trips) in enumerate(CASES):
        out = subprocess.run([sys.executable, __file__, "--case", str(number)], capture_output=True, text=True, check=True)
        found = json.loads(out.stdout)
        base = grid.setdefault((mechanism, n_cells), found["cpu_s"])
        print(
            f"| `{mechanism}` | {kind} | {found['cells']:,} | {found['cells'] ** 2:,} | {n_trips:,} | {found['cpu_s']:.1f} | "
            f"{found['cpu_s'] / base:.2f} | {found['peak_gb']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
