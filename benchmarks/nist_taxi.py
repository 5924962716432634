"""The task of NIST's 2021 Temporal Map Challenge, sprint 3: taxi trips of a city, protected per taxi, beside plain baselines.

    python benchmarks/nist_taxi.py [--chicago FILE.csv] [--epsilon 1 10] [--repeats 5] [--methods flock marginals subsample]

The published task: a table of taxi trips with the area of pick-up and of drop-off, the shift (day of the week and part of the
day) and the taxi. Each taxi has at most 200 trips. Differential privacy holds per taxi, with epsilon 1 and 10 and delta 2.5e-5.
Synthetic trips are scored by three measures, written here from their description, each from 0 to 1000 (1000: the same):

| measure | what |
|---|---|
| k-marginals | half the sum of absolute differences of shares, mean over all 3-way marginals |
| graph edges | for each shift, the same distance of the shares of trips along pick-up to drop-off edges |
| higher-order conjunctions | share of taxis like a random real taxi, in random columns up to random thresholds |

Without `--chicago` the San Francisco taxis stand in, in the same shape: areas are 9 x 9 blocks of the box, shifts are 7 days x
3 parts. `--chicago` reads the City of Chicago's own file of taxi trips by its column names. flock learns no day of the week and
links no trips: days and taxis of its trips are dealt at random. Baselines: `marginals` draws pick-up by shift and drop-off by
pick-up from two noisy tables; `subsample` releases the trips of a fifth of the taxis as they are, which is not private.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

import murmurate as mm
from murmurate import noise
from murmurate.asking import STEPS, Budget, Table
from murmurate.core.trips import Trips
from murmurate.mechanisms import build
from murmurate.spaces.grid import Grid
from synthesis import SAN_FRANCISCO, read

DELTA = 2.5e-5
MOST_TRIPS = 200
PARTS_OF_DAY = 3
AREAS_PER_SIDE = 9
CHICAGO_BOX = (41.64, -87.95, 42.03, -87.52)
CHICAGO_ZONE = "America/Chicago"
CELL_M = 500.0
CONJUNCTIONS = 200
SUBSAMPLED = 0.2
FIRST_SEED = 7_000
LENGTH_EDGES_KM = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0)


@dataclass(frozen=True)
class Taxis:
    """One row a trip: taxi, shift, pick-up, drop-off and class of length."""

    taxi: np.ndarray
    columns: dict[str, np.ndarray]
    sizes: dict[str, int]

    def take(self, rows: np.ndarray) -> Taxis:
        return Taxis(self.taxi[rows], {name: values[rows] for name, values in self.columns.items()}, self.sizes)


def table_of(trips: Trips, areas: np.ndarray, n_areas: int) -> Taxis:
    """Reduce trips to the columns of the challenge; `areas` holds the area of every point."""
    first, last = trips.offsets[:-1], trips.offsets[1:] - 1
    north, east = (trips.lat[last] - trips.lat[first]) * 111.2, (trips.lng[last] - trips.lng[first])
    length_km = np.hypot(north, east * 111.2 * np.cos(np.radians(trips.lat[first])))
    when = trips.table["datetime"].gather(first).dt.convert_time_zone(trips.time_zone)
    shift = (when.dt.weekday().to_numpy().astype(np.int64) - 1) * PARTS_OF_DAY + trips.local_hour[first] * PARTS_OF_DAY // 24
    uid = trips.table["uid"].gather(first).cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1
    columns = {"shift": shift, "from": areas[first], "to": areas[last], "km": np.searchsorted(LENGTH_EDGES_KM, length_km)}
    return Taxis(uid, columns, {"shift": 7 * PARTS_OF_DAY, "from": n_areas, "to": n_areas, "km": len(LENGTH_EDGES_KM) + 1})


def shares(taxis: Taxis, names: tuple[str, ...]) -> np.ndarray:
    """Share of trips in every cell of a marginal."""
    at = np.ravel_multi_index([taxis.columns[name] for name in names], [taxis.sizes[name] for name in names])
    return np.bincount(at, minlength=int(np.prod([taxis.sizes[name] for name in names]))) / max(len(at), 1)


def k_marginals(real: Taxis, made: Taxis) -> float:
    off = [np.abs(shares(real, names) - shares(made, names)).sum() / 2 for names in combinations(real.columns, 3)]
    return float(1000 * (1 - np.mean(off)))


def graph_edges(real: Taxis, made: Taxis) -> float:
    """Mean over shifts, weighted by their trips, of what the edges of both graphs have in common."""
    n_areas, shifts = real.sizes["from"], real.sizes["shift"]
    tables = [shares(one, ("shift", "from", "to")).reshape(shifts, n_areas**2) for one in (real, made)]
    weight = tables[0].sum(axis=1)
    each = [table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12) for table in tables]
    return float(1000 * ((1 - np.abs(each[0] - each[1]).sum(axis=1) / 2) * weight).sum() / weight.sum())


def conjunctions(real: Taxis, made: Taxis, seed: int) -> float:
    """Compare shares of taxis that resemble a random real taxi in random columns: root mean square of log ratios."""
    generator = np.random.default_rng(seed)
    profiles = [_profiles(one) for one in (real, made)]
    off = []
    for _ in range(CONJUNCTIONS):
        model = int(generator.integers(len(next(iter(profiles[0].values())))))
        chosen = [name for name in profiles[0] if generator.random() < 0.5] or ["from"]
        threshold = {name: generator.uniform(0.2, 0.8) for name in chosen}
        alike = []
        for side in profiles:
            close = np.ones(len(side["from"]), dtype=bool)
            for name in chosen:
                close &= np.abs(side[name] - profiles[0][name][model]).sum(axis=1) / 2 <= threshold[name]
            alike.append(max(close.mean(), 1e-6))
        off.append(np.log(alike[1] / alike[0]) ** 2)
    return float(1000 * max(0.0, 1 + np.sqrt(np.mean(off)) / np.log(1e-3)))


def _profiles(taxis: Taxis) -> dict[str, np.ndarray]:
    """Shares of each taxi's trips by column."""
    n = int(taxis.taxi.max()) + 1
    found = {}
    for name, values in taxis.columns.items():
        table = np.bincount(taxis.taxi * taxis.sizes[name] + values, minlength=n * taxis.sizes[name]).reshape(n, -1)
        found[name] = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return found


def dealt(made: Taxis, like: Taxis, generator: np.random.Generator) -> Taxis:
    """Deal synthetic trips, which have no taxi, to as many taxis of as many trips as a public guess: the mean for all."""
    n = int(like.taxi.max()) + 1
    return Taxis(generator.integers(n, size=len(made.taxi)), made.columns, made.sizes)


def marginals(real: Taxis, epsilon: float, seed: int) -> Taxis:
    """Draw trips from a noisy table of (shift, from) and one of (from, to, km), each with half of the budget."""
    budget, rng = Budget(epsilon=epsilon, delta=DELTA), noise.seeded(seed)
    generator = np.random.default_rng(seed)
    noisy = {}
    for names in (("shift", "from"), ("from", "to", "km")):
        size = int(np.prod([real.sizes[name] for name in names]))
        exact = np.round(shares(real, names) * len(real.taxi)).astype(np.int64) * STEPS
        asked = Table(name="-".join(names), n_bins=size, share=0.5, limit=float(MOST_TRIPS))
        table = np.maximum(budget.draw(asked, exact, rng).noisy, 0.0)
        noisy[names] = table.reshape([real.sizes[name] for name in names])
    n = len(real.taxi)
    first = noisy["shift", "from"].ravel()
    shift, start = np.divmod(generator.choice(len(first), size=n, p=first / first.sum()), real.sizes["from"])
    rest = noisy["from", "to", "km"].reshape(real.sizes["from"], -1) + 1e-9
    cumulative = np.cumsum(rest, axis=1)
    at = (cumulative[start] < (generator.random(n) * cumulative[start, -1])[:, None]).sum(axis=1)
    stop, km = np.divmod(at, real.sizes["km"])
    return Taxis(np.zeros(n, dtype=np.int64), {"shift": shift, "from": start, "to": stop, "km": km}, real.sizes)


def subsample(real: Taxis, seed: int) -> Taxis:
    """A fifth of the taxis with all their trips; not private."""
    kept = np.random.default_rng(seed).random(int(real.taxi.max()) + 1) < SUBSAMPLED
    return real.take(np.flatnonzero(kept[real.taxi]))


def flock(trips: Trips, box: tuple[float, ...], epsilon: float, seed: int) -> Trips:
    """Release as many trips, protected per taxi; shifts of the week are not learned, so days are dealt at random."""
    options = {"epsilon": epsilon, "delta": DELTA, "unit": "user", "max_trips": MOST_TRIPS, "n_out": trips.n_trips}
    return mm.rehearse(build("flock", {**options, "space": Grid(*box, CELL_M)}), trips, rng=noise.seeded(seed)).payload


def blocks(trips: Trips, box: tuple[float, ...]) -> np.ndarray:
    """Area of every point: one of 9 x 9 blocks of the box."""
    south, west, north, east = box
    row = np.clip(((trips.lat - south) / (north - south) * AREAS_PER_SIDE).astype(np.int64), 0, AREAS_PER_SIDE - 1)
    column = np.clip(((trips.lng - west) / (east - west) * AREAS_PER_SIDE).astype(np.int64), 0, AREAS_PER_SIDE - 1)
    return row * AREAS_PER_SIDE + column


def san_francisco() -> tuple[Trips, tuple[float, ...]] | None:
    """At most 200 trips of every cab, chosen at random."""
    trips = read("sf_taxi_dploc200_trips.parquet", SAN_FRANCISCO, "America/Los_Angeles")
    return None if trips is None else (_bounded(trips), SAN_FRANCISCO)


def chicago(file: Path) -> tuple[Trips, tuple[float, ...]]:
    """Trips of the City of Chicago's file: two points each, the centres of pick-up and drop-off."""
    names = {
        "Taxi ID": "uid", "Trip ID": "tid", "Trip Start Timestamp": "start", "Trip End Timestamp": "stop",
        "Pickup Centroid Latitude": "lat0", "Pickup Centroid Longitude": "lng0",
        "Dropoff Centroid Latitude": "lat1", "Dropoff Centroid Longitude": "lng1",
    }  # fmt: skip
    table = pl.read_csv(file, columns=list(names)).rename(names).drop_nulls()
    ends = []
    for when, lat, lng in (("start", "lat0", "lng0"), ("stop", "lat1", "lng1")):
        local = pl.col(when).str.to_datetime("%m/%d/%Y %I:%M:%S %p", time_unit="us")
        zoned = local.dt.replace_time_zone(CHICAGO_ZONE, ambiguous="earliest", non_existent="null")
        ends.append(table.select("uid", "tid", datetime=zoned.dt.convert_time_zone("UTC"), lat=lat, lng=lng))
    both = pl.concat(ends).filter(pl.col("datetime").is_not_null().all().over("uid", "tid"))
    return _bounded(Trips(both, time_zone=CHICAGO_ZONE)), CHICAGO_BOX


def _bounded(trips: Trips) -> Trips:
    uid = trips.table["uid"].gather(trips.offsets[:-1]).cast(pl.String).rank("dense").to_numpy()
    order = np.random.default_rng(3).permutation(trips.n_trips)
    place = pl.DataFrame({"uid": uid[order]}).select(pl.int_range(pl.len()).over("uid")).to_series().to_numpy()
    return trips.take_trips(np.sort(order[place < MOST_TRIPS]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chicago", type=Path)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=["flock", "marginals", "subsample"])
    options = parser.parse_args()
    found = chicago(options.chicago) if options.chicago else san_francisco()
    if found is None:
        print("the taxi file is not here; set MURMURATE_DATA to the folder of real data, or give --chicago.")
        return
    trips, box = found
    n_areas = AREAS_PER_SIDE**2
    real = table_of(trips, blocks(trips, box), n_areas)
    print(f"{trips.n_trips:,} trips of {int(real.taxi.max()) + 1:,} taxis; mean and deviation of {options.repeats} releases")
    for epsilon in options.epsilon:
        for method in options.methods:
            rows = []
            for seed in range(FIRST_SEED, FIRST_SEED + options.repeats):
                generator = np.random.default_rng(seed)
                if method == "flock":
                    released = flock(trips, box, epsilon, seed)
                    made = table_of(released, blocks(released, box), n_areas)
                    day = generator.integers(7, size=released.n_trips)
                    made.columns["shift"][:] = day * PARTS_OF_DAY + made.columns["shift"] % PARTS_OF_DAY
                elif method == "marginals":
                    made = marginals(real, epsilon, seed)
                else:
                    made = subsample(real, seed)
                dealt_ = made if method == "subsample" else dealt(made, real, generator)
                rows.append((k_marginals(real, made), graph_edges(real, made), conjunctions(real, dealt_, seed)))
            values = " ".join(f"{np.mean(v):6.0f} +- {np.std(v):3.0f}" for v in zip(*rows, strict=True))
            print(f"epsilon {epsilon:<4g} {method:10s} k-marginals, graph edges, conjunctions: {values}", flush=True)


if __name__ == "__main__":
    main()
