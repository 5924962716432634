"""The six statistics of whole days: by hand, perfect against itself, bad for noise, beside the paper's baselines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from murmurate.judging.review import evaluate
from murmurate.mechanisms.plausible.model import as_trips
from murmurate.metrics import METRICS, measure
from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import NotMeasurable
from murmurate.metrics.semantics import (
    allocation_divergence,
    beside,
    pair_similarities,
    stationary_similarity,
    time_allocation,
    top_coverage,
    visit_divergence,
    visit_relative_error,
)
from murmurate.papers.plausible.baselines import uniform_iid
from murmurate.profiles.aggregate import Aggregate
from murmurate.spaces.grid import Grid
from plausible_days import GRID, made_days, trips_of

NAMES = [name for name in METRICS if name.startswith("day_")]


@pytest.fixture(scope="module")
def days():
    return made_days(40, 2, seed=2)


@pytest.fixture(scope="module")
def itself(days):
    first = as_trips(days.nth_days(0).place, GRID, "UTC")
    return compare(first, first, grid=GRID)


@pytest.fixture(scope="module")
def noise(days):
    made = as_trips(uniform_iid(40, 72, GRID.n_cells, np.random.default_rng(0)), GRID, "UTC")
    return compare(made, trips_of(days), grid=GRID)


@pytest.mark.parametrize("name", NAMES)
def test_a_release_against_itself_is_perfect(name, itself):
    for score in measure(name, itself):
        if score.better != "neither":
            assert score.value == pytest.approx(0.0 if score.better == "lower" else 1.0, abs=1e-9), score


@pytest.mark.parametrize("name", NAMES)
def test_noise_is_bad_and_scores_repeat(name, noise):
    once, again = measure(name, noise), measure(name, noise)
    assert [score.to_json() for score in once] == [score.to_json() for score in again]
    judged = [score for score in once if score.better != "neither"]
    assert max(score.value if score.better == "lower" else 1 - score.value for score in judged) > 0.02
    assert all(score.name.startswith(f"{name}.") and score.low <= score.value <= score.high for score in once)


def test_baselines_stand_beside(days):
    made = as_trips(made_days(60, 1, seed=7).place, GRID, "UTC")
    found = {score.name: score for score in measure("day_visits", compare(made, trips_of(days), grid=GRID))}
    for words in ("another real day", "uniform", "single place"):
        assert words in found["day_visits.kl"].note
    allocation = measure("day_time_allocation", compare(made, trips_of(days), grid=GRID))
    assert "random" in allocation[0].note
    assert set(beside(allocation[0])) == {"another real day", "uniform", "random"}
    assert beside(found["day_visits.kl"])["single place"] > beside(found["day_visits.kl"])["another real day"]
    assert beside(measure("day_semantics", compare(made, trips_of(days), grid=GRID))[0]) == {}
    assert allocation[0].value < 0.1


def test_statistics_by_hand():
    real, made = np.array([6.0, 3.0, 1.0, 0.0]), np.array([1.0, 6.0, 0.0, 3.0])
    assert visit_divergence(real, made) == pytest.approx(0)
    assert visit_divergence(np.array([9.9, 0.0]), np.array([5.0, 5.0])) == pytest.approx(
        0.99 * np.log(0.99 / 0.5) + 0.01 * np.log(0.01 / 0.5)
    )
    assert visit_relative_error(np.array([10.0, 0.0]), np.array([5.0, 5.0])) == pytest.approx((0.5 + 5 / 0.01) / 2)
    assert top_coverage(real, made, 2) == 0.5
    day = np.array([[1, 1, 2, 3]] * 2)
    assert time_allocation(day, 0).tolist() == [0.5, 0.5]
    assert time_allocation(day, 3).tolist() == [0.0, 0.0]
    assert time_allocation(day, 0, 1).tolist() == [0.75, 0.75]
    assert allocation_divergence(np.array([0.2, 0.6]), np.array([0.1, 0.3])) == pytest.approx(0)


def test_relabelled_days_are_as_alike_as_the_originals():
    place = made_days(10, 1).place
    assert pair_similarities(place, 200) == pytest.approx(pair_similarities((place + 100).astype(np.int32), 200))


def test_without_whole_days_nothing_is_measured(days):
    few = as_trips(days.place[:2], GRID, "UTC")
    with pytest.raises(NotMeasurable, match="whole days"):
        measure("day_visits", compare(few, trips_of(days), grid=GRID))
    assert "day_semantics" in evaluate(few, few, grid=GRID, metrics=["day_semantics"]).skipped


def test_stationary_similarity_by_hand():
    """Two places far apart. One model leaves both with probability 1/2, the other leaves the first three times as often."""
    grid = Grid(60.0, 24.0, 60.01, 24.02, 1000)

    def model(steps):
        made = Aggregate.of(np.zeros((1, 4), dtype=np.int32), grid, 2)
        return replace(made, steps=np.array(steps))

    even, skewed = model([[0.5, 0.5], [0.5, 0.5]]), model([[0.4, 0.6], [0.2, 0.8]])
    # the second rests at (1/4, 3/4): flows .25 * .6 and .75 * .2 balance
    assert stationary_similarity(even, skewed) == pytest.approx(0.75)
