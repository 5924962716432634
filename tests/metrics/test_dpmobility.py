"""The similarities of dp-mobility-report, from its own formulas with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from murmurate.judging.review import evaluate
from small_town import GRID


def symmetric_mape(alternative, base):
    total = 0.0
    for a, b in zip(alternative, base, strict=True):
        total += 0 if a + b == 0 else abs(a - b) / ((a + b) / 2)
    return total / len(base)


def test_visits_count_ends_only_and_flows_their_pairs(original, noise):
    mixed = noise.with_columns(
        {name: np.where(noise.point_trip % 4 == 0, getattr(noise, name), getattr(original, name)) for name in ("lat", "lng")}
    )
    found = evaluate(
        original, mixed, metrics=["dpmobility_visits", "dpmobility_od"]
    )  # the release goes only where the mix went
    visits, flows = [], []
    for side in (original, mixed):
        cell = GRID.locate(side.lat, side.lng)
        start, end = cell[side.offsets[:-1]], cell[side.offsets[1:] - 1]
        visits.append(np.bincount(np.concatenate([start, end]), minlength=GRID.n_cells))
        matrix = np.zeros((GRID.n_cells, GRID.n_cells))
        np.add.at(matrix, (start, end), 1)
        flows.append(matrix.ravel())
    used = (flows[0] > 0) | (flows[1] > 0)
    flows = [flow[used] for flow in flows]
    for name, (alternative, base) in (("dpmobility_visits", visits), ("dpmobility_od", flows)):
        assert found[f"{name}.jsd"].value == pytest.approx(jensenshannon(alternative, base))
        assert found[f"{name}.kl"].value == pytest.approx(entropy(alternative, base))
        assert found[f"{name}.smape"].value == pytest.approx(symmetric_mape(alternative / alternative.sum(), base / base.sum()))


def test_coverage_by_definition(original, noise):
    found = evaluate(noise, original, metrics=["dpmobility_visits"])
    top = []
    for side in (original, noise):
        cell = GRID.locate(side.lat, side.lng)
        count = np.bincount(np.concatenate([cell[side.offsets[:-1]], cell[side.offsets[1:] - 1]]), minlength=GRID.n_cells)
        order = np.lexsort((np.arange(GRID.n_cells), -count))
        top.append(set(order[:10].tolist()))
    assert found["dpmobility_visits.coverage_10"].value == pytest.approx(len(top[0] & top[1]) / 10)


def test_visits_move_as_far_as_they_were_moved(original):
    # every end one row of cells to the north: the earth mover's distance is one cell
    moved = original.with_columns({"lat": original.lat + GRID.lat_step})
    found = evaluate(moved, original, metrics=["dpmobility_visits"])
    assert found["dpmobility_visits.emd"].value == pytest.approx(250, rel=0.05)
