"""DP-Loc's own evaluation (section 8.5) on San Francisco taxis: ours, as published, and NGRAM beside the paper's numbers.

    python benchmarks/dp_loc_paper.py [--cells 500,250] [--epsilons 1,2] [--seeds 3] [--which own,ngram,as_published]
                                      [--n-out 120000] [--out dp_loc.json] [--html dp_loc.html]

Everything here is internal to a custodian: it compares with the private trips. NGRAM knows no hours; its trips get hours drawn
from those of the originals, which flatters it. `as_published` is as published but for the sampling, which is Poisson.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import jinja2
import numpy as np
import polars as pl

from murmurate import noise
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import to_cells
from murmurate.mechanisms.dp_loc import DPLoc
from murmurate.mechanisms.dp_loc.net_router import PublishedRouter
from murmurate.mechanisms.dp_loc.reading import read
from murmurate.mechanisms.ngram import NGram
from murmurate.metrics import measure
from murmurate.scoring import compare
from murmurate.spaces.grid import Grid
from murmurate.synthesis.moves import grams

BOX = (37.6017, -122.5158, 37.8112, -122.3527)
DELTA = 1e-6
PAPER_PATTERNS = {  # true positives in percent for K = 10, 20, 50, 100 (tables 2 and 3)
    (250, 1): {"DP-Loc": [50, 60, 71, 71], "NGRAM": [80, 88, 100, 100]},
    (250, 2): {"DP-Loc": [20, 60, 80, 80], "NGRAM": [90, 90, 100, 100]},
    (500, 1): {"DP-Loc": [40, 25, 30, 22], "NGRAM": [90, 95, 76, 100]},
    (500, 2): {"DP-Loc": [40, 30, 20, 15], "NGRAM": [90, 95, 78, 79]},
}
PAPER_TRANSITIONS = {(250, 1): (24.19, 350.4), (250, 2): (26.45, 333.2), (500, 1): (73.52, 237.7), (500, 2): (75.28, 220.3)}
"""Accuracy in percent and error in metres (table 5)."""


def cpu() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def taxis() -> Trips:
    folder = Path(os.environ.get("MURMURATE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    file = folder / "sf_taxi_dploc200_trips.parquet"
    if not file.is_file():
        sys.exit(f"{file.name} is not here; set MURMURATE_DATA to the folder of real data.")
    table = pl.read_parquet(file).select(
        uid=pl.col("user_id").cast(pl.String), tid="trip_id", datetime="t", lat="lat", lng="lon"
    )
    return Trips(table, time_zone="America/Los_Angeles")


def mechanism(which: str, grid: Grid, epsilon: float):
    if which == "ngram":
        return NGram(epsilon=epsilon, space=grid)
    options = {"own": {}, "own_net": {"next_cell": "net"}, "as_published": {"variant": "as_published"}}
    return DPLoc(epsilon=epsilon, delta=DELTA, space=grid, **options[which])


def with_hours(released: Trips, original: Trips) -> Trips:
    """Released trips that have no hour get hours drawn from those of the originals."""
    if "hour" in released.columns:
        return released
    hours = original.table["hour"].gather(original.offsets[:-1]).to_numpy()
    drawn = np.random.default_rng(0).choice(hours, released.n_trips)
    return released.with_columns({"hour": np.repeat(drawn, np.diff(released.offsets))})


def scores(original: Trips, released: Trips, grid: Grid) -> dict:
    comparison = compare(released, original, grid=grid)
    size, flows = measure("trip_size", comparison), measure("od_emd", comparison)
    found = {score.name: score.value for score in measure("patterns", comparison)}
    return {
        "jsd": size[0].value,
        "emd_m": flows[0].value,
        "emd_floor_m": flows[1].value,
        "jsd_by_hour": [round(score.value, 4) for score in size[1:]],
        "emd_by_hour_m": [round(score.value) for score in flows[2:]],
        "patterns": {name: value for name, value in found.items() if "true_positive" in name or "tp" in name.lower()},
    }


def transitions(model, private: Trips, asked: DPLoc) -> dict:
    """Accuracy of the most probable next cell and the mean distance to the true one, in metres, on 50,000 grams."""
    around, grid = asked.around(), asked.space
    found = read(private, grid=grid, unit=asked.bounds(), slot_s=asked.slot_s, hours=asked.hours)
    steps = grams(found.trips, around)
    usable = np.flatnonzero((steps.offset >= 0) & (steps.offset != around.stop))
    chosen = np.random.default_rng(1).choice(usable, min(50_000, len(usable)), replace=False)
    trip = steps.trip[chosen]
    router: PublishedRouter = model.router
    logits = np.asarray(
        router.net.logits(router.params, steps.cell[chosen], found.trips.destinations[trip], found.trips.hours[trip])
    )
    told = logits.argmax(axis=1)
    down, right = np.divmod(told, around.side)
    wanted_down, wanted_right = np.divmod(steps.offset[chosen], around.side)
    error = np.hypot(down - wanted_down, right - wanted_right) * grid.cell_m
    return {"accuracy_percent": 100 * float((told == steps.offset[chosen]).mean()), "error_m": float(error.mean())}


def run(which: str, private: Trips, original: Trips, asked, n_out: int) -> dict:
    grid = asked.space
    rng = noise.secure()
    start, wall = cpu(), time.time()
    asked.guarantee()
    model = asked.fit(private, rng)
    fitted, fit_wall = cpu(), time.time()
    released = model.sample(n_out, rng)
    result = {
        "which": which,
        "cell_m": grid.cell_m,
        "epsilon": asked.epsilon,
        "fit_cpu_s": fitted - start,
        "sample_cpu_s": cpu() - fitted,
        "fit_wall_s": fit_wall - wall,
        "sample_wall_s": time.time() - fit_wall,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **scores(original, with_hours(released, original), grid),
    }
    if which == "as_published":
        result["transitions"] = transitions(model, private, asked)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="500,250")
    parser.add_argument("--epsilons", default="1,2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--which", default="own,ngram,as_published")
    parser.add_argument("--n-out", type=int, default=120_000)
    parser.add_argument("--out", type=Path, default=Path("dp_loc.json"))
    parser.add_argument("--html", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    private = taxis()
    results = []
    for cell_m in (float(value) for value in options.cells.split(",")):
        grid = Grid(*BOX, cell_m)
        original = to_cells(private, grid, hour=True)
        for epsilon in (float(value) for value in options.epsilons.split(",")):
            for which in options.which.split(","):
                for repeat in range(options.seeds):
                    result = {"repeat": repeat, **run(which, private, original, mechanism(which, grid, epsilon), options.n_out)}
                    results.append(result)
                    shown = {key: value for key, value in result.items() if "by_hour" not in key}
                    print(json.dumps(shown), flush=True)
                    options.out.write_text(json.dumps(results, indent=1))
    if options.html:
        write_page(results, options.html)


def write_page(results: list[dict], path: Path) -> None:
    """One page: the tables side by side with the paper's, and the curves by hour."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True)
    page = environment.get_template("dp_loc_paper.html.j2")
    text = page.render(results=results, patterns=PAPER_PATTERNS, transitions=PAPER_TRANSITIONS, delta=DELTA)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
