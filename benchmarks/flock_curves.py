"""How flock's errors change with epsilon and with the number of trips: no error may rise by more than its spread.

    python benchmarks/flock_curves.py [--data city sf geolife] [--repeats 3] [--results curves.jsonl]
                                      [--svg docs/images/flock-curves.svg]

Epsilon runs from .1 to 100 on 5,000 trips, and the number of trips from 500 to 120,000 at epsilon 1 (as many as there are).
Finished releases are appended to `--results` and are not made again. The script ends with the rises it found: pairs of
neighbouring values where the mean error grows by more than twice the standard error of the difference and by more than a tenth.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from math import log10, sqrt
from pathlib import Path
from typing import Any

import numpy as np

import murmurate as mm
from murmurate import noise
from murmurate.errors import InputError
from murmurate.judging.review import evaluate
from murmurate.mechanisms import build
from murmurate.spaces.grid import Grid
from synthesis import SIX, _box, load

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 100.0)
TRIPS = (500, 1_000, 2_000, 5_000, 10_000, 30_000, 120_000)
FIXED_TRIPS, FIXED_EPSILON = 5_000, 1.0
ERRORS = ("query", "Kendall", "F1", "trip", "diameter", "length")
ONE_MINUS = {"Kendall", "F1"}
FIRST_SEED = 31_000
COLOURS = {"city": "#4c78a8", "sf": "#e45756", "geolife": "#54a24b"}
WIDTH, HEIGHT, MARGIN = 250, 170, 46
SURE, NOTABLE = 2.0, 0.1
"""Standard errors and share of the lower value by which an error must grow to count as a rise."""


def errors_of(released: Any, original: Any, grid: Grid, seed: int) -> dict[str, float]:
    metrics = list(dict.fromkeys(score.split(".")[0] for score in SIX.values()))
    found = evaluate(released, original, grid=Grid(*_box(grid), 1000), metrics=metrics, seed=seed)
    values = {name: float(found[SIX[name]].value) for name in ERRORS}
    return {name: 1 - value if name in ONE_MINUS else value for name, value in values.items()}


def measure(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    have = {(row["data"], row["axis"], row["at"], row["repeat"]) for row in rows}
    for repeat in range(options.repeats):
        for name in options.data:
            loaded = load(name)
            if loaded is None:
                print(f"{name} is not here; set MURMURATE_DATA to the folder of real data.")
                continue
            everything, grid, _ = loaded
            order = np.random.default_rng(8).permutation(everything.n_trips)
            points = [("epsilon", at, min(FIXED_TRIPS, everything.n_trips)) for at in EPSILONS]
            points += [("trips", at, at) for at in TRIPS if at <= everything.n_trips and at <= options.most_trips]
            for axis, at, n in points:
                if (name, axis, at, repeat) in have:
                    continue
                original = everything.take_trips(order[:n])
                epsilon = at if axis == "epsilon" else FIXED_EPSILON
                mechanism = build("flock", {"epsilon": epsilon, "space": grid, "n_out": n})
                try:
                    released = mm.rehearse(mechanism, original, rng=noise.seeded(FIRST_SEED + repeat)).payload
                except InputError:  # too few trips for this budget, which the mechanism says itself
                    continue
                row = {"data": name, "axis": axis, "at": at, "repeat": repeat}
                row["errors"] = errors_of(released, original, grid, repeat)
                rows.append(row)
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


def curves(rows: list[dict[str, Any]], axis: str, error: str) -> dict[str, list[tuple[float, float, float]]]:
    """Points (value, mean, standard error) of every set of trips."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for data in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == data and row["axis"] == axis]
        for at in sorted({row["at"] for row in mine}):
            values = [row["errors"][error] for row in mine if row["at"] == at]
            spread = float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else float("nan")
            found.setdefault(data, []).append((at, float(np.mean(values)), spread))
    return found


def rises(rows: list[dict[str, Any]]) -> list[str]:
    """Describe every step at which an error surely and notably grows."""
    found = []
    for axis in ("epsilon", "trips"):
        for error in ERRORS:
            for data, points in curves(rows, axis, error).items():
                for (low, before, one), (high, after, two) in pairwise(points):
                    if after - before > max(SURE * float(np.hypot(one, two)), NOTABLE * before):
                        found.append(f"{data}: {error} {before:.4f} -> {after:.4f} as {axis} goes {low:g} -> {high:g}")
    return found


def svg(rows: list[dict[str, Any]]) -> str:
    """Small panels: errors from left to right, epsilon above, trips below; both axes logarithmic."""
    parts = []
    for row, axis in enumerate(("epsilon", "trips")):
        for column, error in enumerate(ERRORS):
            parts.append(f'<g transform="translate({column * WIDTH},{row * HEIGHT + 24})">{panel(rows, axis, error)}</g>')
    legend = "".join(
        f'<text x="{MARGIN + 130 * at}" y="15" fill="{colour}" font-weight="bold">{name}</text>'
        for at, (name, colour) in enumerate(COLOURS.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(ERRORS)} {2 * HEIGHT + 30}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f"{legend}{''.join(parts)}</svg>\n"
    )


def panel(rows: list[dict[str, Any]], axis: str, error: str) -> str:
    found = curves(rows, axis, error)
    every = [point for points in found.values() for point in points]
    if not every:
        return ""
    across = [log10(min(p[0] for p in every)), log10(max(p[0] for p in every))]
    up = [log10(max(min(p[1] for p in every), 1e-5)) - 0.05, log10(max(p[1] for p in every)) + 0.05]
    right, bottom = WIDTH - 12, HEIGHT - 34

    def x(value: float) -> float:
        return MARGIN + (log10(value) - across[0]) / max(across[1] - across[0], 1e-9) * (right - MARGIN)

    def y(value: float) -> float:
        return bottom - (log10(max(value, 1e-5)) - up[0]) / max(up[1] - up[0], 1e-9) * (bottom - 16)

    shown = "1 - " + error if error in ONE_MINUS else error
    drawn = [
        f'<text x="{MARGIN}" y="10">{shown}</text>',
        f'<path d="M{MARGIN} 16V{bottom}H{right}" fill="none" stroke="#999"/>',
    ]
    ticks = (0.1, 1, 10, 100) if axis == "epsilon" else (500, 5_000, 50_000)
    drawn += [
        f'<text x="{x(value):.1f}" y="{bottom + 13}" text-anchor="middle" fill="#555">{value:g}</text>'
        for value in ticks
        if across[0] - 1e-9 <= log10(value) <= across[1] + 1e-9
    ]
    drawn.append(f'<text x="{right}" y="{bottom + 26}" text-anchor="end" fill="#555">{axis}</text>')
    drawn += [
        f'<text x="{MARGIN - 4}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#555">{value:.2g}</text>'
        for value in (10 ** (up[0] + 0.05), 10 ** (up[1] - 0.05))
    ]
    for data, points in found.items():
        colour = COLOURS[data]
        line = " ".join(f"{x(at):.1f},{y(mean):.1f}" for at, mean, _ in points)
        drawn.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        drawn += [
            f'<path d="M{x(at):.1f} {y(max(mean - spread, 1e-5)):.1f}V{y(mean + spread):.1f}" stroke="{colour}"/>'
            for at, mean, spread in points
            if not np.isnan(spread)
        ]
    return "".join(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(COLOURS), choices=list(COLOURS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-trips", type=int, default=120_000)
    parser.add_argument("--results", type=Path, default=Path("curves.jsonl"))
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    lines = options.results.read_text(encoding="utf-8").splitlines() if options.results.is_file() else []
    rows = [json.loads(line) for line in lines]
    measure(options, rows)
    if options.svg:
        options.svg.write_text(svg(rows), encoding="utf-8")
    print("\n".join(rises(rows)) or "no error rises")


if __name__ == "__main__":
    main()
