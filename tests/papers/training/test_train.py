from __future__ import annotations

import json

import dp_accounting
import numpy as np
import pytest

from murmurate import noise
from murmurate.core.accounting import compose, solve_noise_multiplier
from murmurate.errors import InputError, MurmurateError, ParameterError
from murmurate.papers.training import train as training
from murmurate.papers.training.train import Plan, noisy_sum, train
from small_network import SmallNet, some_units

NET = SmallNet()


def plan(**options):
    settings = {"sampling": 0.5, "steps": 6, "noise_multiplier": 1.0, "clip": 0.5, "learning_rate": 0.2}
    return Plan(**{**settings, **options})


def start():
    return NET.start(np.random.default_rng(1))


def run(grouped, chosen, seed=1, **options):
    return train(NET, start(), grouped, plan=chosen, n_expected=grouped.n_units, rng=noise.seeded(seed), **options)


def mean_loss(params, grouped):
    import jax

    from murmurate.papers.training.ghost import plain_sum
    from murmurate.papers.training.sampling import chunks

    loss = jax.jit(lambda params, columns, weight: plain_sum(NET, params, columns, weight, jax.random.key(0))[1])
    total = 0.0
    for chunk in chunks(grouped, np.arange(grouped.n_units), np.random.default_rng(1)):
        total += float(loss(params, chunk.columns, chunk.weight))
    return total / grouped.n_units


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_it_learns_where_there_is_something_to_learn(optimiser):
    grouped = some_units(400)
    grouped.columns["y"][:] = grouped.columns["c"] % 3
    rate = {"sgd": 2.0, "adam": 0.05}[optimiser]
    trained, _ = run(grouped, plan(steps=60, noise_multiplier=0.5, clip=1.0, learning_rate=rate, optimiser=optimiser))
    assert mean_loss(trained, grouped) < 0.7 * mean_loss(start(), grouped)


@pytest.mark.parametrize("factor", [1.0, 0.7, 1.3])
def test_noise_has_the_deviation_it_was_charged_for(factor):
    sums = {"a": np.full((300, 40), 2.0), "b": np.zeros(50)}
    noisy = noisy_sum(sums, clip=0.5, noise_multiplier=3.0 * factor, rng=noise.seeded(2))
    measured = np.concatenate([(noisy[name] - sums[name]).ravel() for name in sums]).std()
    inside = 0.95 * 1.5 < measured < 1.05 * 1.5
    assert inside == (factor == 1.0)


def test_noisy_sums_stand_on_a_public_lattice():
    noisy = noisy_sum({"a": np.linspace(0, 1, 16)}, clip=1.0, noise_multiplier=2.0**-14, rng=noise.seeded(2))
    steps = noisy["a"].astype(np.float64) * 2.0**20 * 4
    assert np.abs(steps - np.rint(steps)).max() < 1e-3 * np.abs(steps).max()


def test_the_event_record_is_what_an_independent_accountant_recomputes():
    multiplier = solve_noise_multiplier("gaussian", epsilon=1.0, delta=1e-5, sampling=0.02, steps=200)
    event = plan(sampling=0.02, steps=200, noise_multiplier=multiplier).event()
    accountant = dp_accounting.rdp.RdpAccountant()
    step = dp_accounting.PoissonSampledDpEvent(event.sampling, dp_accounting.GaussianDpEvent(event.noise_multiplier))
    accountant.compose(step, event.times)
    assert compose([event], delta=1e-5) <= 1.0
    assert 0.9 < accountant.get_epsilon(1e-5) < 1.4  # Renyi accounting is looser than privacy loss distributions


def test_taken_steps_are_planned_steps():
    _, event = run(some_units(20), plan(steps=3))
    assert (event.sampling, event.times, event.noise_multiplier) == (0.5, 3, 1.0)


def test_an_empty_set_of_units_is_noise_alone():
    params, _ = run(some_units(1), plan(sampling=1e-9, steps=2))
    assert any((params[name] != value).any() for name, value in start().items())


def test_divergence_is_told(monkeypatch):
    monkeypatch.setattr(
        training, "noisy_sum", lambda sums, **_: {name: np.full(v.shape, np.nan, np.float32) for name, v in sums.items()}
    )
    with pytest.raises(MurmurateError, match="diverged in step 1"):
        run(some_units(5), plan())


@pytest.mark.parametrize("options", [{"sampling": 0.0}, {"steps": 0}, {"noise_multiplier": 0.0}, {"clip": float("nan")}])
def test_absurd_plans_are_refused(options):
    with pytest.raises(ParameterError):
        plan(**options)


# -- checkpoints -------------------------------------------------------------------------------------------------------


class Stopped(Exception):
    pass


def interrupted(monkeypatch, folder, at, chosen):
    drawn = []

    def counting(sums, **options):
        if len(drawn) == at:
            raise Stopped
        drawn.append(noisy_sum(sums, **options))
        return drawn[-1]

    monkeypatch.setattr(training, "noisy_sum", counting)
    with pytest.raises(Stopped):
        run(some_units(30), chosen, checkpoint=folder)
    return drawn


def test_a_resumed_training_takes_no_step_twice_and_replays_no_noise(monkeypatch, tmp_path):
    chosen = plan(steps=8)
    first = interrupted(monkeypatch, tmp_path, 3, chosen)
    assert json.loads((tmp_path / "steps.json").read_text())["begun"] == 3
    second = []
    monkeypatch.setattr(training, "noisy_sum", lambda sums, **options: second.append(noisy_sum(sums, **options)) or second[-1])
    params, _ = train(NET, start(), some_units(30), plan=chosen, n_expected=30, rng=noise.secure(), checkpoint=tmp_path)
    # three steps were whole, the fourth had begun and is lost: four are left of eight
    assert len(first) + 1 + len(second) == 8
    for one in first:
        for other in second:
            assert (one["out.w"] != other["out.w"]).all()
    assert all(np.isfinite(value).all() for value in params.values())


def test_a_finished_training_takes_no_further_step(monkeypatch, tmp_path):
    chosen = plan(steps=2)
    done, _ = run(some_units(10), chosen, checkpoint=tmp_path)
    monkeypatch.setattr(training, "noisy_sum", lambda *_, **__: pytest.fail("another step was taken"))
    again, _ = run(some_units(10), chosen, checkpoint=tmp_path)
    assert all((done[name] == again[name]).all() for name in done)


def test_a_checkpoint_of_another_plan_is_refused(tmp_path):
    run(some_units(10), plan(steps=2), checkpoint=tmp_path)
    with pytest.raises(InputError, match="another plan"):
        run(some_units(10), plan(steps=3), checkpoint=tmp_path)
