"""The trained parts of DP-Loc: they run whole, keep to their events, and come back from a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diagonal_city import GRID, city
from murmurate import noise
from murmurate.asking import STEPS
from murmurate.asking import budget as drawing
from murmurate.core.accounting import compose
from murmurate.core.events import Gaussian, PoissonGaussian
from murmurate.errors import InputError
from murmurate.mechanisms.dp_loc import DPLoc, moves_counts
from murmurate.mechanisms.dp_loc.settings import VARIANTS
from murmurate.papers.dp_loc import moves_net, network_budget
from murmurate.papers.dp_loc.initialiser_vae import EndsVAE, VAEEnds
from murmurate.papers.dp_loc.net_router import PublishedRouter, grouped_paths, inside
from murmurate.papers.dp_loc.network_budget import budget_of
from murmurate.papers.dp_loc.networks import PublishedNet
from murmurate.synthesis.moves import Neighbourhood
from murmurate.synthesis.shortest import Window, _tree_paths, cheapest_paths


def mechanism(**options):
    return DPLoc(**{"epsilon": 8.0, "space": GRID, "epochs": 0.1, "max_cells": 20, **options})


@pytest.fixture
def quick_accounting(monkeypatch):
    """Any noise will do where a test is not about the promise: solving for it takes longer than these trainings."""
    budget_of.cache_clear()
    monkeypatch.setattr(network_budget, "solve_noise_multiplier", lambda *_, **__: 1.0)
    yield
    budget_of.cache_clear()


@pytest.mark.usefixtures("quick_accounting")
@pytest.mark.parametrize(
    "options",
    [
        {"variant": "as_published", "epochs": 0.02},
        {"variant": "as_published", "epochs": 0.02, "route": "sampled"},
        {"initialiser": "vae", "next_cell": "net"},
        {"initialiser": "vae"},
    ],
    ids=["as_published", "as_published_sampled", "own_networks", "counted_moves"],
)
def test_trained_variants_run_and_come_back_from_a_file(options, tmp_path, monkeypatch):
    monkeypatch.setattr(moves_net, "LEAST_SIMULATED", 50)
    monkeypatch.setattr(moves_net, "MOST_SIMULATED", 50)
    monkeypatch.setattr(moves_counts, "LEAST_SIMULATED", 50)
    monkeypatch.setattr(moves_counts, "DRAWN_ENDS", 2_000)
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
@pytest.mark.parametrize("initialiser", ["vae", "counts"])
def test_what_is_drawn_is_what_was_charged(monkeypatch, initialiser):
    """Every noisy step of a fit, counted: tables against Gaussian events, training steps against Poisson ones."""
    from murmurate.papers.training import train as training

    asked = mechanism(variant="as_published", epochs=0.02, initialiser=initialiser)
    tables, steps = [], []
    gaussian, noisy_sum = noise.gaussian_integers, training.noisy_sum
    monkeypatch.setattr(
        drawing, "gaussian_integers", lambda v, *, scale, **o: tables.append(scale) or gaussian(v, scale=scale, **o)
    )
    monkeypatch.setattr(training, "noisy_sum", lambda s, **o: steps.append(o["noise_multiplier"]) or noisy_sum(s, **o))
    asked.fit(city(40), noise.seeded(1))
    events = asked.guarantee().events
    multipliers = [event.noise_multiplier for event in events if isinstance(event, Gaussian)]
    assert [scale / STEPS for scale in tables] == pytest.approx(multipliers)
    charged = [event.noise_multiplier for event in events if isinstance(event, PoissonGaussian) for _ in range(event.times)]
    assert steps == charged


def test_unbounded_units_are_refused():
    asked = mechanism(variant="as_published", unit="user", max_trips=5)
    with pytest.raises(InputError, match="more than the 5 trips"):
        asked.fit(city(100, users=1), noise.seeded(1))


@pytest.mark.usefixtures("quick_accounting")
def test_the_custodian_is_warned_of_what_cannot_be_learned():
    asked = mechanism(variant="as_published", epochs=0.02, delta=0.1)
    with pytest.warns(UserWarning, match="custodian only"):
        asked.fit(city(20), noise.seeded(1))


def test_most_probable_paths_of_the_network_follow_its_probabilities():
    around = Neighbourhood(rows=6, columns=7, reach=2)
    net = PublishedNet(around.n_cells, around.n_offsets, 24, 5, 8)
    params = net.start(np.random.default_rng(1))
    router = PublishedRouter(params, around, 24, "most_probable")
    object.__setattr__(router, "net", net)
    everything = Window((0, 0, 6, 7), 7)
    logits, totals, _ = router.costs()(10, 8)(everything)
    rows = np.arange(around.n_cells)
    known = np.asarray(net.logits(params, rows, np.full_like(rows, 10), np.full_like(rows, 8)))
    weights = np.where(inside(around), np.exp(known), 0.0)
    found = np.exp(logits - totals).T
    assert found == pytest.approx(weights / weights.sum(axis=1, keepdims=True), abs=1e-5)
    made = grouped_paths(np.array([0, 41, 10]), np.array([10, 10, 10]), np.array([8, 8, 8]), around, router.costs())
    assert made.sources.tolist() == [0, 41, 10]
    assert set(made.destinations.tolist()) == {10}


def test_windows_change_no_path():
    """Trees grown in windows give what trees over the whole grid give, also where the best way leaves the first window."""
    around = Neighbourhood(rows=40, columns=37, reach=2)
    net = PublishedNet(around.n_cells, around.n_offsets, 24, 5, 8)
    generator = np.random.default_rng(3)
    params = net.start(generator)
    params["out.w"] *= 30  # steps of very different cost, so that detours pay
    router = PublishedRouter(params, around, 24, "most_probable")
    object.__setattr__(router, "net", net)
    of = router.costs()
    everything = Window((0, 0, 40, 37), 37)
    sizes = []
    for destination in generator.integers(0, around.n_cells, 20):
        asked = []

        def windowed(window, destination=int(destination), asked=asked):
            asked.append(window.n_cells)
            return of(destination, 8)(window)

        sources = np.clip(destination + np.array([0, 1, 38, 40]), 0, around.n_cells - 1)
        cells, _ = cheapest_paths(windowed, sources, int(destination), around)
        sizes.append(len(asked))
        everywhere = [logs.copy() for logs in of(int(destination), 8)(everything)]
        whole, _ = _tree_of(everywhere, sources, int(destination), around)
        assert cells.tolist() == whole.tolist()
    assert max(sizes) > 1  # some tree had to be grown again
    assert min(sizes) == 1


def _tree_of(costs, sources, destination, around):
    _, cells, sizes = _tree_paths(
        tuple(costs), sources, destination, (around.rows, around.columns, around.reach), (0, 0, around.rows, around.columns)
    )
    return cells, sizes


def test_published_settings_are_those_of_the_paper():
    published = VARIANTS["as_published"]
    assert (published.reach, published.ends_training.clip, published.moves_training.clip) == (5, 1.0, 3.0)
    assert PublishedNet(2851, 121, 24).start(np.random.default_rng(1))["hidden.w"].shape == (101, 200)


def tiny_autoencoder(bias):
    """One latent variable, two cells, two hours, all weights zero: only biases speak."""
    network = EndsVAE(2, 2, hidden=3, latent=1)
    params = {name: np.zeros_like(value) for name, value in network.start(np.random.default_rng(1)).items()}
    return network, params | {name: np.array(value, dtype=np.float32) for name, value in bias.items()}


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        ({}, np.log(2)),
        # mean 1, deviation 2: (1 + 4 - 1 - 2 ln 2) / 2; the source is the first cell with probability 3/4
        (
            {"second.b": [1.0, np.log(2)], "source_out.b": [np.log(3), 0.0]},
            (np.log(4 / 3) + 2 * np.log(2)) / 3 + (4 - 2 * np.log(2)) / 2,
        ),
    ],
)
def test_the_loss_of_the_autoencoder_by_hand(bias, expected):
    import jax
    import jax.numpy as jnp

    network, params = tiny_autoencoder(bias)
    columns = {name: np.zeros((4, 1), dtype=np.int32) for name in ("source", "destination", "hour")}
    taps = {layer.name: jnp.zeros(()) for layer in network.layers}
    losses, _ = network.losses({name: jnp.asarray(value) for name, value in params.items()}, taps, columns, jax.random.key(0))
    assert np.asarray(losses) == pytest.approx(np.full((4, 1), expected), rel=1e-5)


def test_ends_are_the_most_probable_ones_or_drawn():
    _, params = tiny_autoencoder({"source_out.b": [0.0, np.log(3)], "hour_out.b": [1.0, 0.0]})
    ends = VAEEnds.of(params)
    source, destination, hour = ends.sample(4000, np.random.default_rng(1))
    assert (source == 1).all()
    assert (destination == 0).all()  # tied: the first
    assert (hour == 0).all()
    source, destination, _ = replace(ends, drawn=True).sample(4000, np.random.default_rng(1))
    assert source.mean() == pytest.approx(0.75, abs=0.03)
    assert destination.mean() == pytest.approx(0.5, abs=0.03)
