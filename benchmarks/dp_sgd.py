"""A private training step beside the plain one and beside Opacus; generation beside its matrix products and networkx.

    python benchmarks/dp_sgd.py [--batch 2048] [--repeats 20] [--cells 2851] [--opacus PYTHON] [--routes]

Ratios of CPU time in one run on one thread. `--opacus` names the Python of an environment of its own that has torch and
opacus; the same network with one-hot inputs is trained there. networkx is extrapolated from a few trips, and said so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

from murmurate import noise
from murmurate.papers.dp_loc.initialiser_vae import EndsVAE
from murmurate.papers.dp_loc.net_router import PublishedRouter, grouped_paths
from murmurate.papers.dp_loc.networks import PublishedNet
from murmurate.papers.training.ghost import plain_sum
from murmurate.papers.training.train import Optimiser, compiled, noisy_sum
from murmurate.synthesis.moves import Neighbourhood
from murmurate.synthesis.shortest import Window


def interleaved(functions: dict, repeats: int) -> dict[str, float]:
    """Median CPU milliseconds of each function, taken in turns so that a busy machine hurts all alike."""
    for function in functions.values():
        function()
    spent: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.process_time()
            function()
            spent[name].append((time.process_time() - start) * 1e3)
    return {name: float(np.median(values)) for name, values in spent.items()}


def steps(network, columns: dict, batch: int, repeats: int) -> dict[str, float]:
    import jax

    generator, rng = np.random.default_rng(1), noise.secure()
    params = network.start(generator)
    weight, key = np.ones((batch, 1), np.float32), jax.random.key(1)
    optimiser = Optimiser("sgd", 0.1)
    private_sum = compiled(network, 1.0)
    ordinary_sum = jax.jit(lambda params, columns, weight: plain_sum(network, params, columns, weight, key))

    def private() -> None:
        sums = {name: np.asarray(value) for name, value in private_sum(params, columns, weight, key)[0].items()}
        optimiser.update(params, noisy_sum(sums, clip=1.0, noise_multiplier=1.0, rng=rng))

    def plain() -> None:
        sums = {name: np.asarray(value) for name, value in ordinary_sum(params, columns, weight)[0].items()}
        optimiser.update(params, sums)

    return interleaved({"plain": plain, "private": private}, repeats)


def training(cells: int, batch: int, repeats: int) -> dict:
    generator = np.random.default_rng(1)

    def column(n: int):
        return generator.integers(0, n, (batch, 1)).astype(np.int32)

    next_cell = {"cell": column(cells), "destination": column(cells), "hour": column(24), "offset": column(121)}
    ends = {"source": column(cells), "destination": column(cells), "hour": column(24)}
    found = {
        "next_cell": steps(PublishedNet(cells, 121, 24), next_cell, batch, repeats),
        "ends_vae": steps(EndsVAE(cells, 24), ends, batch, repeats),
    }
    for values in found.values():
        values["private / plain"] = values["private"] / values["plain"]
    return found


def routes(repeats: int, groups: int = 60) -> dict:
    """Most probable routes on 94 x 58 cells: the whole, its matrix products alone, and networkx for a few trips."""
    import networkx

    around = Neighbourhood(rows=94, columns=58, reach=5)
    generator = np.random.default_rng(1)
    net = PublishedNet(around.n_cells, around.n_offsets, 24)
    router = PublishedRouter(net.start(generator), around, 24, "most_probable")
    destinations = np.repeat(generator.integers(0, around.n_cells, groups), 3)
    # trips of up to some five kilometres, as most taxi trips are; the tree stops growing when all its sources are reached
    apart = generator.integers(-14, 15, (2, len(destinations)))
    row, column = np.clip(destinations // 58 + apart[0], 0, 93), np.clip(destinations % 58 + apart[1], 0, 57)
    near, far = row * 58 + column, generator.integers(0, around.n_cells, len(destinations))
    hours = np.repeat(generator.integers(0, 24, groups), 3)
    hidden = generator.random((around.n_cells, net.hidden), dtype=np.float32)
    made = np.empty((around.n_cells, around.n_offsets), dtype=np.float32)

    def products() -> None:
        for _ in range(groups):
            np.matmul(hidden, router.params["out.w"], out=made)

    found = interleaved(
        {
            "routes, sources within 14 cells": lambda: grouped_paths(near, destinations, hours, around, router.costs()),
            "routes, sources anywhere": lambda: grouped_paths(far, destinations, hours, around, router.costs()),
            "matrix products": products,
        },
        max(2, repeats // 5),
    )
    kinds = [name for name in found if name.startswith("routes")]
    ratios = {f"{name} / matrix products": found[name] / found["matrix products"] for name in kinds}
    logits, totals, _ = router.costs()(int(destinations[0]), int(hours[0]))(Window((0, 0, 94, 58), 58))
    cost = np.asarray((totals - logits).T)
    start = time.process_time()
    graph = networkx.DiGraph()
    cell, at = np.nonzero(np.isfinite(cost))
    target = (cell // 58 + at // 11 - 5) * 58 + cell % 58 + at % 11 - 5
    graph.add_weighted_edges_from(zip(cell.tolist(), target.tolist(), cost[cell, at].tolist(), strict=True))
    networkx.dijkstra_path(graph, int(far[0]), int(destinations[0]))
    peer = (time.process_time() - start) * 1e3
    ratios |= {f"networkx / {name}, per trip, extrapolated from one": peer / (found[name] / len(near)) for name in kinds}
    return found | {"networkx per trip (one trip, graph built for its destination and hour)": peer} | ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--cells", type=int, default=2851)
    parser.add_argument("--opacus", type=Path)
    parser.add_argument("--routes", action="store_true")
    options = parser.parse_args()
    found: dict = {"milliseconds": training(options.cells, options.batch, options.repeats)}
    if options.opacus:
        peer = Path(__file__).with_name("dp_sgd_opacus.py")
        command = [str(options.opacus), str(peer), str(options.cells), str(options.batch)]
        found["opacus milliseconds"] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if options.routes:
        found["routes milliseconds"] = routes(options.repeats)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
