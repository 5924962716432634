"""Membership in releases of 5,000 San Francisco taxi trips: at chance with epsilon 1, found without privacy.

    benchmarks/membership.py [--draws 3] [--data FOLDER]

Prints one line for each mechanism, epsilon and draw of trips. An attack that cannot win is no test, so the same attack runs on
twins with an epsilon of 10,000, which the mechanisms themselves refuse.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import murmurate as mm
from murmurate import mechanisms
from murmurate.attacks.trip_membership import membership
from murmurate.judging.scoring import releasing_again

BOX = "grid:37.6017,-122.5158,37.8112,-122.3527:250"
TRIPS, PRIVATE, OPEN = 5_000, 1.0, 10_000.0


def main() -> None:
    """Draw trips, release random thirds of them, and tell members from others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    given = parser.parse_args()
    everything = mm.read(given.data / "sf_taxi_dploc200_trips.parquet", time_zone="America/Los_Angeles")
    for draw in range(given.draws):
        chosen = np.random.default_rng([15, draw]).choice(everything.n_trips, TRIPS, replace=False)
        trips = everything.take_trips(np.sort(chosen))
        for name in ("flock", "dp_loc"):
            for epsilon in (PRIVATE, OPEN):
                mechanism = mechanisms.build(name, {"space": BOX, "epsilon": PRIVATE, "delta": 1e-6, "unit": "trip"})
                object.__setattr__(mechanism, "epsilon", epsilon)
                scores = membership(trips, trips, **releasing_again(mechanism, seeded_runs=False), seed=draw)
                score = next(one for one in scores if one.name == "membership.auc")
                interval = f"({score.low:.3f} to {score.high:.3f})"
                print(f"{name} epsilon {epsilon:g} draw {draw}: AUC {score.value:.3f} {interval}", flush=True)


if __name__ == "__main__":
    main()
