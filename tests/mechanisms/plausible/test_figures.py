"""The figures that `plausible` is held to: `own` on a city of 1,000, the paper's on Geolife."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate.attacks.localise import CLAIMED, RELINKED, hide
from murmurate.attacks.localise_hmm import decode_viterbi
from murmurate.attacks.localise_pool import localise_pool
from murmurate.core.trips import Trips
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.model import DayModel
from murmurate.mechanisms.plausible.patterns import label_days
from murmurate.mechanisms.plausible.statistics import measured
from murmurate.metrics.semantics import visit_divergence, visit_relative_error
from murmurate.noise import seeded
from murmurate.papers.plausible.baselines import aggregate_iid, uniform_iid, walk_user
from murmurate.papers.plausible.published import fill_pool, learn
from murmurate.profiles.aggregate import Aggregate
from murmurate.profiles.days import daily_traces
from murmurate.spaces.grid import Grid


def two_days(days):
    return days.take(np.isin(days.person, np.flatnonzero(np.bincount(days.person) > 1)))


def moves(place):
    return (place[:, 1:] != place[:, :-1]).sum(axis=1).mean()


def visits(place, n):
    return np.bincount(place.ravel(), minlength=n).astype(float)


def test_own_on_a_city_of_a_thousand():
    city = mm.demo.city(people=1142, days=5, seed=8, interval_s=300)
    grid = city.grid(500)
    days = two_days(daily_traces(city.trips, grid, grid.n_cells))
    second = days.nth_days(1)
    noisy = measured(days, grid, epsilon=1.0, rng=seeded(11))
    model = DayModel.fit(noisy, grid, steps=72, time_zone="UTC", rng=seeded(12))
    made = model.places(second.n_days * 10, seeded(13))
    assert moves(made) == pytest.approx(moves(days.place), rel=0.15)
    assert label_days(made)[2].mean() == pytest.approx(label_days(days.place)[2].mean(), rel=0.15)
    real = visits(second.place, grid.n_cells)
    assert visit_divergence(real, visits(made[: second.n_days], grid.n_cells)) <= 0.25
    found = {part.name: part.wrong for part in localise_pool(days, made, grid, seed=14)}
    assert min(found[name].mean() for name in RELINKED) >= 0.80
    assert found["classifier"].mean() >= 0.70
    assert np.median(found["classifier"]) >= 0.9
    assert min(found[name].mean() for name in CLAIMED if name in found) >= 0.65
    assert found["another_day"].mean() < 0.6  # nothing is claimed there


@pytest.mark.data
def test_the_papers_figures_on_geolife(data_dir):
    names = {"user_id": "uid", "trip_id": "tid", "t": "datetime", "lon": "lng"}
    table = (
        pl.read_parquet(data_dir / "geolife_60s.parquet").rename(names).with_columns(pl.col("datetime").dt.cast_time_unit("us"))
    )
    grid = Grid(39.75, 116.15, 40.10, 116.60, 300)
    near = pl.col("lat").is_between(39.7, 40.15) & pl.col("lng").is_between(116.1, 116.65)
    trips = Trips(table.filter(near), time_zone="Asia/Shanghai")
    days = two_days(daily_traces(trips, grid, grid.n_cells)).nth_days(0)
    assert 80 <= days.n_days <= 120
    settings = Plausible(space=grid, n_out=900, variant="as_published", seed_share=30 / days.n_days, most_per_seed=100)
    learned = learn(days, settings, seeded(1))
    pool = fill_pool(learned, settings, seeded(2))
    assert pool.passed["intersection"] >= 0.9
    assert pool.passed["all"] >= 0.8
    n, people = learned.chosen.n_places, len(learned.seeds)
    generator = np.random.default_rng(3)
    real = visits(learned.seeds, n)
    sets = [visits(pool.place[generator.permutation(900)[:people]], n) for _ in range(10)]
    assert 0.384 / 2 <= np.mean([visit_divergence(real, part) for part in sets]) <= 0.384 * 2
    assert 0.370 / 2 <= np.mean([visit_relative_error(real, part) for part in sets]) <= 0.370 * 2
    model = Aggregate.of(learned.seeds, learned.chosen, n, smoothing=0.03)
    medians = []
    for fakes in (
        uniform_iid(people * 10, 72, n, generator),
        aggregate_iid(people * 10, 72, model, generator),
        walk_user(learned.seeds, 10, generator),
        pool.place[generator.permutation(900)[: people * 10]],
    ):
        scene = hide(learned.seeds, fakes.reshape(people, 10, 72), generator=generator)
        wrong = (decode_viterbi(scene.sent, model.log_steps(2), model.log_visits()) != scene.true).mean(axis=1)
        medians.append(np.median(wrong))
    assert medians == sorted(medians)
    assert medians[3] >= 0.99
    assert medians[2] < 0.9
