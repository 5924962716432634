"""flock, dp_loc and ngram beside a second real sample, on the published scores and on some that nobody tuned for.

    python benchmarks/synthesis.py [--data city sf geolife ...] [--mechanisms flock flock_delta dp_loc ngram]
                                   [--epsilon 0.5 1 2] [--repeats 5] [--results synthesis.jsonl] [--html synthesis.html]
                                   [--peer "adatrace=COMMAND {input} {output} {epsilon}"]

Every finished release is appended to `--results` and is not made again, so a run may be stopped and gone on with; the page is
drawn from that file alone. Numbers are means with 95 % intervals of the mean over releases (Student's t). A peer is any
command that is installed here: it gets trips as CSV (tid, datetime, lat, lng), and writes synthetic ones so (datetime may be
left out). flock_untimed reads the trips without their times, as such programs do. flock_day and flock_person protect
person-days and persons at delta 1e-6. "not private" is the same mechanism at epsilon 100, once. Real data
are looked for in MURMURATE_DATA, or in shared/data beside the project; a set that is not there is left out.

| data | what |
|---|---|
| city | 5,000 trips of the built-in city, its own roads for flock_roads |
| sf, sf_all | San Francisco taxis: 5,000 random trips; all of them with hours, on 500 m cells, epsilon 1 |
| sf_central | the part of them on the OpenStreetMap network of the centre, cut to its box: cells against roads |
| geolife, geolife_15 | whole Geolife trips in 80 x 56 km of Beijing: 5,000 random ones, 15,000 |
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import murmurate as mm
from murmurate import noise
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import to_cells
from murmurate.judging.review import evaluate
from murmurate.mechanisms import build
from murmurate.metrics.divergence import jensen_shannon
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork, match, read_roads

SAN_FRANCISCO = (37.6017, -122.5158, 37.8112, -122.3527)
BEIJING = (39.7, 116.0, 40.2, 116.8)
SIX = {
    "query published": "adatrace_query.as_published", "query": "adatrace_query", "Kendall": "adatrace_kendall",
    "F1": "adatrace_patterns.f1", "trip": "adatrace_trip", "diameter": "adatrace_diameter", "length": "adatrace_length",
    "Kendall other": "adatrace_kendall.other_grids", "F1 other": "adatrace_patterns.f1_other_grids",
    "trip other": "adatrace_trip.other_grids",
}  # fmt: skip
THREE = {"size JSD": "trip_size", "OD EMD m": "od_emd", "top 100 %": "patterns.true_positives_100"}
APART = ("moves 15", "visits 40", "hours", "OD 1 km m", "links r")
COLUMNS = (*SIX, *THREE, *APART)
HIGHER = {"Kendall", "F1", "Kendall other", "F1 other", "top 100 %", "links r"}
NOT_PRIVATE = 100.0
MAP_SIDE = 40
MAPPED = (1.0, NOT_PRIVATE)
SECOND = "second real sample"
FIRST_SEED = 90_000
MOST_OD = 20_000
"""Trips; of more of them flows by hour are compared on their own cells only, which takes minutes already."""
MOST_DP_LOC = 30_000
"""Cells; on more of them dp_loc works on cells twice as wide."""


@dataclass(frozen=True)
class Data:
    """What is compared on one set of trips; None for the choice on the command line."""

    title: str
    trips: int
    cell_m: float = 250.0
    mechanisms: tuple[str, ...] | None = None
    epsilon: tuple[float, ...] | None = None
    repeats: int | None = None


DATA = {
    "city": Data("The built-in city", 5000),
    "sf": Data("San Francisco taxis", 5000),
    "geolife": Data("Geolife, Beijing", 5000),
    "geolife_15": Data("Geolife, Beijing", 15_000, mechanisms=("flock", "flock_delta"), repeats=3),
    "sf_central": Data("Central San Francisco, cells against roads", 5000, mechanisms=("flock", "flock_roads"), repeats=3),
    "sf_all": Data(
        "San Francisco taxis with hours", 0, 500.0,
        ("flock", "flock_delta", "flock_day", "flock_person", "dp_loc", "ngram"), (1.0,), 5,
    ),
}  # fmt: skip
UNITS = {"flock_day": "user_day", "flock_person": "user"}
"""Kinds that protect more than a trip; only where all trips of people are there."""


def folder() -> Path:
    return Path(os.environ.get("MURMURATE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def read(file: str, box: tuple[float, ...], time_zone: str, *, whole: bool = False) -> Trips | None:
    """Trips cut to a box, or those that never leave it."""
    path = folder() / file
    if not path.is_file():
        return None
    south, west, north, east = box
    table = pl.read_parquet(path).select(
        uid=pl.col("user_id").cast(pl.String), tid="trip_id", datetime="t", lat="lat", lng="lon"
    )
    inside = pl.col("lat").is_between(south, north) & pl.col("lng").is_between(west, east)
    table = table.filter(inside.all().over("uid", "tid") if whole else inside)
    return Trips(table.filter(pl.len().over("uid", "tid") > 1), time_zone=time_zone)


@cache
def load(name: str) -> tuple[Trips, Grid, RoadNetwork | None] | None:
    cell_m = DATA[name].cell_m
    if name == "city":
        city = mm.demo.city(people=700, days=7, seed=8, interval_s=60)
        return city.trips, Grid(*_box(city.spaces()["grid"]), cell_m), city.network
    if name.startswith("geolife"):
        trips = read("geolife_60s.parquet", BEIJING, "Asia/Shanghai", whole=True)
        return None if trips is None else (trips, Grid(*BEIJING, cell_m), None)
    box, roads = SAN_FRANCISCO, None
    if name == "sf_central":
        map_file = folder() / "sf_osm2026_central_drive.graphml.gz"
        if not map_file.is_file():
            return None
        roads = read_roads(map_file, connected=True)
        box = _box(build("flock", {"epsilon": 1.0, "space": roads}).grid)
    trips = read("sf_taxi_dploc200_trips.parquet", box, "America/Los_Angeles")
    return None if trips is None else (trips, Grid(*box, cell_m), roads)


def _box(grid: Grid) -> tuple[float, float, float, float]:
    return grid.south, grid.west, grid.north, grid.east


def mechanism(name: str, epsilon: float, grid: Grid, roads: RoadNetwork | None, n: int) -> Any:
    options: dict[str, Any] = {"epsilon": epsilon, "space": grid, "n_out": n}
    if name == "flock_roads":
        options["space"] = roads
    if name == "dp_loc" and grid.n_cells > MOST_DP_LOC:  # its tables of moves would not fit in memory
        options["space"] = Grid(*_box(grid), 2 * grid.cell_m)
    if name == "flock_delta" or name in UNITS:
        options["delta"] = 1e-6
    if name in UNITS:
        options["unit"] = UNITS[name]
    return build(name.partition("_")[0] if name.startswith("flock") else name, options)


def scores(released: Trips, original: Trips, grid: Grid, roads: RoadNetwork | None, seed: int) -> dict[str, float]:
    """The six, the three and the ones held apart, those that can be taken."""
    box = Grid(*_box(grid), 1000)
    found = evaluate(released, original, grid=box, metrics=[*dict.fromkeys(v.split(".")[0] for v in SIX.values())], seed=seed)
    values = {name: found[score].value for name, score in SIX.items()}
    cells = to_cells(original, grid, hour=True)
    drawn = to_cells(released, grid, hour=True) if "cell" not in released.columns and released.has_time else released
    drawn = to_cells(drawn, grid, slot_s=None) if "hour" in drawn.columns else drawn
    if "hour" in drawn.columns:
        by_cell = evaluate(drawn, cells, grid=grid, metrics=["trip_size", "od_emd", "patterns"], workers=1, seed=seed)
        values |= {name: by_cell[score].value * (100 if "%" in name else 1) for name, score in THREE.items()}
    values["moves 15"] = jensen_shannon(*(moves(side, grid, 15) for side in (original, released)))
    values["visits 40"] = jensen_shannon(*(visits(side, grid, MAP_SIDE) for side in (original, released)))
    if released.has_time:
        hours = [np.bincount(side.local_hour[side.offsets[:-1]], minlength=24) for side in (original, released)]
        values["hours"] = jensen_shannon(*hours)
        if original.n_trips <= MOST_OD:
            values["OD 1 km m"] = evaluate(released, original, grid=box, metrics=["od_emd"], workers=1, seed=seed)[
                "od_emd"
            ].value
    if roads is not None:
        used = [np.bincount(match(side, roads).path_link, minlength=roads.n_links) for side in (original, released)]
        values["links r"] = float(np.corrcoef(*used)[0, 1])
    return {name: float(value) for name, value in values.items()}


def by_command(command: str, trips: Trips, epsilon: float) -> Trips:
    """Trips that another program makes of these."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "trips.csv", Path(folder) / "synthetic.csv"
        named = trips.table.with_columns(tid=pl.Series(trips.point_trip))  # one name a trip, also where people share names
        named.select("tid", "datetime", "lat", "lng").write_csv(given)
        words = [word.format(input=given, output=made, epsilon=epsilon) for word in shlex.split(command)]
        subprocess.run(words, check=True)
        table = pl.read_csv(made, try_parse_dates=True)
    return Trips(table.with_columns(uid=pl.col("tid").cast(pl.String)), time_zone=trips.time_zone)


def untimed(trips: Trips) -> Trips:
    """The same trips as programs without times see them."""
    return Trips(trips.table.drop("datetime"), time_zone=trips.time_zone)


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


class Results:
    """Finished releases, one JSON object a line; what is there is not made again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.is_file() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def have(self, **key: Any) -> bool:
        return any(all(row.get(name) == value for name, value in key.items()) for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        shown = " ".join(f"{name} {value:.4g}" for name, value in row.get("scores", {}).items())
        print(row["data"], row["kind"], row["epsilon"], row["repeat"], f"{row['cpu_s']:.1f} s", shown, flush=True)


def cells_of(name: str, options: argparse.Namespace, roads: RoadNetwork | None, repeat: int) -> Iterator[tuple[str, float]]:
    """Every (mechanism, epsilon) of one set of trips that has a release of this number."""
    data = DATA[name]
    kinds = [kind for kind in options.mechanisms if kind in (data.mechanisms or set(options.mechanisms) - set(UNITS))]
    kinds += [peer.partition("=")[0] for peer in options.peer]
    for kind in kinds:
        if kind == "flock_roads" and roads is None:
            continue
        known = kind in options.mechanisms  # peers are not asked what they do without privacy
        for epsilon in data.epsilon or (*options.epsilon, *([NOT_PRIVATE] if known else [])):
            if repeat < (1 if epsilon == NOT_PRIVATE else min(data.repeats or options.repeats, options.repeats)):
                yield kind, epsilon


def compare(name: str, options: argparse.Namespace, results: Results, repeat: int) -> None:
    loaded = load(name)
    if loaded is None:
        print(f"{name} is not here; set MURMURATE_DATA to the folder of real data.")
        return
    everything, grid, roads = loaded
    n = min(DATA[name].trips or everything.n_trips, everything.n_trips)
    order = np.random.default_rng(8).permutation(everything.n_trips)
    original = everything.take_trips(order[:n])

    def finished(
        kind: str, epsilon: float, repeat: int, released: Trips, *, cpu_s: float = 0.0, against: Trips = original
    ) -> None:
        row = {"data": name, "kind": kind, "epsilon": epsilon, "repeat": repeat, "trips": n, "cpu_s": cpu_s}
        row["scores"] = {} if kind == "originals" else scores(released, against, grid, roads, repeat)
        if repeat == 0 and (epsilon in MAPPED or epsilon == 0):
            row["map"] = visits(released, grid, MAP_SIDE).tolist()
        results.add(row)

    if not results.have(data=name, kind="originals"):
        finished("originals", 0.0, 0, original)
    size = n if 2 * n <= everything.n_trips else everything.n_trips // 2
    if repeat < min(3, everything.n_trips // size - 1) and not results.have(data=name, kind=SECOND, repeat=repeat):
        first = original if size == n else everything.take_trips(order[:size])
        other = everything.take_trips(order[size * (repeat + 1) : size * (repeat + 2)])
        finished(SECOND, 0.0, repeat, other, against=first)
    for kind, epsilon in cells_of(name, options, roads, repeat):
        if results.have(data=name, kind=kind, epsilon=epsilon, repeat=repeat):
            continue
        start = time.process_time()
        rng = noise.seeded(FIRST_SEED + 17 * repeat)
        command = next((peer.partition("=")[2] for peer in options.peer if peer.partition("=")[0] == kind), None)
        if command is not None:
            released = by_command(command, original, epsilon)
        else:
            private = untimed(original) if kind == "flock_untimed" else original
            released = mm.rehearse(mechanism(kind, epsilon, grid, roads, n), private, rng=rng).payload
        finished(kind, epsilon, repeat, released, cpu_s=time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mechanisms", nargs="+", default=["flock", "flock_delta", "flock_roads", *UNITS, "dp_loc", "ngram"])
    parser.add_argument("--peer", nargs="*", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--html", type=Path)
    options = parser.parse_args()
    results = Results(options.results)
    for repeat in range(options.repeats):  # every comparison once, then every one again: a run that is stopped tells something
        for name in options.data:
            compare(name, options, results, repeat)
    from synthesis_page import page, tables

    print(tables(results.rows))
    if options.html:
        options.html.write_text(page(results.rows), encoding="utf-8")
        print(f"\n{options.html}")


if __name__ == "__main__":
    main()
