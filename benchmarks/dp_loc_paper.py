"""DP-Loc's own evaluation (section 8.5) on San Francisco taxis: ours, as published, and NGRAM beside the paper's numbers.

    python benchmarks/dp_loc_paper.py [--cells 500,250] [--epsilons 1,2] [--seeds 3] [--which own,ngram,as_published,networks]
                                      [--n-out 120000] [--results dp_loc.json] [--html dp_loc.html] [--page-only]
                                      [--data sf|city|geolife]

Every finished run is written to the results file, so an interrupted benchmark goes on where it stopped. Each run has a process
of its own, one after another and on one thread, so that its time and its peak memory are its own. Noise is secure: a repeat is
a fresh run. Everything here is internal to a custodian: it compares with the private trips. NGRAM knows no hours; its trips get
hours drawn from those of the originals, which flatters it. `as_published` is as published but for its sampling (Poisson).
The built-in city and Geolife (`--data`) say whether settings that were chosen on taxis hold elsewhere.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))

import murmurate as mm
from dp_loc_networks import next_cell_scores, side_results, vae_losses
from murmurate import noise
from murmurate.asking.rounds import fitted, is_measured
from murmurate.core.trips import Trips
from murmurate.ingest.discretise import to_cells
from murmurate.mechanisms.dp_loc import DPLoc
from murmurate.mechanisms.dp_loc.tables import read
from murmurate.mechanisms.ngram import NGram
from murmurate.metrics import measure
from murmurate.metrics.compare import compare
from murmurate.papers.dp_loc import moves_net, network_fitting
from murmurate.spaces.grid import Grid

SAN_FRANCISCO = (37.6017, -122.5158, 37.8112, -122.3527)
BEIJING = (39.75, 116.15, 40.10, 116.60)
DELTA = 1e-6
ORDER = ("own", "ngram", "as_published", "networks")
"""At each epsilon; the cheap and telling ones first."""


def cpu() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def read_trips(file: str, time_zone: str) -> Trips:
    folder = Path(os.environ.get("MURMURATE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if not (folder / file).is_file():
        sys.exit(f"{file} is not here; set MURMURATE_DATA to the folder of real data.")
    table = pl.read_parquet(folder / file).select(
        uid=pl.col("user_id").cast(pl.String), tid="trip_id", datetime="t", lat="lat", lng="lon"
    )
    return Trips(table, time_zone=time_zone)


def load(data: str, cell_m: float) -> tuple[Trips, Grid]:
    """Trips and the public grid they are seen on."""
    if data == "sf":
        return read_trips("sf_taxi_dploc200_trips.parquet", "America/Los_Angeles"), Grid(*SAN_FRANCISCO, cell_m)
    if data == "geolife":
        return read_trips("geolife_60s.parquet", "Asia/Shanghai"), Grid(*BEIJING, cell_m)
    city = mm.demo.city(people=700, days=7, seed=8, interval_s=60)
    return city.trips, city.grid(cell_m)


def mechanism(which: str, grid: Grid, epsilon: float) -> DPLoc | NGram:
    if which == "ngram":
        return NGram(epsilon=epsilon, space=grid)
    return DPLoc(epsilon=epsilon, delta=DELTA, space=grid, variant=which)


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
    found = {score.name: score for name in ("patterns", "cell_sets") for score in measure(name, comparison)}
    return {
        "jsd": size[0].value,
        "jsd_root": size[1].value,
        "emd_m": flows[0].value,
        "emd_floor_m": flows[1].value,
        "jsd_by_hour": {score.name[-2:]: round(score.value, 4) for score in size[2:]},
        "emd_by_hour_m": {score.name[-2:]: round(score.value) for score in flows[2:]},
        "patterns_percent": {k: 100 * found[f"patterns.true_positives_{k}"].value for k in (10, 20, 50, 100)},
        "cell_sets_percent": {k: 100 * found[f"cell_sets.true_positives_{k}"].value for k in (10, 20, 50, 100)},
        "cell_sets": found["cell_sets.true_positives_100"].n,
        "mean_cells": [float(np.diff(side.offsets).mean()) for side in (original, released)],
    }


def run(data: str, which: str, cell_m: float, epsilon: float, n_out: int) -> dict:
    """Fit, draw and compare once."""
    warnings.simplefilter("ignore")
    private, grid = load(data, cell_m)
    n_out = n_out if data == "sf" else private.n_trips
    if which == "networks":
        start = cpu()
        found = side_results(private, DPLoc(epsilon=epsilon, delta=DELTA, space=grid, variant="as_published"))
        return found | {"fit_cpu_s": cpu() - start}
    asked = mechanism(which, grid, epsilon)
    rng, trained = noise.secure(), remembered()
    start, wall = cpu(), time.time()
    asked.guarantee()
    model = fitted(asked, private, rng) if is_measured(asked) else asked.fit(private, rng)
    fitted_cpu, fit_wall = cpu(), time.time()
    released = model.sample(n_out, rng)
    result = {
        "fit_cpu_s": fitted_cpu - start,
        "sample_cpu_s": cpu() - fitted_cpu,
        "fit_wall_s": fit_wall - wall,
        "sample_wall_s": time.time() - fit_wall,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    original = to_cells(private, grid, hour=True)
    result |= scores(original, with_hours(released, original), grid)
    if isinstance(asked, DPLoc):
        found = read(private, grid=grid, unit=asked.bounds(), slot_s=asked.slot_s, hours=asked.hours)
        result["next_cell"] = next_cell_scores(model.router, found, asked.around(), grid.cell_m)
        if "EndsVAE" in trained:
            result["ends"] = vae_losses(*trained["EndsVAE"], found)
    return result


def remembered() -> dict:
    """Networks by name as they are trained from now on: a released model keeps only the decoder of its autoencoder."""
    trained: dict = {}
    train = network_fitting.train_from_start

    def keeping(network, *arguments, **options):
        params = train(network, *arguments, **options)
        trained[type(network).__name__] = (network, params)
        return params

    network_fitting.train_from_start = moves_net.train_from_start = keeping
    return trained


def queue(options: argparse.Namespace) -> list[tuple]:
    wanted = options.which.split(",")
    return [
        (which, float(cell_m), float(epsilon), repeat)
        for epsilon in options.epsilons.split(",")
        for which in ORDER
        if which in wanted
        for cell_m in options.cells.split(",")
        for repeat in range(1 if which == "networks" else options.seeds)
        if which != "networks" or (float(cell_m), float(epsilon)) == (500, 1)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="sf", choices=["sf", "city", "geolife"])
    parser.add_argument("--cells", default="500,250")
    parser.add_argument("--epsilons", default="1,2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--which", default=",".join(ORDER))
    parser.add_argument("--n-out", type=int, default=120_000)
    parser.add_argument("--results", type=Path, default=Path("dp_loc.json"))
    parser.add_argument("--html", type=Path)
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    results = json.loads(options.results.read_text()) if options.results.exists() else []
    done = {(r.get("data", "sf"), r["which"], r["cell_m"], r["epsilon"], r["repeat"]) for r in results}
    for which, cell_m, epsilon, repeat in [] if options.page_only else queue(options):
        if (options.data, which, cell_m, epsilon, repeat) in done:
            continue
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as alone:
            found = alone.submit(run, options.data, which, cell_m, epsilon, options.n_out).result()
        results.append({"data": options.data, "which": which, "cell_m": cell_m, "epsilon": epsilon, "repeat": repeat, **found})
        print(json.dumps({key: value for key, value in results[-1].items() if "by_hour" not in key}), flush=True)
        temporary = options.results.with_suffix(".part")
        temporary.write_text(json.dumps(results, indent=1))
        temporary.replace(options.results)
    if options.html:
        from dp_loc_page import write_page

        write_page(json.loads(json.dumps(results)), options.html, delta=DELTA)  # as a file has them, whoever ran them
        print(options.html)


if __name__ == "__main__":
    main()
