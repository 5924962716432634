"""Flows against POT and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from murmurate.judging.review import evaluate
from murmurate.metrics.compare import compare
from murmurate.metrics.flows import earth_mover_m, od_emd, od_emd_whole


@pytest.fixture(scope="module")
def pot():
    patch = pytest.MonkeyPatch()
    for backend in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        patch.setenv(f"POT_BACKEND_DISABLE_{backend}", "1")
    import ot

    yield ot
    patch.undo()


@pytest.mark.parametrize("seed", range(3))
def test_earth_mover_agrees_with_pot(pot, seed):
    rng = np.random.default_rng(seed)
    one, other = rng.normal(0, 1000, (60, 4)), rng.normal(100, 1500, (60, 4))
    cost = np.linalg.norm(one[:, None, :2] - other[None, :, :2], axis=2) + np.linalg.norm(
        one[:, None, 2:] - other[None, :, 2:], axis=2
    )
    expected = pot.emd2(np.full(60, 1 / 60), np.full(60, 1 / 60), cost)
    assert earth_mover_m(one, other) == pytest.approx(expected, rel=1e-9)


def test_hours_are_compared_with_their_own(original):
    # mornings and evenings exchanged: the same flows at other hours
    later = original.with_columns({"datetime": original.table["datetime"].dt.offset_by("1h")})
    found = evaluate(later, original, metrics=["od_emd", "od_emd_whole"])
    assert found["od_emd_whole"].value == 0
    assert found["od_emd"].value > 0


def test_small_hours_are_exact(pot, original, noise):
    comparison = compare(noise.with_columns({"datetime": original.table["datetime"]}), original)
    scores = {score.name: score for score in od_emd(comparison)}
    hour = int(comparison.original.hour[0])
    chosen = comparison.original.hour == hour
    one, other = comparison.original.ends_xy[chosen], comparison.released.ends_xy[chosen]
    cost = np.linalg.norm(one[:, None, :2] - other[None, :, :2], axis=2) + np.linalg.norm(
        one[:, None, 2:] - other[None, :, 2:], axis=2
    )
    share = np.full(len(one), 1 / len(one))
    assert scores[f"od_emd.hour_{hour:02d}"].value == pytest.approx(pot.emd2(share, share, cost), rel=1e-9)
    hours = [score.value for name, score in scores.items() if "hour" in name]
    assert scores["od_emd"].value == pytest.approx(np.mean(hours))


def test_an_equal_set_in_another_order_costs_nothing_even_when_sampled(original):
    comparison = compare(original, original)
    shuffled = compare(original, original)
    order = np.random.default_rng(0).permutation(original.n_trips)
    shuffled.released.__dict__["ends_xy"] = comparison.original.ends_xy[order]
    assert od_emd_whole(shuffled, sampled=50)[0].value == 0


def test_sampling_keeps_the_value_near(original, noise):
    comparison = compare(noise, original)
    whole, part = (od_emd_whole(comparison, sampled=sampled)[0] for sampled in (600, 300))
    assert part.n == 300
    assert part.value == pytest.approx(whole.value, rel=0.1)


def test_the_floor_is_what_a_second_sample_gives(original, noise):
    scores = {score.name: score.value for score in od_emd_whole(compare(noise, original))}
    assert 0 < scores["od_emd_whole.floor"] < scores["od_emd_whole"] / 3


def test_the_floor_may_be_left_out(original, noise):
    comparison = compare(noise.with_columns({"datetime": original.table["datetime"]}), original)
    whole, short = (od_emd(comparison, floor=floor) for floor in (True, False))
    assert [score for score in whole if score.name != "od_emd.floor"] == short


def test_matrix_errors_by_definition(original, noise):
    found = evaluate(noise, original, metrics=["od_matrix"])
    grid = original.space
    matrices = []
    for side in (original, noise):
        cell = grid.locate(side.lat, side.lng)
        matrix = np.zeros((grid.n_cells, grid.n_cells))
        np.add.at(matrix, (cell[side.offsets[:-1]], cell[side.offsets[1:] - 1]), 1)
        matrices.append(matrix.ravel())
    assert found["od_matrix.jsd"].value == pytest.approx(jensenshannon(*matrices, base=2) ** 2)
    p, q = (matrix / matrix.sum() for matrix in matrices)
    assert found["od_matrix.total_variation"].value == pytest.approx(np.abs(p - q).sum() / 2)
    used = (p > 0) | (q > 0)
    assert found["od_matrix.rmse"].value == pytest.approx(np.sqrt(np.mean((p - q)[used] ** 2)) * original.n_trips)
    assert found["od_matrix.zones.jsd"].value < found["od_matrix.jsd"].value
