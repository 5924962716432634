"""Link matching: accuracy on drives with known links, share of taxi points matched, speed, memory, and a peer's speed.

    python benchmarks/matching.py [--peer PYTHON] [--data FOLDER]

Speeds are CPU seconds of this run. `--peer` names the Python of an environment that has leuvenmapmatching and rtree; both
matchers then work on the same trips, one after the other. Preparation (routes, kept on disk) is timed apart.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from murmurate.core.trips import Trips  # noqa: E402
from murmurate.spaces.road import RoadNetwork, match, prepare, read_roads  # noqa: E402
from road_truth import Truth, drive, precision_recall  # noqa: E402

CENTRAL, COUNTY = "sf_osm2026_central_drive.graphml.gz", "sf_tiger2017_roads.graphml.gz"

PEER = """
import json, sys, time
from leuvenmapmatching.map.inmem import InMemMap
from leuvenmapmatching.matcher.distance import DistanceMatcher

task = json.load(open(sys.argv[1]))
roads = InMemMap("roads", use_latlon=False, use_rtree=True, index_edges=True)
for number, place in enumerate(task["nodes"]):
    roads.add_node(number, tuple(place))
for start, end in task["links"]:
    roads.add_edge(start, end)
points, paths, whole, seconds = 0, [], 0, 0.0
for trip in task["trips"]:
    # The tightest (fastest) settings under which the trip is matched to its end; only that attempt is timed.
    for width, probability in ((8, 1e-3), (30, 1e-5), (100, 1e-9), (300, 1e-15)):
        began = time.process_time()
        matcher = DistanceMatcher(
            roads, max_dist=200, max_dist_init=100, obs_noise=15, obs_noise_ne=50, min_prob_norm=probability,
            non_emitting_states=True, only_edges=True, max_lattice_width=width,
        )
        states, last = matcher.match([tuple(point) for point in trip])
        took = time.process_time() - began
        if last == len(trip) - 1:
            break
    points += last + 1
    seconds += took
    whole += last == len(trip) - 1
    path = [list(state) for state in states if len(state) == 2]
    paths.append([pair for k, pair in enumerate(path) if k == 0 or pair != path[k - 1]])
print(json.dumps({"seconds": seconds, "points": points, "whole": whole, "paths": paths}))
"""


def cpu_s(work) -> tuple[float, object]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def accuracy(name: str, network: RoadNetwork) -> None:
    for interval_s in (5, 15, 30, 60, 120):
        for spread in (0.3, 0.5) if interval_s in (15, 60) else (0.3,):
            truth = drive(network, n_trips=500, interval_s=interval_s, seed=1, spread=spread)
            found = match(truth.trips, network)
            simple = match(truth.trips, network, matcher="nearest")
            figures = [*precision_recall(truth, found.path_offsets, found.path_link)]
            figures += precision_recall(truth, simple.path_offsets, simple.path_link)
            told = "precision {:.3f} recall {:.3f}   nearest {:.3f} {:.3f}".format(*figures)
            print(f"  {name:12} every {interval_s:3} s, link times x e^N(0, {spread}): {told}")


def taxis(name: str, network: RoadNetwork, trips: Trips) -> None:
    near = network.locate(trips.lat, trips.lng) >= 0
    seconds, found = cpu_s(lambda: match(trips, network))
    within = (found.link >= 0) & (found.distance_m <= 50)
    print(f"  {name:12} {trips.n_points:,} points in {seconds:.2f} CPU s: {trips.n_points / seconds:,.0f} points/s")
    print(f"  {'':12} {near.mean():.1%} have a road within 60 m; of these {within[near].mean():.2%} are matched within 50 m")
    counts = found.summary()
    print(f"  {'':12} {counts['links_driven']:,} links driven, {counts['trips_in_several_parts']:,} trips in several parts")
    print(f"  {'':12} peak memory so far {peak_gb():.2f} GB")


def against_peer(name: str, network: RoadNetwork, python: str, trips: Trips, truth: Truth | None = None) -> None:
    match(trips, network)  # compiled
    x, y = network.index.to_xy(trips.lat, trips.lng)
    node_x, node_y = network.index.to_xy(network.node_lat, network.node_lng)
    task = {
        "nodes": np.column_stack([node_y, node_x]).tolist(),
        "links": np.column_stack([network.link_from, network.link_to]).tolist(),
        "trips": [np.column_stack([y, x])[a:b].tolist() for a, b in pairwise(trips.offsets)],
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "task.json").write_text(json.dumps(task))
        (Path(folder) / "peer.py").write_text(PEER)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        command = [python, str(Path(folder) / "peer.py"), str(Path(folder) / "task.json")]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=clean)
    if done.returncode:
        print("  the peer failed:", done.stderr.strip().splitlines()[-1])
        return
    peer = json.loads(done.stdout.splitlines()[-1])
    turns = 100
    seconds, found = cpu_s(lambda: [match(trips, network) for _ in range(turns)][-1])
    ours, theirs = trips.n_points * turns / seconds, peer["points"] / peer["seconds"]
    between = {(int(a), int(b)): k for k, (a, b) in enumerate(task["links"])}
    paths = [[between[tuple(pair)] for pair in path if tuple(pair) in between] for path in peer["paths"]]
    told = [f"  {name}: {trips.n_points} points, {trips.n_trips} trips; ratio {ours / theirs:,.0f}"]
    told += [f"    murmurate          {ours:12,.0f} points/s"]
    told += [f"    leuvenmapmatching  {theirs:12,.1f} points/s, {peer['whole']} of {trips.n_trips} trips whole"]
    if truth is not None:
        offsets = np.cumsum([0] + [len(path) for path in paths])
        links = np.array([link for path in paths for link in path], dtype=np.int64)
        for k, pair in ((1, (found.path_offsets, found.path_link)), (2, (offsets, links))):
            told[k] += "   precision {:.3f} recall {:.3f}".format(*precision_recall(truth, *pair))
    print("\n".join(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="the Python of an environment with leuvenmapmatching and rtree")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MURMURATE_DATA", ROOT.parent / "shared" / "data")))
    given = parser.parse_args()
    table = pl.read_parquet(given.data / "sf_taxi_dploc200_trips.parquet")
    trips = Trips(table.rename({"user_id": "uid", "trip_id": "tid", "t": "datetime", "lon": "lng"}))
    central, county = read_roads(given.data / CENTRAL), read_roads(given.data / COUNTY)
    match(trips.take_trips(np.arange(20)), central)  # compile before anything is timed
    with tempfile.TemporaryDirectory() as folder:
        kept = os.environ.get("MURMURATE_CACHE")
        os.environ["MURMURATE_CACHE"] = folder
        print("Preparation, once per network (CPU seconds; routes in reach)")
        for name, network in (("central OSM", central), ("county TIGER", county)):
            made, routes = cpu_s(lambda network=network: prepare(network))
            again, _ = cpu_s(lambda network=network: prepare(network))
            size = f"{len(routes.cost) / 1e6:.0f} million pairs, {len(routes.cost) * 5 / 1e6:.0f} MB"
            print(f"  {name:12} made {made:.1f} s, from the cache {again:.3f} s: {size} within {routes.reach_s:g} s")
            del routes
        print("Directed links of drives whose link times the matcher does not know, 10 m of noise each way")
        accuracy("central OSM", central)
        from murmurate.demo.network import street_map

        accuracy("demo city", street_map().network)
        print("San Francisco taxis")
        taxis("central OSM", central, trips.take_points(central.locate(trips.lat, trips.lng) >= 0))
        taxis("county TIGER", county, trips)
        if given.peer:
            print("Against a peer, one run, the same trips one after the other")
            truth = drive(central, n_trips=12, interval_s=15, seed=2)
            against_peer("simulated, every 15 s", central, given.peer, truth.trips, truth)
            sparse = drive(central, n_trips=4, interval_s=60, seed=2)
            against_peer("simulated, every 60 s", central, given.peer, sparse.trips, sparse)
            inside = np.flatnonzero(np.minimum.reduceat(central.locate(trips.lat, trips.lng), trips.offsets[:-1]) >= 0)
            against_peer("taxis", central, given.peer, trips.take_trips(inside[5_000:5_010]))
        else:
            print("Against a peer: skipped, no --peer given")
        if kept is None:
            del os.environ["MURMURATE_CACHE"]
        else:
            os.environ["MURMURATE_CACHE"] = kept


if __name__ == "__main__":
    main()
