"""Both layers, against textbook formulas and the published figures."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from murmurate.judging.study.regression import regress, through_origin
from murmurate.judging.study.spec import RegressionSpec

RADII = np.array([25.0, 50, 100, 150, 200, 300, 400, 500])
BUDGETS = np.array([0.1, 0.2, 0.5, 1, 1.5, 2])


def test_the_slope_and_its_interval_are_those_of_the_textbook():
    rng = np.random.default_rng(1)
    y = 3 * RADII + rng.normal(0, 20, len(RADII))
    line = through_origin(RADII, y)
    slope, residues, _, _ = np.linalg.lstsq(RADII[:, None], y, rcond=None)
    assert line.slope == pytest.approx(slope[0])
    error = np.sqrt(residues[0] / (len(RADII) - 1) / (RADII**2).sum())
    assert (line.high - line.low) / 2 == pytest.approx(stats.t.ppf(0.975, 7) * error)
    assert line.significant


def test_the_interval_covers_19_times_in_20():
    rng = np.random.default_rng(2)
    lines = [through_origin(RADII, 2 * RADII + rng.normal(0, 100, len(RADII))) for _ in range(2000)]
    covered = np.mean([line.low <= 2 <= line.high for line in lines])
    assert 0.935 < covered < 0.965


def test_nothing_is_significant_where_there_is_only_noise():
    rng = np.random.default_rng(3)
    found = np.mean([through_origin(RADII, rng.normal(0, 1, len(RADII))).significant for _ in range(1000)])
    assert 0.03 < found < 0.07


@pytest.mark.parametrize("x", [[], [0.0, 0.0], [1.0]])
def test_too_little_gives_no_interval(x):
    line = through_origin(x, np.ones(len(x)))
    assert np.isnan(line.low)
    assert not line.significant


PRINTED = {
    "length": (
        [362.29, 179.77, 70.289, 33.888, 21.75, 15.754],
        0.031,
        [526.58, 168.7, 40.479, 14.581, 8.0586, 5.2622],
        0.0859,
    ),
    "speed": ([1.9483, 0.9667, 0.378, 0.1822, 0.117, 0.0847], 5.7619, [2.8315, 0.9072, 0.2177, 0.0784, 0.0433, 0.0283], 15.976),
    "hausdorff": (
        [48.799, 24.049, 9.2517, 4.4345, 2.8701, 2.1132],
        0.233,
        [79.848, 27.853, 7.809, 3.2502, 2.014, 1.4625],
        0.3301,
    ),
    "centroid": (
        [5.8989, 2.9501, 1.1789, 0.5895, 0.3929, 0.2956],
        1.6939,
        [9.6926, 3.8132, 1.3857, 0.7199, 0.5089, 0.4066],
        1.282,
    ),
}


@pytest.mark.parametrize("metric", PRINTED)
def test_the_printed_c_follows_from_the_printed_a(metric):
    simple, c, predictive, other_c = PRINTED[metric]
    assert through_origin(BUDGETS, 1 / np.array(simple)).slope == pytest.approx(c, rel=0.003)
    assert through_origin(BUDGETS, 1 / np.array(predictive)).slope == pytest.approx(other_c, rel=0.003)


def table(a_of, *, b=5.0, spread=0.0, label="simple"):
    rng = np.random.default_rng(4)
    rows = [("t", "original", "x.mean", None, None, 0, b, "m")]
    for budget in BUDGETS:
        for radius in RADII:
            for repeat in range(3):
                value = b + a_of(budget) * radius + rng.normal(0, spread) if spread else b + a_of(budget) * radius
                rows.append(("t", label, "x.mean", float(budget), float(radius), repeat, value, "m"))
    names = ["dataset", "mechanism", "metric", "epsilon", "radius_m", "repeat", "value", "unit"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


def test_both_layers_find_what_was_put_in():
    found = regress(table(lambda budget: 4 / budget), RegressionSpec())
    assert found.first.sort("budget")["a"].to_list() == pytest.approx(list(4 / BUDGETS))
    assert found.second["c"][0] == pytest.approx(0.25)
    assert found.first["b"].unique().to_list() == [5.0]
    assert found.means["residual"].abs().max() < 1e-9


def test_performance_and_overlap():
    both = pl.concat(
        [table(lambda budget: 4 / budget, spread=1.0), table(lambda budget: 2 / budget, spread=1.0, label="better")[1:]]
    )
    found = regress(both, RegressionSpec(baseline="simple"))
    assert found.performance["baseline"].unique().to_list() == ["simple"]
    assert found.performance["percent"].to_list() == pytest.approx([100.0] * 7, abs=3)
    assert found.performance["differs"].all()
    assert found.performance.filter(pl.col("budget").is_null()).height == 1
    alike = pl.concat(
        [table(lambda budget: 4 / budget, spread=30.0), table(lambda budget: 4.001 / budget, spread=30.0, label="alike")[1:]]
    )
    assert not regress(alike, RegressionSpec()).performance["differs"].any()


def test_low_and_high_ends_bracket_c():
    found = regress(table(lambda budget: 4 / budget, spread=20.0), RegressionSpec()).second.row(0, named=True)
    assert found["c_of_high_a"] < found["c"] < found["c_of_low_a"]


def test_a_metric_that_does_not_move_is_not_significant():
    found = regress(table(lambda _: 0.0), RegressionSpec())
    assert not found.first["significant"].any()
    assert np.isnan(found.second["c"][0])
    assert found.to_json()["c"][0]["c"] is None


def test_without_the_two_settings_there_is_nothing_to_regress():
    plain = table(lambda budget: 4 / budget).drop("epsilon")
    assert regress(plain, RegressionSpec()).first.is_empty()
    assert regress(pl.DataFrame(), RegressionSpec()).performance.is_empty()


def test_a_mechanism_that_shortens_is_judged_by_how_much():
    both = pl.concat([table(lambda budget: 4 / budget), table(lambda budget: -2 / budget, label="shorter")[1:]])
    found = regress(both, RegressionSpec(baseline="simple")).performance
    assert found["percent"].to_list() == pytest.approx([100.0] * 7)


def test_attacks_are_not_regressed():
    mixed = table(lambda budget: 4 / budget).with_columns(kind=pl.lit("attack"))
    assert regress(mixed, RegressionSpec()).first.is_empty()
