"""One small release of the built-in city, judged, for all tests of pages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from murmurate import noise
from murmurate.core.ledger import Ledger
from murmurate.custody import door
from murmurate.demo import city
from murmurate.judging.review import attack, evaluate, review
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.report.ground import BaseMap

METRICS = ["length", "duration", "speed", "trip_size", "visits", "od_emd", "od_matrix", "top_places", "point_displacement"]


@pytest.fixture(scope="session")
def judged(tmp_path_factory):
    """town, base, review, evaluation and attacked of a geoind release."""
    town = city(people=25, days=3, seed=2, interval_s=30, across_km=5.0)
    folder = tmp_path_factory.mktemp("release") / "geoind"
    with Ledger.in_memory() as ledger:
        mechanism = GeoIndistinguishability(epsilon=1.0, radius_m=100.0, max_points=100)
        door.release(mechanism, town.trips, ledger=ledger, out=folder, rng=noise.seeded(1))
        seen = review(folder, town.trips, ledger=ledger)
    return SimpleNamespace(
        town=town,
        base=BaseMap(town.network, town.outlines()),
        review=seen,
        evaluation=evaluate(
            seen.released, seen.original, pairing=seen.pairing, grid=town.grid(400), metrics=METRICS, workers=1
        ),
        attacked=attack(seen.released, seen.original, pairing=seen.pairing),
    )
