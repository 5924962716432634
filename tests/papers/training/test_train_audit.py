"""Many trainings of a small network on neighbouring inputs: the promise holds, and planted faults are seen."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate import noise
from murmurate.attacks.audit import audit
from murmurate.core.accounting import compose
from murmurate.papers.training import train as training
from murmurate.papers.training.sampling import Grouped, group_by_unit
from murmurate.papers.training.train import Plan, noisy_sum, train
from small_network import SmallNet

NET = SmallNet()
PLAN = Plan(sampling=0.95, steps=2, noise_multiplier=1.4, clip=0.05, learning_rate=1.0)
DELTA = 1e-3
RUNS = 600


def neighbours() -> tuple[Grouped, Grouped]:
    """Three units, and the same with a fourth whose rows nobody else has."""
    columns = {"a": [0, 1, 2, 5], "b": [1, 2, 0, 4], "c": [0, 1, 2, 5], "y": [0, 1, 2, 0]}
    unit = np.arange(4)
    whole = {name: np.array(values, dtype=np.int32) for name, values in columns.items()}
    return group_by_unit({name: values[:3] for name, values in whole.items()}, unit[:3]), group_by_unit(whole, unit)


def outputs(side, n, rng):
    """How far the parameters moved along the direction in which the fourth unit's gradient pushes them."""
    start = NET.start(np.random.default_rng(1))
    grouped = neighbours()[side]
    moved = []
    for one in rng.spawn(n):
        trained, _ = train(NET, start, grouped, plan=PLAN, n_expected=4, rng=one)
        moved.append(sum(float(((trained[name] - start[name]) * push).sum()) for name, push in CANARY.items()))
    return np.array(moved)


def canary_direction():
    import jax

    from murmurate.papers.training.ghost import plain_sum

    start = NET.start(np.random.default_rng(1))
    fourth = {name: values[-1:][None] for name, values in neighbours()[1].columns.items()}
    gradient, _ = plain_sum(NET, start, fourth, np.ones((1, 1), np.float32), jax.random.key(0))
    return {name: -np.asarray(value) for name, value in gradient.items()}


CANARY = canary_direction()


@pytest.fixture
def claim():
    return compose([PLAN.event()], delta=DELTA)


def test_the_bound_stays_below_the_claim(claim):
    found = audit(outputs, n=RUNS, rng=noise.seeded(1), delta=DELTA)
    assert found.value <= claim
    assert found.value > 0.03 * claim  # the audit sees something at all


def test_a_twin_without_noise_is_caught(monkeypatch, claim):
    monkeypatch.setattr(training, "noisy_sum", lambda sums, **options: noisy_sum(sums, **{**options, "noise_multiplier": 1e-3}))
    assert audit(outputs, n=RUNS, rng=noise.seeded(1), delta=DELTA).value > claim


def test_a_twin_without_clipping_is_caught(monkeypatch, claim):
    compiled = training.compiled
    monkeypatch.setattr(training, "compiled", lambda network, clip: compiled(network, 1e6))
    assert audit(outputs, n=RUNS, rng=noise.seeded(1), delta=DELTA).value > claim
