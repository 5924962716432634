"""Points per CPU second of the geoind kernels, against a plain Python loop and trasgodp, in one run.

python benchmarks/geoind_kernel.py [--points N] [--peer-python PATH | --no-peer]

Without --peer-python a temporary virtual environment is made and trasgodp installed into it from PyPI.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import lambertw

from murmurate import noise

SCALE_M = 100.0

PEER = """
import sys, time
import numpy as np, pandas as pd
from trasgodp.geoindis import metric_privacy
n = int(sys.argv[1])
rng = np.random.default_rng(1)
frame = pd.DataFrame({"lat": rng.uniform(60.1, 60.3, n), "lng": rng.uniform(24.8, 25.2, n)})
metric_privacy(frame.head(100), "lat", "lng", 0.01)
start = time.process_time()
metric_privacy(frame, "lat", "lng", 0.01)
print(time.process_time() - start)
"""


def gamma_radius() -> float:
    return random.gammavariate(2, SCALE_M)


def lambert_radius() -> float:
    """The inverse of the radius law, as papers write it."""
    return -SCALE_M * (lambertw((random.random() - 1) / math.e, -1).real + 1)


def python_loop(lat: list[float], lng: list[float], radius: Callable[[], float]) -> list[tuple[float, float]]:
    """What one writes first: a radius and an angle, one point after the other."""
    out = []
    metres = 6_371_008.8 * math.pi / 180
    for one_lat, one_lng in zip(lat, lng, strict=True):
        angle, length = random.uniform(0, 2 * math.pi), radius()
        north, east = length * math.cos(angle), length * math.sin(angle)
        out.append((one_lat + north / metres, one_lng + east / (metres * math.cos(math.radians(one_lat)))))
    return out


def points_per_cpu_second(work: Callable[[], object], points: int, repeats: int = 3) -> float:
    """The best of some repeats, after one that is not counted."""
    work()
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return points / best


def peer_rate(python: Path, points: int) -> float:
    answer = subprocess.run([str(python), "-c", PEER, str(points)], check=True, capture_output=True, text=True)
    return points / float(answer.stdout.strip().splitlines()[-1])


def with_peer(given: Path | None, points: int) -> float:
    if given is not None:
        return peer_rate(given, points)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "trasgodp"], check=True)
        return peer_rate(python, points)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=5_000_000)
    parser.add_argument("--peer-python", type=Path, help="an interpreter that has trasgodp")
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    n, few = arguments.points, min(arguments.points, 50_000)
    public = np.random.default_rng(1)
    lat, lng = public.uniform(60.1, 60.3, n), public.uniform(24.8, 25.2, n)
    lat_udeg, lng_udeg = np.rint(lat * 1e6).astype(np.int32), np.rint(lng * 1e6).astype(np.int32)
    x, y = public.integers(-200_000, 200_000, n), public.integers(-200_000, 200_000, n)
    some_lat, some_lng = lat[:few].tolist(), lng[:few].tolist()
    rng = noise.secure()

    rates = {
        "murmurate, microdegree lattice": points_per_cpu_second(
            lambda: noise.geo_laplace(lat_udeg, lng_udeg, epsilon_per_m=1 / SCALE_M, rng=rng), n
        ),
        "murmurate, plane lattice of 0.1 m": points_per_cpu_second(
            lambda: noise.planar_laplace(x, y, epsilon_per_step=0.1 / SCALE_M, rng=rng), n
        ),
        "plain Python loop, Gamma(2)": points_per_cpu_second(lambda: python_loop(some_lat, some_lng, gamma_radius), few),
        "plain Python loop, Lambert W": points_per_cpu_second(lambda: python_loop(some_lat, some_lng, lambert_radius), few),
    }
    if not arguments.no_peer:
        rates["trasgodp.geoindis.metric_privacy"] = with_peer(arguments.peer_python, few)

    ours = rates["murmurate, microdegree lattice"]
    print(f"{'':36}{'points per CPU s':>18}{'slower than degrees by':>24}")
    for name, rate in rates.items():
        print(f"{name:36}{rate:18,.0f}{ours / rate:23.1f}x")


if __name__ == "__main__":
    main()
