"""The trained parts of DP-Loc: they run whole, keep to their events, and come back from a file."""

from __future__ import annotations

import numpy as np
import pytest

from diagonal_city import GRID, city
from murmurate import noise
from murmurate.core.accounting import compose
from murmurate.core.events import Gaussian, PoissonGaussian
from murmurate.mechanisms.dp_loc import DPLoc, budget
from murmurate.mechanisms.dp_loc.budget import budget_of
from murmurate.mechanisms.dp_loc.net_router import PublishedRouter, grouped_paths, inside
from murmurate.mechanisms.dp_loc.networks import PublishedNet
from murmurate.mechanisms.dp_loc.settings import VARIANTS
from murmurate.synthesis.moves import Neighbourhood


def mechanism(**options):
    return DPLoc(**{"epsilon": 8.0, "space": GRID, "epochs": 0.1, "max_cells": 20, **options})


@pytest.fixture
def quick_accounting(monkeypatch):
    """Any noise will do where a test is not about the promise: solving for it takes longer than these trainings."""
    budget_of.cache_clear()
    monkeypatch.setattr(budget, "solve_noise_multiplier", lambda *_, **__: 1.0)
    yield
    budget_of.cache_clear()


@pytest.mark.usefixtures("quick_accounting")
@pytest.mark.parametrize(
    "options",
    [
        {"variant": "as_published", "epochs": 0.02},
        {"variant": "as_published", "epochs": 0.02, "route": "sampled"},
        {"initialiser": "vae", "next_cell": "net"},
    ],
    ids=["as_published", "as_published_sampled", "own_networks"],
)
def test_trained_variants_run_and_come_back_from_a_file(options, tmp_path):
    asked = mechanism(**options)
    model = asked.fit(city(80), noise.seeded(1))
    released = model.sample(60, noise.seeded(2))
    assert released.n_trips == 60
    assert (np.diff(released.offsets) >= 2).all()
    around = asked.around()
    inner = np.ones(released.n_points - 1, dtype=bool)
    inner[released.offsets[1:-1] - 1] = False
    assert (around.offset(released.cell[:-1], released.cell[1:])[inner] >= 0).all()
    model.save(tmp_path)
    again = asked.load(tmp_path).sample(60, noise.seeded(2))
    assert again.table.equals(released.table)


def test_networks_and_tables_share_one_promise():
    asked = DPLoc(epsilon=1.0, space=GRID, variant="as_published")
    promise = asked.guarantee()
    assert 0.98 < compose(promise.events, delta=promise.delta) <= 1.0
    trained = [event for event in promise.events if isinstance(event, PoissonGaussian)]
    assert len(trained) == 2
    for event in trained:
        assert event.times * event.sampling == pytest.approx(asked.settings().moves_training.epochs, rel=0.01)


@pytest.mark.usefixtures("quick_accounting")
def test_what_is_drawn_is_what_was_charged(monkeypatch):
    """Every noisy step of a fit, counted: tables against Gaussian events, training steps against Poisson ones."""
    from murmurate.training import train as training

    asked = mechanism(variant="as_published", epochs=0.02)
    tables, steps = [], []
    gaussian, noisy_sum = noise.gaussian_integers, training.noisy_sum
    monkeypatch.setattr(
        noise, "gaussian_integers", lambda v, *, scale, rng: tables.append(scale) or gaussian(v, scale=scale, rng=rng)
    )
    monkeypatch.setattr(training, "noisy_sum", lambda s, **o: steps.append(o["noise_multiplier"]) or noisy_sum(s, **o))
    asked.fit(city(40), noise.seeded(1))
    events = asked.guarantee().events
    assert len(tables) == sum(isinstance(event, Gaussian) for event in events)
    charged = [event.noise_multiplier for event in events if isinstance(event, PoissonGaussian) for _ in range(event.times)]
    assert steps == charged


def test_most_probable_paths_of_the_network_follow_its_probabilities():
    around = Neighbourhood(rows=6, columns=7, reach=2)
    net = PublishedNet(around.n_cells, around.n_offsets, 24, 5, 8)
    params = net.start(np.random.default_rng(1))
    router = PublishedRouter(params, around, 24, "most_probable")
    object.__setattr__(router, "net", net)
    costs = router._costs()(10, 8)
    rows = np.arange(around.n_cells)
    logits = np.asarray(net.logits(params, rows, np.full_like(rows, 10), np.full_like(rows, 8)))
    weights = np.where(inside(around), np.exp(logits), 0.0)
    assert np.exp(-costs) == pytest.approx(weights / weights.sum(axis=1, keepdims=True), abs=1e-5)
    made = grouped_paths(np.array([0, 41, 10]), np.array([10, 10, 10]), np.array([8, 8, 8]), around, router._costs())
    assert made.sources.tolist() == [0, 41, 10]
    assert set(made.destinations.tolist()) == {10}


def test_published_settings_are_those_of_the_paper():
    published = VARIANTS["as_published"]
    assert (published.reach, published.ends_training.clip, published.moves_training.clip) == (5, 1.0, 3.0)
    assert PublishedNet(2851, 121, 24).start(np.random.default_rng(1))["hidden.w"].shape == (101, 200)
