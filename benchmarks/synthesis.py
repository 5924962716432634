"""flock, dp_loc and ngram beside a second real sample, on the published scores and on some that nobody tuned for.

    python benchmarks/synthesis.py [--data city sf geolife] [--trips 5000] [--epsilon 0.5 1 2] [--repeats 5]
                                   [--mechanisms flock flock_delta dp_loc ngram] [--html synthesis.html]

"not private" is the same mechanism at epsilon 100. Real data are looked for in MURMURATE_DATA, or in shared/data beside the
project; a set that is not there is left out. With `--trips 0` all trips are taken.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl

import murmurate as mm
from murmurate import noise
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import to_cells
from murmurate.mechanisms import build
from murmurate.metrics.divergence import jensen_shannon
from murmurate.scoring import evaluate
from murmurate.spaces.grid import Grid

SAN_FRANCISCO = (37.6017, -122.5158, 37.8112, -122.3527)
BEIJING = (39.7, 116.0, 40.2, 116.8)
CELL_M = 250
SIX = {
    "query published": "adatrace_query.as_published", "query": "adatrace_query", "Kendall": "adatrace_kendall",
    "F1": "adatrace_patterns.f1", "trip": "adatrace_trip", "diameter": "adatrace_diameter", "length": "adatrace_length",
}  # fmt: skip
THREE = {"size JSD": "trip_size", "OD EMD m": "od_emd", "top 100 %": "patterns.true_positives_100"}
APART = ("moves 15", "visits 40", "hours")
NOT_PRIVATE = 100.0
MAP_SIDE = 40


def folder() -> Path:
    return Path(os.environ.get("MURMURATE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def read(file: str, box: tuple[float, ...], time_zone: str) -> tuple[Trips, Grid] | None:
    path = folder() / file
    if not path.is_file():
        return None
    south, west, north, east = box
    table = pl.read_parquet(path).select(
        uid=pl.col("user_id").cast(pl.String), tid="trip_id", datetime="t", lat="lat", lng="lon"
    )
    table = table.filter(pl.col("lat").is_between(south, north) & pl.col("lng").is_between(west, east))
    table = table.filter(pl.len().over("uid", "tid") > 1)
    return Trips(table, time_zone=time_zone), Grid(*box, CELL_M)


def load(name: str) -> tuple[Trips, Grid] | None:
    if name == "sf":
        return read("sf_taxi_dploc200_trips.parquet", SAN_FRANCISCO, "America/Los_Angeles")
    if name == "geolife":
        return read("geolife_60s.parquet", BEIJING, "Asia/Shanghai")
    city = mm.demo.city(people=700, days=7, seed=8, interval_s=60)
    return city.trips, Grid(*_box(city.spaces()["grid"]), CELL_M)


def _box(grid: Grid) -> tuple[float, float, float, float]:
    return grid.south, grid.west, grid.north, grid.east


def mechanism(name: str, epsilon: float, grid: Grid, n: int):
    options = {"epsilon": epsilon, "space": grid, "n_out": n}
    if name == "flock_delta":
        return build("flock", options | {"delta": 1e-6})
    return build(name, options)


def scores(released: Trips, original: Trips, grid: Grid, seed: int) -> list[float]:
    """The six, the three and the ones held apart, in the order of the columns."""
    box = Grid(*_box(grid), 1000)
    found = evaluate(released, original, grid=box, metrics=[*dict.fromkeys(v.split(".")[0] for v in SIX.values())], seed=seed)
    cells = to_cells(original, grid, hour=True)
    drawn = released if "cell" in released.columns else to_cells(released, grid, hour=True)
    drawn = to_cells(drawn, grid, slot_s=None) if "hour" in drawn.columns else drawn
    values = [found[name].value for name in SIX.values()]
    if "hour" in drawn.columns:
        by_cell = evaluate(drawn, cells, grid=grid, metrics=["trip_size", "od_emd", "patterns"], workers=1, seed=seed)
        values += [by_cell[name].value * (100 if name.startswith("patterns") else 1) for name in THREE.values()]
    else:
        values += [np.nan] * 3
    values.append(jensen_shannon(*(moves(side, grid, 15) for side in (original, released))))
    values.append(jensen_shannon(*(visits(side, grid, MAP_SIDE) for side in (original, released))))
    hours = [np.bincount(side.local_hour[side.offsets[:-1]], minlength=24) for side in (original, released) if side.has_time]
    return [*values, jensen_shannon(*hours) if len(hours) == 2 else np.nan]


def squares(trips: Trips, grid: Grid, side: int) -> np.ndarray:
    row = np.clip(((trips.lat - grid.south) / (grid.north - grid.south) * side).astype(np.int64), 0, side - 1)
    return row * side + np.clip(((trips.lng - grid.west) / (grid.east - grid.west) * side).astype(np.int64), 0, side - 1)


def visits(trips: Trips, grid: Grid, side: int) -> np.ndarray:
    """Trips per square."""
    return np.bincount(np.unique(trips.point_trip * side**2 + squares(trips, grid, side)) % side**2, minlength=side**2)


def moves(trips: Trips, grid: Grid, side: int) -> np.ndarray:
    """Moves from square to square."""
    at = squares(trips, grid, side)
    moved = (np.diff(trips.point_trip) == 0) & (np.diff(at) != 0)
    return np.bincount((at[:-1] * side**2 + at[1:])[moved], minlength=side**4)


def drawn_map(name: str, trips: Trips, grid: Grid) -> SimpleNamespace:
    counts = visits(trips, grid, MAP_SIDE).reshape(MAP_SIDE, MAP_SIDE)[::-1]
    ink = np.sqrt(counts / max(counts.max(), 1))
    marks = [SimpleNamespace(x=int(x), y=int(y), ink=f"{ink[y, x]:.2f}") for y, x in np.argwhere(ink > 0.01)]
    return SimpleNamespace(name=name, side=MAP_SIDE, squares=marks)


def row(name: str, values: list[list[float]], cpu: float, *, floor: bool = False) -> SimpleNamespace:
    mean = np.nanmean(np.array(values), axis=0) if values else []
    cells = ["" if np.isnan(v) else f"{v:.4f}" if abs(v) < 10 else f"{v:,.0f}" for v in mean]
    print(f"{name:28s}", *cells, f"{cpu:.1f} s", flush=True)
    return SimpleNamespace(name=name, cells=cells, cpu=f"{cpu:.1f}", floor=floor)


def compare(name: str, options: argparse.Namespace) -> SimpleNamespace | None:
    loaded = load(name)
    if loaded is None:
        print(f"{name} is not here; set MURMURATE_DATA to the folder of real data.")
        return None
    everything, grid = loaded
    n = min(options.trips or everything.n_trips, everything.n_trips)
    order = np.random.default_rng(8).permutation(everything.n_trips)
    original = everything.take_trips(order[:n])
    print(f"\n{name}: {n:,} trips;", ", ".join([*SIX, *THREE, *APART]))
    rows, maps = [], [drawn_map("originals", original, grid)]
    if 2 * n <= everything.n_trips:
        second = [everything.take_trips(order[n * k : n * (k + 1)]) for k in range(1, min(3, everything.n_trips // n))]
        rows.append(row("second real sample", [scores(other, original, grid, 1) for other in second], 0.0, floor=True))
    for kind in options.mechanisms:
        for epsilon in (*options.epsilon, NOT_PRIVATE):
            values, start = [], time.process_time()
            spent = 0.0
            for repeat in range(1 if epsilon == NOT_PRIVATE else options.repeats):
                start = time.process_time()
                released = mechanism(kind, epsilon, grid, n).apply(original, noise.seeded(5000 + 17 * repeat))
                spent += time.process_time() - start
                values.append(scores(released, original, grid, repeat))
            words = "not private" if epsilon == NOT_PRIVATE else f"epsilon {epsilon:g}"
            rows.append(row(f"{kind}, {words}", values, spent / len(values)))
            if epsilon in {1, NOT_PRIVATE}:
                maps.append(drawn_map(f"{kind}, {words}", released, grid))
    return SimpleNamespace(name=name, trips=n, columns=[*SIX, *THREE, *APART], rows=rows, maps=maps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["city", "sf", "geolife"], choices=["city", "sf", "geolife"])
    parser.add_argument("--trips", type=int, default=5000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mechanisms", nargs="+", default=["flock", "flock_delta", "dp_loc", "ngram"])
    parser.add_argument("--html", type=Path)
    options = parser.parse_args()
    datasets = [found for name in options.data if (found := compare(name, options)) is not None]
    if options.html:
        import jinja2

        template = (Path(__file__).parent / "synthesis.html.j2").read_text(encoding="utf-8")
        page = jinja2.Environment(autoescape=True).from_string(template).render(datasets=datasets, repeats=options.repeats)
        options.html.write_text(page, encoding="utf-8")
        print(f"\n{options.html}")


if __name__ == "__main__":
    main()
